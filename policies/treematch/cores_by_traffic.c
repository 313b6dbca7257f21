#include "policies/treematch/cores_by_traffic.h"

#include <string.h>

#include "placement/topology/within_node.h"
#include "policies/treematch/map.h"

/* The traffic between the ranks of a node. */
static void rank_graph(const struct within_node *within, uint32_t node, struct graph *ret_graph) {
        const struct map_context *context = within->context;
        const struct node_rank *rank = within->ranks + within->first[node];
        uint32_t n = (uint32_t) (within->first[node + 1] - within->first[node]);
        uint64_t entries = 0, used = 0;

        for (uint32_t i = 0; i < n; i++) {
                const struct rm_traffic *traffic = &context->snapshot->jobs[rank[i].job].traffic;

                if (job_has_traffic(&context->snapshot->jobs[rank[i].job]))
                        entries += traffic->offset[rank[i].rank + 1] - traffic->offset[rank[i].rank];
        }
        graph_make(context->pool, n, entries, ret_graph);
        for (uint32_t i = 0; i < n; i++) {
                const struct rm_job *job = &context->snapshot->jobs[rank[i].job];
                const int32_t *group_node = context->plan->jobs[rank[i].job].group_node;
                uint64_t e = job_has_traffic(job) ? job->traffic.offset[rank[i].rank] : 0;
                uint64_t end = job_has_traffic(job) ? job->traffic.offset[rank[i].rank + 1] : 0;

                for (; e < end; e++)
                        if (group_node[job->traffic.peer[e] / job->group_size] == (int32_t) node && job->traffic.bytes[e] > 0) {
                                ret_graph->to[used] = within->number[rank[i].job][job->traffic.peer[e]];
                                ret_graph->weight[used++] = context_weight(context, job->traffic.bytes[e]);
                        }
                ret_graph->first[i + 1] = used;
        }
}

/* The tree below a node, as a tree of its own. */
static void node_tree(const struct map_context *context, uint32_t node, struct tree *ret_tree) {
        const struct tree *whole = &context->cores.tree;
        uint32_t top = context->cores.node_vertex[node], n = whole->end[top] - top;
        uint32_t *parent = pool_alloc(context->pool, n, sizeof(*parent));

        parent[0] = TREE_NONE;
        for (uint32_t v = 1; v < n; v++)
                parent[v] = whole->parent[top + v] - top;
        tree_make(context->pool, n, parent, whole->room + top, ret_tree);
}

/* As chosen before, if that is so for all of them, and those who were not mapped together do not meet on a leaf. */
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
                if (++used[leaf[i]] > tree->room[tree->leaf[first + leaf[i]]])
                        return false;
        }
        return true;
}

static void choose_leaves(const struct within_node *within, uint32_t node, uint32_t n, uint32_t *leaf) {
        struct map_context *context = within->context;
        uint32_t vertex = context->cores.node_vertex[node];
        uint32_t *chosen = pool_alloc(context->pool, n, sizeof(*chosen));
        struct graph graph;
        struct tree tree;

        if (context->cores.tree.leaf_end[vertex] == context->cores.tree.leaf_first[vertex] + 1)
                return;
        if (take_chosen(within, node, n, chosen)) {
                memcpy(leaf, chosen, n * sizeof(*leaf));
                return;
        }
        rank_graph(within, node, &graph);
        node_tree(context, node, &tree);
        map_improve(context->pool, &tree, &graph, &context->limits, 0, leaf);
}

void cores_by_traffic(struct map_context *context) {
        within_node_assign(context, choose_leaves);
}
