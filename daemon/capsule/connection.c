#include <errno.h>
#include <event2/buffer.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "common/frame.h"
#include "common/log.h"
#include "common/text.h"
#include "common/util.h"
#include "daemon/capsule/private.h"

#define SILENT_CONNECTIONS_MAX 20U

_Static_assert((int) CAPSULE_EXITED == (int) CAPSULE__PHASE__PHASE_EXITED, "phases differ");

void capsule_report_ready(struct capsule *capsule, int error, const char *text) {
        if (capsule->ready)
                return;
        capsule->ready = true;
        if (error < 0)
                capsule->status.phase = CAPSULE_LOST;
        if (capsule->callbacks.ready)
                capsule->callbacks.ready(capsule, error, text, capsule->userdata);
}

static void report_exited(struct capsule *capsule, int wait_status) {
        capsule->status.wait_status = wait_status;
        capsule->status.phase = CAPSULE_EXITED;
        if (capsule->exit_reported)
                return;
        capsule->exit_reported = true;
        if (capsule->callbacks.exited)
                capsule->callbacks.exited(capsule, wait_status, capsule->userdata);
}

/* The file that PID 1 leaves when the payload has ended. */
static bool read_exit_file(const struct capsule *capsule, int *ret_wait_status) {
        cleanup_free char *path = xasprintf("%s/exit", capsule->dir);
        cleanup_free char *text = NULL;
        size_t size;

        if (read_file(path, 64, &text, &size) < 0)
                return false;
        *ret_wait_status = atoi(text);
        return true;
}

void capsule_report_dead(struct capsule *capsule) {
        bool was_ready = capsule->ready;
        int wait_status;

        capsule_hold(capsule);
        capsule_disconnect(capsule);
        capsule_fail_pendings(capsule, -ENOTCONN, "the capsule's PID 1 is dead");
        if (capsule->gone)
                ;
        else if (read_exit_file(capsule, &wait_status)) {
                capsule_report_ready(capsule, 0, "");
                if (!capsule->gone)
                        report_exited(capsule, wait_status);
        } else if (!was_ready)
                capsule_report_ready(capsule, -ESRCH, "the capsule's PID 1 is dead");
        else {
                capsule->status.phase = CAPSULE_LOST;
                if (capsule->callbacks.lost)
                        capsule->callbacks.lost(capsule, "the capsule's PID 1 is dead", capsule->userdata);
        }
        (void) capsule_release(capsule);
}

/* True when it is to be told. Nothing new, as long as it lasts, is of interest too: for how
 * long. */
static bool take_filling(struct capsule_status *status, const Capsule__Status *s) {
        bool reported = s->filling || status->filling || strcmp(status->killed, s->killed) != 0;

        status->filling = s->filling;
        status->fill_bytes = s->fill_bytes;
        status->later_faults = s->later_faults;
        status->later_p99_usec = s->later_p99_usec;
        status->broken = s->broken;
        (void) text_format(status->killed, sizeof(status->killed), "%s", s->killed);
        return reported;
}

static void take_rank_ends(const Capsule__RankEnds *from, struct capsule_rank_ends *ret) {
        *ret = (struct capsule_rank_ends) { 0 };
        if (!from || from->signal < 0 || from->signal > 127 || from->exit_code < 0 || from->exit_code > 255)
                return;
        ret->signal = from->signal;
        ret->signal_usec = from->signal_usec;
        ret->exit_code = from->exit_code;
        ret->exit_usec = from->exit_usec;
        ret->all_well = from->all_well;
}

