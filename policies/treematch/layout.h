/* Vertices on leaves: who is where, who is on a leaf, and what it costs. */
#ifndef RM_TREEMATCH_LAYOUT_H
#define RM_TREEMATCH_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>

#include "policies/treematch/graph.h"
#include "policies/treematch/tree.h"

/* A leaf holds at most its room, and one more while vertices are being exchanged. Vertices are of size 1. */
struct layout {
        const struct tree *tree;
        const struct graph *graph;
        uint32_t *leaf;   /* each vertex */
        uint32_t *used;   /* each leaf: vertices on it */
        uint64_t *first;  /* each leaf: where its members begin */
        uint32_t *member;
        uint32_t *place;  /* each vertex: its index among the members of its leaf */
};

/* `leaf` is borrowed and changed by layout_move(). Leaves must not hold more than their room. */
void layout_make(struct arena *arena, const struct tree *tree, const struct graph *graph, uint32_t *leaf,
                 struct layout *ret_layout);
void layout_move(struct layout *layout, uint32_t vertex, uint32_t leaf);

static inline const uint32_t *layout_members(const struct layout *layout, uint32_t leaf) {
        return layout->member + layout->first[leaf];
}

/* Weight times hops between leaves, over all edges; leaves must not hold more than their room. */
int64_t layout_cost(struct arena *arena, const struct tree *tree, const struct graph *graph, const uint32_t *leaf);

#endif
