/* Vertices on leaves: the leaf of each vertex, the vertices of each leaf, and the cost. */
#ifndef RM_TREEMATCH_LAYOUT_H
#define RM_TREEMATCH_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>

#include "placement/topology/graph.h"
#include "placement/topology/tree.h"

/* The ties that hold vertices where they are. */
struct layout_ties {
        const uint32_t *home; /* each vertex: a leaf, TREE_NONE when it has none */
        const int64_t *worth; /* each vertex: what it is worth, in weight times hops, to be there */
        const bool *fixed;    /* each vertex: does not move at all */
        bool strict; /* no gain is worth a move away from home: leaves where all are at home need not be looked at together */
};

/* A leaf holds at most its room, and one more while vertices are being exchanged. Vertices are of
 * size 1. */
struct layout {
        const struct tree *tree;
        const struct graph *graph;
        uint32_t *leaf; /* each vertex */
        uint32_t *used; /* each leaf: vertices on it */
        uint64_t *first; /* each leaf: where its members begin */
        uint32_t *member;
        uint32_t *place; /* each vertex: its index among the members of its leaf */
        const struct layout_ties *ties; /* NULL: none */
};

/* `leaf` is borrowed and changed by layout_move(), `ties` (NULL ok) is borrowed. Leaves must not
 * hold more than their room. All whose home a leaf is can be there at once for a while, even if its
 * room is less. */
void layout_make(struct pool *pool, const struct tree *tree, const struct graph *graph, const struct layout_ties *ties,
                 uint32_t *leaf, struct layout *ret_layout);
void layout_move(struct layout *layout, uint32_t vertex, uint32_t leaf);

static inline bool layout_fixed(const struct layout *layout, uint32_t vertex) {
        return layout->ties && layout->ties->fixed[vertex];
}

/* Whether a vertex on `leaf` might gain by going elsewhere. */
bool layout_loose(const struct layout *layout, uint32_t leaf);

/* The worth to the vertex of being on `leaf`. */
static inline int64_t layout_worth(const struct layout *layout, uint32_t vertex, uint32_t leaf) {
        return layout->ties && layout->ties->home[vertex] == leaf ? layout->ties->worth[vertex] : 0;
}

static inline const uint32_t *layout_members(const struct layout *layout, uint32_t leaf) {
        return layout->member + layout->first[leaf];
}

/* Weight times hops between leaves, over all edges; leaves must not hold more than their room. */
int64_t layout_cost(struct pool *pool, const struct tree *tree, const struct graph *graph, const uint32_t *leaf);

/* How much less the mapping `to` costs than `from`, in one pass over a graph whose rows ascend. */
int64_t layout_gain(struct pool *pool, const struct tree *tree, const struct graph *graph, const uint32_t *from,
                    const uint32_t *to);

#endif
