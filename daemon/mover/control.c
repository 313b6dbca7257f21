#include "daemon/mover/control.h"

#include <string.h>

#include "common/frame.h"
#include "common/log.h"
#include "common/message_body.h"
#include "common/util.h"

#define PROGRESS_USEC 500000U

void control_init(struct control *c, int fd) {
        *c = (struct control) { .fd = fd };
}

static void command_free(Rm__MoverCommand *m) {
        rm__mover_command__free_unpacked(m, NULL);
}

void control_finish(struct control *c) {
        command_free(c->setup);
        command_free(c->precopy);
        command_free(c->dump_done);
        command_free(c->slow);
        command_free(c->proceed);
        c->setup = NULL;
        c->precopy = NULL;
        c->dump_done = NULL;
        c->slow = NULL;
        c->proceed = NULL;
}

static void set_deadline(struct control *c, uint64_t usec) {
        c->deadline.end_usec = usec > 0 ? now_usec() + usec : 0;
}

/* Takes `m`. */
static int command_apply(struct control *c, Rm__MoverCommand *m, struct rm_error *err) {
        const char *reason;

        switch (m->body_case) {
        case RM__MOVER_COMMAND__BODY_SEND:
        case RM__MOVER_COMMAND__BODY_RECEIVE:
        case RM__MOVER_COMMAND__BODY_SAVE:
        case RM__MOVER_COMMAND__BODY_LOAD:
        case RM__MOVER_COMMAND__BODY_VERIFY:
        case RM__MOVER_COMMAND__BODY_EXPORT_CHECKPOINT:
        case RM__MOVER_COMMAND__BODY_IMPORT_CHECKPOINT:
                if (c->setup)
                        break;
                c->setup = m;
                return 0;
        case RM__MOVER_COMMAND__BODY_PRECOPY:
                if (c->precopy || c->started)
                        break;
                c->precopy = m;
                set_deadline(c, m->precopy->deadline_usec);
                return 0;
        case RM__MOVER_COMMAND__BODY_START:
                c->started = true;
                command_free(m);
                return 0;
        case RM__MOVER_COMMAND__BODY_DUMP_DONE:
                if (c->dump_done)
                        break;
                c->dump_done = m;
                return 0;
        case RM__MOVER_COMMAND__BODY_SLOW:
                if (c->slow)
                        break;
                c->slow = m;
                return 0;
        case RM__MOVER_COMMAND__BODY_PROCEED:
                if (c->proceed)
                        break;
                c->proceed = m;
                return 0;
        case RM__MOVER_COMMAND__BODY_EXPEDITE:
                set_deadline(c, m->expedite->deadline_usec);
                command_free(m);
                return 0;
        case RM__MOVER_COMMAND__BODY_GO_ON:
                c->goes_on = true;
                command_free(m);
                return 0;
        case RM__MOVER_COMMAND__BODY_RELEASE:
                c->released = true;
                command_free(m);
                return 0;
        case RM__MOVER_COMMAND__BODY_ABORT:
                c->aborted = true;
                reason = m->abort->reason;
                (void) error_set(err, -ECANCELED, "aborted%s%s", *reason ? ": " : "", reason);
                command_free(m);
                return -ECANCELED;
        default:
                break;
        }
        command_free(m);
        return error_set(err, -EPROTO, "unexpected command from rmd");
}

static int command_receive(struct control *c, struct rm_error *err) {
        ProtobufCMessage *message = NULL;
        int r;

        r = frame_receive(c->fd, FRAME_MAGIC_MOVER, FRAME_MAX_MOVER_BYTES, &rm__mover_command__descriptor, &message);
        if ((r == -ENODATA || r == -EPIPE || r == -ECONNRESET) && c->outlives) {
                c->fd = -1; /* which polls pass over; rmd is told nothing any more */
                return 0;
        }
        if (r == -ENODATA || r == -EPIPE || r == -ECONNRESET) {
                c->aborted = true;
                return error_set(err, -ECANCELED, "rmd closed the connection");
        }
        if (r < 0)
                return error_sys(err, r, "receive from rmd");
        return command_apply(c, (Rm__MoverCommand *) message, err);
}

int control_check(struct control *c, struct rm_error *err) {
        struct pollfd p = { .fd = c->fd, .events = POLLIN };

        if (c->aborted)
                return error_set(err, -ECANCELED, "aborted");
        while (c->fd >= 0 && poll(&p, 1, 0) > 0) {
                int r = command_receive(c, err);

                if (r < 0)
                        return r;
        }
        return 0;
}

int control_poll(struct control *c, struct pollfd *fds, size_t n_fds, int timeout_msec, struct rm_error *err) {
        int n;

        fds[0] = (struct pollfd) { .fd = c->fd, .events = POLLIN };
        n = poll(fds, n_fds, timeout_msec);
        if (n < 0 && errno != EINTR)
                return error_sys(err, -errno, "poll");
        if (n <= 0) {
                for (size_t i = 0; i < n_fds; i++)
                        fds[i].revents = 0;
                return 0;
        }
        if (fds[0].revents) {
                int r = control_check(c, err);

                if (r < 0)
                        return r;
                n--;
        }
        return n;
}

int control_await(struct control *c, int fd, short events, uint64_t deadline_usec, struct rm_error *err) {
        for (;;) {
                struct pollfd fds[2] = { { .fd = -1 }, { .fd = fd, .events = events } };
                uint64_t now = now_usec();
                int r;

                if (now >= deadline_usec)
                        return -ETIMEDOUT;
                r = control_poll(c, fds, 2, (int) ((deadline_usec - now) / 1000) + 1, err);
                if (r < 0)
                        return r;
                if (fds[1].revents)
                        return 0;
        }
}

