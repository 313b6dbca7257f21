/*
 * Plans where nodes are shared, bettered by annealing with a hall: a job, or a part of it, may wait there for what it pays at the
 * best prices and a fee, and a node that stays empty does not lose more than the fee. So jobs can give way to each other where none has
 * room to go anywhere else. The fee rises until nobody can afford to wait.
 */
#ifndef RM_POLICIES_DISTRIB_HALL_H
#define RM_POLICIES_DISTRIB_HALL_H

#include "policies/distrib/deadline.h"
#include "policies/distrib/pieces.h"

/* Is it made for this: single ranks of jobs that may be put anywhere and run nowhere? */
bool hall_applies(const struct pieces *pieces, const struct rm_snapshot *snapshot);

/* For `usec`, but not longer than until `until_usec` are left: `plan`, which must be valid and is of all jobs of the pieces, becomes
 * the best one found. `seed`: another one, another walk. -ENOMEM. */
int hall_run(struct pieces *pieces, const struct rm_snapshot *snapshot, const struct deadline *deadline, int64_t until_usec,
             int64_t usec, uint64_t seed, struct rm_plan *plan);

#endif
