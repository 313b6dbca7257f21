/* One call of the policy: the snapshot, its places, and the plan as it grows. */
#ifndef RM_TREEMATCH_SCENE_H
#define RM_TREEMATCH_SCENE_H

#include <stdbool.h>
#include <stdint.h>

#include "policies/treematch/graph.h"
#include "policies/treematch/limits.h"
#include "policies/treematch/places.h"
#include "rm/policy.h"

struct scene {
        struct pool *pool;
        const struct rm_snapshot *snapshot;
        struct rm_plan *plan;
        struct limits limits;
        const struct rm_policy_run *run;
        uint64_t reserve_usec; /* kept back to finish with */
        struct places nodes; /* down to nodes */
        struct places cores; /* down to what holds cores */
        /* Each job, each rank: the leaf of `cores` that was chosen for it, TREE_NONE when only its node was; NULL: for none. */
        uint32_t **rank_leaf;
        bool silent; /* there are pairs of 0 bytes */
        uint32_t shift; /* bytes are divided by 2^shift (but never to 0), so that sums of them times hops fit */
};

/* `run` NULL: there is no end of time. The scene must stay where it is. */
void scene_make(struct pool *pool, const struct rm_snapshot *snapshot, const struct rm_policy_run *run, struct rm_plan *plan,
                struct scene *ret_scene);

static inline bool scene_places(const struct scene *scene, uint32_t job) {
        return scene->plan->jobs[job].decision == RM_PLACE;
}
static inline bool job_has_traffic(const struct rm_job *job) {
        return job->traffic.offset && job->traffic.peer && job->traffic.bytes && job->traffic.offset[job->ranks] > 0;
}
static inline int64_t scene_weight(const struct scene *scene, uint64_t bytes) {
        return (int64_t) (bytes >> scene->shift ? bytes >> scene->shift : 1);
}

/* Is anything known of the traffic of the jobs that the plan places? */
bool scene_has_traffic(const struct scene *scene);

/* The traffic of some jobs between their groups, as one graph: vertices are groups, job after job. */
void scene_graph(const struct scene *scene, const uint32_t *jobs, uint32_t n_jobs, struct graph *ret_graph);

/* What plans cost in bytes times hops, and how many bytes leave their nodes, over the jobs that the scene's places, as all of them must (and all
 * ranks have cores). */
struct scene_bytes {
        double hop_bytes, inter_node_bytes;
};
void scene_measure(const struct scene *scene, const struct rm_plan *const *plans, uint32_t n_plans, struct scene_bytes *ret_bytes);

/* A copy in the pool of where the plan has groups and ranks now; and back to it. */
struct rm_plan *scene_copy_plan(const struct scene *scene);
void scene_go_back(const struct scene *scene, const struct rm_plan *copy);

#endif
