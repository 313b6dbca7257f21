/* Raises the bound of a dual far and quickly: steps to the top of a model that is made of the
 * choices seen (a proximal bundle method: Lemarechal 1975, Kiwiel 1990). */
#ifndef RM_POLICIES_DISTRIB_BUNDLE_H
#define RM_POLICIES_DISTRIB_BUNDLE_H

#include <stdbool.h>

#include "policies/distrib/deadline.h"
#include "policies/distrib/dual.h"

struct bundle; /* room to compute in */

/* The problem is borrowed. NULL with *ret_none: it is too large for it; else no memory. */
struct bundle *bundle_create(const struct problem *problem, bool *ret_none);
void bundle_destroy(struct bundle *bundle); /* NULL ok */

/* At most `steps`, ends early when it is over or hardly anything is gained any more. The dual has
 * the best costs found, and never a lower bound than before. */
void bundle_run(struct bundle *bundle, struct dual *dual, struct dual_work *work, const struct deadline *deadline, uint32_t steps);

#endif
