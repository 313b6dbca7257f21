#include "policies/treematch/replace.h"

#include "placement/cost.h"
#include "policies/treematch/batch.h"
#include "policies/treematch/evacuate.h"

/* Sums of traffic are below. */
#define MOST_BYTES 0x1p60

/* The ties of the groups of a batch, group after group. */
struct holds {
        uint32_t *home;
        bool *fixed;
        int64_t *price;
};

/* The least saving that a move must bring, in weight times hops. */
static int64_t price_of(const struct map_context *context, const struct rm_group *group) {
        double bytes = (double) group->move_cost * (double) context->snapshot->params.bytes_per_cost;

        return (int64_t) (bytes < MOST_BYTES ? bytes : MOST_BYTES) >> context->shift;
}

static struct holds find_holds(const struct batch *batch) {
        const struct map_context *context = batch->context;
        struct holds holds = { pool_alloc(context->pool, batch->n_groups, sizeof(*holds.home)),
                               pool_alloc(context->pool, batch->n_groups, sizeof(*holds.fixed)),
                               pool_alloc(context->pool, batch->n_groups, sizeof(*holds.price)) };
        const struct places *places = batch->places;
        uint32_t at = 0;

        for (uint32_t i = 0; i < batch->n_jobs; i++) {
                const struct rm_job *job = &context->snapshot->jobs[batch->job[i]];

                for (uint32_t g = 0; g < batch_groups(job); g++, at++) {
                        const struct rm_group *group = &job->groups[g];

                        holds.home[at] = group->node < 0 ? TREE_NONE : places->tree.leaf_first[places->node_vertex[group->node]];
                        holds.fixed[at] = group->node >= 0 && (group->flags & RM_GROUP_PINNED);
                        holds.price[at] = price_of(context, group);
                }
        }
        return holds;
}

/* A pinned group is where it is, even where it has no room. */
static void make_space_for_fixed(const struct batch *batch, const struct holds *holds) {
        struct pool_mark mark = pool_mark(batch->context->pool);
        uint32_t *fixed = pool_zalloc(batch->context->pool, batch->places->tree.n_leaves, sizeof(*fixed));

        for (uint32_t v = 0; v < batch->n_groups; v++)
                if (holds->fixed[v] && ++fixed[holds->home[v]] > batch->space[holds->home[v]])
                        batch->space[holds->home[v]] = fixed[holds->home[v]];
        pool_release(batch->context->pool, mark);
}

/* Returns how much of the budget was used. */
static uint32_t solve_batch(struct map_context *context, const uint32_t *jobs, uint32_t n_jobs, uint32_t budget) {
        struct evacuation evacuation = { .budget = budget, .limits = &context->limits };
        struct holds holds;
        struct batch batch;
        struct tree tree;
        uint32_t used;

        batch_make(context, jobs, n_jobs, false, &batch);
        holds = find_holds(&batch);
        make_space_for_fixed(&batch, &holds);
        tree_with_space(context->pool, &batch.places->tree, batch.space, &tree);
        evacuation.tree = &tree;
        evacuation.graph = &batch.graph;
        evacuation.home = holds.home;
        evacuation.fixed = holds.fixed;
        evacuation.price = holds.price;
        used = evacuate_solve(context->pool, &evacuation, batch.leaf);
        batch_take(&batch);
        return used;
}

void replace_running(struct map_context *context, uint32_t budget) {
        uint32_t *jobs = pool_alloc(context->pool, context->snapshot->n_jobs, sizeof(*jobs)), n = 0, batch;

        for (uint32_t j = 0; j < context->snapshot->n_jobs; j++) {
                const struct rm_job *job = &context->snapshot->jobs[j];

                if (context_places(context, j) && job_runs(job) && job_has_traffic(job) && job->n_groups > 1)
                        jobs[n++] = j;
        }
        for (; n > 0; jobs += batch, n -= batch) {
                batch = batch_select(context, jobs, n);
                budget -= solve_batch(context, jobs, batch, budget);
        }
}
