#include "daemon/leader/core_share.h"

#include <math.h>
#include <stdlib.h>

/* The usual one has fall-throughs that clang warns of. */
#define HASH_FUNCTION HASH_OAT
#include <uthash.h>

#include "common/util.h"
#include "daemon/leader/smoothing.h"

struct group {
        struct group_key {
                uint64_t job;
                int64_t capsule;
        } key;
        double ran, waited; /* in cores, of the last while */
        uint64_t seen_usec;
        UT_hash_handle hh;
};

struct core_share {
        struct group *groups;
};

struct core_share *core_share_create(void) {
        return xcalloc(1, sizeof(struct core_share));
}

static void drop(struct core_share *share, struct group *group) {
        HASH_DEL(share->groups, group);
        free(group);
}

void core_share_destroy(struct core_share *share) {
        struct group *group, *next;

        if (!share)
                return;
        HASH_ITER (hh, share->groups, group, next)
                drop(share, group);
        free(share);
}

static struct group *find(const struct core_share *share, uint64_t job, int32_t capsule) {
        const struct group_key key = { job, capsule };
        struct group *group;

        HASH_FIND(hh, share->groups, &key, sizeof(key), group);
        return group;
}

static bool is_folded(const struct state_index *index, uint64_t id) {
        const Rm__Job *job = state_job(state_index_state(index), id);
        uint32_t ranks;

        return job && state_job_fold(index, job, &ranks);
}

void core_share_add(struct core_share *share, const struct state_index *index, const Rm__CoreShare *report) {
        const Rm__Job *job = state_job(state_index_state(index), report->job);
        const Rm__Capsule *capsule = job ? job_capsule(job, report->capsule) : NULL;
        struct group *group;
        double weight;

        if (!capsule || capsule->index == STATE_HEAD || report->usec == 0 || !is_folded(index, job->id))
                return;
        group = find(share, job->id, capsule->index);
        if (!group) {
                group = xcalloc(1, sizeof(*group));
                group->key = (struct group_key) { job->id, capsule->index };
                HASH_ADD(hh, share->groups, key, sizeof(group->key), group);
        }
        weight = smoothing_weight(&group->seen_usec, report->usec, CORE_SHARE_MEMORY_USEC);
        group->ran += weight * ((double) report->ran_usec / (double) report->usec - group->ran);
        group->waited += weight * ((double) report->waited_usec / (double) report->usec - group->waited);
}

void core_share_forget(struct core_share *share, const struct state_index *index) {
        struct group *group, *next;

        HASH_ITER (hh, share->groups, group, next)
                if (!is_folded(index, group->key.job))
                        drop(share, group);
}

/* A rank that sleeps is not slower for the others. A group with more busy processes than ranks
 * wants as many cores as these. */
static double slowdown(const struct group *group, uint32_t ranks) {
        double requested = fmax(ranks, group->ran + group->waited);

        return group->waited < requested ? requested / (requested - group->waited) : 0;
}

double core_share_slowdown(const struct core_share *share, const Rm__Job *job) {
        double most = 0;

        for (size_t k = 0; k < job->n_capsules; k++) {
                const struct group *group = find(share, job->id, job->capsules[k]->index);

                if (group)
                        most = fmax(most, slowdown(group, job->capsules[k]->ranks));
        }
        return most;
}
