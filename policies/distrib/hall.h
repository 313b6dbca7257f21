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

struct hall;

/* Walks begin at `plan`, which must be valid and is of all jobs of the pieces. The best prices of the pieces are used. Both are
 * borrowed. NULL: no memory, or it would take longer than `usec`. */
struct hall *hall_create(struct pieces *pieces, const struct rm_snapshot *snapshot, int64_t usec, const struct rm_plan *plan);
void hall_destroy(struct hall *hall); /* NULL ok */

/* For `usec`, but not longer than until `until_usec` are left. `seed`: another one, another walk. Returns what the best plan costs. */
int64_t hall_walk(struct hall *hall, const struct deadline *deadline, int64_t until_usec, int64_t usec, uint64_t seed);

/* The node of each rank of each demand in that plan, until the next walk. */
const int32_t *hall_nodes(const struct hall *hall);

#endif
