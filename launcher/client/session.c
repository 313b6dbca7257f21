#include "launcher/client/session.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <string.h>

#include "common/util.h"
#include "launcher/client/client.h"
#include "launcher/client/wire.h"

/* Input that rmd has not acknowledged is kept, to be sent again; so this bounds our memory too. */
#define INPUT_WINDOW_BYTES (512U << 10)
#define INPUT_CHUNK_BYTES (64U << 10)
#define CONTROLS_MAX 16
/* A job that starts within this time is not said to wait. */
#define WAIT_QUIET_USEC 1000000U
/* A break is not worth a word before. */
#define AWAY_QUIET_USEC (5U * 1000000U)
#define RETRY_USEC 100000U
/* A node may hear of a job, or remember it after a restart, this much later than we do. */
#define UNHEARD_USEC (10U * 1000000U)
/* How long a job that was given up may take to end. */
#define GIVE_UP_USEC (5U * 1000000U)
/* How long rmd may take to know that the output is ours. If it never does, it keeps it for a while, and that is all. */
#define RELEASE_USEC (5U * 1000000U)

/* A signal or cancel that rmd has not confirmed yet. */
struct control {
        uint32_t id;
        uint64_t at_usec; /* send again then, SESSION_NEVER_USEC: it is on its way */
        bool cancel;
        int signo;
};

struct session {
        struct session_config config;
        uint64_t start_usec;
        uint32_t last_id;
        uint32_t hello_id;
        uint32_t attach_id;
        struct buffer requests;
        bool connected;
        bool attached;           /* rmd has agreed to serve us */
        uint64_t connected_usec; /* valid while connected */
        uint64_t lost_usec;      /* valid while not connected */
        bool away_said;
        uint64_t attach_at_usec; /* attach again then, SESSION_NEVER_USEC: no need */

        struct buffer output[2];
        uint64_t received[2];    /* bytes of the job's stream taken over so far */
        bool closed[2];

        struct buffer input;     /* from input_base on: not acknowledged yet */
        uint64_t input_base;
        uint64_t input_sent;     /* offset up to which it was sent over this connection */
        bool input_known;        /* input_base is */
        bool input_eof;
        bool input_eof_sent;
        bool input_over;         /* the job takes no more */
        uint64_t input_at_usec;  /* send again then */

        struct control controls[CONTROLS_MAX];
        size_t n_controls;
        unsigned interrupts;     /* SIGINT and SIGTERM so far */
        int cancel_signo;        /* we asked for the end with it */

        bool seen;               /* the state below is known */
        Rm__JobState state;
        bool ended;              /* the last state seen was an end, with exit_code */
        int exit_code;
        bool started;
        char *reason;
        char *said;              /* the reason last told */
        bool giving_up;
        uint64_t give_up_usec;
        bool ending;             /* all has come */
        /* Tell rmd then that we have it; SESSION_NEVER_USEC: told, or it has not said over this connection that it is all. */
        uint64_t release_at_usec;
        uint32_t release_id;
        uint64_t release_usec; /* go then in any case; SESSION_NEVER_USEC: there is output to be written before */

        bool done;
        int code;
};

struct session *session_create(const struct session_config *config, uint64_t now) {
        struct session *s = xcalloc(1, sizeof(*s));

        s->config = *config;
        s->start_usec = now;
        s->lost_usec = now;
        s->attach_at_usec = SESSION_NEVER_USEC;
        s->input_at_usec = SESSION_NEVER_USEC;
        s->release_usec = s->release_at_usec = SESSION_NEVER_USEC;
        s->input_known = config->submitted;
        s->input_over = !config->input;
        return s;
}

void session_destroy(struct session *s) {
        if (!s)
                return;
        buffer_finish(&s->requests);
        buffer_finish(&s->output[0]);
        buffer_finish(&s->output[1]);
        buffer_finish(&s->input);
        free(s->reason);
        free(s->said);
        free(s);
}

