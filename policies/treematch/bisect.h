/* Bisection of a graph into sides of given sizes, with little weight between them: multilevel, with
 * a V-cycle. */
#ifndef RM_TREEMATCH_BISECT_H
#define RM_TREEMATCH_BISECT_H

#include <stdint.h>

#include "placement/topology/graph.h"

/* Side 0 gets low..high vertices, all of size 1. Returns the weight cut. */
int64_t bisect(struct pool *pool, const struct graph *graph, uint32_t low, uint32_t high, uint8_t *ret_side);

#endif
