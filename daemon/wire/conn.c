#include "daemon/wire/conn.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/bufferevent_ssl.h>
#include <openssl/err.h>

#include "common/frame.h"
#include "common/log.h"
#include "common/text.h"
#include "common/timer.h"
#include "common/unknown.h"
#include "common/util.h"
#include "daemon/wire/tls.h"

#define TRUST_DEFAULT_USEC (30U * UINT64_C(1000000))
#define LINGER_USEC (10U * UINT64_C(1000000))
#define DRAINED_BYTES (64U << 10)
/* So many messages at a time: a busy connection must not keep the loop from the others. */
#define MESSAGE_BURST 64

enum conn_stage {
        CONN_DIALLING,  /* TCP connect under way; no bufferevent yet */
        CONN_OPENING,   /* TLS handshake, or waiting to tell on_ready */
        CONN_READY,
        CONN_LINGERING, /* conn_close(): sending what is left */
        CONN_DEAD,      /* freed as soon as no callback is inside */
};

struct conn {
        struct event_base *base;
        struct bufferevent *bev;
        struct event *kick;    /* on_ready of a plain conn, further messages after a burst or a pause, failed dial */
        struct event *timeout; /* trust, then linger */
        struct event *dial;    /* writable = connected */
        SSL *ssl;              /* until the bufferevent owns it */
        struct conn_ops ops;
        void *userdata;
        char *name;
        struct conn_gate *gate; /* while counted */
        TAILQ_ENTRY(conn) gate_entry;
        uint64_t gate_usec; /* since when */
        struct conn_meter *meter;
        size_t buffered; /* of the buffers, as the meter has it */
        struct log_rate *log;
        uint64_t frame_usec;
        size_t decoded_max_bytes;
        const char *fail_reason;
        int fail_code;     /* conn_fail(): to be told from the loop */
        const ProtobufCMessageDescriptor *type;
        uint64_t trust_usec;
        uint32_t magic;
        uint32_t max_bytes;
        int close_log_level;
        int fd; /* until the bufferevent owns it; then for questions only */
        int dial_error;
        unsigned busy; /* callbacks we are inside of */
        enum conn_stage stage;
        bool tls;
        bool ended;    /* the other end has sent its last byte */
        bool known;    /* conn_trust(): the timeout is that of a frame from now on */
        bool headed;   /* on_header() has seen the frame that comes */
        bool offered;  /* on_frame() was told, conn_receive() is awaited */
        bool overdue;  /* the frame timeout runs */
};

static void start_bufferevent(struct conn *conn);

/* ---- connections that wait at the gate ---- */

static void gate_leave(struct conn *conn) {
        struct conn_gate *gate = conn->gate;

        if (!gate)
                return;
        TAILQ_REMOVE(&gate->conns, conn, gate_entry);
        gate->waiting--;
        conn->gate = NULL;
}

static void gate_join(struct conn_gate *gate, struct conn *conn) {
        conn->gate = gate;
        conn->gate_usec = now_usec();
        TAILQ_INSERT_TAIL(&gate->conns, conn, gate_entry);
        gate->waiting++;
}

bool conn_gate_full(const struct conn_gate *gate, uint64_t now_usec) {
        return gate->waiting_max > 0 && gate->waiting >= gate->waiting_max &&
               now_usec - TAILQ_FIRST(&gate->conns)->gate_usec < gate->patience_usec;
}

/* ---- what it holds ---- */

static void meter_change(struct conn_meter *meter, size_t before, size_t now) {
        for (; meter; meter = meter->above) {
                meter->bytes += now - before; /* wraps round and back where it is less */
                if (now > before && meter->over && meter->max_bytes > 0 && meter->bytes > meter->max_bytes)
                        event_active(meter->over, EV_TIMEOUT, 0);
        }
}

static void on_buffer_changed(struct evbuffer *buffer, const struct evbuffer_cb_info *info, void *userdata) {
        struct conn *conn = userdata;
        size_t before = conn->buffered;

        conn->buffered += info->n_added;
        conn->buffered -= info->n_deleted;
        meter_change(conn->meter, before, conn->buffered);
}

