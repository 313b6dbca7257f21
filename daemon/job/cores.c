/* Capsules here run on the cores of this node that may be used, and groups whose policy chose cores
 * for them on these and no others. */
#include <inttypes.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "common/util.h"
#include "daemon/job/runner_internal.h"
#include "daemon/node/topology.h"

/* A process that was being forked when its group was bound may come out on other cores: so the
 * group is looked at again for a while. */
#define SCANNED_AFTER_USEC 10000000
/* A node without usable cores is about to be left, which takes least time if nothing there is
 * slowed down. Capsules that are still here after so long have nowhere to go. */
#define LEAVE_USEC 30000000

/* The part of each copy that this file keeps. A copy may be bound, confined, both or neither: a
 * host may lack cpusets. */
struct cores {
        uint32_t *chosen; /* for it when it was bound last */
        size_t n_chosen;
        bool bound; /* to `cpus`; else it never was */
        cpu_set_t cpus;
        uint64_t bound_usec; /* when; 0: long ago, or never */
        bool confined; /* by a cpuset to `confined_cpus` */
        cpu_set_t confined_cpus; /* that were tried last; none: not yet */
};

static struct cores *cores_of(const struct resident *resident) {
        return resident_part(resident, RESIDENT_CORES, sizeof(struct cores));
}

void cores_forget(struct resident *resident) {
        free(take_ptr(cores_of(resident)->chosen));
}

/* The CPUs that one capsule is to run on. */
struct place {
        cpu_set_t all; /* that the node has */
        cpu_set_t usable; /* of these */
        cpu_set_t cpus; /* what its threads get: of the usable ones, or with a cpuset around it, of all */
};

static bool same_cores(const struct cores *cores, const Rm__Capsule *capsule) {
        if (cores->n_chosen != capsule->n_cores)
                return false;
        for (size_t i = 0; i < capsule->n_cores; i++)
                if (cores->chosen[i] != capsule->cores[i])
                        return false;
        return true;
}

static void remember(struct cores *cores, const Rm__Capsule *capsule) {
        free(cores->chosen);
        cores->chosen = xcalloc(capsule->n_cores, sizeof(*cores->chosen));
        cores->n_chosen = capsule->n_cores;
        if (capsule->n_cores > 0)
                memcpy(cores->chosen, capsule->cores, sizeof(*cores->chosen) * capsule->n_cores);
}

/* Counts the usable cores: those that the node offers, less those that its line in the availability
 * file, a drain or its condition takes away. It does not matter whether the leader hears of this
 * node. */
static uint32_t count_usable(const struct runner *runner, uint32_t offered) {
        const Rm__Node *node = state_node(cluster_state(runner->rmd->cluster), cluster_self(runner->rmd->cluster));

        if (node && node_to_be_left(node))
                return 0;
        return node && node->available_set && node->available_cores < offered ? node->available_cores : offered;
}

static uint32_t usable_cores(struct runner *runner) {
        const struct rmd *rmd = runner->rmd;
        uint32_t offered = rmd->config->cores ? rmd->config->cores : rmd->topology->real_cores;
        uint32_t usable = count_usable(runner, offered);

        if (usable > 0) {
                runner->unusable_usec = 0;
                return runner->usable_cores = usable;
        }
        if (runner->unusable_usec == 0)
                runner->unusable_usec = now_usec();
        runner_scan_again(runner);
        if (now_usec() - runner->unusable_usec > LEAVE_USEC)
                return 1;
        return runner->usable_cores ? runner->usable_cores : offered;
}

/* The CPUs of the first so many cores. */
static void cpus_of_first(const struct topology *topology, uint32_t cores, cpu_set_t *ret) {
        CPU_ZERO(ret);
        for (unsigned cpu = 0; cpu < TOPOLOGY_CPUS_MAX && cpu < CPU_SETSIZE; cpu++)
                if (topology->core_of_cpu[cpu] >= 0 && (uint32_t) topology->core_of_cpu[cpu] < cores)
                        CPU_SET(cpu, ret);
}

static bool has_core(const Rm__Capsule *capsule, int16_t core) {
        for (size_t i = 0; i < capsule->n_cores; i++)
                if (core >= 0 && capsule->cores[i] == (uint32_t) core)
                        return true;
        return false;
}

/* Policies choose among the usable cores; when there are fewer since, the next round chooses
 * anew. */
