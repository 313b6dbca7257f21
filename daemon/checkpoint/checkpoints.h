/* Checkpoints and restarts from them, on this node: captures its capsules when the state says that
 * a checkpoint of their job is being made, keeps what was captured, and copies of what other nodes
 * have captured, and brings capsules back from it. The truth is the state; here is what is being
 * done about it. */
#ifndef RM_CHECKPOINT_CHECKPOINTS_H
#define RM_CHECKPOINT_CHECKPOINTS_H

#include <stdbool.h>

#include "common/error.h"
#include "daemon/context.h"
#include "daemon/job/runner.h"
#include "daemon/state/owner.h"
#include "proto/local.pb-c.h"
#include "proto/peer.pb-c.h"

int checkpoints_create(struct rmd *rmd, struct checkpoints **ret, struct rm_error *err);
void checkpoints_destroy(struct checkpoints *checkpoints); /* NULL ok */

/* The state changed, or a lease: do what is still to be done, soon (from the loop). */
void checkpoints_wake(struct checkpoints *checkpoints);
/* A checkpoint was started in the log. */
void checkpoints_started(struct checkpoints *checkpoints, uint64_t job, uint64_t checkpoint);
/* False: it is not for us. `node` has sent it. */
bool checkpoints_on_message(struct checkpoints *checkpoints, const char *node, const Rm__PeerMessage *message);
void checkpoints_on_peer(struct checkpoints *checkpoints, const char *node, bool connected);
/* Keeps the connections that something waits on. */
void checkpoints_keep(const struct checkpoints *checkpoints);
/* Reads all that this node has of a checkpoint, and tells the log what is damaged. `fn` is called
 * once, from the loop or at once: with what was found, which it does not own, or with `error` (0:
 * none; -ENOENT: nothing of it is here; -ECANCELED: rmd ends). */
typedef void (*checkpoints_verified_fn)(void *userdata, const Rm__VerifiedCheckpoint *found, int error, const char *text);
void checkpoints_verify(struct checkpoints *checkpoints, uint64_t job, uint64_t checkpoint, checkpoints_verified_fn fn,
                        void *userdata);
/* The user who exports or imports: only a program of this uid may connect. Its texts are borrowed
 * for the call. */
struct checkpoints_user {
        uint32_t uid;
        const char *name;
        const char *key_file; /* of the key of the file; "": the cluster's */
        bool admin;
        struct owner_today today; /* what the user data base says of uid, for an import */
};
/* `on_open`: the file goes through the Unix socket at that path; at most once, before `on_end`.
 * `on_end`, once: with 0 and what to say, or why it came to nothing; -ECANCELED: rmd ends. Both
 * from the loop. */
struct checkpoints_exchange_ops {
        void (*on_open)(void *userdata, const char *socket);
        void (*on_end)(void *userdata, int error, const char *text);
};
/* How many parts of a checkpoint are here; the others are to come, and the caller asks again.
 * `since_usec`: the log's time when it asked first; 0: this is the first time. A copy that fails is
 * ordered again for ten seconds from then on: it may have been ordered before, of a node that was
 * lost since. */
int checkpoints_gather(struct checkpoints *checkpoints, uint64_t job, uint64_t checkpoint, uint64_t since_usec, size_t *ret_here,
                       struct rm_error *err);
/* All parts are here. With an error there are no callbacks. */
int checkpoints_export(struct checkpoints *checkpoints, uint64_t job, uint64_t checkpoint, const struct checkpoints_user *user,
                       const struct checkpoints_exchange_ops *ops, void *userdata, struct rm_error *err);
/* Imports a checkpoint of a job of this user, or of any user if this one is root. */
int checkpoints_import(struct checkpoints *checkpoints, const struct checkpoints_user *user,
                       const struct checkpoints_exchange_ops *ops, void *userdata, struct rm_error *err);
/* Is this copy, which the state does not name, needed for a drill? */
bool checkpoints_own(const struct checkpoints *checkpoints, const struct resident *resident);
/* A local capsule answers (error 0), or does not or no more. */
void checkpoints_capsule_ready(struct checkpoints *checkpoints, struct resident *resident, int error, const char *text);

#endif
