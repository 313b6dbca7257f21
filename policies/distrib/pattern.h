/*
 * Branch and price: a column is a pattern, what one node could hold of all jobs. The linear program over patterns gives prices of ranks and of
 * nodes that jobs are on; at those, the best pattern of each node is found by dynamic programming in whole numbers, and so is the bound.
 * Branches are on how many nodes out of some a job is: first of all, then of those that are alike, then of one.
 *
 * Strong where nodes cost the same, and when there are few jobs.
 */
#ifndef RM_POLICIES_DISTRIB_PATTERN_H
#define RM_POLICIES_DISTRIB_PATTERN_H

#include <stdbool.h>
#include <stdint.h>

#include "policies/distrib/problem.h"

struct pattern_host {
        void *context;
        int64_t (*target)(void *context); /* plans that cost this or less are looked for; may fall, and a plan be found meanwhile */
        int64_t (*left_usec)(void *context);
        void (*improve)(void *context); /* called now and then: to look for a better plan in some other way */
        /* The cheapest plan with jobs on exactly these nodes (n_jobs x n_nodes) should be known from now on, if there is one. */
        void (*try_support)(void *context, const bool *support);
};

/* Do the prices have the form that this is for, a fixed one and one for each group, and is the problem small enough? */
bool pattern_applies(const struct problem *problem, int64_t cost);

/* `values`: a valid plan. 1: no plan costs the target or less; 0: it is not known after so many branches, or time was over; -ENOMEM. *ret_bound: nothing costs less.
 * *branches: added to. */
int pattern_run(const struct problem *problem, const struct pattern_host *host, const uint32_t *values, uint64_t max_branches,
                int64_t *ret_bound, uint64_t *branches);

#endif
