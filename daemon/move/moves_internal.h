/* Shared by moves.c, source.c and destination.c. */
#ifndef RM_MOVE_MOVES_INTERNAL_H
#define RM_MOVE_MOVES_INTERNAL_H

#include <event2/event.h>
#include <stdint.h>
#include <sys/queue.h>

#include "common/calls.h"
#include "daemon/cluster/cluster.h"
#include "daemon/config/config.h"
#include "daemon/move/machine.h"
#include "daemon/move/moves.h"
#include "daemon/transfer/arrival.h"
#include "daemon/transfer/capacity.h"
#include "daemon/transfer/capture.h"
#include "daemon/transfer/gate.h"
#include "daemon/transfer/mover.h"

/* A move, as seen from this end of it. */
struct move {
        struct moves *moves;
        uint64_t id;
        enum move_role role;
        enum move_state state;
        uint64_t job;
        int32_t index;
        uint64_t incarnation; /* of the copy that is this end's */
        char *other;      /* node at the other end */
        char *dir;        /* of images (destination) or the capture socket (source) */
        struct caller caller;   /* of what is proposed */
        struct capture *capture; /* source */
        struct arrival *arrival; /* destination */
        struct mover *mover;    /* source */
        bool dump_done; /* source: rm-mover was told so; if it vanishes now, the other side may have all */
        bool end_mark_sent; /* source: from here on the destination may have a whole copy */
        struct capsule_limits kept; /* destination: what the group may use at the source */
        bool proposing;
        bool opened_reported;   /* source: the destination runs; destination: it does */
        bool pages;         /* private memory travels apart from CRIU's images; source, before the pre-copy: it is wished for */
        bool pages_only;    /* the destination has no room for it otherwise */
        char untracked[256]; /* source: why it does not */
        bool postcopy;      /* source: memory may come later than the image */
        uint64_t later_bytes; /* destination: so much comes later than the image */
        bool slowed;        /* source: there is a control group for it */
        struct capacity_need need; /* destination: at the begin */
        uint64_t memory_bytes; /* source: of the group's processes, when the move began */
        uint64_t leave_by_usec; /* source: until when, as rm-mover was told last, by the log's clock; 0: whenever */
        enum capture_wait waits; /* source, in PREPARE */
        bool reconnects; /* source, in PREPARE: the destination could not be reached, and is tried again */
        uint64_t waiting_reported_usec; /* source: when the log was last told of that; 0: it was not */
        struct event *deadline;
        struct gate gate;   /* of the state */
        bool stream_lost; /* source: the failure is that the destination has closed the stream */
        uint8_t token[ARRIVAL_TOKEN_BYTES]; /* that the source must know */
        char error[512];
        Rm__MoveFailure failure; /* of that */
        /* monotonic times of this end, 0 = not reached */
        uint64_t begin_usec, dump_usec, dumped_usec, sent_usec, received_usec, restored_usec, committed_usec, opened_usec,
                filled_usec;
        Rm__Move figures;
        LIST_ENTRY(move) entry;
};

/* A prepare that came before the log's entry did. */
struct pending_prepare {
        char *node;
        Rm__MovePrepare *prepare;
        SLIST_ENTRY(pending_prepare) entry;
};
SLIST_HEAD(pending_prepares, pending_prepare);

struct moves {
        struct rmd *rmd;
        struct calls calls;    /* of moves */
        struct calls captures, arrivals;
        LIST_HEAD(, move) list;
        struct pending_prepares pending_prepares;
        char *dir; /* a tmpfs: images and capture sockets */
        struct remover *remover;
        struct event *retry;
        bool retry_requested;
        struct event *wake;
        /* Moves from here with lower numbers were begun, by this rmd or by one before it. The
         * others started while this one was out of reach. UINT64_MAX: it has not had all of the log
         * yet, and cannot tell. */
        uint64_t first_unheard;
};

/* moves.c */
struct move *move_create(struct moves *moves, const Rm__Move *record, enum move_role role);
struct move *move_find(struct moves *moves, uint64_t id, enum move_role role);
/* An event happened: next state, its fault point, then source_enter() or destination_enter(). */
void move_event(struct move *move, enum move_event event);
/* A step failed at this end: keeps the text and takes the FAILED edge. */
void move_fail(struct move *move, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
struct resident *move_resident(struct move *move);
/* A move has one proposal under way at a time, which is made again by the retry while the state
 * does not show it. */
void move_propose(struct move *move, const Rm__Command *command);
void move_propose_abort(struct move *move);
int move_send(struct move *move, Rm__PeerMessage *message);
void moves_retry(struct moves *moves);
/* Ends this move's rm-mover, if one runs, and removes the directory. */
void move_stop_mover(struct move *move);
/* A group runs, and there is still memory at its source without which it cannot go on. */
bool move_is_needed(const struct move *move);

/* source.c */
void source_create(struct move *move); /* what only this end has */
void source_begin(struct move *move);
void source_enter(struct move *move);
/* Committed: end our copy; also when the destination does not answer any more. */
void source_release(struct move *move);
void source_capsule_filling(struct move *move);
/* A move that waits for the test of tracking goes on if that has ended. */
void source_retry(struct move *move);
/* The state has changed: rm-mover may have to hurry. */
void source_expedite(struct move *move);
void source_on_prepared(struct move *move, const Rm__MovePrepared *prepared);
void source_on_opened(struct move *move, const Rm__MoveOpened *opened);
/* The destination says why it gave up. */
void source_on_failed(struct move *move, const char *node, const Rm__MoveFailed *failed);

/* destination.c */
void destination_create(struct move *move);
/* All of the image is here: the source is not needed any more. */
bool destination_is_complete(const struct move *move);
void destination_begin(struct moves *moves, const char *node, const Rm__MovePrepare *prepare);
/* The log may have caught up with prepares that came early. */
void destination_begin_pending(struct moves *moves);
void pending_prepare_free(struct pending_prepare *pending);
void destination_enter(struct move *move);
/* Ask again for the commit, open again, see again whether memory is missing. */
void destination_retry(struct move *move);
/* The copy has all of its memory now, or not yet; or PID 1 has killed it for want of it. */
void destination_capsule_filling(struct move *move);
/* Takes over a copy that runs already without all of its memory; from a restart of rmd. */
void destination_adopt(struct moves *moves, const Rm__Move *record);
void destination_capsule_ready(struct move *move);
void destination_on_image_sent(struct move *move, const Rm__MoveImageSent *sent);

#endif
