/* The mover's end of its socketpair with rmd. What rmd says is looked at wherever the mover waits,
 * and between chunks. */
#ifndef RM_MOVER_CONTROL_H
#define RM_MOVER_CONTROL_H

#include <poll.h>
#include <stdbool.h>

#include "common/error.h"
#include "daemon/mover/rounds.h"
#include "proto/mover.pb-c.h"

struct control {
        int fd;
        bool aborted;
        bool started;
        bool outlives; /* rmd may go */
        bool released; /* save: tracks no more */
        bool goes_on;  /* rmd has said so, of this precopy */
        Rm__MoverCommand *setup;     /* send, receive, save, load, verify, export or import; owned */
        Rm__MoverCommand *precopy;   /* owned; NULL until said */
        Rm__MoverCommand *dump_done; /* owned; NULL until said */
        Rm__MoverCommand *slow;      /* owned; NULL until said */
        Rm__MoverCommand *proceed;   /* owned; NULL until said */
        struct rounds_deadline deadline;
        uint64_t progress_usec;      /* when rmd was told of progress last */
};

void control_init(struct control *c, int fd);
void control_finish(struct control *c);

/* Takes all that rmd has said by now. 0; -ECANCELED when rmd wants an end or is gone; -EPROTO for
 * what does not belong here. */
int control_check(struct control *c, struct rm_error *err);

/* Waits until rmd says something, or one of `fds` is ready. `fds[0]` is filled in by this function
 * and belongs to the control; the others are the caller's, negative descriptors are passed over.
 * `timeout_msec` negative: indefinitely. The number of ready descriptors besides the control's, or
 * as control_check(). */
int control_poll(struct control *c, struct pollfd *fds, size_t n_fds, int timeout_msec, struct rm_error *err);

/* Waits until `fd` has one of these events, or the end of it (now_usec()). 0; -ETIMEDOUT without a
 * text; or as control_check(). */
int control_await(struct control *c, int fd, short events, uint64_t deadline_usec, struct rm_error *err);

/* Until rmd has said what is to be done, which must be of this kind. */
int control_wait_setup(struct control *c, Rm__MoverCommand__BodyCase kind, struct rm_error *err);
/* A checkpoint is done: what was said of it is forgotten, and `precopy` may come again. */
void control_again(struct control *c);

/* From here on, that rmd is gone is no end. */
void control_outlive(struct control *c);

/* Failures to send are not reported: rmd being gone is seen by the next check. */
/* `port` 0: at the path that it was told. */
void control_send_listening(struct control *c, uint16_t port);
void control_send_ready(struct control *c);
void control_send_wants_slow(struct control *c, uint64_t bytes, uint64_t usec);
void control_send_nearly(struct control *c);
void control_send_precopied(struct control *c, Rm__MoverFigures *figures);
/* Sends the progress, at most once in half a second. */
void control_send_progress(struct control *c, uint64_t raw_bytes, uint64_t wire_bytes, uint64_t usec, const char *object);
void control_send_sent(struct control *c, Rm__MoverFigures *figures);
void control_send_acknowledged(struct control *c, Rm__MoverFigures *figures);
void control_send_received(struct control *c, Rm__MoverFigures *figures);
void control_send_captured(struct control *c, Rm__MoverFigures *figures, uint64_t in_memory_bytes);
void control_send_stored(struct control *c, Rm__MoverStored *m);
void control_send_released(struct control *c);
void control_send_loading(struct control *c, const void *saved_state, size_t saved_state_bytes, uint64_t raw_bytes);
void control_send_verified(struct control *c, Rm__MoverVerified *m);
void control_send_importing(struct control *c, const void *head, size_t head_bytes);
void control_send_imported(struct control *c, uint64_t bytes);
void control_send_failed(struct control *c, const struct rm_error *err, bool end_mark_sent, bool by_peer);

#endif
