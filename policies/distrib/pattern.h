/*
 * Branch and price over patterns: see program.h. Branches are on how many nodes jobs are: those of
 * high priorities together, one job on all nodes, or on those that are alike; on how many jobs a
 * node has; and at last on single cells.
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
        /* The cheapest plan with jobs on exactly these nodes (n_jobs x n_nodes) should be known
         * from now on, if there is one. */
        void (*try_support)(void *context, const bool *support);
};

struct pattern;

/* Is the problem small enough, and are its groups of one size? */
bool pattern_applies(const struct problem *problem, int64_t cost);

/* The data that the search begins with. */
struct pattern_start {
        const uint32_t *values; /* each cell: a valid plan */
        const uint32_t *low, *high; /* each cell: no plan that costs the target or less is outside; NULL: not known */
};

/* NULL: no memory. The problem and the host are borrowed, the start is not. */
struct pattern *pattern_create(const struct problem *problem, const struct pattern_host *host, const struct pattern_start *start);
void pattern_destroy(struct pattern *pattern); /* NULL ok */

/* Go on for so many branches; the root comes before the first. 1: no plan costs the target or less;
 * 0: it is not known yet, or time is over; -EAGAIN: it will never be; -ENOMEM. *branches: added
 * to. */
int pattern_run(struct pattern *pattern, uint64_t max_branches, uint64_t *branches);

/* Ranges that the root has found, as in pattern_start; NULL as long as it has not been branched
 * from. Valid as long as the pattern. */
struct pattern_root {
        const uint32_t *low, *high;
};
struct pattern_root pattern_root(const struct pattern *pattern);

/* No plan costs less. INT64_MIN: not known. */
int64_t pattern_bound(const struct pattern *pattern);

#endif
