/* The peer for reconfiguration: the two steps of Cores 2015 with TreeMatch's greedy partition, and
 * nothing else. */
#ifndef RM_BENCH_TREEMATCH_TWOSTEP_H
#define RM_BENCH_TREEMATCH_TWOSTEP_H

#include <stdint.h>

#include "rm/policy.h"

/* Step 1: on every node that holds more than NODE_CORES ranks, a partition into those that stay and
 * those that evacuation. Step 2: a partition of all that leave over the free cores. A partition is
 * greedy: from a seed for each part drawn by lot, one rank after the other joins the part with the
 * partner it talks to most; the best of 20. Cores of a node are given in order. */
void twostep_plain(const struct rm_job *job, const uint32_t *home, uint32_t n_nodes, uint64_t seed, uint32_t *ret_core);

#endif
