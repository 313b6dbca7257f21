#include "policies/treematch/cores_by_traffic.h"

#include <string.h>

#include "placement/topology/within_node.h"
#include "policies/treematch/map.h"

/* Sums of weights are kept below where groups are to be kept whole. */
#define MOST_WEIGHT (INT64_C(1) << 40)

/* The ranks of one node, which are to be mapped to its cores. */
struct node_view {
        const struct within_node *within;
        uint32_t node, n;
        const struct node_rank *rank;
        bool shares; /* there may be more ranks than cores */
        uint32_t shift; /* weights are divided by 2^shift */
        int64_t heavy; /* weighs more than all traffic */
};

static const struct rm_job *job_of(const struct node_view *v, uint32_t i) {
        return &v->within->context->snapshot->jobs[v->rank[i].job];
}

static bool same_group(const struct node_view *v, uint32_t a, uint32_t b) {
        return b < v->n && v->rank[a].job == v->rank[b].job &&
               v->rank[a].rank / job_of(v, a)->group_size == v->rank[b].rank / job_of(v, b)->group_size;
}

static struct node_view view_node(const struct within_node *within, uint32_t node) {
        const struct places *places = &within->context->cores;
        const struct place *place = &places->leaf[places->tree.leaf_first[places->node_vertex[node]]];

        return (struct node_view) {
                .within = within,
                .node = node,
                .n = (uint32_t) (within->first[node + 1] - within->first[node]),
                .rank = within->ranks + within->first[node],
                .shares = within->context->snapshot->nodes[node].cores > place->wrap,
        };
}

/* Returns how many entries the rows of the node's ranks have. */
static uint64_t weigh(struct node_view *v) {
        const struct map_context *context = v->within->context;
        uint64_t entries = 0, sum = 0;

        for (uint32_t i = 0; i < v->n; i++) {
                const struct rm_job *job = job_of(v, i);
                uint32_t r = v->rank[i].rank;

                for (uint64_t e = job_has_traffic(job) ? job->traffic.offset[r] : 0;
                     job_has_traffic(job) && e < job->traffic.offset[r + 1]; e++, entries++)
                        sum += (uint64_t) context_weight(context, job->traffic.bytes[e]);
        }
        while (v->shares && sum >> v->shift >= (uint64_t) MOST_WEIGHT)
                v->shift++;
        v->heavy = (int64_t) ((sum >> v->shift) + entries + 1);
        return entries;
}

static void add_edge(struct graph *graph, uint64_t *used, uint32_t to, int64_t weight) {
        graph->to[*used] = to;
        graph->weight[(*used)++] = weight;
}

/* Partners ascend. The traffic within a group is not known: where ranks share cores, a chain of
 * heavy edges holds it together instead. */
static void fill_row(const struct node_view *v, uint32_t i, struct graph *graph, uint64_t *used) {
        const struct map_context *context = v->within->context;
        const struct rm_job *job = job_of(v, i);
        const int32_t *group_node = context->plan->jobs[v->rank[i].job].group_node;
        bool before = v->shares && i > 0 && same_group(v, i, i - 1), after = v->shares && same_group(v, i, i + 1);
        uint64_t e = job_has_traffic(job) ? job->traffic.offset[v->rank[i].rank] : 0;
        uint64_t end = job_has_traffic(job) ? job->traffic.offset[v->rank[i].rank + 1] : 0;

        for (; e < end; e++) {
                uint32_t to = v->within->number[v->rank[i].job][job->traffic.peer[e]];
                int64_t weight = context_weight(context, job->traffic.bytes[e]) >> v->shift;

                if (group_node[job->traffic.peer[e] / job->group_size] != (int32_t) v->node || job->traffic.bytes[e] == 0 ||
                    (v->shares && same_group(v, i, to)))
                        continue;
                if (before && to > i)
                        add_edge(graph, used, i - 1, v->heavy);
                before = before && to < i;
                if (after && to > i)
                        add_edge(graph, used, i + 1, v->heavy);
                after = after && to < i;
                add_edge(graph, used, to, weight > 0 ? weight : 1);
        }
        if (before)
                add_edge(graph, used, i - 1, v->heavy);
        if (after)
                add_edge(graph, used, i + 1, v->heavy);
}

/* The traffic between the ranks of a node. */
static void rank_graph(struct node_view *v, struct graph *ret_graph) {
        uint64_t used = 0;

        graph_make(v->within->context->pool, v->n, weigh(v) + (v->shares ? 2 * (uint64_t) v->n : 0), ret_graph);
        for (uint32_t i = 0; i < v->n; i++) {
                fill_row(v, i, ret_graph, &used);
                ret_graph->first[i + 1] = used;
        }
}

/* The tree below a node, as a tree of its own. No core that ranks share gets more of them than it
 * must. */
static void node_tree(const struct node_view *v, struct tree *ret_tree) {
        const struct map_context *context = v->within->context;
        const struct places *places = &context->cores;
        const struct tree *whole = &places->tree;
        uint32_t top = places->node_vertex[v->node], n = whole->end[top] - top;
        uint32_t *parent = pool_alloc(context->pool, n, sizeof(*parent)), *space = pool_zalloc(context->pool, n, sizeof(*space));

        parent[0] = TREE_NONE;
        for (uint32_t i = 1; i < n; i++)
                parent[i] = whole->parent[top + i] - top;
        for (uint32_t x = whole->leaf_first[top]; x < whole->leaf_end[top]; x++) {
                const struct place *place = &places->leaf[x];
                uint32_t ranks = v->n > place->wrap ? v->n : place->wrap;

                space[whole->leaf[x] - top] = v->shares ? place_cores(place, ranks) : whole->space[whole->leaf[x]];
        }
        tree_make(context->pool, n, parent, space, ret_tree);
}

/* Takes the cores chosen before, if all ranks have one, and ranks that were not mapped together do
 * not meet on a leaf. */
static bool take_chosen(const struct within_node *within, uint32_t node, uint32_t n, uint32_t *leaf) {
        const struct map_context *context = within->context;
        const struct tree *tree = &context->cores.tree;
        uint32_t vertex = context->cores.node_vertex[node], first = tree->leaf_first[vertex];
        uint32_t *used = pool_zalloc(context->pool, tree->leaf_end[vertex] - first, sizeof(*used));

        for (uint32_t i = 0; i < n; i++) {
                const struct node_rank *rank = &within->ranks[within->first[node] + i];
                const uint32_t *chosen = context->rank_leaf[rank->job];

                if (!chosen || chosen[rank->rank] == TREE_NONE)
                        return false;
                leaf[i] = chosen[rank->rank] - first;
                if (++used[leaf[i]] > tree->space[tree->leaf[first + leaf[i]]])
                        return false;
        }
        return true;
}

static void choose_leaves(const struct within_node *within, uint32_t node, uint32_t n, uint32_t *leaf) {
        struct map_context *context = within->context;
        uint32_t vertex = context->cores.node_vertex[node];
        uint32_t *chosen = pool_alloc(context->pool, n, sizeof(*chosen));
        struct node_view view = view_node(within, node);
        struct graph graph;
        struct tree tree;

        if (context->cores.tree.leaf_end[vertex] == context->cores.tree.leaf_first[vertex] + 1)
                return;
        if (!view.shares && take_chosen(within, node, n, chosen)) {
                memcpy(leaf, chosen, n * sizeof(*leaf));
                return;
        }
        rank_graph(&view, &graph);
        node_tree(&view, &tree);
        map_improve(context->pool, &tree, &graph, &context->limits, 0, leaf);
}

void cores_by_traffic(struct map_context *context) {
        within_node_assign(context, choose_leaves);
}
