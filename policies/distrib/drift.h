/*
 * Large plans bettered by annealing: groups of a job go from one node to another, or change places with another job's, now and
 * then at a loss. Memory for what is placed, not for what could be, and the objective of rm/policy.h without tables, so a move
 * takes some 30 ns.
 */
#ifndef RM_POLICIES_DISTRIB_DRIFT_H
#define RM_POLICIES_DISTRIB_DRIFT_H

#include "policies/distrib/deadline.h"
#include "policies/distrib/pieces.h"

struct drift;

/* Begins at `plan`, which must be valid. Jobs with pinned groups stay as they are. Of nodes without a job only the cheapest take
 * part, as many as all jobs could fill. The snapshot is borrowed. `seed`: another one, another walk. NULL: no memory, more than
 * this is made for, or nothing to do. */
struct drift *drift_create(const struct rm_snapshot *snapshot, const struct rm_plan *plan, uint64_t seed);
void drift_destroy(struct drift *drift); /* NULL ok */

/* From now on jobs mostly go where they lose little at the best prices of `pieces`, which must be for the same jobs and all of
 * them. -ENOMEM. */
int drift_set_prices(struct drift *drift, struct pieces *pieces);

/* About how long that takes. */
double drift_prices_work_usec(const struct drift *drift, const struct pieces *pieces);

/* How many places jobs have, on how many nodes each, together. */
uint32_t drift_places(const struct drift *drift);

/* For `usec`, but not longer than until `until_usec` are left, at a temperature that falls from `hot` to `cold`, in parts of what
 * losses are like. Returns how much less the best plan costs than in the beginning. */
int64_t drift_run(struct drift *drift, const struct deadline *deadline, int64_t until_usec, int64_t usec, double hot, double cold);

/* The best plan. -ENOMEM; the plan is as before then. */
int drift_write(const struct drift *drift, struct rm_plan *plan);

#endif
