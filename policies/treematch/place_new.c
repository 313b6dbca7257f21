#include "policies/treematch/place_new.h"

#include "placement/cost.h"
#include "policies/treematch/batch.h"
#include "policies/treematch/map.h"

enum {
        WORK_EACH = 8000, /* for further attempts */
        MOST_WORK = 1200 * 1000, /* some 18 ms */
        HALF_AT = 16384, /* groups; the more there are, the less do further attempts bring */
};

static void map_batch(struct map_context *context, const uint32_t *jobs, uint32_t n_jobs) {
        struct batch batch;
        struct tree tree;
        uint64_t work, most;

        batch_make(context, jobs, n_jobs, context->snapshot->jobs[jobs[0]].group_size == 1, &batch);
        tree_with_space(context->pool, &batch.places->tree, batch.space, &tree);
        work = (uint64_t) batch.n_groups * WORK_EACH;
        most = (uint64_t) MOST_WORK * HALF_AT / (HALF_AT + (uint64_t) batch.n_groups);
        map_improve(context->pool, &tree, &batch.graph, &context->limits, work < most ? work : most, batch.leaf);
        batch_take(&batch);
}

void place_new(struct map_context *context) {
        uint32_t *jobs = pool_alloc(context->pool, context->snapshot->n_jobs, sizeof(*jobs)), n = 0, batch;

        for (uint32_t j = 0; j < context->snapshot->n_jobs; j++) {
                const struct rm_job *job = &context->snapshot->jobs[j];

                if (context_places(context, j) && !job_runs(job) && job_has_traffic(job) && job->n_groups > 1)
                        jobs[n++] = j;
        }
        for (; n > 0; jobs += batch, n -= batch) {
                batch = batch_select(context, jobs, n);
                map_batch(context, jobs, batch);
        }
}