static void meter_start(struct conn *conn) {
        if (!conn->meter)
                return;
        (void) evbuffer_add_cb(bufferevent_get_input(conn->bev), on_buffer_changed, conn);
        (void) evbuffer_add_cb(bufferevent_get_output(conn->bev), on_buffer_changed, conn);
}

/* The buffers may outlive the conn for a moment. */
static void meter_stop(struct conn *conn) {
        if (!conn->meter)
                return;
        (void) evbuffer_remove_cb(bufferevent_get_input(conn->bev), on_buffer_changed, conn);
        (void) evbuffer_remove_cb(bufferevent_get_output(conn->bev), on_buffer_changed, conn);
        meter_change(conn->meter, conn->buffered, 0);
        conn->meter = NULL;
        conn->buffered = 0;
}

static void free_event(struct event **event) {
        if (*event)
                event_free(*event);
        *event = NULL;
}

static void conn_free(struct conn *conn) {
        free(conn->name);
        free(conn);
}

static void conn_kill(struct conn *conn) {
        if (conn->stage == CONN_DEAD)
                return;
        conn->stage = CONN_DEAD;
        gate_leave(conn);
        free_event(&conn->kick);
        free_event(&conn->timeout);
        free_event(&conn->dial);
        if (conn->bev) {
                meter_stop(conn);
                bufferevent_setcb(conn->bev, NULL, NULL, NULL, NULL);
                bufferevent_free(conn->bev); /* closes the descriptor, frees the session */
        } else if (conn->fd >= 0) {
                (void) close(conn->fd);
        }
        SSL_free(conn->ssl);
        conn->ssl = NULL;
        conn->bev = NULL;
        conn->fd = -1;
}

static void conn_enter(struct conn *conn) {
        conn->busy++;
}

static void conn_leave(struct conn *conn) {
        if (--conn->busy == 0 && conn->stage == CONN_DEAD)
                conn_free(conn);
}

/* The connection has ended by itself: tell the owner, then go. */
static void conn_finish(struct conn *conn, int code, const char *reason) {
        if (conn->stage != CONN_DEAD && conn->stage != CONN_LINGERING && conn->ops.on_close) {
                conn->stage = CONN_LINGERING; /* sends are refused, callbacks are over */
                conn->ops.on_close(conn, code, reason, conn->userdata);
        }
        conn_kill(conn);
}

static void conn_refuse(struct conn *conn, int code, const char *what) {
        char reason[256];

        (void) text_format(reason, sizeof(reason), "%s", what);
        if (conn->log)
                log_limited(conn->log, conn->close_log_level, "%s: %s; connection closed", conn->name, reason);
        else
                log_at(conn->close_log_level, "%s: %s; connection closed", conn->name, reason);
        conn_finish(conn, code, reason);
}

/* ---- receiving ---- */

/* The budget of a decoder: a message of few bytes may unpack to fifty times as much, since empty
 * strings and messages are two bytes each on the wire. */
struct decoder {
        size_t bytes;
        size_t max_bytes;
};

static void *decoder_alloc(void *userdata, size_t bytes) {
        struct decoder *decoder = userdata;
        void *p;

        if (bytes > decoder->max_bytes - decoder->bytes)
                return NULL;
        p = malloc(bytes);
        /* Counted until the message is whole: what is freed within counts as well, so it is an
         * upper bound. */
        if (p)
                decoder->bytes += bytes;
        return p;
}

static void decoder_free(void *userdata, void *p) {
        free(p);
}

static ProtobufCMessage *decode(const struct conn *conn, const uint8_t *payload, size_t payload_bytes) {
        struct decoder decoder = { .max_bytes = conn->decoded_max_bytes };
        ProtobufCAllocator allocator = { .alloc = decoder_alloc, .free = decoder_free, .allocator_data = &decoder };

        return protobuf_c_message_unpack(conn->type, conn->decoded_max_bytes > 0 ? &allocator : NULL, payload_bytes, payload);
}

