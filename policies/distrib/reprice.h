/* From patterns to a dual and back: their linear program and the dual bound the same thing, and each may be ahead of the other. */
#ifndef RM_POLICIES_DISTRIB_REPRICE_H
#define RM_POLICIES_DISTRIB_REPRICE_H

#include "policies/distrib/dual.h"
#include "policies/distrib/pattern.h"

/* Patterns that begin with what the dual knows: which values there are, and what jobs pay for them. As pattern_create(). */
struct pattern *pattern_of_dual(const struct dual *root, const uint32_t *values, const struct pattern_host *host);

/* The prices that patterns have found at their root, as a dual for plans that cost `target` or less, with the values that `root`
 * has. 1: *ret_dual is made; 0: there are none; -ENOMEM. */
int reprice(const struct pattern *pattern, const struct dual *root, int64_t target, struct dual *ret_dual);

#endif
