#include "daemon/job/limits.h"

#include <stdio.h>
#include <stdlib.h>

#include "common/log.h"
#include "common/util.h"
#include "daemon/node/topology.h"

/* mpirun or prted with one small rank take about 100 MB. */
#define MEMORY_MIN_BYTES (UINT64_C(256) << 20)
/* mpirun itself has about ten processes and threads, a rank about five; the rest is for programs
 * with threads of their own. */
#define PIDS_BASE 1024U
#define PIDS_PER_RANK 1024U
/* The node keeps one part in so many of its memory, with a bound in bytes, for the kernel, rmd,
 * CRIU's images and logins. */
#define RESERVE_PART 16U
#define RESERVE_MAX_BYTES (UINT64_C(4) << 30)

uint64_t limits_reserve(uint64_t node_memory_bytes) {
        uint64_t reserve = node_memory_bytes / RESERVE_PART;

        return reserve < RESERVE_MAX_BYTES ? reserve : RESERVE_MAX_BYTES;
}

static uint64_t memory_share(const struct limits_node *node, uint32_t ranks) {
        uint64_t most = node->memory_bytes - limits_reserve(node->memory_bytes);
        uint64_t share = node->cores > 0 ? node->memory_bytes / node->cores * ranks : most;

        if (node->memory_bytes == 0) /* not known */
                return UINT64_MAX;
        if (share < MEMORY_MIN_BYTES)
                share = MEMORY_MIN_BYTES;
        return share < most ? share : most;
}

void limits_share(const struct config *config, const struct limits_node *node, uint32_t ranks, struct capsule_limits *ret) {
        uint32_t counted = ranks > 0 ? ranks : 1;

        ret->memory_bytes = config->memory_max ? config->memory_max : memory_share(node, counted);
        ret->pids = config->pids_max ? config->pids_max : PIDS_BASE + (uint64_t) PIDS_PER_RANK * counted;
}

uint64_t limits_node_memory(const struct config *config, uint64_t total_bytes) {
        return config->memory > 0 && config->memory < total_bytes ? config->memory : total_bytes;
}

void limits_promised(const struct config *config, uint64_t promised_bytes, struct capsule_limits *limits) {
        uint64_t most = config->memory_max ? config->memory_max : UINT64_MAX;
        uint64_t bytes = promised_bytes > MEMORY_MIN_BYTES ? promised_bytes : MEMORY_MIN_BYTES;

        if (promised_bytes > 0)
                limits->memory_bytes = bytes < most ? bytes : most;
}

void limits_here(const struct rmd *rmd, uint32_t ranks, uint64_t promised_bytes, const struct capsule_limits *kept,
                 struct capsule_limits *ret) {
        const struct limits_node node = {
                .memory_bytes = limits_node_memory(rmd->config, rmd->topology->memory_bytes),
                .cores = rmd->config->cores ? rmd->config->cores : rmd->topology->cores,
        };

        limits_share(rmd->config, &node, ranks, ret);
        limits_promised(rmd->config, promised_bytes, ret);
        if (kept && kept->memory_bytes > ret->memory_bytes)
                ret->memory_bytes = kept->memory_bytes;
        if (kept && kept->pids > ret->pids)
                ret->pids = kept->pids;
}

char *limits_missing(const struct rmd *rmd) {
        const struct capsule_ctx *capsules = rmd->capsules;
        bool pretends = rmd->config->cores > rmd->topology->real_cores;
        const char *missing[] = {
                capsule_can_limit(capsules, CAPSULE_MEMORY) ? NULL : "memory_max (no memory controller)",
                capsule_can_limit(capsules, CAPSULE_PIDS) ? NULL : "pids_max (no pids controller)",
                pretends                                     ? "usable cores ([node] cores is more than there are)"
                : capsule_can_limit(capsules, CAPSULE_CORES) ? NULL
                                                             : "usable cores except by CPU affinity (no cpuset controller)",
        };
        char *text = NULL;
        size_t size = 0;
        FILE *f = open_memstream(&text, &size);

        if (!f)
                abort();
        for (size_t i = 0; i < ARRAY_SIZE(missing); i++)
                if (missing[i])
                        (void) fprintf(f, "%s%s", ftell(f) > 0 ? ", " : "not enforced here: ", missing[i]);
        (void) fclose(f);
        if (*text)
                return text;
        free(text);
        return NULL;
}

void limits_begin(const struct rmd *rmd) {
        cleanup_free char *missing = limits_missing(rmd);

        if (rmd->config->memory_max != UINT64_MAX && rmd->topology->memory_bytes > 0)
                capsule_reserve_memory(rmd->capsules, rmd->topology->memory_bytes, limits_reserve(rmd->topology->memory_bytes));
        if (missing)
                log_warn("%s", missing);
}
