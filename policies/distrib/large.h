/*
 * Bound and repair, where there are too many cells for an exact search. A Lagrangian relaxation
 * gives a bound and the prices of cores (lagrangian.h); a dive fills the nodes that prices are
 * clear about (dive.h); what is left is put greedily (repair.h); and annealing that prefers what
 * loses little by prices betters the plan as long as there is time (anneal_large.h).
 */
#ifndef RM_POLICIES_DISTRIB_LARGE_H
#define RM_POLICIES_DISTRIB_LARGE_H

#include "policies/distrib/deadline.h"

struct large_result {
        int64_t cost;  /* of the plan now */
        int64_t bound; /* nothing costs less */
};

/* Better the valid `plan`, until `until_usec` are left or there is nothing more to gain.
 * -ENOMEM. */
int large_run(const struct rm_snapshot *snapshot, const struct deadline *deadline, int64_t until_usec, struct rm_plan *plan,
              struct large_result *result);

#endif
