/* One job watched by its front end: offsets, input, signals, waiting. No input or output of its own and no clock, so that
 * every turn of events can be played in a test. */
#ifndef RM_LAUNCHER_CLIENT_SESSION_H
#define RM_LAUNCHER_CLIENT_SESSION_H

#include <stdbool.h>
#include <stdint.h>

#include "launcher/client/buffer.h"
#include "proto/local.pb-c.h"

#define SESSION_NEVER_USEC UINT64_MAX

struct session_config {
        const char *program; /* how to call ourselves in messages */
        uint64_t job;
        bool input;          /* standard input is sent to the job */
        bool submitted;      /* just now, by us: the job exists, and its input begins at offset 0 */
        bool release;        /* rmd may forget the output once all of it is written: it is told so, and answers, before the end */
        bool wait_set;       /* give up when the job has not started after wait_usec */
        uint64_t wait_usec;
        bool cancel_unread;  /* the job ends when standard output has no reader any more, as mpirun does */
        uint64_t away_usec;  /* how long rmd may be away before we leave the job to itself */
};

/* Copies what it needs of `config`; `program` must outlive it. All times are monotonic microseconds. */
struct session;
struct session *session_create(const struct session_config *config, uint64_t now_usec);
void session_destroy(struct session *session); /* NULL ok */

/* A connection stands: say hello, attach, send again what rmd may not have taken. */
void session_connected(struct session *session, uint64_t now_usec);
/* It is gone, or nothing could be connected. */
void session_lost(struct session *session, uint64_t now_usec);
/* A reply came. */
void session_reply(struct session *session, const Rm__LocalReply *reply, uint64_t now_usec);
/* How many bytes of standard input may be handed over now, and handing them over. */
size_t session_input_room(const struct session *session);
void session_input(struct session *session, const void *data, size_t size_bytes);
void session_input_eof(struct session *session);
/* One of SIGINT, SIGTERM, SIGHUP, ... reached the front end. */
void session_signal(struct session *session, int signo, uint64_t now_usec);
/* Do what is due; to be called at session_due_usec() at the latest (SESSION_NEVER_USEC: nothing to wait for). */
void session_tick(struct session *session, uint64_t now_usec);
uint64_t session_due_usec(const struct session *session);

/* Bytes for rmd; to be dropped as they are sent. */
struct buffer *session_requests(struct session *session);
/* Bytes for standard output (1) and standard error (2), our own messages among the latter. */
struct buffer *session_output(struct session *session, unsigned stream);
/* That stream takes no more: its bytes are dropped from now on. */
void session_output_closed(struct session *session, unsigned stream);
/* The same because its reader is gone (EPIPE): see cancel_unread. */
void session_output_unread(struct session *session, unsigned stream);
/* True while the connection is of no use any more or yet: connect (again). */
bool session_wants_connection(const struct session *session);
/* The end: nothing but output is left. `ret_code` is what to exit with. */
bool session_done(const struct session *session, int *ret_code);

#endif
