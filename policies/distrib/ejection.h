/*
 * Losses chased through a plan (ejection chains: Glover 1996). A node that loses much against the best prices is filled anew: with what
 * it held, and with what it takes from others. These are filled anew in turn, with what is left over, and so on until nothing is;
 * as long as less is lost on the way than was before. Since no node and no job can lose less than nothing, most ways end soon.
 */
#ifndef RM_POLICIES_DISTRIB_EJECTION_H
#define RM_POLICIES_DISTRIB_EJECTION_H

#include "policies/distrib/deadline.h"
#include "policies/distrib/pieces.h"

struct ejection;

/* For jobs that may be put anywhere and run nowhere (hall_applies()). The best prices of the pieces are used. Both are borrowed. NULL: no
 * memory. */
struct ejection *ejection_create(struct pieces *pieces, const struct rm_snapshot *snapshot);
void ejection_destroy(struct ejection *ejection); /* NULL ok */

/* Betters the plan, which must be valid and is of all jobs of the pieces, until no chain that is looked at does, or `until_usec` are
 * left. The node of each rank of each demand, until the next call, and *ret_gain: how much less it costs. NULL: no better one. */
const int32_t *ejection_run(struct ejection *ejection, const struct rm_plan *plan, const struct deadline *deadline,
                            int64_t until_usec, int64_t *ret_gain);

#endif
