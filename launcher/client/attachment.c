#include "launcher/client/attachment_internal.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <string.h>

#include "common/util.h"
#include "launcher/client/client.h"
#include "launcher/client/wire.h"

/* A job that starts within this time is not said to wait. */
#define WAIT_QUIET_USEC 1000000U
/* A break is not worth a word before. */
#define AWAY_QUIET_USEC (5U * 1000000U)
/* Voters elect a leader in far less. */
#define LEADERLESS_QUIET_USEC (10U * 1000000U)
/* A node may hear of a job, or remember it after a restart, this much later than we do. */
#define UNHEARD_USEC (10U * 1000000U)
/* How long rmd may take to know that the output is ours. If it never does, it keeps it for a while,
 * and that is all. */
#define RELEASE_USEC (5U * 1000000U)

struct attachment *attachment_create(const struct attachment_config *config, uint64_t now) {
        struct attachment *a = xcalloc(1, sizeof(*a));

        a->config = *config;
        a->start_usec = a->wait_from_usec = now;
        a->lost_usec = now;
        a->attach_at_usec = ATTACHMENT_NEVER_USEC;
        a->input_at_usec = ATTACHMENT_NEVER_USEC;
        a->leaderless_usec = ATTACHMENT_NEVER_USEC;
        a->release_usec = a->release_at_usec = a->lost.at_usec = ATTACHMENT_NEVER_USEC;
        a->input_known = config->submitted;
        a->input_over = !config->input;
        output_init(a);
        return a;
}

void attachment_destroy(struct attachment *a) {
        if (!a)
                return;
        buffer_finish(&a->requests);
        output_finish(a);
        buffer_finish(&a->input);
        free(a->reason);
        free(a->said);
        free(a->word);
        free(a->lost.names);
        free(a);
}

void attachment_say(struct attachment *a, const char *fmt, ...) {
        cleanup_free char *text = NULL;
        va_list ap;

        va_start(ap, fmt);
        text = xvasprintf(fmt, ap);
        va_end(ap);
        if (!a->closed[1])
                buffer_printf(&a->output[1], "%s: %s\n", a->config.program, text);
}

void attachment_finish(struct attachment *a, int code) {
        a->done = true;
        a->code = code;
}

uint32_t attachment_put(struct attachment *a, const ProtobufCMessage *body) {
        wire_put(&a->requests, ++a->last_id, body);
        return a->last_id;
}

/* ---- connection ---- */

static void put_hello(struct attachment *a) {
        Rm__Hello hello = RM__HELLO__INIT;

        hello.version = CLIENT_PROTOCOL_VERSION;
        hello.client = (char *) a->config.program;
        a->hello_id = attachment_put(a, &hello.base);
}

/* Before mpirun runs there is nothing a signal or input could be sent to. */
bool attachment_runs(const struct attachment *a) {
        return a->seen && a->state != RM__JOB_STATE__JOB_PENDING && a->state != RM__JOB_STATE__JOB_STARTING &&
               a->state != RM__JOB_STATE__JOB_RECOVERING;
}

static void put_attach(struct attachment *a) {
        Rm__AttachJob attach = RM__ATTACH_JOB__INIT;

        attach.job = a->config.job;
        attach.stdout_offset = a->received[0];
        attach.stderr_offset = a->received[1];
        attach.input = a->config.input;
        attach.attempt = a->offsets_attempt;
        a->attach_id = attachment_put(a, &attach.base);
        a->attached = false;
        a->attach_at_usec = ATTACHMENT_NEVER_USEC;
        a->input_at_usec = ATTACHMENT_NEVER_USEC;
        input_rewind(a);
}

