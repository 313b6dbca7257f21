#include "policies/treematch/batch.h"

#include <string.h>

#include "placement/pack.h"

uint32_t batch_groups(const struct rm_job *job) {
        return job_full_groups(job);
}

/* The free cores of each node for the batch: its cores less those of jobs outside of the batch, and
 * within the limit of the job if it is alone. */
static void count_space(const struct batch *batch, int64_t *space) {
        const struct rm_snapshot *snapshot = batch->context->snapshot;
        bool *in_batch = pool_zalloc(batch->context->pool, snapshot->n_jobs, sizeof(*in_batch));

        for (uint32_t i = 0; i < batch->n_jobs; i++)
                in_batch[batch->job[i]] = true;
        for (uint32_t n = 0; n < snapshot->n_nodes; n++)
                space[n] = snapshot->nodes[n].cores;
        for (uint32_t j = 0; j < snapshot->n_jobs; j++) {
                const struct rm_job *job = &snapshot->jobs[j];

                if (!context_places(batch->context, j))
                        continue;
                for (uint32_t g = in_batch[j] ? batch_groups(job) : 0; g < job->n_groups; g++)
                        space[batch->context->plan->jobs[j].group_node[g]] -= job->groups[g].ranks;
        }
        for (uint32_t n = 0; n < snapshot->n_nodes; n++) {
                const struct rm_job *first = &snapshot->jobs[batch->job[0]];
                int64_t limit = job_node_limit(first, n);

                if (first->node_limit && batch_groups(first) < first->n_groups &&
                    batch->context->plan->jobs[batch->job[0]].group_node[first->n_groups - 1] == (int32_t) n)
                        limit -= job_rest_ranks(first);
                if (space[n] > limit)
                        space[n] = limit;
                if (space[n] < 0)
                        space[n] = 0;
        }
}

/* Groups that fit on each leaf: cores that others have are the first ones of their node. */
static void share_space(struct batch *batch, const int64_t *node_space) {
        const struct places *places = batch->places;
        const struct rm_snapshot *snapshot = batch->context->snapshot;

        for (uint32_t n = 0; n < snapshot->n_nodes; n++) {
                uint32_t vertex = places->node_vertex[n];
                int64_t space = node_space[n], taken = snapshot->nodes[n].cores - space;

                for (uint32_t x = places->tree.leaf_first[vertex]; x < places->tree.leaf_end[vertex]; x++) {
                        int64_t here = places->tree.space[places->tree.leaf[x]], lost = taken < here ? taken : here;

                        taken -= lost;
                        batch->space[x] = (uint32_t) ((here - lost) / batch->group_size);
                }
        }
}

/* The leaf of every group as the plan has it: the first of its node that is not full. */
static void start_leaves(struct batch *batch) {
        const struct map_context *context = batch->context;
        struct pool_mark mark = pool_mark(context->pool);
        const struct tree *tree = &batch->places->tree;
        uint32_t *used = pool_zalloc(context->pool, tree->n_leaves, sizeof(*used)), at = 0;

        for (uint32_t i = 0; i < batch->n_jobs; i++)
                for (uint32_t g = 0; g < batch_groups(&context->snapshot->jobs[batch->job[i]]); g++) {
                        uint32_t vertex = batch->places->node_vertex[context->plan->jobs[batch->job[i]].group_node[g]];
                        uint32_t x = tree->leaf_first[vertex];

                        /* Pinned ones may be more than there is room for. */
                        while (used[x] >= batch->space[x] && x + 1 < tree->leaf_end[vertex])
                                x++;
                        used[x]++;
                        batch->leaf[at++] = x;
                }
        pool_release(context->pool, mark);
}

void batch_take(const struct batch *batch) {
        const struct map_context *context = batch->context;
        uint32_t at = 0;

        for (uint32_t i = 0; i < batch->n_jobs; i++) {
                uint32_t j = batch->job[i], n = batch_groups(&context->snapshot->jobs[j]);

                for (uint32_t g = 0; g < n; g++)
                        context->plan->jobs[j].group_node[g] = (int32_t) batch->places->leaf[batch->leaf[at + g]].node;
                if (batch->places == &context->cores) {
                        context->rank_leaf[j] = pool_alloc(context->pool, n, sizeof(**context->rank_leaf));
                        memcpy(context->rank_leaf[j], batch->leaf + at, sizeof(**context->rank_leaf) * n);
                }
                at += n;
        }
}

/* The graph of all groups without those that stay. */
static void make_graph(const struct batch *batch, struct graph *ret_graph) {
        const struct map_context *context = batch->context;
        uint32_t all = 0, n = 0, *movable, *number;
        struct graph graph;

        context_graph(context, batch->job, batch->n_jobs, &graph);
        if (graph.n == batch->n_groups) {
                *ret_graph = graph;
                return;
        }
        movable = pool_alloc(context->pool, graph.n, sizeof(*movable));
        number = pool_alloc(context->pool, graph.n, sizeof(*number));
        memset(number, 0xff, sizeof(*number) * graph.n);
        for (uint32_t i = 0; i < batch->n_jobs; i++) {
                const struct rm_job *job = &context->snapshot->jobs[batch->job[i]];

                for (uint32_t g = 0; g < batch_groups(job); g++)
                        movable[n++] = all + g;
                all += job->n_groups;
        }
        graph_induce(context->pool, &graph, movable, n, number, ret_graph);
}

uint32_t batch_select(const struct map_context *context, uint32_t *jobs, uint32_t n_jobs) {
        const struct rm_job *first = &context->snapshot->jobs[jobs[0]];
        uint32_t *others = pool_alloc(context->pool, n_jobs, sizeof(*others)), n = 1, n_others = 0;

        for (uint32_t i = 1; i < n_jobs; i++) {
                const struct rm_job *job = &context->snapshot->jobs[jobs[i]];

                if (first->node_limit || job->node_limit || job->group_size != first->group_size)
                        others[n_others++] = jobs[i];
                else
                        jobs[n++] = jobs[i];
        }
        memcpy(jobs + n, others, sizeof(*jobs) * n_others);
        return n;
}

void batch_make(struct map_context *context, const uint32_t *jobs, uint32_t n_jobs, bool down_to_cores, struct batch *ret_batch) {
        struct batch batch = { .context = context,
                               .job = jobs,
                               .n_jobs = n_jobs,
                               .group_size = context->snapshot->jobs[jobs[0]].group_size,
                               .places = down_to_cores ? &context->cores : &context->nodes };
        int64_t *node_space = pool_alloc(context->pool, context->snapshot->n_nodes, sizeof(*node_space));

        for (uint32_t i = 0; i < n_jobs; i++)
                batch.n_groups += batch_groups(&context->snapshot->jobs[jobs[i]]);
        batch.leaf = pool_alloc(context->pool, batch.n_groups, sizeof(*batch.leaf));
        batch.space = pool_zalloc(context->pool, batch.places->tree.n_leaves, sizeof(*batch.space));
        count_space(&batch, node_space);
        share_space(&batch, node_space);
        start_leaves(&batch);
        make_graph(&batch, &batch.graph);
        *ret_batch = batch;
}