static void take_status(struct capsule *capsule, const Capsule__Status *s) {
        struct capsule_status *status = &capsule->status;
        bool was_ready = capsule->ready;
        bool was_fenced = status->fenced;
        bool report_filling = take_filling(status, s);

        status->phase = (enum capsule_phase) s->phase;
        status->cut = s->cut;
        status->fenced = s->fenced;
        status->ending = s->ending;
        take_rank_ends(s->rank_ends, &status->rank_ends);
        status->stdin_closed = s->stdin_closed;
        status->stdin_offset = s->stdin_offset;
        for (size_t i = 0; i < 2 && s->n_output_begin == 2 && s->n_output_end == 2; i++) {
                status->output_begin[i + 1] = s->output_begin[i];
                status->output_end[i + 1] = s->output_end[i];
        }
        status->payload_pid = (pid_t) s->payload_pid;
        status->wait_status = s->wait_status;
        status->end_real_usec = s->end_real_usec;
        status->op_error = s->op_error;
        (void) text_format(status->op_text, sizeof(status->op_text), "%s", s->op_text);
        capsule_report_ready(capsule, 0, "");
        if (was_ready && was_fenced != s->fenced)
                log_info("capsule %s: %s", capsule->id,
                         s->fenced ? "fenced, since this node has no lease" : "this node has a lease for it");
        if (was_ready && was_fenced && !s->fenced && !capsule->gone && capsule->callbacks.unfenced)
                capsule->callbacks.unfenced(capsule, capsule->userdata);
        if (was_ready && report_filling && !capsule->gone && capsule->callbacks.filling)
                capsule->callbacks.filling(capsule, capsule->userdata);
}

static void answer_saved_state(struct capsule *capsule, const struct answer *answer, const Capsule__SavedState *message) {
        size_t size = capsule__saved_state__get_packed_size(message);
        cleanup_free uint8_t *saved_state = xcalloc(1, size);

        (void) capsule__saved_state__pack(message, saved_state);
        answer->saved_state(capsule, 0, "", saved_state, size, answer->arg);
}

static void answer_rank_ends(struct capsule *capsule, const struct answer *answer, const Capsule__Reply *reply) {
        struct capsule_rank_ends ends;

        take_rank_ends(reply->rank_ends, &ends);
        answer->rank_ends(capsule, 0, &ends, answer->arg);
}

static void answer_flows(struct capsule *capsule, const struct answer *answer, const Capsule__Reply *reply) {
        cleanup_free struct capsule_flow *flows = xcalloc(reply->n_flows + 1, sizeof(*flows));

        for (size_t i = 0; i < reply->n_flows; i++)
                flows[i] = (struct capsule_flow) { reply->flows[i]->address, reply->flows[i]->sent_bytes };
        answer->flows(capsule, 0, "", flows, reply->n_flows, answer->arg);
}

static void take_reply(struct capsule *capsule, const Capsule__Reply *reply) {
        struct pending *p;

        STAILQ_FOREACH (p, &capsule->pendings, entry)
                if (p->seq == reply->seq)
                        break;
        if (!p)
                return;
        STAILQ_REMOVE(&capsule->pendings, p, pending, entry);
        if (p->answer.done)
                p->answer.done(capsule, reply->error, reply->text, p->answer.arg);
        else if (p->answer.saved_state && reply->saved_state)
                answer_saved_state(capsule, &p->answer, reply->saved_state);
        else if (p->answer.rank_ends && reply->error == 0)
                answer_rank_ends(capsule, &p->answer, reply);
        else if (p->answer.flows && reply->error == 0)
                answer_flows(capsule, &p->answer, reply);
        else
                capsule_answer_error(capsule, &p->answer, reply->error < 0 ? reply->error : -EBADMSG, reply->text);
        free(p);
}

static void take_output(struct capsule *capsule, const Capsule__Output *output) {
        if (output->stream != CAPSULE_STDOUT && output->stream != CAPSULE_STDERR)
                return;
        capsule->status.output_end[output->stream] = output->end;
        if (capsule->callbacks.output)
                capsule->callbacks.output(capsule, (int) output->stream, output->end, capsule->userdata);
}

