#include <errno.h>
#include <string.h>

#include "common/log.h"
#include "common/util.h"
#include "daemon/capsule/private.h"

void capsule_get_limits(const struct capsule *capsule, struct capsule_limits *ret) {
        *ret = capsule->limits;
}

static char *payload_of(const struct capsule *capsule, enum controller which) {
        return capsule->limit_dirs[which] ? xasprintf("%s/payload", capsule->limit_dirs[which]) : NULL;
}

int capsule_apply_limits(struct capsule *capsule) {
        cleanup_free char *memory = payload_of(capsule, CONTROLLER_MEMORY);
        cleanup_free char *pids = payload_of(capsule, CONTROLLER_PIDS);
        int r = memory ? controllers_set_memory(memory, capsule->limits.memory_bytes) : 0;
        int q = pids ? controllers_set_pids(pids, capsule->limits.pids) : 0;

        return r < 0 ? r : q;
}

int capsule_confine(struct capsule *capsule, const cpu_set_t *cpus) {
        cleanup_free char *payload = payload_of(capsule, CONTROLLER_CPUSET);

        return payload ? controllers_set_cpus(payload, cpus) : -ENOTSUP;
}

bool capsule_can_limit(const struct capsule_ctx *ctx, enum capsule_resource which) {
        static const enum controller needed[] = {
                [CAPSULE_MEMORY] = CONTROLLER_MEMORY, [CAPSULE_PIDS] = CONTROLLER_PIDS, [CAPSULE_CORES] = CONTROLLER_CPUSET
        };

        return ctx->controllers.parent[needed[which]] != NULL;
}

void capsule_reserve_memory(struct capsule_ctx *ctx, uint64_t total_bytes, uint64_t reserve_bytes) {
        const char *all = ctx->controllers.parent[CONTROLLER_MEMORY];
        int r = all && total_bytes > reserve_bytes ? controllers_limit_memory(all, total_bytes - reserve_bytes) : 0;

        if (r < 0)
                log_warn("%s: all capsules together cannot be limited: %s", all, strerror(-r));
}