static void frame_timeout_stop(struct conn *conn) {
        if (conn->overdue)
                (void) evtimer_del(conn->timeout);
        conn->overdue = false;
}

/* The timeout of a frame, from its first byte until it is whole. */
static void frame_timeout_start(struct conn *conn) {
        if (conn->overdue || !conn->known || conn->frame_usec == 0)
                return;
        conn->overdue = true;
        timer_arm(conn->timeout, conn->frame_usec);
}

/* Checks the head of a message, once. 0: go on; else the conn has failed, or too little of the head
 * is here (-EAGAIN). */
static int scan_head(struct conn *conn, struct evbuffer *input, uint32_t payload_bytes) {
        uint8_t bytes[FRAME_HEADER_BYTES + CONN_HEAD_BYTES];
        size_t n = FRAME_HEADER_BYTES + (payload_bytes < CONN_HEAD_BYTES ? payload_bytes : CONN_HEAD_BYTES);
        int r;

        if (conn->headed || !conn->ops.on_header)
                return 0;
        if (evbuffer_copyout(input, bytes, n) < (ev_ssize_t) n)
                return -EAGAIN;
        conn->headed = true;
        r = conn->ops.on_header(conn, bytes + FRAME_HEADER_BYTES, n - FRAME_HEADER_BYTES, payload_bytes, conn->userdata);
        if (conn->stage != CONN_READY)
                return -ENOTCONN;
        if (r < 0) {
                char what[96];

                (void) snprintf(what, sizeof(what), "a request of %u bytes is more than it may have", payload_bytes);
                conn_refuse(conn, r, what);
        }
        return r;
}

/* 1 = a whole frame is there, 0 = more bytes are needed or the conn is done for. */
static int frame_there(struct conn *conn, struct evbuffer *input, uint32_t *ret_payload_bytes) {
        uint8_t header[FRAME_HEADER_BYTES];
        uint32_t payload_bytes = 0;
        char what[128];
        int r;

        if (evbuffer_get_length(input) > 0)
                frame_timeout_start(conn);
        if (evbuffer_copyout(input, header, sizeof(header)) < (ev_ssize_t) sizeof(header))
                return 0;
        r = frame_header_read(header, conn->magic, conn->max_bytes, &payload_bytes);
        if (r == -EMSGSIZE)
                (void) snprintf(what, sizeof(what), "a frame of more than %u bytes", conn->max_bytes);
        else if (r < 0)
                (void) snprintf(what, sizeof(what), "does not speak our protocol (starts with %02x %02x %02x %02x)", header[0],
                                header[1], header[2], header[3]);
        if (r < 0) {
                conn_refuse(conn, r, what);
                return 0;
        }
        if (scan_head(conn, input, payload_bytes) < 0)
                return 0;
        if (evbuffer_get_length(input) < FRAME_HEADER_BYTES + (size_t) payload_bytes)
                return 0;
        frame_timeout_stop(conn);
        *ret_payload_bytes = payload_bytes;
        return 1;
}

/* Handles a frame, if it is complete. 1 = one was handled, 0 = more bytes are needed or the conn is
 * done for. */
static int receive_frame(struct conn *conn, struct evbuffer *input) {
        static uint8_t nothing;
        ProtobufCMessage *message;
        uint32_t payload_bytes = 0;
        char what[128];

        if (frame_there(conn, input, &payload_bytes) == 0)
                return 0;
        conn->headed = false;
        (void) evbuffer_drain(input, FRAME_HEADER_BYTES);
        message = decode(conn, payload_bytes ? evbuffer_pullup(input, payload_bytes) : &nothing, payload_bytes);
        if (!message) {
                (void) snprintf(what, sizeof(what), "a frame of %u bytes that is no %s", payload_bytes, conn->type->name);
                conn_refuse(conn, -EBADMSG, what);
                return 0;
        }
        (void) evbuffer_drain(input, payload_bytes);
        unknown_drop(message);
        if (conn->ops.on_message)
                conn->ops.on_message(conn, message, conn->userdata);
        protobuf_c_message_free_unpacked(message, NULL);
        return 1;
}

