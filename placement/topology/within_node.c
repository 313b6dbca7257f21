#include "placement/topology/within_node.h"

static void list_ranks(struct within_node *within) {
        const struct rm_snapshot *snapshot = within->context->snapshot;
        const struct rm_plan *plan = within->context->plan;
        uint64_t *first = pool_zalloc(within->context->pool, snapshot->n_nodes + 2u, sizeof(*first));

        for (uint32_t j = 0; j < snapshot->n_jobs; j++)
                for (uint32_t g = 0; context_places(within->context, j) && g < snapshot->jobs[j].n_groups; g++)
                        first[plan->jobs[j].group_node[g] + 2] += snapshot->jobs[j].groups[g].ranks;
        for (uint32_t n = 0; n < snapshot->n_nodes; n++)
                first[n + 2] += first[n + 1];
        within->ranks = pool_alloc(within->context->pool, first[snapshot->n_nodes + 1], sizeof(*within->ranks));
        within->number = pool_zalloc(within->context->pool, snapshot->n_jobs, sizeof(*within->number));
        for (uint32_t j = 0; j < snapshot->n_jobs; j++) {
                const struct rm_job *job = &snapshot->jobs[j];

                if (!context_places(within->context, j))
                        continue;
                within->number[j] = pool_alloc(within->context->pool, job->ranks, sizeof(**within->number));
                for (uint32_t r = 0; r < job->ranks; r++) {
                        uint64_t at = first[plan->jobs[j].group_node[r / job->group_size] + 1]++;

                        within->ranks[at] = (struct node_rank) { j, r };
                }
        }
        for (uint32_t n = 0; n < snapshot->n_nodes; n++)
                for (uint64_t i = first[n]; i < first[n + 1]; i++)
                        within->number[within->ranks[i].job][within->ranks[i].rank] = (uint32_t) (i - first[n]);
        within->first = first;
}

/* Leaves for the ranks of a node in their order: `leaf`, counted from the node's first. */
static void in_order(const struct map_context *context, uint32_t node, uint32_t n, uint32_t *leaf) {
        const struct places *places = &context->cores;
        const struct place *place = &places->leaf[places->tree.leaf_first[places->node_vertex[node]]];

        /* Ranks that share cores: those that follow each other on one, so that no group is torn
         * that need not be. */
        uint32_t each = n / place->wrap, more = n % place->wrap;

        for (uint32_t i = 0; i < n; i++)
                if (n <= place->wrap)
                        leaf[i] = i / place->count;
                else if (i < more * (each + 1))
                        leaf[i] = i / (each + 1) / place->count;
                else
                        leaf[i] = (more + (i - more * (each + 1)) / each) / place->count;
}

/* Cores of their leaves for the ranks of a node. */
static void give_cores(const struct within_node *within, uint32_t node, const uint32_t *leaf) {
        const struct map_context *context = within->context;
        const struct tree *tree = &context->cores.tree;
        uint32_t vertex = context->cores.node_vertex[node], first = tree->leaf_first[vertex];
        uint32_t *used = pool_zalloc(context->pool, tree->leaf_end[vertex] - first, sizeof(*used));

        for (uint64_t i = within->first[node]; i < within->first[node + 1]; i++) {
                uint32_t x = leaf[i - within->first[node]];
                const struct place *place = &context->cores.leaf[first + x];
                uint32_t nth = used[x]++, core = nth / place->count * place->wrap + place->first + nth % place->count;

                context->plan->jobs[within->ranks[i].job].rank_core[within->ranks[i].rank] = (int32_t) core;
        }
}

static void assign_node(const struct within_node *within, uint32_t node, within_node_choose choose) {
        struct map_context *context = within->context;
        struct pool_mark mark = pool_mark(context->pool);
        uint32_t n = (uint32_t) (within->first[node + 1] - within->first[node]);
        uint32_t *leaf = pool_alloc(context->pool, n, sizeof(*leaf));

        if (n == 0 || n > context->snapshot->nodes[node].cores)
                return;
        in_order(context, node, n, leaf);
        if (choose)
                choose(within, node, n, leaf);
        give_cores(within, node, leaf);
        pool_release(context->pool, mark);
}

void within_node_assign(struct map_context *context, within_node_choose choose) {
        struct pool_mark mark = pool_mark(context->pool);
        struct within_node within = { .context = context };

        list_ranks(&within);
        for (uint32_t j = 0; j < context->snapshot->n_jobs; j++)
                for (uint32_t r = 0; r < context->snapshot->jobs[j].ranks; r++)
                        context->plan->jobs[j].rank_core[r] = RM_NO_CORE;
        for (uint32_t n = 0; n < context->snapshot->n_nodes; n++)
                assign_node(&within, n, choose);
        pool_release(context->pool, mark);
}
