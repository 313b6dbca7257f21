#include "policies/treematch/fresh.h"

#include "policies/place/cost.h"
#include "policies/treematch/crowd.h"
#include "policies/treematch/map.h"

enum {
        WORK_EACH = 8000, /* for further attempts */
        MOST_WORK = 1200 * 1000, /* some 18 ms */
        HALF_AT = 16384, /* groups; the more there are, the less do further attempts bring */
};

static void map_crowd(struct scene *scene, const uint32_t *jobs, uint32_t n_jobs) {
        struct crowd crowd;
        struct tree tree;
        uint64_t work, most;

        crowd_make(scene, jobs, n_jobs, scene->snapshot->jobs[jobs[0]].group_size == 1, &crowd);
        tree_with_room(scene->pool, &crowd.places->tree, crowd.room, &tree);
        work = (uint64_t) crowd.n_groups * WORK_EACH;
        most = (uint64_t) MOST_WORK * HALF_AT / (HALF_AT + (uint64_t) crowd.n_groups);
        map_improve(scene->pool, &tree, &crowd.graph, &scene->limits, work < most ? work : most, crowd.leaf);
        crowd_take(&crowd);
}

void fresh_place(struct scene *scene) {
        uint32_t *jobs = pool_alloc(scene->pool, scene->snapshot->n_jobs, sizeof(*jobs)), n = 0, crowd;

        for (uint32_t j = 0; j < scene->snapshot->n_jobs; j++) {
                const struct rm_job *job = &scene->snapshot->jobs[j];

                if (scene_places(scene, j) && !job_runs(job) && job_has_traffic(job) && job->n_groups > 1)
                        jobs[n++] = j;
        }
        for (; n > 0; jobs += crowd, n -= crowd) {
                crowd = crowd_select(scene, jobs, n);
                map_crowd(scene, jobs, crowd);
        }
}
