#include "policies/treematch/layout.h"

/* How many a leaf may have to hold at a time. */
static uint32_t *count_most(struct pool *pool, const struct tree *tree, const struct graph *graph, const struct layout_ties *ties) {
        uint32_t *most = pool_zalloc(pool, tree->n_leaves, sizeof(*most));

        for (uint32_t v = 0; ties && v < graph->n; v++)
                if (ties->home[v] != TREE_NONE)
                        most[ties->home[v]]++;
        for (uint32_t x = 0; x < tree->n_leaves; x++) {
                uint32_t space = tree->space[tree->leaf[x]];

                /* No more than all of them: there may be far more cores than ranks. */
                space = space < graph->n ? space : graph->n;
                most[x] = (most[x] > space ? most[x] : space) + 1;
        }
        return most;
}

void layout_make(struct pool *pool, const struct tree *tree, const struct graph *graph, const struct layout_ties *ties,
                 uint32_t *leaf, struct layout *ret_layout) {
        const uint32_t *most = count_most(pool, tree, graph, ties);
        struct layout layout = {
                .tree = tree,
                .graph = graph,
                .ties = ties,
                .leaf = leaf,
                .used = pool_zalloc(pool, tree->n_leaves, sizeof(*layout.used)),
                .first = pool_alloc(pool, tree->n_leaves + 1u, sizeof(*layout.first)),
                .place = pool_alloc(pool, graph->n, sizeof(*layout.place)),
        };

        layout.first[0] = 0;
        for (uint32_t x = 0; x < tree->n_leaves; x++)
                layout.first[x + 1] = layout.first[x] + most[x];
        layout.member = pool_alloc(pool, layout.first[tree->n_leaves], sizeof(*layout.member));
        for (uint32_t v = 0; v < graph->n; v++) {
                layout.place[v] = layout.used[leaf[v]]++;
                layout.member[layout.first[leaf[v]] + layout.place[v]] = v;
        }
        *ret_layout = layout;
}

void layout_move(struct layout *layout, uint32_t vertex, uint32_t leaf) {
        uint32_t from = layout->leaf[vertex], last;

        if (from == leaf)
                return;
        last = layout->member[layout->first[from] + --layout->used[from]];
        layout->member[layout->first[from] + layout->place[vertex]] = last;
        layout->place[last] = layout->place[vertex];
        layout->place[vertex] = layout->used[leaf]++;
        layout->member[layout->first[leaf] + layout->place[vertex]] = vertex;
        layout->leaf[vertex] = leaf;
}

bool layout_loose(const struct layout *layout, uint32_t leaf) {
        if (!layout->ties || !layout->ties->strict)
                return true;
        for (uint32_t i = 0; i < layout->used[leaf]; i++)
                if (layout->ties->home[layout_members(layout, leaf)[i]] != leaf)
                        return true;
        return false;
}

int64_t layout_cost(struct pool *pool, const struct tree *tree, const struct graph *graph, const uint32_t *leaf) {
        struct pool_mark mark = pool_mark(pool);
        uint32_t *distance = pool_alloc(pool, tree->n_leaves, sizeof(*distance)), from = TREE_NONE;
        struct layout layout;
        int64_t cost = 0;

        layout_make(pool, tree, graph, NULL, (uint32_t *) leaf, &layout);
        for (uint32_t x = 0; x < tree->n_leaves; x++)
                for (uint32_t i = 0; i < layout.used[x]; i++) {
                        uint32_t v = layout_members(&layout, x)[i];

                        if (from != x)
                                tree_distances(tree, x, distance);
                        from = x;
                        for (uint64_t e = graph->first[v]; e < graph->first[v + 1]; e++)
                                cost += graph->weight[e] * distance[leaf[graph->to[e]]];
                }
        pool_release(pool, mark);
        return cost / 2;
}

int64_t layout_gain(struct pool *pool, const struct tree *tree, const struct graph *graph, const uint32_t *from,
                    const uint32_t *to) {
        struct pool_mark mark = pool_mark(pool);
        uint32_t *before = pool_alloc(pool, tree->n_leaves, sizeof(*before)),
                 *after = pool_alloc(pool, tree->n_leaves, sizeof(*after));
        const uint32_t *partner = graph->to;
        const int64_t *weight = graph->weight;
        int64_t gain = 0;

        for (uint32_t v = 0; v < graph->n; v++) {
                uint64_t end = graph->first[v + 1], e = graph_first_from(partner, graph->first[v], end, v);

                tree_distances(tree, from[v], before);
                tree_distances(tree, to[v], after);
                for (; e < end; e++)
                        gain += weight[e] * ((int64_t) before[from[partner[e]]] - after[to[partner[e]]]);
        }
        pool_release(pool, mark);
        return gain;
}
