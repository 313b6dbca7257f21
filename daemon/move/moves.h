/* The moves this node takes part in, as source or destination. The truth is the state; here is what
 * is being done about it. */
#ifndef RM_MOVE_MOVES_H
#define RM_MOVE_MOVES_H

#include <stdbool.h>

#include "common/error.h"
#include "daemon/context.h"
#include "daemon/job/runner.h"
#include "proto/peer.pb-c.h"

int moves_create(struct rmd *rmd, struct moves **ret, struct rm_error *err);
void moves_destroy(struct moves *moves);

/* A move was started in the log: the source begins, or, while this node catches up with the log,
 * once it has. */
void moves_started(struct moves *moves, uint64_t id);
/* The state changed: finish or undo what it says, also what a previous rmd left behind. */
void moves_wake(struct moves *moves);
/* A local capsule answers (error 0), or does not or no more (error < 0). `moves` NULL ok. */
void moves_capsule_ready(struct moves *moves, struct resident *resident, int error, const char *text);
/* A local capsule lacks memory (every second), or has all of it now. `moves` NULL ok. */
void moves_capsule_filling(struct moves *moves, const struct resident *resident);
/* A move under way needs this copy, which the state does not name as the capsule. */
bool moves_own(struct moves *moves, const struct resident *resident);
/* A move has this capsule, and is to open it or to end it: no other module does. */
bool moves_hold(struct moves *moves, const struct resident *resident);
/* Messages between the two ends. False when it is none of them. */
bool moves_on_message(struct moves *moves, const char *node, const Rm__PeerMessage *message);
/* Keep the connections to the other ends. */
void moves_keep(const struct moves *moves);
void moves_on_peer(struct moves *moves, const char *node, bool connected);

#endif
