/* A good plan by simulated annealing: groups go from one node to another, or change places with
 * another job's. */
#ifndef RM_POLICIES_DISTRIB_ANNEAL_H
#define RM_POLICIES_DISTRIB_ANNEAL_H

#include <stdint.h>

#include "policies/distrib/problem.h"

struct anneal;

/* Begins at the valid plan `values`. NULL: no memory. The problem is borrowed. */
struct anneal *anneal_create(const struct problem *problem, const uint32_t *values);
void anneal_destroy(struct anneal *anneal); /* NULL ok */

/* From the best plan known, `moves` moves at falling temperature. Returns what the best one costs
 * now. The same calls give the same plans. */
int64_t anneal_run(struct anneal *anneal, uint64_t moves);

/* The best plan, n_jobs x n_nodes values. */
const uint32_t *anneal_best(const struct anneal *anneal);

#endif
