/* Making a graph smaller by merging vertices that talk much: heavy-edge matching. */
#ifndef RM_TREEMATCH_COARSEN_H
#define RM_TREEMATCH_COARSEN_H

#include <stdint.h>

#include "placement/topology/graph.h"

/* Pairs vertices, by weight in proportion to their sizes; merged ones have at most `max_size`.
 * `side` (NULL ok): only pairs of one side are merged. Fills coarse[v] for every vertex; returns
 * how many coarse ones there are. */
uint32_t coarsen_match(struct pool *pool, const struct graph *graph, uint32_t max_size, const uint8_t *side, uint32_t *ret_coarse);

#endif
