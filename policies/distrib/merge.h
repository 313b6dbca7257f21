/*
 * One plan made of several: the cheapest that is made up of what nodes hold and how jobs are cut in these (optimized crossover:
 * Aggarwal, Orlin & Tai 1997), where pieces of one size of jobs of one priority may change places. The best plan known and the linear
 * relaxation agree on most of it: that is kept, and only the rest is decided by an integer program, solved by GLPK (relaxation induced
 * neighborhood search: Danna, Rothberg & Le Pape 2005).
 */
#ifndef RM_POLICIES_DISTRIB_MERGE_H
#define RM_POLICIES_DISTRIB_MERGE_H

#include "policies/distrib/deadline.h"
#include "policies/distrib/ledger.h"

struct merge;

/* For jobs that may be put anywhere and run nowhere. Both are borrowed. NULL: no memory, or more than this is made for. */
struct merge *merge_create(const struct pieces *pieces, const struct rm_snapshot *snapshot);
void merge_destroy(struct merge *merge); /* NULL ok */

/* What else a plan may be made of. */
struct ledger *merge_ledger(struct merge *merge);

/* A plan of all jobs of the pieces, which must be valid, and what it costs: the node of each rank of each demand. */
void merge_add(struct merge *merge, const int32_t *nodes, int64_t cost);

/* A cheaper one than all that were added, in the same form, until the next call; it is added, too. NULL: none was found in `usec`, or
 * before the deadline. */
const int32_t *merge_solve(struct merge *merge, const struct deadline *deadline, int64_t usec, int64_t *ret_cost);

#endif
