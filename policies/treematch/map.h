/* Mapping a graph onto a tree: several ways, the best of them refined. Pure; the same arguments
 * give the same mapping. */
#ifndef RM_TREEMATCH_MAP_H
#define RM_TREEMATCH_MAP_H

#include <stdint.h>

#include "placement/topology/graph.h"
#include "placement/topology/limits.h"
#include "placement/topology/tree.h"

/* `leaf`: on entry a mapping (by slot, say), on return one that costs no more. Vertices of size 1,
 * as many as there is room for. More attempts are made until `work` row entries were looked at
 * (some 15 ns each); the first one is always made, unless the time is over. */
void map_improve(struct pool *pool, const struct tree *tree, const struct graph *graph, const struct limits *limits, uint64_t work,
                 uint32_t *leaf);

#endif
