#include "policies/treematch/map.h"

#include <string.h>

#include "policies/treematch/chain.h"
#include "policies/treematch/descend.h"
#include "policies/treematch/layout.h"
#include "policies/treematch/pair.h"

enum { MOST_PARTNERS = 32, ROUNDS = 20, N_DESCENTS = 1 };

static int64_t refine(struct arena *arena, const struct tree *tree, const struct graph *graph, uint32_t *leaf) {
        struct arena_mark mark = arena_mark(arena);
        struct layout layout;

        layout_make(arena, tree, graph, leaf, &layout);
        uint64_t budget = UINT64_MAX;
        (void) chain_refine(arena, &layout, &budget);
        (void) pair_refine(arena, &layout, ROUNDS);
        arena_release(arena, mark);
        return layout_cost(tree, graph, leaf);
}

void map_improve(struct arena *arena, const struct tree *tree, const struct graph *graph, const struct map_limits *limits,
                 uint32_t *leaf) {
        struct arena_mark mark = arena_mark(arena);
        uint32_t n = graph->n;
        uint32_t *all = arena_alloc(arena, n, sizeof(*all)), *number = arena_alloc(arena, n, sizeof(*number));
        uint32_t *trial = arena_alloc(arena, n, sizeof(*trial)), *best = arena_alloc(arena, n, sizeof(*best));
        int64_t cost, least, given;

        (void) limits;
        for (uint32_t v = 0; v < n; v++) {
                all[v] = v;
                number[v] = UINT32_MAX;
        }
        given = layout_cost(tree, graph, leaf);
        least = INT64_MAX;
        for (uint32_t i = 0; i < N_DESCENTS; i++) {
                descend(arena, tree, 0, graph, all, n, number, trial);
                cost = refine(arena, tree, graph, trial);
                if (cost < least) {
                        least = cost;
                        memcpy(best, trial, sizeof(*best) * n);
                }
        }
        if (given < least + least / 8) {
                memcpy(trial, leaf, sizeof(*leaf) * n);
                cost = refine(arena, tree, graph, trial);
                if (cost < least) {
                        least = cost;
                        memcpy(best, trial, sizeof(*best) * n);
                }
        }
        if (least < given)
                memcpy(leaf, best, sizeof(*leaf) * n);
        arena_release(arena, mark);
}