void attachment_connected(struct attachment *a, uint64_t now) {
        a->connected = true;
        a->connected_usec = now;
        put_hello(a);
        put_attach(a);
        controls_put(a, ATTACHMENT_NEVER_USEC);
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
static void report_end(struct attachment *a) {
        const char *why = a->reason && *a->reason ? a->reason : "no reason given";

        switch (a->state) {
        case RM__JOB_STATE__JOB_CANCELLED:
                if (!a->cancel_signo && !a->giving_up)
                        attachment_say(a, "job %" PRIu64 " was cancelled: %s", a->config.job, why);
                break;
        case RM__JOB_STATE__JOB_TIMEOUT:
                attachment_say(a, "job %" PRIu64 " reached its time limit: %s", a->config.job, why);
                break;
        case RM__JOB_STATE__JOB_NODE_FAIL:
                attachment_say(a, "job %" PRIu64 " lost a node: %s", a->config.job, why);
                break;
        case RM__JOB_STATE__JOB_FAILED:
                if (!a->started)
                        attachment_say(a, "job %" PRIu64 " could not start: %s", a->config.job, why);
                else if (a->reason && *a->reason)
                        attachment_say(a, "job %" PRIu64 " failed: %s", a->config.job, a->reason);
                break;
        default:
                break;
        }
}

void attachment_end(struct attachment *a) {
        int code = a->exit_code;

        report_end(a);
        if (code == 0 && a->state != RM__JOB_STATE__JOB_COMPLETED)
                code = a->cancel_signo ? 128 + a->cancel_signo : EXIT_REFUSED;
        if (a->cancel_signo == SIGPIPE && a->state == RM__JOB_STATE__JOB_CANCELLED)
                code = 128 + SIGPIPE;
        attachment_finish(a, a->giving_up ? EXIT_REFUSED : code);
}

void attachment_leave(struct attachment *a, int code) {
        attachment_say(a,
                       "job %" PRIu64 " is left to itself: 'rmctl attach-job %" PRIu64 "' gets it back, 'rmctl cancel-job %" PRIu64
                       "' ends it",
                       a->config.job, a->config.job, a->config.job);
        attachment_finish(a, code);
}

/* ---- what rmd says ---- */

static bool is_end(Rm__JobState state) {
        return state >= RM__JOB_STATE__JOB_COMPLETED;
}

static void follow_leader(struct attachment *a, bool needs_leader, uint64_t now) {
        if (!needs_leader) {
                if (a->leaderless_said)
                        attachment_say(a, "job %" PRIu64 ": there is a leader again", a->config.job);
                a->leaderless_usec = ATTACHMENT_NEVER_USEC;
                a->leaderless_said = false;
        } else if (a->leaderless_usec == ATTACHMENT_NEVER_USEC) {
                a->leaderless_usec = now;
        }
}

static void take_final(struct attachment *a) {
        output_end(a);
        if (!a->config.release) {
                attachment_end(a);
                return;
        }
        a->ending = true;
        a->release_at_usec = 0;
}

static void take_update(struct attachment *a, const Rm__JobUpdate *update, uint64_t now) {
        const Rm__Job *job = update->job ? update->job->job : NULL;
        bool again;

        if (!job || job->attempt < a->attempt)
                return; /* or rmd was restarted, and does not know yet what it is to know */
        follow_leader(a, update->needs_leader, now);
        again = attempt_follow(a, job, now);
        a->seen = true;
        a->state = job->state;
        a->started = job->start_usec > 0;
        a->exit_code = job->exit_code;
        a->ended = is_end(job->state);
        losses_follow(a, job, now);
        free(a->reason);
        a->reason = xstrdup(job->reason);
        free(a->word);
        a->word = xstrdup(update->job->state);
        if (a->said && a->state != RM__JOB_STATE__JOB_PENDING && a->state != RM__JOB_STATE__JOB_RECOVERING && !a->ended) {
                attachment_say(a, "job %" PRIu64 " starts%s%s", a->config.job, *update->job->nodes ? " on " : "",
                               update->job->nodes);
                free(take_ptr(a->said));
        }
        if (again)
                put_attach(a); /* all that was asked for before is of no use, even if this is the end */
        else if (update->final)
                take_final(a);
        else
                input_put(a);
}

/* The job's node is between two owners; asking again finds it. */
static bool is_passing(int code) {
        return code == EAGAIN || code == EHOSTUNREACH || code == EHOSTDOWN || code == ENOTCONN || code == ETIMEDOUT ||
               code == ECONNRESET;
}

static void attach_refused(struct attachment *a, const Rm__Error *error, uint64_t now) {
        bool exists = a->config.submitted || a->seen;

        if (is_passing(error->code) || (error->code == ENOENT && exists && !a->ended && now < a->connected_usec + UNHEARD_USEC)) {
                a->attach_at_usec = now + ATTACHMENT_RETRY_USEC;
        } else if (a->ended) {
                /* The job ended while no front end listened, and rmd has forgotten it. */
                attachment_end(a);
        } else {
                attachment_say(a, "job %" PRIu64 ": %s", a->config.job, *error->text ? error->text : strerror(error->code));
                attachment_finish(a, EXIT_REFUSED);
        }
}

static void take_error(struct attachment *a, uint32_t id, const Rm__Error *error, uint64_t now) {
        if (id == a->hello_id) {
                attachment_say(a, "rmd: %s", *error->text ? error->text : strerror(error->code));
                attachment_finish(a, EXIT_REFUSED);
                return;
        }
        if (id == a->attach_id) {
                attach_refused(a, error, now);
                return;
        }
        if (id == a->release_id) {
                if (is_passing(error->code))
                        a->release_at_usec = now + ATTACHMENT_RETRY_USEC;
                else
                        attachment_end(a); /* then it is kept for a while */
                return;
        }
        if (controls_refused(a, id, error, now))
                return;
        if (!a->config.input)
                return;
        if (is_passing(error->code)) {
                a->input_at_usec = now + ATTACHMENT_RETRY_USEC;
                input_rewind(a);
        } else {
                input_closed(a);
        }
}

static void take_ok(struct attachment *a, uint32_t id) {
        if (id == a->release_id)
                attachment_end(a);
        controls_confirmed(a, id);
}

/* The reply answers a request from before we attached once more. */
static bool is_of_before(const struct attachment *a, const Rm__LocalReply *reply) {
        bool streams = reply->body_case == RM__LOCAL_REPLY__BODY_JOB_OUTPUT || reply->body_case == RM__LOCAL_REPLY__BODY_JOB_UPDATE;

        return streams && reply->id && reply->id != a->attach_id;
}

void attachment_reply(struct attachment *a, const Rm__LocalReply *reply, uint64_t now) {
        if (a->done || is_of_before(a, reply))
                return;
        switch (reply->body_case) {
        case RM__LOCAL_REPLY__BODY_ERROR:
                take_error(a, reply->id, reply->error, now);
                break;
        case RM__LOCAL_REPLY__BODY_OK:
                take_ok(a, reply->id);
                break;
        case RM__LOCAL_REPLY__BODY_JOB_OUTPUT:
                output_take(a, reply->job_output);
                break;
        case RM__LOCAL_REPLY__BODY_JOB_INPUT_ACK:
                input_ack(a, reply->job_input_ack->offset, now);
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

/* The job waits, and the reason is news. */
static bool wait_to_report(const struct attachment *a) {
        return a->seen && is_pending(a) && !a->giving_up && !a->cancel_signo && (!a->said || strcmp(a->said, waits_for(a)) != 0);
}

static void report_wait(struct attachment *a, uint64_t now) {
        if (!wait_to_report(a) || now < a->wait_from_usec + WAIT_QUIET_USEC)
                return;
        if (strncmp(waits_for(a), "waits ", strlen("waits ")) == 0)
                attachment_say(a, "job %" PRIu64 " %s", a->config.job, waits_for(a));
        else
                attachment_say(a, "job %" PRIu64 " waits: %s", a->config.job, waits_for(a));
        free(a->said);
        a->said = xstrdup(waits_for(a));
}

/* When to say that the job needs a leader; or, once its end was asked for, to go. Until that
 * request is confirmed, controls_insist() repeats it. */
static uint64_t miss_leader_at(const struct attachment *a) {
        uint64_t since = a->leaderless_usec;

        if (!a->connected || since == ATTACHMENT_NEVER_USEC || a->giving_up)
                return ATTACHMENT_NEVER_USEC;
        if (a->cancel_signo ? controls_insisting(a) : a->leaderless_said)
                return ATTACHMENT_NEVER_USEC;
        if (a->cancel_signo && a->interrupt_usec > since)
                since = a->interrupt_usec;
        return since + LEADERLESS_QUIET_USEC;
}

static void miss_leader(struct attachment *a, uint64_t now) {
        const char *then = a->cancel_signo ? "" : "; still waiting";

        if (now < miss_leader_at(a))
                return;
        if (a->state == RM__JOB_STATE__JOB_RUNNING)
                attachment_say(a, "the program of job %" PRIu64 " has ended, but no leader can be reached%s", a->config.job, then);
        else
                attachment_say(a, "job %" PRIu64 " is %s, but no leader can be reached%s", a->config.job, a->word, then);
        a->leaderless_said = true;
        if (a->cancel_signo)
                attachment_leave(a, 128 + a->cancel_signo);
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
                attachment_leave(a, EXIT_REFUSED);
                return;
        }
        if (!may_give_up(a) || now < give_up_at(a))
                return;
        if (a->config.wait_usec == 0)
                attachment_say(a, "job %" PRIu64 " would have to wait: cancelled: %s", a->config.job, waits_for(a));
        else
                attachment_say(a, "job %" PRIu64 " has not started within %g s: cancelled: %s", a->config.job,
                               (double) a->config.wait_usec / 1e6, waits_for(a));
        a->giving_up = true;
        a->give_up_usec = now + GIVE_UP_USEC;
        controls_add(a, true, false, SIGTERM);
}

static void report_away(struct attachment *a, uint64_t now) {
        if (a->connected) {
                if (a->away_said)
                        attachment_say(a, "reconnected to rmd");
                a->away_said = false;
                return;
        }
        if (!a->away_said && now >= a->lost_usec + AWAY_QUIET_USEC) {
                attachment_say(a, "lost the connection to rmd (%s): waiting for it", client_socket_path());
                a->away_said = true;
        }
        if (now >= a->lost_usec + a->config.away_usec)
                attachment_leave(a, EXIT_NO_DAEMON);
}

/* Once the output is out of our hands, rmd may forget it. */
static void release_output(struct attachment *a, uint64_t now) {
        Rm__OutputAck ack = RM__OUTPUT_ACK__INIT;

        if (a->output[0].used > 0 || a->output[1].used > 0)
                return;
        if (a->release_usec == ATTACHMENT_NEVER_USEC)
                a->release_usec = now + RELEASE_USEC;
        if (now >= a->release_usec) {
                attachment_end(a);
                return;
        }
        if (now < a->release_at_usec)
                return;
        a->release_at_usec = ATTACHMENT_NEVER_USEC;
        ack.job = a->config.job;
        ack.stdout_offset = a->received[0];
        ack.stderr_offset = a->received[1];
        ack.done = true;
        a->release_id = attachment_put(a, &ack.base);
}

void attachment_tick(struct attachment *a, uint64_t now) {
        if (a->done)
                return;
        if (a->connected && now >= a->attach_at_usec)
                put_attach(a);
        controls_put(a, now);
        node_losses_report(a, now);
        if (a->connected && now >= a->input_at_usec) {
                a->input_at_usec = ATTACHMENT_NEVER_USEC;
                input_put(a);
        }
        if (a->ending) {
                release_output(a, now);
                return;
        }
        give_up(a, now);
        report_wait(a, now);
        miss_leader(a, now);
        if (!a->done)
                controls_insist(a, now);
        if (!a->done)
                report_away(a, now);
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
        } else if (!a->ending) {
                DUE(a->lost_usec + a->config.away_usec);
                if (!a->away_said)
                        DUE(a->lost_usec + AWAY_QUIET_USEC);
        }
        DUE(controls_due_usec(a));
        DUE(a->lost.at_usec);
        if (wait_to_report(a))
                DUE(a->wait_from_usec + WAIT_QUIET_USEC);
        DUE(miss_leader_at(a));
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
        attachment_say(a, "standard output was closed (SIGPIPE): job %" PRIu64 " is cancelled", a->config.job);
        a->cancel_signo = SIGPIPE;
        controls_add(a, true, false, SIGTERM);
}

/* With more the front end would take nothing from rmd, and not hear of the job's end. */
#define WAITING_MAX_BYTES (1U << 20)

static bool is_worth_waiting(const struct attachment *a, unsigned i, int error) {
        return (error == ENOSPC || error == EDQUOT) && a->output[i].used <= WAITING_MAX_BYTES && !a->ending && !a->done;
}

bool attachment_output_failed(struct attachment *a, unsigned stream, int error) {
        unsigned i = stream == 2 ? 1 : 0;
        uint64_t left = a->output[i].used;

        if (is_worth_waiting(a, i, error))
                return true;
        attachment_output_closed(a, stream);
        a->output_lost = true;
        if (i == 0)
                attachment_say(a,
                               "standard output cannot be written: %s: what job %" PRIu64
                               " has written there after its first %" PRIu64 " bytes is lost",
                               strerror(error), a->config.job, a->received[i] - left);
        return false;
}

bool attachment_done(const struct attachment *a, int *ret_code) {
        if (a->done)
                *ret_code = a->code == EXIT_DONE && a->output_lost ? EXIT_REFUSED : a->code;
        return a->done;
}
