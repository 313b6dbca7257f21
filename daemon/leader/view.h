/* From the cluster's state to what the scheduler sees. Pure. */
#ifndef RM_LEADER_VIEW_H
#define RM_LEADER_VIEW_H

#include "common/error.h"
#include "daemon/cluster/state.h"
#include "daemon/leader/traffic.h"
#include "daemon/sched/round.h"
#include "daemon/sched/snapshot.h"

struct view {
        struct snapshot *snapshot; /* jobs are named by their numbers */
        struct round_job *jobs;    /* in the order of the snapshot's */
        uint32_t n_jobs;
};

struct view_config {
        uint32_t group_size; /* of jobs that do not say theirs, 0 = chosen by the nodes' sizes */
        uint64_t now_usec; /* real time */
        uint64_t horizon_usec; /* within which moves must pay */
        uint32_t age_weight;
        uint32_t move_budget; /* as in rm_params */
        int64_t bytes_per_cost; /* as in rm_params */
        const struct traffic *traffic; /* NULL: nothing is known of it */
        uint32_t backfill; /* as in rm_params, or ROUND_BACKFILL_LIMITS */
};

/* Free with view_finish(). */
int view_create(const Rm__State *state, const struct view_config *config, struct view *ret, struct rm_error *err);
void view_finish(struct view *view);

/* The group size of a waiting job. */
uint32_t view_group_size(const Rm__State *state, const Rm__JobSpec *spec, uint32_t configured);

#endif
