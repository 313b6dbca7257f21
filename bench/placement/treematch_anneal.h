/* How few bytes between nodes as many moves allow, as far as long annealing finds it: what a
 * reconfiguration can be measured by. */
#ifndef RM_BENCH_TREEMATCH_ANNEAL_H
#define RM_BENCH_TREEMATCH_ANNEAL_H

#include <stdint.h>

#include "rm/policy.h"

/* From `core`, for `seconds` of processor time, by simulated annealing (Kirkpatrick, Gelatt and
 * Vecchi 1983): a rank that leaves its home and one that stays there change roles, or two that
 * leave change places. Nodes stay as full and as many ranks move as before. Returns the fewest
 * bytes between nodes that were seen, each pair of ranks counted once. */
double anneal_moves(const struct rm_job *job, const uint32_t *home, const uint32_t *core, uint32_t n_nodes, uint64_t seed,
                    double seconds);

#endif
