/* Which jobs are to grow or shrink: those that were started with ranks in reserve, and whose program can change. Pure.
 *
 * Jobs shrink when running ones have more ranks than there are cores (rather than that ranks share cores), or when the first job that waits finds room that way;
 * those of the lowest priority first, and of these the ones that do more steps than their goal wants, then the largest. Jobs grow into cores that nobody waits for;
 * those of the highest priority first, and of these the ones that are behind their goal, then the smallest; one that does more than its goal does not.
 * Virtual malleability (Cores 2015) folds the ranks that there are; here it is their number that follows the cores. */
#ifndef RM_SCHED_MALLEABLE_H
#define RM_SCHED_MALLEABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/sched/round.h"

enum malleable_goal {
        MALLEABLE_NO_GOAL,
        MALLEABLE_BEHIND,
        MALLEABLE_AHEAD,
};

/* A job that has nodes. In the order in which jobs were submitted. */
struct malleable_job {
        uint32_t active; /* ranks */
        uint32_t wanted; /* by a change that is under way; 0: none is */
        uint32_t least, most; /* never fewer or more; both 0: its number is fixed */
        uint32_t step; /* ranks of a group: it changes by so many */
        bool may_change; /* its program asks, and it was not changed a moment ago */
        int64_t priority;
        enum malleable_goal goal;
};

/* The first that waits. */
struct malleable_waiting {
        uint32_t ranks; /* 0: none waits */
        int64_t priority; /* no job of a higher one shrinks for it */
};

/* Cores that a job may use at all, of those that are usable now. */
uint64_t malleable_limit(const struct rm_snapshot *snapshot, const struct rm_job *job);

/* Of the jobs that wait after a round for which there are cores at all. */
struct malleable_waiting malleable_first_waiting(const struct rm_snapshot *snapshot, const struct round_result *result);

/* `cores`: usable ones, but those that are kept free. `ret_wanted`, n_jobs entries: how many active ranks each is to have; 0: it stays as it is. */
void malleable_decide(const struct malleable_job *jobs, size_t n_jobs, const struct malleable_waiting *waiting, uint64_t cores,
                      uint32_t *ret_wanted);

#endif
