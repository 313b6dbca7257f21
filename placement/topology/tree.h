/*
 * The tree of places: network, switches, nodes, packages. Its leaves stand for the cores below
 * them, which are all alike: cores themselves are not vertices. Vertices are numbered so that what
 * is below v is v .. end[v]-1, and leaves from left to right, so that those below v are
 * leaf_first[v] .. leaf_end[v]-1.
 *
 * Hops between cores of leaves x and y: depth[x] + depth[y] - 2 depth[their lowest common
 * ancestor], and 2 for the cores.
 */
#ifndef RM_PLACEMENT_TREE_H
#define RM_PLACEMENT_TREE_H

#include <stdbool.h>
#include <stdint.h>

#include "placement/topology/pool.h"

#define TREE_NONE UINT32_MAX

struct tree {
        uint32_t n, n_leaves;
        uint32_t *parent, *end, *depth; /* each vertex; the root is 0 and has no parent (TREE_NONE) */
        uint32_t *leaf_first, *leaf_end; /* each vertex */
        uint32_t *space;     /* each vertex: cores below it */
        uint32_t *leaf;     /* each leaf: its vertex */
        uint32_t max_depth;
        bool even_depth; /* all leaves are equally deep */
};

/* `parent`: n entries, parent[0] == TREE_NONE, parent[v] < v for the others and depth first;
 * `room`: cores of the leaves, the others' are not read. Both are copied. */
void tree_make(struct pool *pool, uint32_t n, const uint32_t *parent, const uint32_t *space, struct tree *ret_tree);

/* The same tree with other spaces for its leaves; the rest is shared. */
void tree_with_space(struct pool *pool, const struct tree *tree, const uint32_t *leaf_space, struct tree *ret_tree);

/* The lowest vertex that has both leaves below it. */
uint32_t tree_meet(const struct tree *tree, uint32_t leaf_a, uint32_t leaf_b);

/* Hops between leaves, without those to the cores. */
static inline uint32_t tree_distance(const struct tree *tree, uint32_t leaf_a, uint32_t leaf_b) {
        return leaf_a == leaf_b ? 0
                                : tree->depth[tree->leaf[leaf_a]] + tree->depth[tree->leaf[leaf_b]] -
                                          2 * tree->depth[tree_meet(tree, leaf_a, leaf_b)];
}

/* The distances from one leaf to all: n_leaves entries. Cheaper than one by one when many are
 * needed. */
void tree_distances(const struct tree *tree, uint32_t leaf, uint32_t *ret_distance);

#endif
