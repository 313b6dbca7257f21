#include "policies/treematch/measure.h"

#include <string.h>

#include "policies/treematch/inside.h"
#include "policies/treematch/scene.h"
#include "policies/treematch/slots.h"

/* So that it may be changed. */
static struct rm_plan *copy_plan(struct pool *pool, const struct rm_snapshot *snapshot, const struct rm_plan *plan) {
        struct rm_plan *copy = pool_alloc(pool, 1, sizeof(*copy));

        *copy = *plan;
        copy->jobs = pool_alloc(pool, plan->n_jobs, sizeof(*copy->jobs));
        for (uint32_t j = 0; j < plan->n_jobs; j++) {
                const struct rm_job *job = &snapshot->jobs[j];

                copy->jobs[j] = plan->jobs[j];
                copy->jobs[j].group_node = pool_alloc(pool, job->n_groups, sizeof(int32_t));
                copy->jobs[j].rank_core = pool_alloc(pool, job->ranks, sizeof(int32_t));
                memcpy(copy->jobs[j].group_node, plan->jobs[j].group_node, sizeof(int32_t) * job->n_groups);
                memcpy(copy->jobs[j].rank_core, plan->jobs[j].rank_core, sizeof(int32_t) * job->ranks);
        }
        return copy;
}

static bool any_known(const struct scene *scene) {
        for (uint32_t j = 0; j < scene->snapshot->n_jobs; j++)
                if (scene_places(scene, j) && job_has_traffic(&scene->snapshot->jobs[j]))
                        return true;
        return false;
}

static bool any_without_core(const struct scene *scene) {
        for (uint32_t j = 0; j < scene->snapshot->n_jobs; j++)
                for (uint32_t r = 0; scene_places(scene, j) && r < scene->snapshot->jobs[j].ranks; r++)
                        if (scene->plan->jobs[j].rank_core[r] == RM_NO_CORE)
                                return true;
        return false;
}

static uint64_t whole(double value) {
        return value < (double) INT64_MAX ? (uint64_t) value : INT64_MAX;
}

static bool measure(const struct rm_snapshot *snapshot, const struct rm_plan *plan, bool by_slot, struct measured *ret_measured) {
        struct scene_bytes bytes;
        struct pool pool;
        struct scene scene;
        bool known;

        pool_init(&pool);
        scene_make(&pool, snapshot, NULL, (struct rm_plan *) plan, &scene);
        known = any_known(&scene);
        if (known && (by_slot || any_without_core(&scene))) {
                scene.plan = copy_plan(&pool, snapshot, plan);
                known = !by_slot || slots_place(&scene, true);
                inside_assign(&scene, false);
        }
        if (known) {
                bytes = scene_measure(&scene);
                *ret_measured = (struct measured) { whole(bytes.hop_bytes), whole(bytes.inter_node_bytes) };
        }
        pool_finish(&pool);
        return known;
}

bool measure_plan(const struct rm_snapshot *snapshot, const struct rm_plan *plan, struct measured *ret_measured) {
        return measure(snapshot, plan, false, ret_measured);
}

bool measure_by_slot(const struct rm_snapshot *snapshot, const struct rm_plan *plan, struct measured *ret_measured) {
        return measure(snapshot, plan, true, ret_measured);
}