/* Tell of a whole frame; nothing more is read before it was handled. True when there is one. */
static bool offer_frame(struct conn *conn) {
        uint32_t payload_bytes;

        if (conn->offered)
                return true;
        if (frame_there(conn, bufferevent_get_input(conn->bev), &payload_bytes) == 0)
                return false;
        conn->offered = true;
        (void) bufferevent_disable(conn->bev, EV_READ);
        conn->ops.on_frame(conn, conn->userdata);
        return true;
}

static void receive_frames(struct conn *conn) {
        if (conn->ops.on_frame) {
                if (conn->stage == CONN_READY)
                        (void) offer_frame(conn);
                return;
        }
        for (int i = 0; i < MESSAGE_BURST; i++)
                if (conn->stage != CONN_READY || receive_frame(conn, bufferevent_get_input(conn->bev)) == 0)
                        return;
        if (conn->stage == CONN_READY)
                event_active(conn->kick, EV_TIMEOUT, 0);
}

/* Receives the rest after the other end's last byte: messages before it are still delivered, as
 * slowly as the owner likes. */
static void receive_rest(struct conn *conn) {
        if (conn->ops.on_frame) {
                if (conn->stage == CONN_READY && offer_frame(conn))
                        return;
        } else {
                while (conn->stage == CONN_READY && receive_frame(conn, bufferevent_get_input(conn->bev)) == 1)
                        ;
        }
        if (conn->stage != CONN_READY)
                return;
        if (evbuffer_get_length(bufferevent_get_input(conn->bev)) > 0)
                conn_refuse(conn, -EPIPE, "closed in the middle of a frame");
        else
                conn_finish(conn, 0, "closed by the other end");
}

void conn_receive(struct conn *conn) {
        conn_enter(conn);
        if (conn->offered && conn->stage == CONN_READY) {
                conn->offered = false;
                (void) receive_frame(conn, bufferevent_get_input(conn->bev));
        }
        if (conn->stage == CONN_READY && conn->ended)
                receive_rest(conn);
        else if (conn->stage == CONN_READY && !offer_frame(conn) && conn->stage == CONN_READY)
                (void) bufferevent_enable(conn->bev, EV_READ);
        conn_leave(conn);
}

static void on_read(struct bufferevent *bev, void *userdata) {
        struct conn *conn = userdata;

        conn_enter(conn);
        if (conn->stage == CONN_READY)
                receive_frames(conn);
        else if (conn->stage == CONN_LINGERING)
                (void) evbuffer_drain(bufferevent_get_input(bev), SIZE_MAX);
        conn_leave(conn);
}

static void on_written(struct bufferevent *bev, void *userdata) {
        struct conn *conn = userdata;

        conn_enter(conn);
        if (conn->stage == CONN_LINGERING && evbuffer_get_length(bufferevent_get_output(bev)) == 0)
                conn_kill(conn);
        else if (conn->stage == CONN_READY && conn->ops.on_drained)
                conn->ops.on_drained(conn, conn->userdata);
        conn_leave(conn);
}

/* ---- the connection's life ---- */

static void become_ready(struct conn *conn) {
        if (conn->tls && !tls_proven(bufferevent_openssl_get_ssl(conn->bev))) {
                conn_refuse(conn, -EACCES, "TLS: the peer does not have the cluster's key");
                return;
        }
        conn->stage = CONN_READY;
        if (conn->ops.on_ready)
                conn->ops.on_ready(conn, conn->userdata);
        if (conn->stage == CONN_READY)
                receive_frames(conn);
}

