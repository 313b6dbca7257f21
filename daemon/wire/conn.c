#include "daemon/wire/conn.h"

#include <arpa/inet.h>
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
#include "common/util.h"
#include "daemon/wire/tls.h"
#include "daemon/wire/unknown.h"

#define TRUST_DEFAULT_USEC (30U * UINT64_C(1000000))
#define LINGER_USEC (10U * UINT64_C(1000000))
#define DRAINED_DEFAULT_BYTES (64U << 10)
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
        const ProtobufCMessageDescriptor *type;
        size_t drained_bytes;
        uint64_t trust_usec;
        uint32_t magic;
        uint32_t max_bytes;
        int close_log_level;
        int fd; /* until the bufferevent owns it; then for questions only */
        int dial_error;
        unsigned busy; /* callbacks we are inside of */
        enum conn_stage stage;
        bool tls;
        bool paused;
        bool ended; /* the other end has sent its last byte */
};

static void start_bufferevent(struct conn *conn);

static struct timeval timeval_of(uint64_t usec) {
        return (struct timeval) { .tv_sec = (time_t) (usec / 1000000U), .tv_usec = (suseconds_t) (usec % 1000000U) };
}

static void gate_leave(struct conn *conn) {
        if (conn->gate)
                conn->gate->waiting--;
        conn->gate = NULL;
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

        (void) snprintf(reason, sizeof(reason), "%s", what);
        log_write(conn->close_log_level, "%s: %s; connection closed", conn->name, reason);
        conn_finish(conn, code, reason);
}

/* ---- receiving ---- */

/* One frame, if it is complete. 1 = one was handled, 0 = more bytes are needed or the conn is done for. */
static int receive_frame(struct conn *conn, struct evbuffer *input) {
        uint8_t header[FRAME_HEADER_BYTES];
        ProtobufCMessage *message;
        uint32_t payload_bytes = 0;
        char what[128];
        int r;

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
        if (evbuffer_get_length(input) < FRAME_HEADER_BYTES + (size_t) payload_bytes)
                return 0;
        (void) evbuffer_drain(input, FRAME_HEADER_BYTES);
        message = protobuf_c_message_unpack(conn->type, NULL, payload_bytes,
                                            payload_bytes ? evbuffer_pullup(input, payload_bytes) : header);
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

static void receive_frames(struct conn *conn) {
        for (int i = 0; i < MESSAGE_BURST; i++)
                if (conn->stage != CONN_READY || conn->paused || receive_frame(conn, bufferevent_get_input(conn->bev)) == 0)
                        return;
        if (conn->stage == CONN_READY)
                event_active(conn->kick, EV_TIMEOUT, 0);
}

/* After the other end's last byte: what came before it is still delivered, as slowly as the owner likes. */
static void receive_rest(struct conn *conn) {
        while (conn->stage == CONN_READY && !conn->paused && receive_frame(conn, bufferevent_get_input(conn->bev)) == 1)
                ;
        if (conn->stage != CONN_READY || conn->paused)
                return;
        if (evbuffer_get_length(bufferevent_get_input(conn->bev)) > 0)
                conn_refuse(conn, -EPIPE, "closed in the middle of a frame");
        else
                conn_finish(conn, 0, "closed by the other end");
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
                conn_refuse(conn, -EACCES, "TLS without the cluster's key");
                return;
        }
        conn->stage = CONN_READY;
        if (conn->ops.on_ready)
                conn->ops.on_ready(conn, conn->userdata);
        if (conn->stage == CONN_READY && !conn->paused)
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
                        (void) snprintf(what, sizeof(what), "TLS handshake failed: %s: %s",
                                        tls_refusal(bufferevent_openssl_get_ssl(conn->bev)), text ? text : "unknown error");
                else
                        (void) snprintf(what, sizeof(what), "TLS error: %s", text ? text : "unknown error");
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
        else
                conn_refuse(conn, -ETIMEDOUT, "has not said who it is in time");
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
        bufferevent_setcb(conn->bev, on_read, on_written, on_event, conn);
        bufferevent_setwatermark(conn->bev, EV_WRITE, conn->drained_bytes, 0);
        (void) bufferevent_enable(conn->bev, EV_READ | EV_WRITE);
        if (!conn->tls)
                event_active(conn->kick, EV_TIMEOUT, 0);
}

