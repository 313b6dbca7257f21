/*
 * Bisection of what is a grid underneath, as most traffic of simulations is, whatever the order of
 * its ranks: in a grid, the distances from two of its corners differ by what is a coordinate along
 * the side between them, so a sweep along that difference cuts straight.
 */
#ifndef RM_TREEMATCH_SWEEP_H
#define RM_TREEMATCH_SWEEP_H

#include <stdbool.h>
#include <stdint.h>

#include "placement/topology/graph.h"

/* Side 0 gets low..high vertices, all of size 1: of all sweeps the one that cuts least. False, and
 * nothing written, when the graph is no such thing: everything is near to everything. */
bool sweep_bisect(struct pool *pool, const struct graph *graph, uint32_t low, uint32_t high, uint8_t *ret_side);

#endif
