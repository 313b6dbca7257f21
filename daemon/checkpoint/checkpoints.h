/* Checkpoints and restarts from them, on this node: captures its capsules when the state says that a checkpoint of their job is being made, keeps what was captured,
 * and copies of what other nodes have captured, and brings capsules back from it. The truth is the state; here is what is being done about it. */
#ifndef RM_CHECKPOINT_CHECKPOINTS_H
#define RM_CHECKPOINT_CHECKPOINTS_H

#include <stdbool.h>

#include "common/error.h"
#include "daemon/context.h"
#include "daemon/job/runner.h"
#include "proto/local.pb-c.h"
#include "proto/peer.pb-c.h"

int checkpoints_create(struct rmd *rmd, struct checkpoints **ret, struct rm_error *err);
void checkpoints_destroy(struct checkpoints *checkpoints); /* NULL ok */

/* The state changed, or a lease: do what is still to be done, soon (from the loop). */
void checkpoints_wake(struct checkpoints *checkpoints);
/* False: it is not for us. `node` has sent it. */
bool checkpoints_on_message(struct checkpoints *checkpoints, const char *node, const Rm__PeerMessage *message);
void checkpoints_on_peer(struct checkpoints *checkpoints, const char *node, bool connected);
/* Keeps the connections that something waits on. */
void checkpoints_keep(const struct checkpoints *checkpoints);
/* Reads all that this node has of a checkpoint, and tells the log what is damaged. `fn` is called once, from the loop or at once: with what was found, which it does not own, or
 * with `error` (0: none; -ENOENT: nothing of it is here; -ECANCELED: rmd ends). */
typedef void (*checkpoints_verified_fn)(void *userdata, const Rm__VerifiedCheckpoint *found, int error, const char *text);
void checkpoints_verify(struct checkpoints *checkpoints, uint64_t job, uint64_t checkpoint, checkpoints_verified_fn fn,
                        void *userdata);
/* A local capsule answers (error 0), or does not or no more. */
void checkpoints_capsule_ready(struct checkpoints *checkpoints, struct resident *resident, int error, const char *text);

#endif
