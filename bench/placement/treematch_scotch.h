/* The peer: Scotch maps the same graph onto the same cluster. */
#ifndef RM_BENCH_TREEMATCH_SCOTCH_H
#define RM_BENCH_TREEMATCH_SCOTCH_H

#include <stdint.h>

#include "bench/placement/treematch_graphs.h"

enum { N_SCOTCH_STRATEGIES = 3 };
const char *scotch_strategy_name(uint32_t strategy);

/* The core of each rank, as node * NODE_CORES + core, into ret_core. Where Scotch puts two ranks
 * onto one core, the second goes to the free core where it costs least. 0, or what Scotch says. */
int scotch_map(const struct bench_cluster *cluster, const struct rm_traffic *traffic, uint32_t ranks, uint32_t strategy,
               uint32_t *ret_core);

#endif
