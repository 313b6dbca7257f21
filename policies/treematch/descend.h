/* Mapping from the top: the vertices are split among the children of the root, those of each child among its children, and so on. */
#ifndef RM_TREEMATCH_DESCEND_H
#define RM_TREEMATCH_DESCEND_H

#include <stdbool.h>
#include <stdint.h>

#include "policies/treematch/graph.h"
#include "policies/treematch/limits.h"
#include "policies/treematch/tree.h"

/* Put `n` vertices (not more than the room below `top`) on leaves below `top`: writes ret_leaf of these vertices. `number`: an entry
 * for each vertex of `graph`, all UINT32_MAX; left so. `shuffled`: brothers are halved in an order drawn by lot, which matters where
 * they are not alike. When the time is over, what is not decided yet is split in the order of vertices. */
void descend(struct pool *pool, const struct tree *tree, uint32_t top, const struct graph *graph, const struct limits *limits,
             const uint32_t *vertices, uint32_t n, uint32_t *number, bool shuffled, uint32_t *ret_leaf);

#endif