static void fail_from_bufferevent(struct conn *conn) {
        unsigned long code = bufferevent_get_openssl_error(conn->bev);
        int saved = EVUTIL_SOCKET_ERROR();
        char what[256];

        /* OpenSSL wraps what system calls say. */
        if (code != 0 && ERR_SYSTEM_ERROR(code)) {
                saved = ERR_GET_REASON(code);
                code = 0;
        }
        if (conn->tls && code != 0) {
                const char *text = ERR_reason_error_string(code);

                if (conn->stage == CONN_OPENING)
                        (void) text_format(what, sizeof(what), "TLS handshake failed: %s: %s",
                                           tls_refusal(bufferevent_openssl_get_ssl(conn->bev)), text ? text : "unknown error");
                else
                        (void) text_format(what, sizeof(what), "TLS error: %s", text ? text : "unknown error");
                conn_refuse(conn, conn->stage == CONN_OPENING ? -EACCES : -EPROTO, what);
                return;
        }
        conn_finish(conn, saved ? -saved : -ECONNRESET, strerror(saved ? saved : ECONNRESET));
}

static void on_event(struct bufferevent *bev, short what, void *userdata) {
        struct conn *conn = userdata;

        (void) bev;
        conn_enter(conn);
        if (what & BEV_EVENT_CONNECTED) {
                if (conn->stage == CONN_OPENING)
                        become_ready(conn);
        } else if (what & BEV_EVENT_ERROR) {
                fail_from_bufferevent(conn);
        } else if (what & BEV_EVENT_EOF) {
                conn->ended = true;
                if (conn->stage == CONN_OPENING && conn->tls)
                        conn_finish(conn, -ECONNRESET,
                                    "closed during the TLS handshake (another key, cluster name or version of rmd there?)");
                else if (conn->stage == CONN_LINGERING)
                        conn_kill(conn);
                else if (conn->stage == CONN_READY)
                        receive_rest(conn);
        }
        conn_leave(conn);
}

static void on_kick(evutil_socket_t fd, short what, void *userdata) {
        struct conn *conn = userdata;

        conn_enter(conn);
        if (conn->stage == CONN_DIALLING)
                conn_finish(conn, conn->dial_error, strerror(-conn->dial_error));
        else if (conn->fail_code < 0)
                conn_finish(conn, conn->fail_code, conn->fail_reason);
        else if (conn->stage == CONN_OPENING && !conn->tls)
                become_ready(conn);
        else if (conn->stage == CONN_READY && !conn->ended)
                receive_frames(conn);
        if (conn->stage == CONN_READY && conn->ended)
                receive_rest(conn);
        conn_leave(conn);
}

static void on_timeout(evutil_socket_t fd, short what, void *userdata) {
        struct conn *conn = userdata;

        conn_enter(conn);
        if (conn->stage == CONN_LINGERING)
                conn_kill(conn);
        else if (conn->stage == CONN_DIALLING)
                conn_finish(conn, -ETIMEDOUT, "no answer to the connection in time");
        else if (conn->known)
                conn_refuse(conn, -ETIMEDOUT, "did not complete its message in time");
        else
                conn_refuse(conn, -ETIMEDOUT, "did not identify itself in time");
        conn_leave(conn);
}

static void on_dialled(evutil_socket_t fd, short what, void *userdata) {
        struct conn *conn = userdata;
        socklen_t n = sizeof(int);
        int code = 0;

        conn_enter(conn);
        if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &code, &n) < 0)
                code = errno;
        if (code != 0)
                conn_finish(conn, -code, strerror(code));
        else
                start_bufferevent(conn);
        conn_leave(conn);
}

