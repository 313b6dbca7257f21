/* The ranks in a capsule: what each has said at the program socket, and which of them to tell what.
 * Pure. The messages are the user's: any bytes. */
#ifndef RM_DAEMON_CAPSULE_INIT_RANKS_RANKS_H
#define RM_DAEMON_CAPSULE_INIT_RANKS_RANKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/capsule.pb-c.h"
#include "proto/program.pb-c.h"

/* The ranks of one capsule are at most so many: no node runs more in one. */
enum { RANKS_MAX = 4096 };

struct ranks;

struct ranks *ranks_create(void);
void ranks_destroy(struct ranks *ranks); /* NULL ok */

/* Takes a message of RANK_MESSAGE_STATE, at the monotonic time now_usec. 0; -EBADMSG: no rank can
 * say that; -ESTALE: it answers what is not asked (any more); -EUSERS: of one rank too many. */
int ranks_take(struct ranks *ranks, const Program__Request *request, uint64_t now_usec);

/* Was something said, since this was asked last, that matters for what rmd does next: who wants to
 * be told what, or whether the program keeps its own state? */
bool ranks_take_news(struct ranks *ranks);

/* The rank does nothing for now: how far it was says nothing of the others, and it comes to no
 * place. */
void ranks_rest(struct ranks *ranks, uint32_t number);

/* Sums up what the capsule has done: what the rank has that is furthest behind; and how many
 * listen. `ranks` and `listening` 0, and `own_state_said` false: nothing is known. */
void ranks_sum(const struct ranks *ranks, uint64_t now_usec, Capsule__Progress *ret);

/* Sends a Notice to one rank. False: the rank cannot be told. */
typedef bool (*ranks_send_fn)(void *ctx, uint32_t rank, const void *data, size_t size);
struct ranks_news {
        Program__Event event;
        bool ask; /* their answers are awaited, in place of those that were before */
        uint64_t hold_usec; /* of EVENT_PLACE */
};
/* Tells all ranks that listen to it. A rank that cannot be told is not waited for. How many are. */
size_t ranks_report(struct ranks *ranks, const struct ranks_news *news, ranks_send_fn send, void *ctx);
size_t ranks_awaited(const struct ranks *ranks);
/* Answers that come from now on are none. */
void ranks_stop_waiting(struct ranks *ranks);

/* Puts into the carry who listens; the rest is said again. ranks_saved_state_finish() frees what is
 * in it. */
void ranks_saved_state(const struct ranks *ranks, Capsule__SavedState *saved_state);
void ranks_saved_state_finish(Capsule__SavedState *saved_state);
void ranks_set_saved_state(struct ranks *ranks, const Capsule__SavedState *saved_state);

#endif
