/*
 * A lower bound at any size, in milliseconds: the best jobs on the best nodes. With nodes sorted by
 * penalty + K / cores and jobs by priority, laying the ones along the others is the optimum of the
 * linear relaxation where jobs are larger than nodes. Prices of cores follow from it, and any
 * prices give a bound. In whole numbers: prices are scaled, remainders rounded down.
 */
#ifndef RM_PLACEMENT_RELAXATION_H
#define RM_PLACEMENT_RELAXATION_H

#include <stdint.h>

#include "rm/policy.h"

/* Nodes of one size and one penalty. */
struct node_class {
        int64_t penalty;
        uint32_t cores; /* of each; where pinned groups exceed the capacity, what they hold */
        uint32_t nodes;
        int64_t price; /* of a core, scaled by 2^shift; >= 0 */
};

/* Ranks to be placed of one job. */
struct job_demand {
        uint32_t job; /* in the snapshot */
        uint32_t ranks;
        int64_t priority;
};

struct relaxation {
        struct node_class *classes; /* cheapest first */
        uint32_t n_classes;
        struct job_demand *demands; /* jobs that are placed, highest priority first */
        uint32_t n_demands;
        int shift;
};

/* Makes the relaxation of the jobs that `plan` places. -ENOMEM. relaxation_finish() is fine after a
 * failure. */
int relaxation_init(struct relaxation *relaxation, const struct rm_snapshot *snapshot, const struct rm_plan *plan);
void relaxation_finish(struct relaxation *relaxation);

/* The class of nodes with this penalty and these cores; n_classes: there are none. */
uint32_t relaxation_find(const struct relaxation *relaxation, int64_t penalty, uint32_t cores);

/* No plan that places the same jobs costs less. */
int64_t relaxation_bound(const struct relaxation *relaxation, int64_t distribution_weight);

#endif
