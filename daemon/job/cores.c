/* Groups whose policy chose cores for them run there and nowhere else. */
#include <inttypes.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "common/util.h"
#include "daemon/job/runner_internal.h"
#include "daemon/node/topology.h"

/* What was being forked when its group was bound may come out elsewhere: so it is looked at again for a while. */
#define LOOKED_AFTER_USEC 10000000

static bool same_cores(const struct local *local, const Rm__Capsule *capsule) {
        if (local->n_cores != capsule->n_cores)
                return false;
        for (size_t i = 0; i < capsule->n_cores; i++)
                if (local->cores[i] != capsule->cores[i])
                        return false;
        return true;
}

static bool has_core(const Rm__Capsule *capsule, int16_t core) {
        for (size_t i = 0; i < capsule->n_cores; i++)
                if (core >= 0 && capsule->cores[i] == (uint32_t) core)
                        return true;
        return false;
}

/* The CPUs of its cores; all there are, when it has been given none. */
static void find_cpus(const struct topology *topology, const Rm__Capsule *capsule, cpu_set_t *ret_cpus) {
        bool all = capsule->n_cores == 0;

        CPU_ZERO(ret_cpus);
        for (unsigned cpu = 0; cpu < TOPOLOGY_CPUS_MAX && cpu < CPU_SETSIZE; cpu++)
                if (all ? topology->core_of_cpu[cpu] >= 0 : has_core(capsule, topology->core_of_cpu[cpu]))
                        CPU_SET(cpu, ret_cpus);
}

static void remember(struct local *local, const Rm__Capsule *capsule) {
        free(local->cores);
        local->cores = xcalloc(capsule->n_cores, sizeof(*local->cores));
        local->n_cores = capsule->n_cores;
        if (capsule->n_cores > 0)
                memcpy(local->cores, capsule->cores, sizeof(*local->cores) * capsule->n_cores);
}

/* Whoever is elsewhere by now; those who have bound themselves to some of their cores stay there. */
static void look_after(struct runner *runner, struct local *local, const cpu_set_t *cpus) {
        if (now_usec() - local->bound_usec > LOOKED_AFTER_USEC)
                local->bound_usec = 0;
        else if (capsule_bind(local->capsule, cpus, true) == 0)
                runner_retry(runner);
}

void cores_apply(struct runner *runner, struct local *local, const Rm__Capsule *capsule) {
        const struct topology *topology = runner->rmd->topology;
        bool same = same_cores(local, capsule);
        cpu_set_t cpus;
        int r;

        /* A node that is to pass for a larger one has no cores to choose from. */
        if (runner->rmd->config->cores > topology->real_cores)
                return;
        /* What never was given cores is left alone, and so is what is about to move. */
        if ((same && local->bound_usec == 0) || capsule_phase(local->capsule) != CAPSULE_RUNNING ||
            state_capsule_move(cluster_state(runner->rmd->cluster), local->job, local->index))
                return;
        find_cpus(topology, capsule, &cpus);
        if (CPU_COUNT(&cpus) == 0)
                return;
        if (same) {
                look_after(runner, local, &cpus);
                return;
        }
        r = capsule_bind(local->capsule, &cpus, false);
        if (r < 0)
                log_warn("capsule %s cannot be bound to its cores: %s", capsule_id(local->capsule), strerror(-r));
        remember(local, capsule);
        local->bound_usec = capsule->n_cores > 0 ? now_usec() : 0;
        if (local->bound_usec > 0)
                runner_retry(runner);
}
