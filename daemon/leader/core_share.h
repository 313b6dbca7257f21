/* The share that groups get of cores which they share, as nodes report it while ranks share cores
 * there. Only the leader has it, it is in no log, and after a change of leaders it comes again by
 * itself. Pure: knows no clock. */
#ifndef RM_LEADER_CORE_SHARE_H
#define RM_LEADER_CORE_SHARE_H

#include "daemon/state/state_index.h"
#include "proto/peer.pb-c.h"

/* How long it takes until what was seen once counts for a third. */
#define CORE_SHARE_MEMORY_USEC 10000000U

struct core_share;

struct core_share *core_share_create(void);
void core_share_destroy(struct core_share *share); /* NULL ok */

/* Takes a report. What does not fit the state (a group that is none) is dropped. */
void core_share_add(struct core_share *share, const struct state_index *index, const Rm__CoreShare *report);
/* Forget jobs that are not folded any more. */
void core_share_forget(struct core_share *share, const struct state_index *index);

/* How many times as long the job takes as if none of its ranks ever waited for a core, by the group
 * for which that is most; 0: nothing was reported. A rank that polls for a message wants a core
 * like one that computes. */
double core_share_slowdown(const struct core_share *share, const Rm__Job *job);

#endif
