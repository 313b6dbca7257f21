#include "policies/treematch/measure.h"

#include "policies/treematch/inside.h"
#include "policies/treematch/scene.h"
#include "policies/treematch/slots.h"

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
        known = scene_has_traffic(&scene);
        if (known && (by_slot || any_without_core(&scene))) {
                scene.plan = scene_copy_plan(&scene); /* so that it may be changed */
                known = !by_slot || slots_place(&scene, true);
                inside_assign(&scene, false);
        }
        if (known) {
                scene_measure(&scene, (const struct rm_plan *const[]) { scene.plan }, 1, &bytes);
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