static char *name_from_socket(int fd) {
        struct sockaddr_in in = { 0 };
        socklen_t n = sizeof(in);
        char address[INET_ADDRSTRLEN] = "?";

        if (getpeername(fd, (struct sockaddr *) &in, &n) < 0 || in.sin_family != AF_INET)
                return xstrdup("local connection");
        (void) inet_ntop(AF_INET, &in.sin_addr, address, sizeof(address));
        return xasprintf("%s:%u", address, (unsigned) ntohs(in.sin_port));
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
        conn->drained_bytes = config->drained_bytes ? config->drained_bytes : DRAINED_DEFAULT_BYTES;
        conn->trust_usec = config->trust_usec ? config->trust_usec : TRUST_DEFAULT_USEC;
        conn->close_log_level = config->close_log_level ? config->close_log_level : LOG_WARNING;
        conn->name = config->name ? xstrdup(config->name) : name_from_socket(fd);
        conn->kick = evtimer_new(base, on_kick, conn);
        conn->timeout = evtimer_new(base, on_timeout, conn);
        if (!conn->kick || !conn->timeout)
                abort();
        if (conn->trust_usec != UINT64_MAX) {
                struct timeval wait = timeval_of(conn->trust_usec);

                (void) evtimer_add(conn->timeout, &wait);
        }
        return conn;
}

int conn_create(struct event_base *base, int fd, const struct conn_config *config, const struct conn_ops *ops, void *userdata,
                struct conn **ret) {
        struct conn *conn;
        int r = set_nonblock(fd, true);

        if (r == 0 && config->gate && config->gate->waiting_max > 0 && config->gate->waiting >= config->gate->waiting_max)
                r = -EUSERS;
        if (r < 0) {
                if (r == -EUSERS)
                        log_warn("%s: refused, %u connections wait already to say who they are",
                                 config->name ? config->name : "connection", config->gate->waiting);
                (void) close(fd);
                SSL_free(config->ssl);
                return r;
        }
        conn = conn_new(base, fd, config, ops, userdata);
        conn->gate = config->gate;
        if (conn->gate)
                conn->gate->waiting++;
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

void conn_pause(struct conn *conn, bool paused) {
        if (conn->paused == paused)
                return;
        conn->paused = paused;
        if (!conn->bev || conn->stage == CONN_DEAD)
                return;
        if (paused) {
                (void) bufferevent_disable(conn->bev, EV_READ);
        } else {
                (void) bufferevent_enable(conn->bev, EV_READ);
                event_active(conn->kick, EV_TIMEOUT, 0);
        }
}

void conn_trust(struct conn *conn) {
        gate_leave(conn);
        if (conn->stage != CONN_DEAD && conn->stage != CONN_LINGERING)
                (void) evtimer_del(conn->timeout);
}

void conn_close(struct conn *conn) {
        struct timeval wait = timeval_of(LINGER_USEC);

        if (!conn || conn->stage == CONN_DEAD)
                return;
        if (conn->stage != CONN_READY || conn_pending_bytes(conn) == 0) {
                conn_destroy(conn);
                return;
        }
        conn->stage = CONN_LINGERING;
        memset(&conn->ops, 0, sizeof(conn->ops));
        gate_leave(conn);
        (void) evtimer_add(conn->timeout, &wait);
        bufferevent_setwatermark(conn->bev, EV_WRITE, 0, 0);
        (void) bufferevent_enable(conn->bev, EV_READ | EV_WRITE);
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
