/* The work of the leader besides the log: it places and moves jobs, reads availability files,
 * watches limits. Made when this node has won the leadership, destroyed when it has lost it; work
 * under way ends with it, and the next leader goes on from the log. */
#ifndef RM_LEADER_LEADER_H
#define RM_LEADER_LEADER_H

#include "common/error.h"
#include "daemon/context.h"
#include "daemon/sched/round.h"
#include "daemon/sched/scheduler.h"
#include "daemon/sched/snapshot.h"
#include "proto/peer.pb-c.h"
#include "proto/state.pb-c.h"

struct leader *leader_create(struct rmd *rmd);
/* Must not be called from the leader's own callbacks. NULL ok. */
void leader_destroy(struct leader *leader);

/* The state changed by this command (NULL: as a whole). NULL `leader` ok. */
void leader_wake(struct leader *leader, const Rm__Command *command);
/* Data outside of the state has changed: a round is made soon. NULL ok. Destroys nothing, so it may
 * be called from anywhere. */
void leader_round_soon(struct leader *leader);

/* A node tells what its groups have sent. NULL `leader` ok. */
void leader_on_traffic(struct leader *leader, const Rm__Traffic *report);

/* A node tells what memory it has, and what its groups take. NULL `leader` ok. */
void leader_on_memory(struct leader *leader, const char *node, const Rm__NodeMemory *report);

/* A node tells what a group gets of the cores that it shares. NULL `leader` ok. */
void leader_on_core_share(struct leader *leader, const Rm__CoreShare *report);

/* Nodes only, as a policy sees them, with the memory that is free; NULL: this node does not
 * lead. */
struct snapshot *leader_nodes(const struct rmd *rmd);
/* core_share_slowdown(); 0 too where this node does not lead. */
double leader_slowdown(const struct rmd *rmd, const Rm__Job *job);
/* progress_get(); false too where this node does not lead. */
bool leader_progress(const struct rmd *rmd, const Rm__Job *job, Rm__Progress *ret);
/* When the pending job starts at the latest, by the clock of the log and as the last round saw it.
 * 0: not known, and where this node does not lead. */
uint64_t leader_expected_start(const struct rmd *rmd, const Rm__Job *job);

/* The snapshot that a policy would see now. Any node can make it, but only the leader's has traffic
 * and free memory. */
struct leader_snapshot {
        struct snapshot *policy; /* with capacities as folded */
        struct snapshot *real; /* what it is made from, and points into */
};
int leader_snapshot(struct rmd *rmd, struct leader_snapshot *ret, struct rm_error *err);
void leader_snapshot_finish(struct leader_snapshot *snapshot);

/* A round that is only looked at, on any node: a scheduler with `policy` in the place of the
 * cluster's (the caller destroys it), and scheduler_run() of it on what is now. */
struct scheduler *leader_side_scheduler(struct rmd *rmd, const char *policy);
int leader_try_round(struct rmd *rmd, struct scheduler *scheduler, scheduler_done done, void *context, struct rm_error *err);
/* Why a move that a round wants would not be begun now, though it could; NULL: nothing holds it. */
const char *leader_hold(const struct rmd *rmd, const struct rm_snapshot *snapshot, const struct round_action *action);

#endif
