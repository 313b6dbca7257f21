/*
 * Large plans bettered by annealing: groups of a job go from one node to another, or change places
 * with another job's, now and then at a loss. Memory for what is placed, not for what could be, and
 * the objective of rm/policy.h without tables, so a move takes some 30 ns.
 */
#ifndef RM_POLICIES_DISTRIB_ANNEAL_LARGE_H
#define RM_POLICIES_DISTRIB_ANNEAL_LARGE_H

#include "policies/distrib/deadline.h"
#include "policies/distrib/lagrangian.h"

struct anneal_large;

/* Begins at `plan`, which must be valid. Jobs with pinned groups stay as they are. Of nodes without
 * a job only the cheapest take part, as many as all jobs could fill. The snapshot is borrowed.
 * `seed`: another one, another walk. NULL: no memory, more than this is made for, or nothing to
 * do. */
struct anneal_large *anneal_large_create(const struct rm_snapshot *snapshot, const struct rm_plan *plan, uint64_t seed);
void anneal_large_destroy(struct anneal_large *anneal); /* NULL ok */

/* From now on jobs mostly go where they lose little at the best prices of `pieces`, which must be
 * for the same jobs and all of them. -ENOMEM. */
int anneal_large_set_prices(struct anneal_large *anneal, struct lagrangian *lagrangian);

/* About how long that takes. */
double anneal_large_prices_work_usec(const struct anneal_large *anneal, const struct lagrangian *lagrangian);

/* How many places jobs have, on how many nodes each, together. */
uint32_t anneal_large_places(const struct anneal_large *anneal);

/* For `usec`, but not longer than until `until_usec` are left, at a temperature that falls from
 * `hot` to `cold`, in parts of what losses are like. Returns how much less the best plan costs than
 * in the beginning. */
int64_t anneal_large_run(struct anneal_large *anneal, const struct deadline *deadline, int64_t until_usec, int64_t usec, double hot,
                         double cold);

/* The best plan. -ENOMEM; the plan is as before then. */
int anneal_large_write(const struct anneal_large *anneal, struct rm_plan *plan);

#endif
