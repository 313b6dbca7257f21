#include "launcher/client/attachment.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <string.h>

#include "common/util.h"
#include "launcher/client/client.h"
#include "launcher/client/wire.h"

/* Input that rmd has not acknowledged is kept, to be sent again; so this bounds our memory too. */
#define INPUT_WINDOW_BYTES (512U << 10)
/* Of a job that may start again all of it is kept, as long as it is not more than this. */
#define INPUT_KEPT_BYTES (8U << 20)
/* JobSpec.on_node_loss */
#define ON_NODE_LOSS_RESTART 1U
#define INPUT_CHUNK_BYTES (64U << 10)
#define CONTROLS_MAX 16
/* A job that starts within this time is not said to wait. */
#define WAIT_QUIET_USEC 1000000U
/* A break is not worth a word before. */
#define AWAY_QUIET_USEC (5U * 1000000U)
#define RETRY_USEC 100000U
/* A node may hear of a job, or remember it after a restart, this much later than we do. */
#define UNHEARD_USEC (10U * 1000000U)
/* A signal that is to end the job and that nobody confirms becomes a cancel, which the log can take for a job that is frozen; then we go. */
#define CANCEL_USEC (10U * 1000000U)
#define LEAVE_USEC (20U * 1000000U)
/* How long a job that was given up may take to end. */
#define GIVE_UP_USEC (5U * 1000000U)
/* How long rmd may take to know that the output is ours. If it never does, it keeps it for a while, and that is all. */
#define RELEASE_USEC (5U * 1000000U)

/* A signal or cancel that rmd has not confirmed yet. */
struct control {
        uint32_t id;
        uint64_t at_usec; /* send again then, ATTACHMENT_NEVER_USEC: it is on its way */
        bool cancel;
        bool interrupt; /* asked for the end of the job */
        int signo;
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
        uint64_t received[2]; /* bytes of the job's stream taken over so far */
        bool closed[2];

        struct buffer input; /* from input_base on */
        uint64_t input_base; /* 0 as long as all is kept that a next attempt needs */
        uint64_t input_acked;
        uint64_t input_sent; /* offset up to which it was sent over this connection */
        bool input_known; /* what was acknowledged is */
        bool input_eof;
        bool input_eof_sent;
        bool input_over; /* the job takes no more */
        uint64_t input_at_usec; /* send again then */

        struct control controls[CONTROLS_MAX];
        size_t n_controls;
        unsigned interrupts; /* SIGINT and SIGTERM so far */
        uint64_t interrupt_usec; /* when the first of them came */
        int cancel_signo; /* we asked for the end with it */

        uint32_t attempt; /* of the job, that all offsets are of; 0: not known yet */
        bool restartable;
        uint64_t wait_from_usec; /* it is not said to wait within WAIT_QUIET_USEC of this */

        bool seen; /* the state below is known */
        Rm__JobState state;
        bool ended; /* the last state seen was an end, with exit_code */
        int exit_code;
        bool started;
        char *reason;
        char *said; /* the reason last told */
        bool giving_up;
        uint64_t give_up_usec;
        bool ending; /* all has come */
        /* Tell rmd then that we have it; ATTACHMENT_NEVER_USEC: told, or it has not said over this connection that it is all. */
        uint64_t release_at_usec;
        uint32_t release_id;
        uint64_t release_usec; /* go then in any case; ATTACHMENT_NEVER_USEC: there is output to be written before */

        bool done;
        int code;
};

struct attachment *attachment_create(const struct attachment_config *config, uint64_t now) {
        struct attachment *a = xcalloc(1, sizeof(*a));

        a->config = *config;
        a->start_usec = a->wait_from_usec = now;
        a->lost_usec = now;
        a->attach_at_usec = ATTACHMENT_NEVER_USEC;
        a->input_at_usec = ATTACHMENT_NEVER_USEC;
        a->release_usec = a->release_at_usec = ATTACHMENT_NEVER_USEC;
        a->input_known = config->submitted;
        a->input_over = !config->input;
        return a;
}

void attachment_destroy(struct attachment *a) {
        if (!a)
                return;
        buffer_finish(&a->requests);
        buffer_finish(&a->output[0]);
        buffer_finish(&a->output[1]);
        buffer_finish(&a->input);
        free(a->reason);
        free(a->said);
        free(a);
}