int control_wait_setup(struct control *c, Rm__MoverCommand__BodyCase kind, struct rm_error *err) {
        while (!c->setup) {
                struct pollfd fds[1];
                int r = control_poll(c, fds, 1, -1, err);

                if (r < 0)
                        return r;
        }
        return c->setup->body_case == kind ? 0 : error_set(err, -EPROTO, "the first command from rmd is for another rm-mover");
}

void control_again(struct control *c) {
        command_free(take_ptr(c->precopy));
        command_free(take_ptr(c->dump_done));
        command_free(take_ptr(c->slow));
        c->started = c->goes_on = false;
        c->deadline = (struct rounds_deadline) { 0 };
}

void control_outlive(struct control *c) {
        c->outlives = true;
}

static void event_send(struct control *c, const ProtobufCMessage *body) {
        Rm__MoverEvent event = RM__MOVER_EVENT__INIT;
        int r;

        message_set_body(&event.base, body);
        r = frame_send(c->fd, FRAME_MAGIC_MOVER, &event.base);
        if (r < 0)
                log_debug("tell rmd: %s", strerror(-r));
}

void control_send_listening(struct control *c, uint16_t port) {
        Rm__MoverListening m = RM__MOVER_LISTENING__INIT;

        m.port = port;
        event_send(c, &m.base);
}

void control_send_importing(struct control *c, const void *head, size_t head_bytes) {
        Rm__MoverImporting m = RM__MOVER_IMPORTING__INIT;

        m.head = (ProtobufCBinaryData) { .len = head_bytes, .data = (uint8_t *) head };
        event_send(c, &m.base);
}

void control_send_imported(struct control *c, uint64_t bytes) {
        Rm__MoverImported m = RM__MOVER_IMPORTED__INIT;

        m.bytes = bytes;
        event_send(c, &m.base);
}

void control_send_ready(struct control *c) {
        Rm__MoverReady m = RM__MOVER_READY__INIT;

        event_send(c, &m.base);
}

void control_send_wants_slow(struct control *c, uint64_t bytes, uint64_t usec) {
        Rm__MoverWantsSlow m = RM__MOVER_WANTS_SLOW__INIT;

        m.bytes = bytes;
        m.usec = usec;
        event_send(c, &m.base);
}

void control_send_nearly(struct control *c) {
        Rm__MoverNearly m = RM__MOVER_NEARLY__INIT;

        event_send(c, &m.base);
}

void control_send_precopied(struct control *c, Rm__MoverFigures *figures) {
        Rm__MoverPrecopied m = RM__MOVER_PRECOPIED__INIT;

        m.figures = figures;
        event_send(c, &m.base);
}

void control_send_progress(struct control *c, uint64_t raw_bytes, uint64_t wire_bytes, uint64_t usec, const char *object) {
        Rm__MoverProgress m = RM__MOVER_PROGRESS__INIT;
        uint64_t now = now_usec();

        if (c->progress_usec == 0)
                c->progress_usec = now;
        if (now - c->progress_usec < PROGRESS_USEC)
                return;
        c->progress_usec = now;
        m.raw_bytes = raw_bytes;
        m.wire_bytes = wire_bytes;
        m.usec = usec;
        m.object = (char *) object;
        event_send(c, &m.base);
}

void control_send_sent(struct control *c, Rm__MoverFigures *figures) {
        Rm__MoverSent m = RM__MOVER_SENT__INIT;

        m.figures = figures;
        event_send(c, &m.base);
}

void control_send_acknowledged(struct control *c, Rm__MoverFigures *figures) {
        Rm__MoverAcknowledged m = RM__MOVER_ACKNOWLEDGED__INIT;

        m.figures = figures;
        event_send(c, &m.base);
}

void control_send_received(struct control *c, Rm__MoverFigures *figures) {
        Rm__MoverReceived m = RM__MOVER_RECEIVED__INIT;

        m.figures = figures;
        event_send(c, &m.base);
}

void control_send_captured(struct control *c, Rm__MoverFigures *figures, uint64_t in_memory_bytes) {
        Rm__MoverCaptured m = RM__MOVER_CAPTURED__INIT;

        m.figures = figures;
        m.in_memory_bytes = in_memory_bytes;
        event_send(c, &m.base);
}

void control_send_stored(struct control *c, Rm__MoverStored *m) {
        event_send(c, &m->base);
}

void control_send_released(struct control *c) {
        Rm__MoverReleased m = RM__MOVER_RELEASED__INIT;

        event_send(c, &m.base);
}

void control_send_loading(struct control *c, const void *saved_state, size_t saved_state_bytes, uint64_t raw_bytes) {
        Rm__MoverLoading m = RM__MOVER_LOADING__INIT;

        m.saved_state = (ProtobufCBinaryData) { .len = saved_state_bytes, .data = (uint8_t *) saved_state };
        m.raw_bytes = raw_bytes;
        event_send(c, &m.base);
}

void control_send_verified(struct control *c, Rm__MoverVerified *m) {
        event_send(c, &m->base);
}

void control_send_failed(struct control *c, const struct rm_error *err, bool end_mark_sent, bool by_peer) {
        Rm__MoverFailed m = RM__MOVER_FAILED__INIT;

        m.code = err->code;
        m.text = (char *) error_text(err);
        m.end_mark_sent = end_mark_sent;
        m.by_peer = by_peer;
        event_send(c, &m.base);
}
