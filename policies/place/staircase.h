/*
 * A lower bound at any size, in milliseconds: the best jobs on the best nodes. With nodes sorted by penalty + K / cores and jobs by
 * priority, laying the ones along the others is the optimum of the linear relaxation where jobs are larger than nodes. Prices of cores
 * follow from it, and any prices give a bound. In whole numbers: prices are scaled, remainders rounded down.
 */
#ifndef RM_POLICIES_PLACE_STAIRCASE_H
#define RM_POLICIES_PLACE_STAIRCASE_H

#include <stdint.h>

#include "rm/policy.h"

/* Nodes of one size and one penalty. */
struct stair {
        int64_t penalty;
        uint32_t cores; /* of each; where pinned groups exceed the capacity, what they hold */
        uint32_t nodes;
        int64_t price; /* of a core, scaled by 2^shift; >= 0 */
};

/* Ranks to be placed of one job. */
struct tread {
        uint32_t job; /* in the snapshot */
        uint32_t ranks;
        int64_t priority;
};

struct staircase {
        struct stair *stairs; /* cheapest first */
        uint32_t n_stairs;
        struct tread *treads; /* jobs that are placed, highest priority first */
        uint32_t n_treads;
        int shift;
};

/* For the jobs that `plan` places. -ENOMEM. staircase_finish() is fine after a failure. */
int staircase_init(struct staircase *staircase, const struct rm_snapshot *snapshot, const struct rm_plan *plan);
void staircase_finish(struct staircase *staircase);

/* Of the nodes that are so; n_stairs: there are none. */
uint32_t staircase_find(const struct staircase *staircase, int64_t penalty, uint32_t cores);

/* No plan that places the same jobs costs less. */
int64_t staircase_bound(const struct staircase *staircase, int64_t distribution_weight);

#endif
