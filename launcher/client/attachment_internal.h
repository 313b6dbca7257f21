/* The internal interface of the parts of an attachment: attachment.c (connection, time),
 * attachment_attempt.c, attachment_output.c, attachment_input.c, attachment_control.c (signals and
 * cancels). */
#ifndef RM_LAUNCHER_CLIENT_ATTACHMENT_INTERNAL_H
#define RM_LAUNCHER_CLIENT_ATTACHMENT_INTERNAL_H

#include "launcher/client/attachment.h"

#define CONTROLS_MAX 16
#define ATTACHMENT_RETRY_USEC 100000U
/* How long a job that was given up may take to end. */
#define GIVE_UP_USEC (5U * 1000000U)

/* A signal or cancel that rmd has not confirmed yet. */
struct control {
        uint32_t id;
        uint64_t at_usec; /* send again then, ATTACHMENT_NEVER_USEC: it is on its way */
        bool cancel;
        bool interrupt; /* asked for the end of the job */
        bool undone; /* SIGTSTP before SIGCONT, or SIGCONT before SIGTSTP: not to be sent again */
        int signo;
};

/* Ranks that the job has lost. */
struct lately_lost {
        uint32_t attempt; /* that it is of; 0: none has been seen */
        size_t seen; /* of the attempt's list */
        char *names; /* of those that are to be told, "5 6 7"; NULL: there are none */
        size_t n, left; /* how many these are, and how many ranks of its program the job has now */
        uint32_t ranks; /* of its program */
        uint64_t at_usec; /* when they are to be told; ATTACHMENT_NEVER_USEC */
        bool over; /* the job ends, and not well: the end of its ranks is no news */
};

struct attachment {
        struct attachment_config config;
        uint64_t start_usec;
        uint32_t last_id;
        uint32_t hello_id;
        uint32_t attach_id;
        struct buffer requests;
        bool connected;
        bool attached; /* rmd has agreed to serve us */
        uint64_t connected_usec; /* valid while connected */
        uint64_t lost_usec; /* valid while not connected */
        bool away_said;
        uint64_t attach_at_usec; /* attach again then, ATTACHMENT_NEVER_USEC: no need */

        struct buffer output[2];
        /* Bytes of the job's stream taken over so far; those up to recall_end() are swallowed, as
         * they were delivered before. */
        uint64_t received[2];
        struct recall *recall[2]; /* what was delivered; up to received, or beyond it */
        bool closed[2];
        bool output_lost; /* as it could not be written */

        struct buffer input; /* from input_base on */
        uint64_t input_base; /* 0 as long as all is kept that an attempt from the beginning needs */
        uint64_t input_acked;
        uint64_t input_sent; /* offset up to which it was sent over this connection */
        bool input_known; /* what was acknowledged is */
        bool input_resumes; /* and until then, how much the attempt had taken at its checkpoint */
        bool input_eof;
        bool input_eof_sent;
        bool input_over; /* the job takes no more */
        uint64_t input_at_usec; /* send again then */

        struct control controls[CONTROLS_MAX];
        size_t n_controls;
        unsigned interrupts; /* SIGINT and SIGTERM so far */
        uint64_t interrupt_usec; /* when the first of them came */
        int cancel_signo; /* we asked for the end with it */

        uint32_t attempt; /* of the job; 0: not known yet */
        struct lately_lost lost;
        uint32_t offsets_attempt; /* that all offsets are of; the one before while it is not known where `attempt` begins */
        uint64_t restored_from; /* the checkpoint that offsets_attempt went on from */
        uint64_t said_from; /* the checkpoint that `attempt` was said to go on from; 0: it was not */
        bool goes_back; /* a next attempt may need what this one was given, and what of it was delivered */
        bool has_checkpoints;
        uint64_t wait_from_usec; /* it is not said to wait within WAIT_QUIET_USEC of this */

        bool seen; /* the state below is known */
        Rm__JobState state;
        bool ended; /* the last state seen was an end, with exit_code */
        int exit_code;
        bool started;
        char *reason;
        char *said; /* the reason last told */
        char *word; /* for the state */
        uint64_t leaderless_usec; /* since when it needs a leader that cannot be reached; ATTACHMENT_NEVER_USEC: it does not */
        bool leaderless_said;
        bool giving_up;
        uint64_t give_up_usec;
        bool ending; /* all has come */
        /* Tell rmd then that we have it; ATTACHMENT_NEVER_USEC: told, or it has not said over this
         * connection that it is all. */
        uint64_t release_at_usec;
        uint32_t release_id;
        uint64_t release_usec; /* go then in any case; ATTACHMENT_NEVER_USEC: there is output to be written before */

        bool done;
        int code;
};

/* A line on standard error. */
void attachment_say(struct attachment *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Done, with that exit code. */
void attachment_finish(struct attachment *a, int code);
/* Done, as the job has ended. */
void attachment_end(struct attachment *a);
/* Done, although the job has not ended. */
void attachment_leave(struct attachment *a, int code);
/* Returns the id of the request with this body, which is copied. */
uint32_t attachment_put(struct attachment *a, const ProtobufCMessage *body);
bool attachment_runs(const struct attachment *a);

/* attachment_attempt.c. True: a new one goes on from a checkpoint, so that it is to be attached at
 * offsets that rmd may not expect. */
bool attempt_follow(struct attachment *a, const Rm__Job *job, uint64_t now);

/* attachment_losses.c */
void losses_follow(struct attachment *a, const Rm__Job *job, uint64_t now);
void node_losses_report(struct attachment *a, uint64_t now); /* what is due */

/* attachment_output.c */
void output_init(struct attachment *a);
void output_finish(struct attachment *a);
void output_take(struct attachment *a, const Rm__JobOutput *output);
void output_begin(struct attachment *a); /* of an attempt from the beginning */
/* The attempt goes on from that checkpoint (NULL: nothing is known of it). skipped: and so may
 * others that we have not seen. */
void output_go_back(struct attachment *a, const Rm__Checkpoint *checkpoint, bool skipped);
void output_follow(struct attachment *a, const Rm__Job *job); /* which checkpoints it has */
void output_end(struct attachment *a); /* no more will come */

/* attachment_input.c */
void input_put(struct attachment *a); /* what rmd takes now */
void input_rewind(struct attachment *a); /* to be sent again from what was acknowledged on */
void input_ack(struct attachment *a, uint64_t offset, uint64_t now);
void input_closed(struct attachment *a); /* the job takes no more */
void input_repeat(struct attachment *a, uint64_t now); /* an attempt starts from the beginning */
void input_resume(struct attachment *a); /* one goes on from a checkpoint */

/* attachment_control.c. `interrupt`: it asks for the end of the job. */
void controls_add(struct attachment *a, bool cancel, bool interrupt, int signo);
/* Send what is due, ATTACHMENT_NEVER_USEC: all. */
void controls_put(struct attachment *a, uint64_t now);
/* False: the request with this id is none of them. */
bool controls_refused(struct attachment *a, uint32_t id, const Rm__Error *error, uint64_t now);
void controls_confirmed(struct attachment *a, uint32_t id);
void controls_insist(struct attachment *a, uint64_t now);
bool controls_insisting(const struct attachment *a); /* the request for the end of the job is not confirmed yet */
uint64_t controls_due_usec(const struct attachment *a);

#endif