static void take_resize_said(struct capsule *capsule, const Capsule__ResizeSaid *said) {
        capsule->status.resize_said = (struct capsule_resize_said) {
                .awake = said->awake,
                .listens = said->listens,
                .ending = said->ending,
                .begun = said->begun,
                .done = said->done,
                .ranks = said->ranks,
        };
        if (capsule->callbacks.rank_said)
                capsule->callbacks.rank_said(capsule, capsule->userdata);
}

static void take_ranks_said(struct capsule *capsule, const Capsule__RanksSaid *said) {
        free(capsule->lost_ranks);
        capsule->lost_ranks = xcalloc(said->n_lost + 1, sizeof(*capsule->lost_ranks));
        for (size_t i = 0; i < said->n_lost; i++)
                capsule->lost_ranks[i] = said->lost[i];
        capsule->status.ranks_said = (struct capsule_ranks_said) {
                .speaks = said->speaks,
                .finished = said->finished,
                .lost = capsule->lost_ranks,
                .n_lost = said->n_lost,
        };
        if (capsule->callbacks.rank_said)
                capsule->callbacks.rank_said(capsule, capsule->userdata);
}

static void take_progress(struct capsule *capsule, const Capsule__Progress *progress) {
        const struct capsule_progress *before = &capsule->status.progress;
        bool other = progress->own_state_said != before->own_state_said || progress->own_state != before->own_state;
        uint64_t now = now_usec();

        capsule->status.progress = (struct capsule_progress) {
                .ranks = progress->ranks,
                .done = progress->done,
                .total = progress->total,
                .goal_min = progress->goal_min,
                .goal_max = progress->goal_max,
                .done_usec = now > progress->age_usec ? now - progress->age_usec : now,
                .excluding = progress->excluding,
                .listening = progress->listening,
                .placing = progress->placing,
                .own_state_said = progress->own_state_said,
                .own_state = progress->own_state,
        };
        if (other && capsule->callbacks.rank_said)
                capsule->callbacks.rank_said(capsule, capsule->userdata);
}

static void take_event(struct capsule *capsule, const Capsule__Event *event) {
        const struct capsule_callbacks *callbacks = &capsule->callbacks;

        capsule->silent_connections = 0;
        switch (event->event_case) {
        case CAPSULE__EVENT__EVENT_REPLY:
                take_reply(capsule, event->reply);
                break;
        case CAPSULE__EVENT__EVENT_STATUS:
                take_status(capsule, event->status);
                break;
        case CAPSULE__EVENT__EVENT_STALLED:
                if (callbacks->stalled)
                        callbacks->stalled(capsule, (enum capsule_stall) event->stalled->why, capsule->userdata);
                break;
        case CAPSULE__EVENT__EVENT_OUTPUT:
                take_output(capsule, event->output);
                break;
        case CAPSULE__EVENT__EVENT_AGENT_REQUEST:
                if (callbacks->agent_request)
                        callbacks->agent_request(capsule, event->agent_request->id, event->agent_request->host,
                                                 event->agent_request->command, capsule->userdata);
                break;
        case CAPSULE__EVENT__EVENT_AGENT_GONE:
                if (callbacks->agent_gone)
                        callbacks->agent_gone(capsule, event->agent_gone->id, capsule->userdata);
                break;
        case CAPSULE__EVENT__EVENT_EXITED:
                report_exited(capsule, event->exited->wait_status);
                break;
        case CAPSULE__EVENT__EVENT_BLOCKER:
                if (callbacks->blocker)
                        callbacks->blocker(capsule, event->blocker->text, event->blocker->processes, capsule->userdata);
                break;
        case CAPSULE__EVENT__EVENT_PROGRESS:
                take_progress(capsule, event->progress);
                break;
        case CAPSULE__EVENT__EVENT_RESIZE_SAID:
                take_resize_said(capsule, event->resize_said);
                break;
        case CAPSULE__EVENT__EVENT_RANKS_SAID:
                take_ranks_said(capsule, event->ranks_said);
                break;
        default:
                log_warn("capsule %s: unknown event %d", capsule->id, event->event_case);
        }
}

