/* A job watched by its front end: offsets, attempts, input, signals, waiting. No clock, and no
 * input or output of its own but a temporary file, so that every turn of events can be played in a
 * test. */
#ifndef RM_LAUNCHER_CLIENT_ATTACHMENT_H
#define RM_LAUNCHER_CLIENT_ATTACHMENT_H

#include <stdbool.h>
#include <stdint.h>

#include "launcher/client/buffer.h"
#include "proto/local.pb-c.h"

#define ATTACHMENT_NEVER_USEC UINT64_MAX

struct attachment_config {
        const char *program; /* how to call ourselves in messages */
        uint64_t job;
        bool input; /* standard input is sent to the job */
        bool submitted; /* just now, by us: the job exists, and its input begins at offset 0 */
        bool release; /* rmd may forget the output once all of it is written: it is told so, and answers, before the end */
        bool wait_set; /* give up when the job has not started after wait_usec */
        uint64_t wait_usec;
        bool cancel_unread; /* the job ends when standard output has no reader any more, as mpirun does */
        uint64_t away_usec; /* how long rmd may be away before we leave the job to itself */
        uint64_t real_usec; /* the time of day when it is created; 0: not known */
        const char *temporary_directory; /* for what a checkpoint may give again, see recall.h; NULL: there is none */
};

/* Copies what it needs of `config`; `program` must outlive it. All times are monotonic
 * microseconds. */
struct attachment;
struct attachment *attachment_create(const struct attachment_config *config, uint64_t now_usec);
void attachment_destroy(struct attachment *attachment); /* NULL ok */

/* A connection stands: say hello, attach, send again what rmd may not have taken. */
void attachment_connected(struct attachment *attachment, uint64_t now_usec);
/* The connection is gone, or none could be made. */
void attachment_lost(struct attachment *attachment, uint64_t now_usec);
/* A reply came. */
void attachment_reply(struct attachment *attachment, const Rm__LocalReply *reply, uint64_t now_usec);
/* How many bytes of standard input may be handed over now, and handing them over. */
size_t attachment_input_space(const struct attachment *attachment);
void attachment_input(struct attachment *attachment, const void *data, size_t size_bytes);
void attachment_input_eof(struct attachment *attachment);
/* A signal (SIGINT, SIGTERM, SIGHUP, ...) reached the front end. */
void attachment_signal(struct attachment *attachment, int signo, uint64_t now_usec);

/* The job has not confirmed SIGTSTP yet, and there is a connection by which it can. */
bool attachment_stop_waits(const struct attachment *attachment);
/* Do what is due; to be called at attachment_due_usec() at the latest (ATTACHMENT_NEVER_USEC:
 * nothing to wait for). */
void attachment_tick(struct attachment *attachment, uint64_t now_usec);
uint64_t attachment_due_usec(const struct attachment *attachment);

/* Bytes for rmd; to be dropped as they are sent. */
struct buffer *attachment_requests(struct attachment *attachment);
/* Bytes for standard output (1) and standard error (2), our own messages among the latter. */
struct buffer *attachment_output(struct attachment *attachment, unsigned stream);
/* The output of that stream is closed: its bytes are dropped from now on. */
void attachment_output_closed(struct attachment *attachment, unsigned stream);
/* The same because its reader is gone (EPIPE): see cancel_unread. */
void attachment_output_unread(struct attachment *attachment, unsigned stream);
/* Output of that stream cannot be written (`error`: of errno). Returns true when that is worth
 * another try, as on a full disk while the job runs and little waits. Else the stream is closed,
 * that is told, and the exit code is not 0. */
bool attachment_output_failed(struct attachment *attachment, unsigned stream, int error);
/* True while the connection is of no use any more or yet: connect (again). */
bool attachment_wants_connection(const struct attachment *attachment);
/* The end: nothing but output is left. `ret_code` is what to exit with. */
bool attachment_done(const struct attachment *attachment, int *ret_code);

#endif
