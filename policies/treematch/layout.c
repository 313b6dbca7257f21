#include "policies/treematch/layout.h"

void layout_make(struct arena *arena, const struct tree *tree, const struct graph *graph, uint32_t *leaf,
                 struct layout *ret_layout) {
        struct layout layout = {
                .tree = tree,
                .graph = graph,
                .leaf = leaf,
                .used = arena_zalloc(arena, tree->n_leaves, sizeof(*layout.used)),
                .first = arena_alloc(arena, tree->n_leaves + 1u, sizeof(*layout.first)),
                .place = arena_alloc(arena, graph->n, sizeof(*layout.place)),
        };

        /* Room for no more than all of them: there may be far more cores than ranks. */
        layout.first[0] = 0;
        for (uint32_t x = 0; x < tree->n_leaves; x++) {
                uint32_t room = tree->room[tree->leaf[x]];

                layout.first[x + 1] = layout.first[x] + (room < graph->n ? room : graph->n) + 1;
        }
        layout.member = arena_alloc(arena, layout.first[tree->n_leaves], sizeof(*layout.member));
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

int64_t layout_cost(const struct tree *tree, const struct graph *graph, const uint32_t *leaf) {
        int64_t cost = 0;

        for (uint32_t v = 0; v < graph->n; v++)
                for (uint64_t e = graph->first[v]; e < graph->first[v + 1]; e++)
                        if (graph->to[e] > v && leaf[graph->to[e]] != leaf[v])
                                cost += graph->weight[e] * tree_distance(tree, leaf[v], leaf[graph->to[e]]);
        return cost;
}
