/* Branch and bound on the dual: proves the best plan known, or finds a better one, or says how good
 * it is at least. */
#ifndef RM_POLICIES_DISTRIB_SEARCH_H
#define RM_POLICIES_DISTRIB_SEARCH_H

#include <stdbool.h>
#include <stdint.h>

#include "policies/distrib/deadline.h"
#include "policies/distrib/problem.h"

struct search_result {
        int64_t cost;  /* of the best plan known */
        int64_t bound; /* nothing costs less; INT64_MIN: not known */
        uint64_t nodes; /* of the search trees, both ways */
        uint64_t pattern_nodes; /* of these, on patterns */
        bool by_patterns; /* these proved it */
};

/* `values` (n_jobs x n_nodes): a valid plan of `cost`, replaced when a better one is found. 0 or
 * -ENOMEM. */
int search_run(const struct problem *problem, const struct deadline *deadline, uint32_t *values, struct search_result *result);

#endif