static void say(struct attachment *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void say(struct attachment *a, const char *fmt, ...) {
        cleanup_free char *text = NULL;
        va_list ap;

        va_start(ap, fmt);
        text = xvasprintf(fmt, ap);
        va_end(ap);
        if (!a->closed[1])
                buffer_printf(&a->output[1], "%s: %s\n", a->config.program, text);
}

static void finish(struct attachment *a, int code) {
        a->done = true;
        a->code = code;
}

static uint32_t put(struct attachment *a, Rm__LocalRequest *request) {
        request->id = ++a->last_id;
        wire_put(&a->requests, request);
        return request->id;
}

/* ---- connection ---- */

static void put_hello(struct attachment *a) {
        Rm__Hello hello = RM__HELLO__INIT;
        Rm__LocalRequest request = RM__LOCAL_REQUEST__INIT;

        hello.version = CLIENT_PROTOCOL_VERSION;
        hello.client = (char *) a->config.program;
        request.body_case = RM__LOCAL_REQUEST__BODY_HELLO;
        request.hello = &hello;
        a->hello_id = put(a, &request);
}

static void put_control(struct attachment *a, struct control *control) {
        Rm__LocalRequest request = RM__LOCAL_REQUEST__INIT;
        Rm__SignalJob signal_job = RM__SIGNAL_JOB__INIT;
        Rm__CancelJob cancel_job = RM__CANCEL_JOB__INIT;

        if (control->cancel) {
                cancel_job.job = a->config.job;
                cancel_job.signal = (uint32_t) control->signo;
                request.body_case = RM__LOCAL_REQUEST__BODY_CANCEL_JOB;
                request.cancel_job = &cancel_job;
        } else {
                signal_job.job = a->config.job;
                signal_job.signal = (uint32_t) control->signo;
                request.body_case = RM__LOCAL_REQUEST__BODY_SIGNAL_JOB;
                request.signal_job = &signal_job;
        }
        control->id = put(a, &request);
        control->at_usec = ATTACHMENT_NEVER_USEC;
}

/* Before mpirun runs there is nothing a signal or input could be sent to. */
static bool runs(const struct attachment *a) {
        return a->seen && a->state != RM__JOB_STATE__JOB_PENDING && a->state != RM__JOB_STATE__JOB_STARTING &&
               a->state != RM__JOB_STATE__JOB_RECOVERING;
}

static bool takes_input(const struct attachment *a) {
        return a->attached && a->input_known && !a->input_over && runs(a) && a->input_at_usec == ATTACHMENT_NEVER_USEC;
}

static void put_input(struct attachment *a) {
        while (takes_input(a)) {
                size_t sent = (size_t) (a->input_sent - a->input_base);
                size_t n = a->input.used - sent;
                Rm__JobInput input = RM__JOB_INPUT__INIT;
                Rm__LocalRequest request = RM__LOCAL_REQUEST__INIT;

                if (n > 0 && a->input_sent - a->input_acked >= INPUT_WINDOW_BYTES)
                        return; /* rmd takes no more at once, which is less than what is kept */
                if (n > INPUT_CHUNK_BYTES)
                        n = INPUT_CHUNK_BYTES;
                input.job = a->config.job;
                input.offset = a->input_sent;
                input.data.data = n ? a->input.data + a->input.start + sent : NULL;
                input.data.len = n;
                input.eof = a->input_eof && sent + n == a->input.used;
                input.attempt = a->attempt;
                if (n == 0 && (!input.eof || a->input_eof_sent))
                        return;
                request.body_case = RM__LOCAL_REQUEST__BODY_JOB_INPUT;
                request.job_input = &input;
                (void) put(a, &request);
                a->input_sent += n;
                a->input_eof_sent = input.eof;
        }
}

static void rewind_input(struct attachment *a) {
        a->input_sent = a->input_acked;
        a->input_eof_sent = false;
}

static void put_attach(struct attachment *a) {
        Rm__AttachJob attach = RM__ATTACH_JOB__INIT;
        Rm__LocalRequest request = RM__LOCAL_REQUEST__INIT;

        attach.job = a->config.job;
        attach.stdout_offset = a->received[0];
        attach.stderr_offset = a->received[1];
        attach.input = a->config.input;
        attach.attempt = a->attempt;
        request.body_case = RM__LOCAL_REQUEST__BODY_ATTACH_JOB;
        request.attach_job = &attach;
        a->attach_id = put(a, &request);
        a->attached = false;
        a->attach_at_usec = ATTACHMENT_NEVER_USEC;
        a->input_at_usec = ATTACHMENT_NEVER_USEC;
        rewind_input(a);
}

void attachment_connected(struct attachment *a, uint64_t now) {
        a->connected = true;
        a->connected_usec = now;
        put_hello(a);
        put_attach(a);
        for (size_t i = 0; i < a->n_controls; i++)
                put_control(a, &a->controls[i]);
}

void attachment_lost(struct attachment *a, uint64_t now) {
        if (a->connected)
                a->lost_usec = now;
        a->connected = false;
        a->attached = false;
        a->release_at_usec = ATTACHMENT_NEVER_USEC;
        a->release_id = 0;
        buffer_finish(&a->requests);
        attachment_tick(a, now);
}

bool attachment_wants_connection(const struct attachment *a) {
        return !a->connected && !a->done;
}

/* ---- the end ---- */

/* mpirun has told of its own troubles on standard error; the rest is ours to tell. */
static void tell_end(struct attachment *a) {
        const char *why = a->reason && *a->reason ? a->reason : "no reason given";

        switch (a->state) {
        case RM__JOB_STATE__JOB_CANCELLED:
                if (!a->cancel_signo && !a->giving_up)
                        say(a, "job %" PRIu64 " was cancelled: %s", a->config.job, why);
                break;
        case RM__JOB_STATE__JOB_TIMEOUT:
                say(a, "job %" PRIu64 " reached its time limit: %s", a->config.job, why);
                break;
        case RM__JOB_STATE__JOB_NODE_FAIL:
                say(a, "job %" PRIu64 " lost a node: %s", a->config.job, why);
                break;
        case RM__JOB_STATE__JOB_FAILED:
                if (!a->started)
                        say(a, "job %" PRIu64 " could not start: %s", a->config.job, why);
                else if (a->reason && *a->reason)
                        say(a, "job %" PRIu64 " failed: %s", a->config.job, a->reason);
                break;
        default:
                break;
        }
}

static void end(struct attachment *a) {
        int code = a->exit_code;

        tell_end(a);
        if (code == 0 && a->state != RM__JOB_STATE__JOB_COMPLETED)
                code = a->cancel_signo ? 128 + a->cancel_signo : EXIT_REFUSED;
        if (a->cancel_signo == SIGPIPE && a->state == RM__JOB_STATE__JOB_CANCELLED)
                code = 128 + SIGPIPE;
        finish(a, a->giving_up ? EXIT_REFUSED : code);
}

/* ---- signals ---- */

static void add_control(struct attachment *a, bool cancel, bool interrupt, int signo) {
        struct control *control;

        if (a->n_controls == CONTROLS_MAX)
                return;
        control = &a->controls[a->n_controls++];
        *control = (struct control) { .at_usec = ATTACHMENT_NEVER_USEC, .cancel = cancel, .interrupt = interrupt, .signo = signo };
        if (a->connected)
                put_control(a, control);
}

static void drop_control(struct attachment *a, size_t i) {
        memmove(&a->controls[i], &a->controls[i + 1], (a->n_controls - i - 1) * sizeof(a->controls[0]));
        a->n_controls--;
}

static void leave(struct attachment *a, int code) {
        say(a,
            "job %" PRIu64 " is left to itself: 'rmctl attach-job %" PRIu64 "' gets it back, 'rmctl cancel-job %" PRIu64
            "' ends it",
            a->config.job, a->config.job, a->config.job);
        finish(a, code);
}

static void interrupt(struct attachment *a, int signo, uint64_t now) {
        if (a->interrupts++ == 0)
                a->interrupt_usec = now;
        a->cancel_signo = signo;
        if (a->interrupts == 1) {
                add_control(a, !runs(a), true, signo);
                if (!a->connected)
                        say(a, "no connection to rmd: job %" PRIu64 " gets the signal when it is back", a->config.job);
                return;
        }
        if (!a->connected || a->interrupts > 2) {
                leave(a, 128 + signo);
                return;
        }
        say(a, "killing job %" PRIu64 " (again to detach from it)", a->config.job);
        add_control(a, true, true, SIGKILL);
}

/* Its index, or n_controls. */
static size_t unconfirmed_interrupt(const struct attachment *a) {
        size_t i = 0;

        while (i < a->n_controls && !a->controls[i].interrupt)
                i++;
        return i;
}

static void insist(struct attachment *a, uint64_t now) {
        struct control *control = &a->controls[unconfirmed_interrupt(a)];

        if (control == &a->controls[a->n_controls] || now < a->interrupt_usec + CANCEL_USEC)
                return;
        if (now >= a->interrupt_usec + LEAVE_USEC) {
                say(a, "job %" PRIu64 " did not get the signal within %u s: neither its node nor a leader answers", a->config.job,
                    LEAVE_USEC / 1000000U);
                leave(a, 128 + a->cancel_signo);
        } else if (!control->cancel) {
                control->cancel = true;
                if (a->connected)
                        put_control(a, control);
        }
}

void attachment_signal(struct attachment *a, int signo, uint64_t now) {
        if (a->done)
                return;
        if (a->ending && (signo == SIGINT || signo == SIGTERM))
                end(a);
        else if (signo == SIGINT || signo == SIGTERM)
                interrupt(a, signo, now);
        else if (runs(a))
                add_control(a, false, false, signo);
        else if (signo == SIGHUP || signo == SIGQUIT)
                add_control(a, true, false, signo);
}

/* ---- input ---- */

size_t attachment_input_room(const struct attachment *a) {
        uint64_t waiting = a->input_base + a->input.used - a->input_acked;

        if (a->done || a->input_over || a->input_eof || !a->input_known || waiting >= INPUT_WINDOW_BYTES)
                return 0;
        return (size_t) (INPUT_WINDOW_BYTES - waiting);
}

void attachment_input(struct attachment *a, const void *data, size_t size_bytes) {
        if (a->input_over)
                return;
        buffer_add(&a->input, data, size_bytes);
        put_input(a);
}

void attachment_input_eof(struct attachment *a) {
        a->input_eof = true;
        put_input(a);
}

/* All of it is here, for the job's next attempt; kept only where there can be one. */
static bool keeps_input(const struct attachment *a) {
        return a->restartable && a->input_base == 0 && a->input.used <= INPUT_KEPT_BYTES;
}

static void input_ack(struct attachment *a, uint64_t offset) {
        if (!a->input_known) {
                a->input_known = true;
                a->input_base = a->input_acked = a->input_sent = offset;
        }
        if (offset <= a->input_acked)
                return;
        if (offset - a->input_base > a->input.used)
                offset = a->input_base + a->input.used;
        a->input_acked = offset;
        if (a->input_sent < offset)
                a->input_sent = offset;
        if (!keeps_input(a)) {
                buffer_drop(&a->input, (size_t) (offset - a->input_base));
                a->input_base = offset;
        }
        put_input(a);
}

static void input_closed(struct attachment *a) {
        a->input_over = true;
        if (keeps_input(a))
                return;
        buffer_finish(&a->input);
        a->input_base = a->input_acked = a->input_sent;
}

/* ---- what rmd says ---- */

static void take_output(struct attachment *a, const Rm__JobOutput *output) {
        unsigned i = output->stream == 2 ? 1 : 0;
        uint64_t from = output->offset;
        size_t skip = 0;

        if ((output->stream != 1 && output->stream != 2) || (output->attempt && output->attempt != a->attempt))
                return;
        if (from > a->received[i]) {
                say(a, "%" PRIu64 " bytes of the job's %s are no longer stored", from - a->received[i],
                    i == 0 ? "output" : "error output");
                a->received[i] = from;
        }
        if (a->received[i] - from >= output->data.len)
                return;
        skip = (size_t) (a->received[i] - from);
        if (!a->closed[i])
                buffer_add(&a->output[i], output->data.data + skip, output->data.len - skip);
        a->received[i] += output->data.len - skip;
}

static bool is_end(Rm__JobState state) {
        return state >= RM__JOB_STATE__JOB_COMPLETED;
}

/* What was given to the attempt before is given to this one too. */
static void repeat_input(struct attachment *a, uint64_t now) {
        if (!a->config.input)
                return;
        if (a->input_base > 0) {
                say(a,
                    "job %" PRIu64 " is cancelled: it cannot start again, as %s does not have all of its standard input any more",
                    a->config.job, a->config.program);
                a->giving_up = true;
                a->give_up_usec = now + GIVE_UP_USEC;
                add_control(a, true, false, SIGTERM);
                return;
        }
        a->input_known = true;
        a->input_over = false;
        a->input_acked = 0;
        rewind_input(a);
}

static void follow_attempt(struct attachment *a, const Rm__Job *job, uint64_t now) {
        uint32_t before = a->attempt;

        a->restartable = job->spec && job->spec->on_node_loss == ON_NODE_LOSS_RESTART;
        a->attempt = job->attempt;
        if (before == 0 || before == job->attempt)
                return;
        say(a,
            "job %" PRIu64 ": %s; it starts again from its beginning, attempt %u of %" PRIu64
            "; the output so far is of attempt %u",
            a->config.job, job->restart_reason, job->attempt, (job->spec ? job->spec->restarts : 0) + UINT64_C(1), before);
        memset(a->received, 0, sizeof(a->received));
        a->wait_from_usec = now;
        free(take_ptr(a->said));
        repeat_input(a, now);
}

static void take_update(struct attachment *a, const Rm__JobUpdate *update, uint64_t now) {
        const Rm__Job *job = update->job ? update->job->job : NULL;

        if (!job || job->attempt < a->attempt)
                return; /* or rmd was started anew, and does not know yet what it is to know */
        follow_attempt(a, job, now);
        a->seen = true;
        a->state = job->state;
        a->started = job->start_usec > 0;
        a->exit_code = job->exit_code;
        a->ended = is_end(job->state);
        free(a->reason);
        a->reason = xstrdup(job->reason);
        if (a->said && a->state != RM__JOB_STATE__JOB_PENDING && a->state != RM__JOB_STATE__JOB_RECOVERING && !a->ended) {
                say(a, "job %" PRIu64 " starts%s%s", a->config.job, *update->job->nodes ? " on " : "", update->job->nodes);
                free(take_ptr(a->said));
        }
        if (!update->final) {
                put_input(a);
        } else if (a->config.release) {
                a->ending = true;
                a->release_at_usec = 0;
        } else {
                end(a);
        }
}

/* The job's node is between two owners; asking again finds it. */
static bool is_passing(int code) {
        return code == EAGAIN || code == EHOSTUNREACH || code == EHOSTDOWN || code == ENOTCONN || code == ETIMEDOUT ||
               code == ECONNRESET;
}

static void attach_refused(struct attachment *a, const Rm__Error *error, uint64_t now) {
        bool exists = a->config.submitted || a->seen;

        if (is_passing(error->code) || (error->code == ENOENT && exists && !a->ended && now < a->connected_usec + UNHEARD_USEC)) {
                a->attach_at_usec = now + RETRY_USEC;
        } else if (a->ended) {
                /* It ended while nobody listened, and rmd has forgotten it. */
                end(a);
        } else {
                say(a, "job %" PRIu64 ": %s", a->config.job, *error->text ? error->text : strerror(error->code));
                finish(a, EXIT_REFUSED);
        }
}

static void take_error(struct attachment *a, uint32_t id, const Rm__Error *error, uint64_t now) {
        if (id == a->hello_id) {
                say(a, "rmd: %s", *error->text ? error->text : strerror(error->code));
                finish(a, EXIT_REFUSED);
                return;
        }
        if (id == a->attach_id) {
                attach_refused(a, error, now);
                return;
        }
        if (id == a->release_id) {
                if (is_passing(error->code))
                        a->release_at_usec = now + RETRY_USEC;
                else
                        end(a); /* then it is kept for a while */
                return;
        }
        for (size_t i = 0; i < a->n_controls; i++) {
                if (a->controls[i].id != id)
                        continue;
                if (error->code == EPERM || error->code == EACCES || error->code == EINVAL || error->code == ESRCH) {
                        if (error->code != ESRCH)
                                say(a, "%s", error->text);
                        drop_control(a, i);
                } else {
                        /* It is moving, or no leader can be reached: its end is the last thing that makes us give up. */
                        a->controls[i].at_usec = now + RETRY_USEC;
                }
                return;
        }
        if (!a->config.input)
                return;
        if (is_passing(error->code)) {
                a->input_at_usec = now + RETRY_USEC;
                rewind_input(a);
        } else {
                input_closed(a);
        }
}

static void take_ok(struct attachment *a, uint32_t id) {
        if (id == a->release_id)
                end(a);
        for (size_t i = 0; i < a->n_controls; i++) {
                if (a->controls[i].id != id)
                        continue;
                drop_control(a, i);
                return;
        }
}

void attachment_reply(struct attachment *a, const Rm__LocalReply *reply, uint64_t now) {
        if (a->done)
                return;
        switch (reply->body_case) {
        case RM__LOCAL_REPLY__BODY_ERROR:
                take_error(a, reply->id, reply->error, now);
                break;
        case RM__LOCAL_REPLY__BODY_OK:
                take_ok(a, reply->id);
                break;
        case RM__LOCAL_REPLY__BODY_JOB_OUTPUT:
                take_output(a, reply->job_output);
                break;
        case RM__LOCAL_REPLY__BODY_JOB_INPUT_ACK:
                input_ack(a, reply->job_input_ack->offset);
                break;
        case RM__LOCAL_REPLY__BODY_JOB_UPDATE:
                a->attached = true;
                take_update(a, reply->job_update, now);
                break;
        default:
                break;
        }
        attachment_tick(a, now);
}

/* ---- time ---- */

static bool is_pending(const struct attachment *a) {
        return !a->seen || a->state == RM__JOB_STATE__JOB_PENDING;
}

static const char *waits_for(const struct attachment *a) {
        return a->reason && *a->reason ? a->reason : "waits to be placed";
}

/* It waits, and the reason is news. */
static bool wait_to_tell(const struct attachment *a) {
        return a->seen && is_pending(a) && !a->giving_up && !a->cancel_signo && (!a->said || strcmp(a->said, waits_for(a)) != 0);
}

static void tell_wait(struct attachment *a, uint64_t now) {
        if (!wait_to_tell(a) || now < a->wait_from_usec + WAIT_QUIET_USEC)
                return;
        if (strncmp(waits_for(a), "waits ", strlen("waits ")) == 0)
                say(a, "job %" PRIu64 " %s", a->config.job, waits_for(a));
        else
                say(a, "job %" PRIu64 " waits: %s", a->config.job, waits_for(a));
        free(a->said);
        a->said = xstrdup(waits_for(a));
}

/* The time is for the first start. */
static bool may_give_up(const struct attachment *a) {
        return a->config.wait_set && a->attempt <= 1 && is_pending(a) && !a->giving_up && !a->cancel_signo;
}

/* "--wait 0" is "not at all", but a job waits only once rmd has said for what. */
static uint64_t give_up_at(const struct attachment *a) {
        if (a->config.wait_usec == 0 && !(a->seen && a->reason && *a->reason))
                return a->start_usec + WAIT_QUIET_USEC;
        return a->start_usec + a->config.wait_usec;
}

static void give_up(struct attachment *a, uint64_t now) {
        if (a->giving_up && now >= a->give_up_usec) {
                leave(a, EXIT_REFUSED);
                return;
        }
        if (!may_give_up(a) || now < give_up_at(a))
                return;
        if (a->config.wait_usec == 0)
                say(a, "job %" PRIu64 " would have to wait: cancelled: %s", a->config.job, waits_for(a));
        else
                say(a, "job %" PRIu64 " has not started within %g s: cancelled: %s", a->config.job,
                    (double) a->config.wait_usec / 1e6, waits_for(a));
        a->giving_up = true;
        a->give_up_usec = now + GIVE_UP_USEC;
        add_control(a, true, false, SIGTERM);
}

static void tell_away(struct attachment *a, uint64_t now) {
        if (a->connected) {
                if (a->away_said)
                        say(a, "reconnected to rmd");
                a->away_said = false;
                return;
        }
        if (!a->away_said && now >= a->lost_usec + AWAY_QUIET_USEC) {
                say(a, "lost the connection to rmd (%s): waiting for it", client_socket_path());
                a->away_said = true;
        }
        if (now >= a->lost_usec + a->config.away_usec)
                leave(a, EXIT_NO_DAEMON);
}

/* Once the output is out of our hands, rmd may forget it. */
static void release_output(struct attachment *a, uint64_t now) {
        Rm__OutputAck ack = RM__OUTPUT_ACK__INIT;
        Rm__LocalRequest request = RM__LOCAL_REQUEST__INIT;

        if (a->output[0].used > 0 || a->output[1].used > 0)
                return;
        if (a->release_usec == ATTACHMENT_NEVER_USEC)
                a->release_usec = now + RELEASE_USEC;
        if (now >= a->release_usec) {
                end(a);
                return;
        }
        if (now < a->release_at_usec)
                return;
        a->release_at_usec = ATTACHMENT_NEVER_USEC;
        ack.job = a->config.job;
        ack.stdout_offset = a->received[0];
        ack.stderr_offset = a->received[1];
        ack.done = true;
        request.body_case = RM__LOCAL_REQUEST__BODY_OUTPUT_ACK;
        request.output_ack = &ack;
        a->release_id = put(a, &request);
}

void attachment_tick(struct attachment *a, uint64_t now) {
        if (a->done)
                return;
        if (a->connected && now >= a->attach_at_usec)
                put_attach(a);
        for (size_t i = 0; a->connected && i < a->n_controls; i++)
                if (now >= a->controls[i].at_usec)
                        put_control(a, &a->controls[i]);
        if (a->connected && now >= a->input_at_usec) {
                a->input_at_usec = ATTACHMENT_NEVER_USEC;
                put_input(a);
        }
        if (a->ending) {
                release_output(a, now);
                return;
        }
        give_up(a, now);
        tell_wait(a, now);
        insist(a, now);
        if (!a->done)
                tell_away(a, now);
}

uint64_t attachment_due_usec(const struct attachment *a) {
        uint64_t due = ATTACHMENT_NEVER_USEC;

#define DUE(when)                                                                                                                  \
        do {                                                                                                                       \
                if ((when) < due)                                                                                                  \
                        due = (when);                                                                                              \
        } while (0)
        if (a->done)
                return due;
        if (a->ending && a->release_usec != ATTACHMENT_NEVER_USEC) {
                DUE(a->release_usec);
                DUE(a->release_at_usec);
        }
        if (a->connected) {
                DUE(a->attach_at_usec);
                DUE(a->input_at_usec);
                for (size_t i = 0; i < a->n_controls; i++)
                        DUE(a->controls[i].at_usec);
        } else if (!a->ending) {
                DUE(a->lost_usec + a->config.away_usec);
                if (!a->away_said)
                        DUE(a->lost_usec + AWAY_QUIET_USEC);
        }
        if (unconfirmed_interrupt(a) < a->n_controls)
                DUE(a->interrupt_usec + (a->controls[unconfirmed_interrupt(a)].cancel ? LEAVE_USEC : CANCEL_USEC));
        if (wait_to_tell(a))
                DUE(a->wait_from_usec + WAIT_QUIET_USEC);
        if (may_give_up(a))
                DUE(give_up_at(a));
        if (a->giving_up && !a->ending)
                DUE(a->give_up_usec);
#undef DUE
        return due;
}

/* ---- what the front end does about it ---- */

struct buffer *attachment_requests(struct attachment *a) {
        return &a->requests;
}

struct buffer *attachment_output(struct attachment *a, unsigned stream) {
        return &a->output[stream == 2 ? 1 : 0];
}

void attachment_output_closed(struct attachment *a, unsigned stream) {
        unsigned i = stream == 2 ? 1 : 0;

        a->closed[i] = true;
        buffer_finish(&a->output[i]);
}

void attachment_output_unread(struct attachment *a, unsigned stream) {
        bool first = !a->closed[stream == 2 ? 1 : 0];

        attachment_output_closed(a, stream);
        if (stream != 1 || !first || !a->config.cancel_unread || a->done || a->ending || a->ended || a->cancel_signo)
                return;
        say(a, "standard output was closed (SIGPIPE): job %" PRIu64 " is cancelled", a->config.job);
        a->cancel_signo = SIGPIPE;
        add_control(a, true, false, SIGTERM);
}

bool attachment_done(const struct attachment *a, int *ret_code) {
        if (a->done)
                *ret_code = a->code;
        return a->done;
}
