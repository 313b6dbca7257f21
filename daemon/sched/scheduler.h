/*
 * The round of round.h with the policy host around it: asks each policy, falls back to `greedy`
 * when one fails, and hands over what is to be done. Asynchronous; one round at a time. Knows the
 * loop, but no cluster, no jobs and no log: the caller makes the snapshot and carries the actions
 * out.
 */
#ifndef RM_SCHED_SCHEDULER_H
#define RM_SCHED_SCHEDULER_H

#include <event2/event.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"
#include "daemon/sched/policy_host.h"
#include "daemon/sched/round.h"
#include "daemon/sched/snapshot.h"

#define SCHEDULER_FALLBACK "greedy"

struct scheduler;

struct scheduler_config {
        struct policy_host_config host;
        const char *policy;   /* the cluster's; NULL: greedy */
        uint64_t budget_usec; /* for each policy asked */
};

/* Strings are copied. */
struct scheduler *scheduler_create(struct event_base *base, const struct scheduler_config *config);
void scheduler_destroy(struct scheduler *scheduler); /* no callback any more; NULL ok */

/* The result, and the snapshot that its indices are of, are the scheduler's and gone after the
 * call. `warnings`: policies that failed and what answered instead, one line each, "" when none.
 * The next round may be started, or the scheduler destroyed, from the callback. */
typedef void (*scheduler_done)(void *context, const struct rm_snapshot *snapshot, const struct round_result *result,
                               const char *warnings);

/* Begin a round. `snapshot` is taken over (freed on failure too); `jobs` as in round_create(), used
 * during the call only. -EBUSY while a round is under way; else as round_create(). Without jobs the
 * callback is called before this returns. */
int scheduler_run(struct scheduler *scheduler, struct snapshot *snapshot, const struct round_job *jobs, scheduler_done done,
                  void *context, struct rm_error *err);

bool scheduler_busy(const struct scheduler *scheduler);

/* A host of its own for lists and for plans that are only looked at: never in the way of a
 * round. */
struct policy_host *scheduler_side_host(struct scheduler *scheduler);

#endif
