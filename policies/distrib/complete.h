/* A plan out of portions that leave a little: that is put where it costs least, job by job. For jobs that run already, and for groups of
 * several ranks; others are better put by refit.h. */
#ifndef RM_POLICIES_DISTRIB_COMPLETE_H
#define RM_POLICIES_DISTRIB_COMPLETE_H

#include "placement/relaxation.h"
#include "policies/distrib/dive.h"

/* No job of the relaxation has limits or pinned groups; else nothing is done. `plan` becomes the new one if that costs less; *cost
 * is what it costs, before and after. -ENOMEM. */
int complete_run(const struct rm_snapshot *snapshot, const struct relaxation *relaxation, const struct portion *portions,
                 uint32_t n, struct rm_plan *plan, int64_t *cost);

/* About how long it takes. */
double complete_work_usec(const struct rm_snapshot *snapshot, const struct relaxation *relaxation, const struct portion *portions,
                          uint32_t n);

#endif
