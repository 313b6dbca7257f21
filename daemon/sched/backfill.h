/* EASY backfill (Lifka 1995, Mu'alem & Feitelson 2001): the jobs that may overtake the first one
 * that waits. Pure; a step of a round (round.h). */
#ifndef RM_SCHED_BACKFILL_H
#define RM_SCHED_BACKFILL_H

#include <stdbool.h>
#include <stdint.h>

#include "rm/policy.h"

/* The time is not known. */
#define BACKFILL_NEVER UINT64_MAX

/* The job that waits and is served next: the first by priority and age that could run on the empty
 * cluster. -1: none waits. */
int32_t backfill_head(const struct rm_snapshot *snapshot, const struct rm_plan *plan);

/* When a job that waits can start for certain. */
struct backfill_reservation {
        uint64_t usec; /* from now; 0: at once, BACKFILL_NEVER: time limits do not tell */
        uint64_t spare_slots; /* then: how many more groups of its size there is surely room for than it has */
};

/* Computes for `job`, which waits, when so many of the jobs that `plan` places have come to the
 * ends of their time limits that its groups fit. `left_usec`: each job, the time it may still run,
 * 0: not known; for jobs that are only now to start it is their time limit that counts. */
struct backfill_reservation backfill_reserve(const struct rm_snapshot *snapshot, const struct rm_plan *plan,
                                             const uint64_t *left_usec, uint32_t job);

/* Mark in `ret_may` (n_jobs entries) the jobs that wait in `plan` and may overtake `head`, in the
 * order they are served in, as many as there are free cores for: those with a time limit that ends
 * before the reservation, and those that, wherever they are placed, take no more room than it
 * leaves spare. No job may when its time is 0 or BACKFILL_NEVER. Returns how many. */
uint32_t backfill_candidates(const struct rm_snapshot *snapshot, const struct rm_plan *plan, uint32_t head,
                             const struct backfill_reservation *reservation, bool *ret_may);

/* Cores that waiting jobs could get at best: what pinned groups leave of the nodes, less the ranks
 * of all others that run. */
uint64_t backfill_free_cores(const struct rm_snapshot *snapshot);

#endif
