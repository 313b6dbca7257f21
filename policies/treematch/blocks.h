/* Whole nodes, or packages, that change places with all that is on them: where exchanges of single
 * vertices would first have to lose much. */
#ifndef RM_TREEMATCH_BLOCKS_H
#define RM_TREEMATCH_BLOCKS_H

#include <stdint.h>

#include "placement/topology/graph.h"
#include "placement/topology/tree.h"

/* For blocks that are alike in shape and room, from the highest to the lowest, or until the pool's
 * work has come to `until`. `leaf` of each vertex is changed; no leaf comes to hold more than it
 * has room for. Returns what was gained in weight times hops, never less than 0. */
int64_t blocks_refine(struct pool *pool, const struct tree *tree, const struct graph *graph, uint64_t until, uint32_t *leaf);

#endif
