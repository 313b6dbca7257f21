/* Checkpoints that the leader begins, gives up, or has copied again: when, and where copies of what
 * is captured are to go. */
#ifndef RM_LEADER_CHECKPOINT_SCHEDULE_H
#define RM_LEADER_CHECKPOINT_SCHEDULE_H

#include "common/error.h"
#include "daemon/cluster/cluster.h"
#include "daemon/context.h"

struct checkpoint_wish {
        Rm__CheckpointCause cause;
        const char *by; /* the user who asked; "": none did */
        bool stop; /* the job leaves its nodes when it is done */
        bool force; /* also of a program that keeps its own state */
        Rm__UserLimits *limits; /* of a drill; NULL: none */
};
/* Propose one of the job `id`, on the node that leads. 0: `callback` is called as of
 * cluster_propose(), but at once if the state refuses it, with the number of the checkpoint as
 * `created`. -ENOENT: the job has ended, or is not there; -EHOSTUNREACH: this node does not lead;
 * then it is not called. */
int leader_checkpoint(struct rmd *rmd, uint64_t id, const struct checkpoint_wish *wish, cluster_propose_fn callback, void *userdata,
                      struct rm_error *err);

/* Begins the checkpoints whose time has come, and ends those that are stuck; to be called once a
 * second. `now_usec`: by the log's clock. */
void checkpoints_tick(struct rmd *rmd, uint64_t now_usec);

/* From one checkpoint to the next, by what the job asked for and by what is measured; 0: it makes
 * none by itself. `prior_mtbf_usec`: a node's time between losses, before any was seen. Pure. */
uint64_t checkpoint_interval_usec(const Rm__State *state, const Rm__Job *job, uint64_t prior_mtbf_usec);

#endif
