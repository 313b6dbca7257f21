/* Makes the scheduler's input from the cluster's state. Pure. */
#ifndef RM_LEADER_ROUND_INPUT_H
#define RM_LEADER_ROUND_INPUT_H

#include "daemon/config/penalties.h"
#include "daemon/leader/node_memory.h"
#include "daemon/leader/progress.h"
#include "daemon/leader/traffic.h"
#include "daemon/sched/round.h"
#include "daemon/sched/snapshot.h"
#include "daemon/state/state_index.h"

/* A job that the round is made without: shown to policies, it would have stopped all others'
 * too. */
struct round_input_left_out {
        uint64_t job;
        char *reason; /* owned */
};

struct round_input {
        struct snapshot *snapshot; /* jobs are named by their numbers */
        struct round_job *jobs;    /* in the order of the snapshot's */
        uint32_t n_jobs;
        struct round_input_left_out *left_out; /* what runs of them holds its cores: they are missing from its nodes */
        size_t n_left_out;
        bool avoids; /* groups are kept off a node that moves to it have failed, for some seconds */
};

struct round_input_config {
        uint32_t group_size; /* of jobs that do not say theirs, 0 = chosen by the nodes' sizes */
        uint64_t now_usec; /* real time */
        uint64_t horizon_usec; /* within which moves must pay */
        uint32_t age_weight;
        uint32_t move_budget; /* as in rm_params */
        int64_t bytes_per_cost; /* as in rm_params */
        const struct traffic *traffic; /* NULL: nothing is known of it */
        const struct node_memory *memory; /* NULL: nothing was reported */
        const struct progress *progress;  /* NULL: nothing is known of it */
        /* A waiting job is not to be placed yet. NULL: all are. */
        bool (*waits)(const void *context, const Rm__Job *job);
        const void *waits_context;
        int64_t distribution_weight; /* as in rm_params */
        const struct penalties *node_penalty; /* NULL: nodes cost nothing */
        int64_t warn_penalty; /* what a node costs more while its condition is WARN */
        uint32_t backfill; /* as in rm_params, or ROUND_BACKFILL_LIMITS */
        uint32_t spare_nodes; /* kept free for whichever job needs room */
};

/* Free with round_input_finish(). The jobs in it pass snapshot_check_jobs(), whatever the state
 * holds. */
void round_input_create(const struct state_index *index, const struct round_input_config *config, struct round_input *ret);
void round_input_finish(struct round_input *input);

/* Only the nodes, as they are in the state. `penalties` NULL: they cost nothing, but with a
 * warning. */
void round_input_nodes(const struct state_index *index, const struct penalties *penalties, int64_t warn_penalty,
                       struct snapshot *snapshot);

/* The group size of a waiting job. Of one with parked ranks no group has ranks of both kinds when
 * it begins, unless its owner gave a size. */
uint32_t round_input_group_size(const Rm__State *state, const Rm__JobSpec *spec, uint32_t configured);
/* The group size that the job has, or is to have when it goes on from the checkpoint (NULL: from
 * none, or it has capsules). It is not that of the snapshot where all ranks that compute are in one
 * group with others. */
uint32_t round_input_group_size_of(const Rm__State *state, const Rm__Job *job, const Rm__Checkpoint *checkpoint,
                                   uint32_t configured);

#endif