/* The socket is connected. */
static void start_bufferevent(struct conn *conn) {
        int on = 1;

        free_event(&conn->dial);
        (void) setsockopt(conn->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)); /* fails on Unix sockets: fine */
        conn->stage = CONN_OPENING;
        if (conn->tls) {
                enum bufferevent_ssl_state state =
                        SSL_is_server(conn->ssl) ? BUFFEREVENT_SSL_ACCEPTING : BUFFEREVENT_SSL_CONNECTING;

                conn->bev = bufferevent_openssl_socket_new(conn->base, conn->fd, conn->ssl, state,
                                                           BEV_OPT_CLOSE_ON_FREE | BEV_OPT_DEFER_CALLBACKS);
                if (conn->bev)
                        bufferevent_openssl_set_allow_dirty_shutdown(conn->bev, 1);
        } else {
                conn->bev = bufferevent_socket_new(conn->base, conn->fd, BEV_OPT_CLOSE_ON_FREE | BEV_OPT_DEFER_CALLBACKS);
        }
        if (!conn->bev) {
                conn->stage = CONN_DIALLING; /* told from the loop */
                conn->dial_error = -ENOMEM;
                event_active(conn->kick, EV_TIMEOUT, 0);
                return;
        }
        conn->ssl = NULL;
        meter_start(conn);
        bufferevent_setcb(conn->bev, on_read, on_written, on_event, conn);
        bufferevent_setwatermark(conn->bev, EV_WRITE, DRAINED_BYTES, 0);
        (void) bufferevent_enable(conn->bev, EV_READ | EV_WRITE);
        if (!conn->tls)
                event_active(conn->kick, EV_TIMEOUT, 0);
}

static struct conn *conn_new(struct event_base *base, int fd, const struct conn_config *config, const struct conn_ops *ops,
                             void *userdata) {
        struct conn *conn = xcalloc(1, sizeof(*conn));

        conn->base = base;
        conn->fd = fd;
        conn->ssl = config->ssl;
        conn->tls = config->ssl != NULL;
        conn->ops = *ops;
        conn->userdata = userdata;
        conn->type = config->type;
        conn->magic = config->magic;
        conn->max_bytes = config->max_bytes;
        conn->meter = config->meter;
        conn->log = config->log;
        conn->frame_usec = config->frame_usec;
        conn->decoded_max_bytes = config->decoded_max_bytes;
        conn->trust_usec = config->trust_usec ? config->trust_usec : TRUST_DEFAULT_USEC;
        conn->close_log_level = config->close_log_level ? config->close_log_level : LOG_WARNING;
        conn->name = xstrdup(config->name);
        conn->kick = evtimer_new(base, on_kick, conn);
        conn->timeout = evtimer_new(base, on_timeout, conn);
        if (!conn->kick || !conn->timeout)
                abort();
        if (conn->trust_usec != UINT64_MAX)
                timer_arm(conn->timeout, conn->trust_usec);
        return conn;
}

/* The gate is full: the connection that has waited longest without being trusted is closed. */
static void gate_make_space(struct conn_gate *gate) {
        struct conn *oldest = TAILQ_FIRST(&gate->conns);

        if (gate->waiting_max == 0 || gate->waiting < gate->waiting_max)
                return;
        log_limited(&gate->log, LOG_WARNING, "%s: closed to make room: %u connections wait already to say who they are",
                    oldest->name, gate->waiting);
        conn_enter(oldest);
        conn_finish(oldest, -EUSERS, "closed to make room: too many have not said who they are");
        conn_leave(oldest);
}

int conn_create(struct event_base *base, int fd, const struct conn_config *config, const struct conn_ops *ops, void *userdata,
                struct conn **ret) {
        struct conn *conn;
        int r = set_nonblock(fd, true);

        if (r < 0) {
                (void) close(fd);
                SSL_free(config->ssl);
                return r;
        }
        if (config->gate)
                gate_make_space(config->gate);
        conn = conn_new(base, fd, config, ops, userdata);
        if (config->gate)
                gate_join(config->gate, conn);
        start_bufferevent(conn);
        *ret = conn;
        return 0;
}

int conn_dial(struct event_base *base, const struct sockaddr *address, socklen_t address_bytes, const struct conn_config *config,
              const struct conn_ops *ops, void *userdata, struct conn **ret) {
        int fd = socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        struct conn *conn;

        if (fd < 0) {
                int saved = errno;

                SSL_free(config->ssl);
                return -saved;
        }
        conn = conn_new(base, fd, config, ops, userdata);
        if (connect(fd, address, address_bytes) < 0 && errno != EINPROGRESS) {
                conn->dial_error = -errno;
                event_active(conn->kick, EV_TIMEOUT, 0);
        } else {
                conn->dial = event_new(base, fd, EV_WRITE, on_dialled, conn);
                if (!conn->dial || event_add(conn->dial, NULL) < 0)
                        abort();
        }
        *ret = conn;
        return 0;
}

