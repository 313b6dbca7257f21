/* A dual to begin with: from prices of units, those of the linear relaxation, by GLPK. */
#ifndef RM_POLICIES_DISTRIB_RELAX_H
#define RM_POLICIES_DISTRIB_RELAX_H

#include "policies/distrib/dual.h"

/* `cost`: of a plan; costs above the bound are scaled so that those up to this fit in.
 * `limit_usec`: when there is less time than the prices take, any others will do. -ENOMEM. See
 * dual_init(). */
int relax_dual(const struct problem *problem, int64_t limit_usec, int64_t cost, int64_t target, struct dual *ret_dual);

#endif