static void say(struct session *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void say(struct session *s, const char *fmt, ...) {
        cleanup_free char *text = NULL;
        va_list ap;

        va_start(ap, fmt);
        text = xvasprintf(fmt, ap);
        va_end(ap);
        if (!s->closed[1])
                buffer_printf(&s->output[1], "%s: %s\n", s->config.program, text);
}

static void finish(struct session *s, int code) {
        s->done = true;
        s->code = code;
}

static uint32_t put(struct session *s, Rm__LocalRequest *request) {
        request->id = ++s->last_id;
        wire_put(&s->requests, request);
        return request->id;
}

/* ---- connection ---- */

static void put_hello(struct session *s) {
        Rm__Hello hello = RM__HELLO__INIT;
        Rm__LocalRequest request = RM__LOCAL_REQUEST__INIT;

        hello.version = CLIENT_PROTOCOL_VERSION;
        hello.client = (char *) s->config.program;
        request.body_case = RM__LOCAL_REQUEST__BODY_HELLO;
        request.hello = &hello;
        s->hello_id = put(s, &request);
}

static void put_control(struct session *s, struct control *control) {
        Rm__LocalRequest request = RM__LOCAL_REQUEST__INIT;
        Rm__SignalJob signal_job = RM__SIGNAL_JOB__INIT;
        Rm__CancelJob cancel_job = RM__CANCEL_JOB__INIT;

        if (control->cancel) {
                cancel_job.job = s->config.job;
                cancel_job.signal = (uint32_t) control->signo;
                request.body_case = RM__LOCAL_REQUEST__BODY_CANCEL_JOB;
                request.cancel_job = &cancel_job;
        } else {
                signal_job.job = s->config.job;
                signal_job.signal = (uint32_t) control->signo;
                request.body_case = RM__LOCAL_REQUEST__BODY_SIGNAL_JOB;
                request.signal_job = &signal_job;
        }
        control->id = put(s, &request);
        control->at_usec = SESSION_NEVER_USEC;
}

static bool takes_input(const struct session *s) {
        return s->attached && s->input_known && !s->input_over && s->seen && s->state != RM__JOB_STATE__JOB_PENDING &&
               s->state != RM__JOB_STATE__JOB_STARTING && s->input_at_usec == SESSION_NEVER_USEC;
}

static void put_input(struct session *s) {
        while (takes_input(s)) {
                size_t sent = (size_t) (s->input_sent - s->input_base);
                size_t n = s->input.used - sent;
                Rm__JobInput input = RM__JOB_INPUT__INIT;
                Rm__LocalRequest request = RM__LOCAL_REQUEST__INIT;

                if (n > INPUT_CHUNK_BYTES)
                        n = INPUT_CHUNK_BYTES;
                input.job = s->config.job;
                input.offset = s->input_sent;
                input.data.data = n ? s->input.data + s->input.start + sent : NULL;
                input.data.len = n;
                input.eof = s->input_eof && sent + n == s->input.used;
                if (n == 0 && (!input.eof || s->input_eof_sent))
                        return;
                request.body_case = RM__LOCAL_REQUEST__BODY_JOB_INPUT;
                request.job_input = &input;
                (void) put(s, &request);
                s->input_sent += n;
                s->input_eof_sent = input.eof;
        }
}

static void rewind_input(struct session *s) {
        s->input_sent = s->input_base;
        s->input_eof_sent = false;
}

static void put_attach(struct session *s) {
        Rm__AttachJob attach = RM__ATTACH_JOB__INIT;
        Rm__LocalRequest request = RM__LOCAL_REQUEST__INIT;

        attach.job = s->config.job;
        attach.stdout_offset = s->received[0];
        attach.stderr_offset = s->received[1];
        attach.input = s->config.input;
        request.body_case = RM__LOCAL_REQUEST__BODY_ATTACH_JOB;
        request.attach_job = &attach;
        s->attach_id = put(s, &request);
        s->attached = false;
        s->attach_at_usec = SESSION_NEVER_USEC;
        s->input_at_usec = SESSION_NEVER_USEC;
        rewind_input(s);
}

void session_connected(struct session *s, uint64_t now) {
        s->connected = true;
        s->connected_usec = now;
        put_hello(s);
        put_attach(s);
        for (size_t i = 0; i < s->n_controls; i++)
                put_control(s, &s->controls[i]);
}

void session_lost(struct session *s, uint64_t now) {
        if (s->connected)
                s->lost_usec = now;
        s->connected = false;
        s->attached = false;
        s->release_at_usec = SESSION_NEVER_USEC;
        s->release_id = 0;
        buffer_finish(&s->requests);
        session_tick(s, now);
}

bool session_wants_connection(const struct session *s) {
        return !s->connected && !s->done;
}

/* ---- the end ---- */

/* mpirun has told of its own troubles on standard error; the rest is ours to tell. */
static void tell_end(struct session *s) {
        const char *why = s->reason && *s->reason ? s->reason : "no reason given";

        switch (s->state) {
        case RM__JOB_STATE__JOB_CANCELLED:
                if (!s->cancel_signo && !s->giving_up)
                        say(s, "job %" PRIu64 " was cancelled: %s", s->config.job, why);
                break;
        case RM__JOB_STATE__JOB_TIMEOUT:
                say(s, "job %" PRIu64 " reached its time limit: %s", s->config.job, why);
                break;
        case RM__JOB_STATE__JOB_NODE_FAIL:
                say(s, "job %" PRIu64 " lost a node: %s", s->config.job, why);
                break;
        case RM__JOB_STATE__JOB_FAILED:
                if (!s->started)
                        say(s, "job %" PRIu64 " could not start: %s", s->config.job, why);
                else if (s->reason && *s->reason)
                        say(s, "job %" PRIu64 " failed: %s", s->config.job, s->reason);
                break;
        default:
                break;
        }
}

static void end(struct session *s) {
        int code = s->exit_code;

        tell_end(s);
        if (code == 0 && s->state != RM__JOB_STATE__JOB_COMPLETED)
                code = s->cancel_signo ? 128 + s->cancel_signo : EXIT_REFUSED;
        if (s->cancel_signo == SIGPIPE && s->state == RM__JOB_STATE__JOB_CANCELLED)
                code = 128 + SIGPIPE;
        finish(s, s->giving_up ? EXIT_REFUSED : code);
}

/* ---- signals ---- */

static void add_control(struct session *s, bool cancel, int signo) {
        struct control *control;

        if (s->n_controls == CONTROLS_MAX)
                return;
        control = &s->controls[s->n_controls++];
        *control = (struct control) { .at_usec = SESSION_NEVER_USEC, .cancel = cancel, .signo = signo };
        if (s->connected)
                put_control(s, control);
}

static void drop_control(struct session *s, size_t i) {
        memmove(&s->controls[i], &s->controls[i + 1], (s->n_controls - i - 1) * sizeof(s->controls[0]));
        s->n_controls--;
}

static void leave(struct session *s, int code) {
        say(s,
            "job %" PRIu64 " is left to itself: 'rmctl attach-job %" PRIu64 "' gets it back, 'rmctl cancel-job %" PRIu64
            "' ends it",
            s->config.job, s->config.job, s->config.job);
        finish(s, code);
}

/* Before mpirun runs there is nothing a signal could be sent to. */
static bool runs(const struct session *s) {
        return s->seen && s->state != RM__JOB_STATE__JOB_PENDING && s->state != RM__JOB_STATE__JOB_STARTING;
}

static void interrupt(struct session *s, int signo) {
        s->interrupts++;
        s->cancel_signo = signo;
        if (s->interrupts == 1) {
                add_control(s, !runs(s), signo);
                if (!s->connected)
                        say(s, "no connection to rmd: job %" PRIu64 " gets the signal when it is back", s->config.job);
                return;
        }
        if (!s->connected || s->interrupts > 2) {
                leave(s, 128 + signo);
                return;
        }
        say(s, "killing job %" PRIu64 " (again to detach from it)", s->config.job);
        add_control(s, true, SIGKILL);
}

void session_signal(struct session *s, int signo, uint64_t now) {
        (void) now;
        if (s->done)
                return;
        if (s->ending && (signo == SIGINT || signo == SIGTERM))
                end(s);
        else if (signo == SIGINT || signo == SIGTERM)
                interrupt(s, signo);
        else if (runs(s))
                add_control(s, false, signo);
        else if (signo == SIGHUP || signo == SIGQUIT)
                add_control(s, true, signo);
}

/* ---- input ---- */

size_t session_input_room(const struct session *s) {
        if (s->done || s->input_over || s->input_eof || !s->input_known || s->input.used >= INPUT_WINDOW_BYTES)
                return 0;
        return INPUT_WINDOW_BYTES - s->input.used;
}

void session_input(struct session *s, const void *data, size_t size_bytes) {
        if (s->input_over)
                return;
        buffer_add(&s->input, data, size_bytes);
        put_input(s);
}

void session_input_eof(struct session *s) {
        s->input_eof = true;
        put_input(s);
}

static void input_ack(struct session *s, uint64_t offset) {
        if (!s->input_known) {
                s->input_known = true;
                s->input_base = s->input_sent = offset;
        }
        if (offset <= s->input_base)
                return;
        if (offset - s->input_base > s->input.used)
                offset = s->input_base + s->input.used;
        buffer_drop(&s->input, (size_t) (offset - s->input_base));
        s->input_base = offset;
        if (s->input_sent < offset)
                s->input_sent = offset;
        put_input(s);
}

static void input_closed(struct session *s) {
        s->input_over = true;
        buffer_finish(&s->input);
        s->input_base = s->input_sent;
}

/* ---- what rmd says ---- */

static void take_output(struct session *s, const Rm__JobOutput *output) {
        unsigned i = output->stream == 2 ? 1 : 0;
        uint64_t from = output->offset;
        size_t skip = 0;

        if (output->stream != 1 && output->stream != 2)
                return;
        if (from > s->received[i]) {
                say(s, "%" PRIu64 " bytes of the job's %s are no longer stored", from - s->received[i],
                    i == 0 ? "output" : "error output");
                s->received[i] = from;
        }
        if (s->received[i] - from >= output->data.len)
                return;
        skip = (size_t) (s->received[i] - from);
        if (!s->closed[i])
                buffer_add(&s->output[i], output->data.data + skip, output->data.len - skip);
        s->received[i] += output->data.len - skip;
}

static bool is_end(Rm__JobState state) {
        return state >= RM__JOB_STATE__JOB_COMPLETED;
}

static void take_update(struct session *s, const Rm__JobUpdate *update) {
        const Rm__Job *job = update->job ? update->job->job : NULL;

        if (!job)
                return;
        s->seen = true;
        s->state = job->state;
        s->started = job->start_usec > 0;
        s->exit_code = job->exit_code;
        s->ended = is_end(job->state);
        free(s->reason);
        s->reason = xstrdup(job->reason);
        if (s->said && s->state != RM__JOB_STATE__JOB_PENDING && !s->ended) {
                say(s, "job %" PRIu64 " starts%s%s", s->config.job, *update->job->nodes ? " on " : "", update->job->nodes);
                free(take_ptr(s->said));
        }
        if (!update->final) {
                put_input(s);
        } else if (s->config.release) {
                s->ending = true;
                s->release_at_usec = 0;
        } else {
                end(s);
        }
}

/* The job's node is between two owners; asking again finds it. */
static bool is_passing(int code) {
        return code == EAGAIN || code == EHOSTUNREACH || code == EHOSTDOWN || code == ENOTCONN || code == ETIMEDOUT ||
               code == ECONNRESET;
}

static void attach_refused(struct session *s, const Rm__Error *error, uint64_t now) {
        bool exists = s->config.submitted || s->seen;

        if (is_passing(error->code) || (error->code == ENOENT && exists && !s->ended && now < s->connected_usec + UNHEARD_USEC)) {
                s->attach_at_usec = now + RETRY_USEC;
        } else if (s->ended) {
                /* It ended while nobody listened, and rmd has forgotten it. */
                end(s);
        } else {
                say(s, "job %" PRIu64 ": %s", s->config.job, *error->text ? error->text : strerror(error->code));
                finish(s, EXIT_REFUSED);
        }
}

static void take_error(struct session *s, uint32_t id, const Rm__Error *error, uint64_t now) {
        if (id == s->hello_id) {
                say(s, "rmd: %s", *error->text ? error->text : strerror(error->code));
                finish(s, EXIT_REFUSED);
                return;
        }
        if (id == s->attach_id) {
                attach_refused(s, error, now);
                return;
        }
        if (id == s->release_id) {
                if (is_passing(error->code))
                        s->release_at_usec = now + RETRY_USEC;
                else
                        end(s); /* then it is kept for a while */
                return;
        }
        for (size_t i = 0; i < s->n_controls; i++) {
                if (s->controls[i].id != id)
                        continue;
                if (error->code == EPERM || error->code == EACCES || error->code == EINVAL || error->code == ESRCH) {
                        if (error->code != ESRCH)
                                say(s, "%s", error->text);
                        drop_control(s, i);
                } else {
                        /* It is moving, or no leader can be reached: its end is the last thing that makes us give up. */
                        s->controls[i].at_usec = now + RETRY_USEC;
                }
                return;
        }
        if (!s->config.input)
                return;
        if (is_passing(error->code)) {
                s->input_at_usec = now + RETRY_USEC;
                rewind_input(s);
        } else {
                input_closed(s);
        }
}

static void take_ok(struct session *s, uint32_t id) {
        if (id == s->release_id)
                end(s);
        for (size_t i = 0; i < s->n_controls; i++) {
                if (s->controls[i].id != id)
                        continue;
                drop_control(s, i);
                return;
        }
}

void session_reply(struct session *s, const Rm__LocalReply *reply, uint64_t now) {
        if (s->done)
                return;
        switch (reply->body_case) {
        case RM__LOCAL_REPLY__BODY_ERROR:
                take_error(s, reply->id, reply->error, now);
                break;
        case RM__LOCAL_REPLY__BODY_OK:
                take_ok(s, reply->id);
                break;
        case RM__LOCAL_REPLY__BODY_JOB_OUTPUT:
                take_output(s, reply->job_output);
                break;
        case RM__LOCAL_REPLY__BODY_JOB_INPUT_ACK:
                input_ack(s, reply->job_input_ack->offset);
                break;
        case RM__LOCAL_REPLY__BODY_JOB_UPDATE:
                s->attached = true;
                take_update(s, reply->job_update);
                break;
        default:
                break;
        }
        session_tick(s, now);
}

/* ---- time ---- */

static bool is_pending(const struct session *s) {
        return !s->seen || s->state == RM__JOB_STATE__JOB_PENDING;
}

static const char *waits_for(const struct session *s) {
        return s->reason && *s->reason ? s->reason : "waits to be placed";
}

/* It waits, and the reason is news. */
static bool wait_to_tell(const struct session *s) {
        return s->seen && is_pending(s) && !s->giving_up && !s->cancel_signo && (!s->said || strcmp(s->said, waits_for(s)) != 0);
}

static void tell_wait(struct session *s, uint64_t now) {
        if (!wait_to_tell(s) || now < s->start_usec + WAIT_QUIET_USEC)
                return;
        if (strncmp(waits_for(s), "waits ", strlen("waits ")) == 0)
                say(s, "job %" PRIu64 " %s", s->config.job, waits_for(s));
        else
                say(s, "job %" PRIu64 " waits: %s", s->config.job, waits_for(s));
        free(s->said);
        s->said = xstrdup(waits_for(s));
}

static bool may_give_up(const struct session *s) {
        return s->config.wait_set && is_pending(s) && !s->giving_up && !s->cancel_signo;
}

/* "--wait 0" is "not at all", but a job waits only once rmd has said for what. */
static uint64_t give_up_at(const struct session *s) {
        if (s->config.wait_usec == 0 && !(s->seen && s->reason && *s->reason))
                return s->start_usec + WAIT_QUIET_USEC;
        return s->start_usec + s->config.wait_usec;
}

static void give_up(struct session *s, uint64_t now) {
        if (s->giving_up && now >= s->give_up_usec) {
                leave(s, EXIT_REFUSED);
                return;
        }
        if (!may_give_up(s) || now < give_up_at(s))
                return;
        if (s->config.wait_usec == 0)
                say(s, "job %" PRIu64 " would have to wait: cancelled: %s", s->config.job, waits_for(s));
        else
                say(s, "job %" PRIu64 " has not started within %" PRIu64 " s: cancelled: %s", s->config.job,
                    s->config.wait_usec / 1000000U, waits_for(s));
        s->giving_up = true;
        s->give_up_usec = now + GIVE_UP_USEC;
        add_control(s, true, SIGTERM);
}

static void tell_away(struct session *s, uint64_t now) {
        if (s->connected) {
                if (s->away_said)
                        say(s, "reconnected to rmd");
                s->away_said = false;
                return;
        }
        if (!s->away_said && now >= s->lost_usec + AWAY_QUIET_USEC) {
                say(s, "lost the connection to rmd (%s): waiting for it", client_socket_path());
                s->away_said = true;
        }
        if (now >= s->lost_usec + s->config.away_usec)
                leave(s, EXIT_NO_DAEMON);
}

/* Once the output is out of our hands, rmd may forget it. */
static void release_output(struct session *s, uint64_t now) {
        Rm__OutputAck ack = RM__OUTPUT_ACK__INIT;
        Rm__LocalRequest request = RM__LOCAL_REQUEST__INIT;

        if (s->output[0].used > 0 || s->output[1].used > 0)
                return;
        if (s->release_usec == SESSION_NEVER_USEC)
                s->release_usec = now + RELEASE_USEC;
        if (now >= s->release_usec) {
                end(s);
                return;
        }
        if (now < s->release_at_usec)
                return;
        s->release_at_usec = SESSION_NEVER_USEC;
        ack.job = s->config.job;
        ack.stdout_offset = s->received[0];
        ack.stderr_offset = s->received[1];
        ack.done = true;
        request.body_case = RM__LOCAL_REQUEST__BODY_OUTPUT_ACK;
        request.output_ack = &ack;
        s->release_id = put(s, &request);
}

void session_tick(struct session *s, uint64_t now) {
        if (s->done)
                return;
        if (s->connected && now >= s->attach_at_usec)
                put_attach(s);
        for (size_t i = 0; s->connected && i < s->n_controls; i++)
                if (now >= s->controls[i].at_usec)
                        put_control(s, &s->controls[i]);
        if (s->connected && now >= s->input_at_usec) {
                s->input_at_usec = SESSION_NEVER_USEC;
                put_input(s);
        }
        if (s->ending) {
                release_output(s, now);
                return;
        }
        give_up(s, now);
        tell_wait(s, now);
        if (!s->done)
                tell_away(s, now);
}

uint64_t session_due_usec(const struct session *s) {
        uint64_t due = SESSION_NEVER_USEC;

#define DUE(when)                                                                                                                  \
        do {                                                                                                                       \
                if ((when) < due)                                                                                                  \
                        due = (when);                                                                                              \
        } while (0)
        if (s->done)
                return due;
        if (s->ending && s->release_usec != SESSION_NEVER_USEC) {
                DUE(s->release_usec);
                DUE(s->release_at_usec);
        }
        if (s->connected) {
                DUE(s->attach_at_usec);
                DUE(s->input_at_usec);
                for (size_t i = 0; i < s->n_controls; i++)
                        DUE(s->controls[i].at_usec);
        } else if (!s->ending) {
                DUE(s->lost_usec + s->config.away_usec);
                if (!s->away_said)
                        DUE(s->lost_usec + AWAY_QUIET_USEC);
        }
        if (wait_to_tell(s))
                DUE(s->start_usec + WAIT_QUIET_USEC);
        if (may_give_up(s))
                DUE(give_up_at(s));
        if (s->giving_up && !s->ending)
                DUE(s->give_up_usec);
#undef DUE
        return due;
}

/* ---- what the front end does about it ---- */

struct buffer *session_requests(struct session *s) {
        return &s->requests;
}

struct buffer *session_output(struct session *s, unsigned stream) {
        return &s->output[stream == 2 ? 1 : 0];
}

void session_output_closed(struct session *s, unsigned stream) {
        unsigned i = stream == 2 ? 1 : 0;

        s->closed[i] = true;
        buffer_finish(&s->output[i]);
}

void session_output_unread(struct session *s, unsigned stream) {
        bool first = !s->closed[stream == 2 ? 1 : 0];

        session_output_closed(s, stream);
        if (stream != 1 || !first || !s->config.cancel_unread || s->done || s->ending || s->ended || s->cancel_signo)
                return;
        say(s, "standard output was closed (SIGPIPE): job %" PRIu64 " is cancelled", s->config.job);
        s->cancel_signo = SIGPIPE;
        add_control(s, true, SIGTERM);
}

bool session_done(const struct session *s, int *ret_code) {
        if (s->done)
                *ret_code = s->code;
        return s->done;
}
