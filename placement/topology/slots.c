#include "placement/topology/slots.h"

#include <string.h>

#include "placement/cost.h"
#include "placement/pack.h"

struct slots {
        struct map_context *context;
        int64_t *space;  /* each node: free cores */
        uint32_t *here; /* each node: ranks of the job in hand; all 0 between jobs */
};

static bool fits(const struct slots *slots, const struct rm_job *job, uint32_t node, uint32_t ranks) {
        return slots->space[node] >= ranks && (uint64_t) slots->here[node] + ranks <= job_node_limit(job, node);
}

/* Groups of a job from the first node on that has any room; false when it does not fit. */
static bool place_job(struct slots *slots, const struct rm_job *job, uint32_t *first, int32_t *group_node) {
        uint32_t n_nodes = slots->context->snapshot->n_nodes, n, g;

        while (*first < n_nodes && slots->space[*first] <= 0)
                ++*first;
        n = *first;
        for (g = 0; g < job->n_groups; g++) {
                uint32_t ranks = job->groups[g].ranks;

                while (n < n_nodes && !fits(slots, job, n, ranks))
                        n++;
                if (n == n_nodes)
                        break;
                group_node[g] = (int32_t) n;
                slots->space[n] -= ranks;
                slots->here[n] += ranks;
        }
        for (uint32_t i = 0; i < g; i++)
                slots->here[group_node[i]] = 0;
        return g == job->n_groups;
}

/* Is to be put by slot, or stays where it is. */
static bool is_requested(const struct map_context *context, uint32_t job, bool all) {
        return context_places(context, job) && (all || !job_runs(&context->snapshot->jobs[job]));
}

bool slots_place(struct map_context *context, bool all) {
        struct pool_mark mark = pool_mark(context->pool);
        const struct rm_snapshot *snapshot = context->snapshot;
        struct slots slots = { .context = context,
                               .space = pool_alloc(context->pool, snapshot->n_nodes, sizeof(*slots.space)),
                               .here = pool_zalloc(context->pool, snapshot->n_nodes, sizeof(*slots.here)) };
        int32_t **group_node = pool_zalloc(context->pool, snapshot->n_jobs, sizeof(*group_node));
        uint32_t first = 0;
        bool fit = true;

        for (uint32_t n = 0; n < snapshot->n_nodes; n++)
                slots.space[n] = snapshot->nodes[n].cores;
        for (uint32_t j = 0; j < snapshot->n_jobs; j++)
                for (uint32_t g = 0; context_places(context, j) && !is_requested(context, j, all) && g < snapshot->jobs[j].n_groups;
                     g++)
                        slots.space[context->plan->jobs[j].group_node[g]] -= snapshot->jobs[j].groups[g].ranks;
        for (uint32_t j = 0; j < snapshot->n_jobs && fit; j++) {
                const struct rm_job *job = &snapshot->jobs[j];

                if (!is_requested(context, j, all))
                        continue;
                group_node[j] = pool_alloc(context->pool, job->n_groups, sizeof(**group_node));
                fit = place_job(&slots, job, &first, group_node[j]);
        }
        for (uint32_t j = 0; j < snapshot->n_jobs && fit; j++)
                if (group_node[j])
                        memcpy(context->plan->jobs[j].group_node, group_node[j], sizeof(**group_node) * snapshot->jobs[j].n_groups);
        pool_release(context->pool, mark);
        return fit;
}
