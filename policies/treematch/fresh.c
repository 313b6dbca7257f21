#include "policies/treematch/fresh.h"

#include "policies/place/cost.h"
#include "policies/treematch/crowd.h"
#include "policies/treematch/map.h"

enum { WORK_EACH = 8000, MOST_WORK = 1000 * 1000 }; /* for further attempts: some 15 ms */

static void map_crowd(struct scene *scene, const uint32_t *jobs, uint32_t n_jobs) {
        struct crowd crowd;
        struct tree tree;
        uint64_t work;

        crowd_make(scene, jobs, n_jobs, scene->snapshot->jobs[jobs[0]].group_size == 1, &crowd);
        tree_with_room(scene->pool, &crowd.places->tree, crowd.room, &tree);
        work = crowd.n_groups < MOST_WORK / WORK_EACH ? crowd.n_groups * WORK_EACH : MOST_WORK;
        map_improve(scene->pool, &tree, &crowd.graph, &scene->limits, work, crowd.leaf);
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
