/* A call of the policy: the snapshot, its places, and the plan as it grows. */
#ifndef RM_PLACEMENT_MAP_CONTEXT_H
#define RM_PLACEMENT_MAP_CONTEXT_H

#include <stdbool.h>
#include <stdint.h>

#include "placement/topology/graph.h"
#include "placement/topology/limits.h"
#include "placement/topology/places.h"
#include "rm/policy.h"

struct map_context {
        struct pool *pool;
        const struct rm_snapshot *snapshot;
        struct rm_plan *plan;
        struct limits limits;
        const struct rm_policy_run *run;
        uint64_t reserve_usec; /* kept back to finish with */
        struct places nodes; /* down to nodes */
        struct places cores; /* down to what holds cores */
        /* Each job, each rank: the leaf of `cores` that was chosen for it, TREE_NONE when only its
         * node was; NULL: for none. */
        uint32_t **rank_leaf;
        bool silent; /* there are pairs of 0 bytes */
        uint32_t shift; /* bytes are divided by 2^shift (but never to 0), so that sums of them times hops fit */
};

/* `run` NULL: there is no end of time. The context must stay where it is. */
void context_make(struct pool *pool, const struct rm_snapshot *snapshot, const struct rm_policy_run *run, struct rm_plan *plan,
                  struct map_context *ret_context);

static inline bool context_places(const struct map_context *context, uint32_t job) {
        return context->plan->jobs[job].decision == RM_PLACE;
}
static inline bool job_has_traffic(const struct rm_job *job) {
        return job->traffic.offset && job->traffic.peer && job->traffic.bytes && job->traffic.offset[job->ranks] > 0;
}
static inline int64_t context_weight(const struct map_context *context, uint64_t bytes) {
        return (int64_t) (bytes >> context->shift ? bytes >> context->shift : 1);
}

/* Is anything known of the traffic of the jobs that the plan places? */
bool context_has_traffic(const struct map_context *context);

/* The traffic of some jobs between their groups, as one graph: vertices are groups, job after
 * job. */
void context_graph(const struct map_context *context, const uint32_t *jobs, uint32_t n_jobs, struct graph *ret_graph);

/* The cost of plans in bytes times hops, and the bytes that leave their nodes, over the jobs that
 * the plan places, as all of them must (and all ranks have cores). */
struct plan_bytes {
        double hop_bytes, inter_node_bytes;
};
void context_measure(const struct map_context *context, const struct rm_plan *const *plans, uint32_t n_plans,
                     struct plan_bytes *ret_bytes);

/* A copy in the pool of where the plan has groups and ranks now; and back to it. */
struct rm_plan *context_copy_plan(const struct map_context *context);
void context_go_back(const struct map_context *context, const struct rm_plan *copy);

#endif
