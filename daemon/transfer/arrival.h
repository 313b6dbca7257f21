/* Brings a capsule to this node, into a copy that was made for it and is cut off; a move, a restart
 * from a checkpoint and a drill do it alike:
 *
 *   listen   rm-mover waits for the image, with a key and a token.
 *   receive  The image comes, and what travels beside it, by which the copy's link is prepared
 *            meanwhile.
 *   restore  CRIU restores the processes, and PID 1 compares them with what they were. They stay
 *            frozen and cut off.
 *   open     The log has decided: the copy runs.
 *
 * The owner decides which node sends, and when the log has decided. */
#ifndef RM_TRANSFER_ARRIVAL_H
#define RM_TRANSFER_ARRIVAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/calls.h"
#include "common/error.h"
#include "daemon/context.h"
#include "daemon/job/runner.h"
#include "daemon/transfer/remover.h"
#include "proto/mover.pb-c.h"

#define ARRIVAL_TOKEN_BYTES 32U

struct arrival;

/* All are called from the loop, with the owner that arrival_create() was given. */
struct arrival_ops {
        /* The node that sends, for errors. */
        const char *(*get_sender)(void *owner);
        /* rm-mover listens on this port. */
        void (*on_listening)(void *owner, uint16_t port);
        /* The image still comes. NULL ok. */
        void (*on_progress)(void *owner);
        /* The image is here, verified, and the link is prepared. */
        void (*on_received)(void *owner);
        /* The processes are restored. `text` names files that may differ from what they were, "" if
         * none do. */
        void (*on_restored)(void *owner, const char *text);
        /* The copy runs. */
        void (*on_opened)(void *owner);
        /* The copy could not be opened, for another reason than the want of a lease: the owner is
         * to call arrival_open() again in a moment. */
        void (*on_not_opened)(void *owner);
        /* The arrival has failed. `code`: the error of the capsule, else 0. `bad`: the image is
         * damaged, or its sender has reported that it cannot send. */
        void (*on_failed)(void *owner, int code, bool bad, const char *text);
};

/* The image that is to arrive. */
struct arrival_image {
        const uint8_t *token; /* ARRIVAL_TOKEN_BYTES of it, which the sender must know; NULL: one is drawn */
        uint64_t max_bytes; /* of the image; 0: no limit */
        bool files; /* copies of files that are written in place come with it */
};

/* `calls` is the list of all arrivals of this kind; `dir`, copied, is made for the image. `ops` and
 * `remover` are borrowed. */
struct arrival *arrival_create(struct rmd *rmd, struct calls *calls, struct remover *remover, const char *dir,
                               const struct arrival_ops *ops, void *owner);
void arrival_destroy(struct arrival *arrival); /* NULL ok; ends rm-mover, and removes the directory */

/* The arrival is into this copy of a capsule. */
void arrival_begin(struct arrival *arrival, uint64_t job, int32_t index, uint64_t incarnation);
/* Starts an rm-mover; one that runs is ended, and what has come is forgotten. -ECHILD: the capsule
 * is gone; or another negative errno. */
int arrival_listen(struct arrival *arrival, const struct arrival_image *image, struct rm_error *err);
const uint8_t *arrival_token(const struct arrival *arrival);

/* Takes what travels beside the image, while the image still comes; the first time only. */
void arrival_saved_state(struct arrival *arrival, const void *saved_state, size_t size_bytes);

/* Restores the capsule, once on_received() was called. `back`: from a checkpoint, after which the
 * processes had gone on, as of capsule_restore_back(); NULL: of a move. */
void arrival_restore(struct arrival *arrival, const struct capsule_rollback *back);

/* Lets the restored copy run; nothing happens if it is being opened. Without a lease nothing is
 * called: arrival_open() is to be called again when there is one. */
void arrival_open(struct arrival *arrival);

/* Everything of the image has been received; no sender is needed any more. */
bool arrival_is_complete(const struct arrival *arrival);
/* rm-mover tells these of an image that is complete: whether private memory is apart from it, and
 * how much of the memory comes later. */
bool arrival_has_pages(const struct arrival *arrival);
uint64_t arrival_later_bytes(const struct arrival *arrival);

/* Ends rm-mover and removes the directory; the copy stays as it is. */
void arrival_end_mover(struct arrival *arrival);
/* rm-mover goes on although rmd ends, as a group cannot run without it. */
void arrival_leave_mover(struct arrival *arrival);

#endif
