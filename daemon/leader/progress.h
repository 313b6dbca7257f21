/* How far jobs are, as their programs say by librmrt: what nodes report of the groups that are
 * there. Only the leader has it, it is in no log, and after a change of leaders it comes again by
 * itself; but for what was measured on which nodes (CmdJobRates). Pure: knows no clock. */
#ifndef RM_LEADER_PROGRESS_H
#define RM_LEADER_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/leader/job_places.h"
#include "daemon/sched/steps.h"
#include "daemon/state/state_index.h"
#include "proto/local.pb-c.h"
#include "proto/peer.pb-c.h"

/* How long it takes until a rate that was seen once counts for a third. */
#define PROGRESS_MEMORY_USEC 30000000u
/* A rate is not told before steps of so long were seen. */
#define PROGRESS_FIRST_USEC 1000000u
/* A job whose last step is longer ago is slower than it was. Nodes report every two seconds. */
#define PROGRESS_STALL_USEC 10000000u
/* Once a job has other cores, what it says for so long may be of steps before that: ranks tell once
 * a second, and rmd a second later. */
#define PROGRESS_SETTLE_USEC 4000000u

struct progress;

struct progress *progress_create(void);
void progress_destroy(struct progress *progress); /* NULL ok */

/* Takes the report of one node at `now_usec`. Entries that do not fit the state (a job that has
 * ended, a group that does not exist) are dropped. */
void progress_add(struct progress *progress, const struct state_index *index, const Rm__NodeMemory *report, uint64_t now_usec);
/* Forgets how far jobs are that do not run, and all of those that have ended: one that begins again
 * remembers where it was faster. */
void progress_forget(struct progress *progress, const Rm__State *state);

/* How far the job is: as far as its group that is furthest behind, of those that say so. The rate
 * includes the time that it was frozen, or waited. False: nothing is known of it, and `ret` is not
 * touched. Its pointers are not set. */
bool progress_get(const struct progress *progress, uint64_t job, uint64_t now_usec, Rm__Progress *ret);

/* Gives the scheduler the steps of a job, but for `places`. The rate on cores of its own is kept
 * while it shares some, and the other way round; all 0 if nothing is known. */
void progress_steps(const struct progress *progress, uint64_t id, struct steps *ret);

/* A job of which something was measured that is to be in the log: `*ret` of it, until `progress`
 * changes. Each is said once. False: there is none. */
bool progress_take_news(const struct progress *progress, uint64_t *ret_job, const struct job_places **ret);

/* Sets of nodes other than where the job is, on which its rate was measured; valid until `progress`
 * changes. Returns how many. */
size_t progress_places(const struct progress *progress, uint64_t id, const struct job_place *ret[JOB_PLACES_MOST]);

#endif
