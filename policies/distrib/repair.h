/* A plan out of what a dive has placed: what is left of each job, in the order of priorities, is
 * put where a group costs least on average. */
#ifndef RM_POLICIES_DISTRIB_REPAIR_H
#define RM_POLICIES_DISTRIB_REPAIR_H

#include "placement/relaxation.h"
#include "policies/distrib/dive.h"

/* No job of the relaxation has limits or pinned groups; else nothing is done. `plan` becomes the
 * new one if that costs less; *cost is what it costs, before and after. -ENOMEM. */
int repair_run(const struct rm_snapshot *snapshot, const struct relaxation *relaxation, const struct portion *portions, uint32_t n,
               struct rm_plan *plan, int64_t *cost);

/* About how long it takes. */
double repair_work_usec(const struct rm_snapshot *snapshot, const struct relaxation *relaxation, const struct portion *portions,
                        uint32_t n);

#endif