static void take_chosen(const struct topology *topology, const Rm__Capsule *capsule, struct place *place) {
        cpu_set_t chosen;

        CPU_ZERO(&chosen);
        for (unsigned cpu = 0; cpu < TOPOLOGY_CPUS_MAX && cpu < CPU_SETSIZE; cpu++)
                if (has_core(capsule, topology->core_of_cpu[cpu]) && CPU_ISSET(cpu, &place->usable))
                        CPU_SET(cpu, &chosen);
        if (CPU_COUNT(&chosen) > 0)
                place->cpus = chosen;
}

/* A cpuset holds them whatever they ask for. Without one, or while it cannot be set, only their own
 * affinity does. */
static void confine(const struct resident *resident, const cpu_set_t *usable) {
        struct cores *cores = cores_of(resident);
        int r;

        if (CPU_EQUAL(&cores->confined_cpus, usable))
                return; /* tried, whatever came of it */
        r = capsule_confine(resident_capsule(resident), usable);
        if (r < 0 && r != -ENOTSUP)
                log_warn("capsule %s cannot be kept on the usable cores: %s", capsule_id(resident_capsule(resident)), strerror(-r));
        cores->confined = r == 0;
        cores->confined_cpus = *usable;
}

static void find_place(struct runner *runner, const struct resident *resident, const Rm__Capsule *capsule, struct place *ret) {
        const struct topology *topology = runner->rmd->topology;

        cpus_of_first(topology, topology->real_cores, &ret->all);
        cpus_of_first(topology, usable_cores(runner), &ret->usable);
        confine(resident, &ret->usable);
        ret->cpus = cores_of(resident)->confined ? ret->all : ret->usable;
        take_chosen(topology, capsule, ret);
}

/* Binds those processes that run elsewhere by now; those that have bound themselves to some of
 * their cores stay there. */
static void scan_after(struct runner *runner, const struct resident *resident, const struct place *place) {
        struct cores *cores = cores_of(resident);
        bool new = cores->bound_usec > 0 && now_usec() - cores->bound_usec <= SCANNED_AFTER_USEC;

        if (!new)
                cores->bound_usec = 0;
        if (CPU_EQUAL(&place->cpus, &place->all) || (!new && cores->confined))
                return;
        if (capsule_bind(resident_capsule(resident), &place->cpus, true, NULL) < 0)
                return; /* it ends */
        if (new)
                runner_retry(runner);
        else
                runner_scan_again(runner);
}

static void bind_again(struct runner *runner, const struct resident *resident, const Rm__Capsule *capsule,
                       const struct place *place) {
        struct cores *cores = cores_of(resident);
        bool same = same_cores(cores, capsule);
        int r = capsule_bind(resident_capsule(resident), &place->cpus, same, cores->bound ? &cores->cpus : NULL);

        if (r < 0)
                log_warn("capsule %s cannot be bound to its cores: %s", capsule_id(resident_capsule(resident)), strerror(-r));
        remember(cores, capsule);
        cores->bound = true;
        cores->cpus = place->cpus;
        cores->bound_usec = now_usec();
        runner_retry(runner);
}

void cores_apply(struct runner *runner, struct resident *resident, const Rm__Capsule *capsule) {
        enum capsule_phase phase = capsule_phase(resident_capsule(resident));
        const struct cores *cores = cores_of(resident);
        struct place place;

        /* A node that is to pass for a larger one has no cores to choose from; and what is about to
         * move is left alone. */
        if (runner->rmd->config->cores > runner->rmd->topology->real_cores ||
            (phase != CAPSULE_RUNNING && phase != CAPSULE_EMPTY) ||
            state_capsule_move(cluster_index(runner->rmd->cluster), resident_job(resident), resident_index(resident)))
                return;
        find_place(runner, resident, capsule, &place);
        if (CPU_COUNT(&place.cpus) == 0)
                return;
        if (phase == CAPSULE_EMPTY && !CPU_EQUAL(&place.cpus, &place.all))
                runner_retry(runner); /* until it runs */
        else if (phase == CAPSULE_EMPTY)
                return;
        else if (same_cores(cores, capsule) && CPU_EQUAL(&place.cpus, cores->bound ? &cores->cpus : &place.all))
                scan_after(runner, resident, &place);
        else
                bind_again(runner, resident, capsule, &place);
}
