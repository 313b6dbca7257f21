/* Mapping from the top: the vertices are split among the children of the root, those of each child
 * among its children, and so on. */
#ifndef RM_TREEMATCH_DESCEND_H
#define RM_TREEMATCH_DESCEND_H

#include <stdint.h>

#include "placement/topology/graph.h"
#include "placement/topology/limits.h"
#include "placement/topology/tree.h"

/* How brothers share vertices out. They are halved again and again, or where a third of them is a
 * whole number: */
enum {
        DESCEND_THIRDS =
                1, /* a third is taken first. 96 ranks of a grid of 12 x 8 on 6 nodes: halves end in strips, thirds in squares */
        DESCEND_FLAT = 2, /* all nodes are brothers, whatever switches are above them: blocks_refine() is to follow */
        DESCEND_SHUFFLED = 4, /* in an order drawn by lot, which matters where they are not alike */
};

/* Put `n` vertices (not more than the room below `top`) on leaves below `top`: writes ret_leaf of
 * these vertices. `number`: an entry for each vertex of `graph`, all UINT32_MAX; left so. `ways`:
 * DESCEND_*. When the time is over, what is not decided yet is split in the order of vertices. */
void descend(struct pool *pool, const struct tree *tree, uint32_t top, const struct graph *graph, const struct limits *limits,
             const uint32_t *vertices, uint32_t n, uint32_t *number, uint32_t ways, uint32_t *ret_leaf);

#endif
