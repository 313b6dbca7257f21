/* Checkpoints that the leader begins: when, and where copies of what is captured are to go. */
#ifndef RM_LEADER_CHECKPOINTS_H
#define RM_LEADER_CHECKPOINTS_H

#include "common/error.h"
#include "daemon/cluster/cluster.h"
#include "daemon/context.h"

/* Propose one of this job, on the node that leads. `by`: who asked, "" if nobody did. `stop`: the job leaves its nodes when it is done. 0: `callback` is called as of
 * cluster_propose(), with the number of the checkpoint as `created`. -ENOENT: the job has ended, or is not there; -EHOSTUNREACH: this node does not lead; then it is not
 * called. */
int leader_checkpoint(struct rmd *rmd, uint64_t job, Rm__CheckpointCause cause, const char *by, bool stop,
                      cluster_propose_fn callback, void *userdata, struct rm_error *err);

#endif