/* 1 an event was taken, 0 there is no whole one, negative: not ours. */
static int take_frame(struct capsule *capsule, struct evbuffer *in) {
        uint8_t header[FRAME_HEADER_BYTES];
        Capsule__Event *event;
        uint32_t size;
        int r;

        if (evbuffer_copyout(in, header, sizeof(header)) < (ssize_t) sizeof(header))
                return 0;
        r = frame_header_read(header, FRAME_MAGIC_CAPSULE, FRAME_MAX_CAPSULE_BYTES, &size);
        if (r < 0)
                return r;
        if (evbuffer_get_length(in) < sizeof(header) + size)
                return 0;
        event = capsule__event__unpack(NULL, size, evbuffer_pullup(in, (ssize_t) (sizeof(header) + size)) + sizeof(header));
        (void) evbuffer_drain(in, sizeof(header) + size);
        if (!event)
                return -EBADMSG;
        take_event(capsule, event);
        capsule__event__free_unpacked(event, NULL);
        return 1;
}

static void on_read(struct bufferevent *connection, void *arg) {
        struct capsule *capsule = arg;
        int r = 1;

        capsule_hold(capsule);
        while (r == 1 && !capsule->gone && capsule->connection == connection)
                r = take_frame(capsule, bufferevent_get_input(connection));
        if (r < 0 && !capsule->gone) {
                log_error("capsule %s: invalid message from its PID 1: %s", capsule->id, strerror(-r));
                capsule_report_dead(capsule);
        }
        (void) capsule_release(capsule);
}

/* PID 1 has one connection, that of whoever came last: root may have knocked there with something
 * else. It is dead when it does not take ours again; when it does, it tells all from the
 * beginning. */
static void connect_again(struct capsule *capsule) {
        capsule_disconnect(capsule);
        if (++capsule->silent_connections <= SILENT_CONNECTIONS_MAX && capsule_connect(capsule) == 0) {
                log_warn("capsule %s: its PID 1 has closed our connection; connected again", capsule->id);
                capsule_fail_pendings(capsule, -ECONNRESET, "the connection to the capsule's PID 1 was lost");
        } else {
                capsule_report_dead(capsule);
        }
}

static void on_end(struct bufferevent *connection, short what, void *arg) {
        struct capsule *capsule = arg;

        if (!(what & (BEV_EVENT_EOF | BEV_EVENT_ERROR)))
                return;
        capsule_hold(capsule);
        on_read(connection, capsule);
        if (!capsule->gone && capsule->connection == connection)
                connect_again(capsule);
        (void) capsule_release(capsule);
}

void capsule_disconnect(struct capsule *capsule) {
        if (capsule->connection)
                bufferevent_free(capsule->connection);
        capsule->connection = NULL;
}

int capsule_connect(struct capsule *capsule) {
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        cleanup_free char *path = xasprintf("%s/ctl.sock", capsule->dir);
        cleanup_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        struct ucred peer = { 0 };
        socklen_t size = sizeof(peer);

        if (strlen(path) >= sizeof(address.sun_path))
                return -ENAMETOOLONG;
        strcpy(address.sun_path, path);
        if (fd < 0 || connect(fd, (const struct sockaddr *) &address, sizeof(address)) < 0 ||
            getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0)
                return -errno;
        capsule->connection = bufferevent_socket_new(capsule->ctx->base, fd, BEV_OPT_CLOSE_ON_FREE);
        if (!capsule->connection)
                return -ENOMEM;
        (void) take_fd(&fd);
        capsule->init_pid = peer.pid;
        snprintf(capsule->root, sizeof(capsule->root), "/proc/%d/root", (int) peer.pid);
        bufferevent_setcb(capsule->connection, on_read, NULL, on_end, capsule);
        return bufferevent_enable(capsule->connection, EV_READ | EV_WRITE) < 0 ? -EIO : 0;
}