int conn_send(struct conn *conn, const ProtobufCMessage *message) {
        size_t payload_bytes = protobuf_c_message_get_packed_size(message);
        size_t frame_bytes = FRAME_HEADER_BYTES + payload_bytes;
        struct evbuffer_iovec space;
        struct evbuffer *output;

        if (conn->stage != CONN_READY)
                return -ENOTCONN;
        if (payload_bytes > conn->max_bytes)
                return -EMSGSIZE;
        output = bufferevent_get_output(conn->bev);
        if (evbuffer_get_length(output) > 4 * (size_t) conn->max_bytes)
                return -ENOBUFS;
        if (evbuffer_reserve_space(output, (ev_ssize_t) frame_bytes, &space, 1) != 1)
                abort();
        frame_header_write(space.iov_base, conn->magic, (uint32_t) payload_bytes);
        (void) protobuf_c_message_pack(message, (uint8_t *) space.iov_base + FRAME_HEADER_BYTES);
        space.iov_len = frame_bytes;
        (void) evbuffer_commit_space(output, &space, 1);
        return 0;
}

size_t conn_pending_bytes(const struct conn *conn) {
        return conn->bev ? evbuffer_get_length(bufferevent_get_output(conn->bev)) : 0;
}

size_t conn_held_bytes(const struct conn *conn) {
        return conn->buffered;
}

void conn_fail(struct conn *conn, int code, const char *reason) {
        if (conn->stage == CONN_DEAD || conn->stage == CONN_LINGERING || conn->fail_code < 0)
                return;
        conn->fail_code = code;
        conn->fail_reason = reason;
        event_active(conn->kick, EV_TIMEOUT, 0);
}

void conn_trust(struct conn *conn) {
        gate_leave(conn);
        if (conn->stage == CONN_DEAD || conn->stage == CONN_LINGERING || conn->known)
                return;
        conn->known = true;
        (void) evtimer_del(conn->timeout);
}

void conn_close(struct conn *conn) {
        if (!conn || conn->stage == CONN_DEAD)
                return;
        if (conn->stage != CONN_READY || conn_pending_bytes(conn) == 0) {
                conn_destroy(conn);
                return;
        }
        conn->stage = CONN_LINGERING;
        memset(&conn->ops, 0, sizeof(conn->ops));
        gate_leave(conn);
        timer_arm(conn->timeout, LINGER_USEC);
        bufferevent_setwatermark(conn->bev, EV_WRITE, 0, 0);
        (void) bufferevent_enable(conn->bev, EV_READ | EV_WRITE);
}

void conn_close_now(struct conn *conn) {
        struct evbuffer *output = conn->bev && !conn->tls ? bufferevent_get_output(conn->bev) : NULL;
        size_t bytes = output ? evbuffer_get_length(output) : 0;

        if (bytes > 0)
                (void) !send(conn->fd, evbuffer_pullup(output, -1), bytes, MSG_DONTWAIT | MSG_NOSIGNAL);
        conn_destroy(conn);
}

void conn_destroy(struct conn *conn) {
        if (!conn)
                return;
        conn_enter(conn);
        conn_kill(conn);
        conn_leave(conn);
}

int conn_peer_creds(const struct conn *conn, struct ucred *ret) {
        struct ucred cred;
        socklen_t n = sizeof(cred);

        if (getsockopt(conn->fd, SOL_SOCKET, SO_PEERCRED, &cred, &n) < 0)
                return -errno;
        if (cred.pid <= 0)
                return -ENOTSUP;
        *ret = cred;
        return 0;
}

const char *conn_name(const struct conn *conn) {
        return conn->name;
}

void conn_set_name(struct conn *conn, const char *name) {
        char *copy = xstrdup(name);

        free(conn->name);
        conn->name = copy;
}

int conn_fd(const struct conn *conn) {
        return conn->fd;
}
