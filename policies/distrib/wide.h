/* Plans and bounds where there are too many cells for an exact search, within a fraction of a per cent of each other. */
#ifndef RM_POLICIES_DISTRIB_WIDE_H
#define RM_POLICIES_DISTRIB_WIDE_H

#include "policies/distrib/deadline.h"

struct wide_result {
        int64_t cost;  /* of the plan now */
        int64_t bound; /* nothing costs less */
};

/* Better the valid `plan`, until `until_usec` are left or there is nothing more to gain. -ENOMEM. */
int wide_run(const struct rm_snapshot *snapshot, const struct deadline *deadline, int64_t until_usec, struct rm_plan *plan,
             struct wide_result *result);

#endif
