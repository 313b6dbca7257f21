#include "daemon/mover/link_internal.h"

#include <arpa/inet.h>
#include <linux/sockios.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <openssl/err.h>

#include "common/frame.h"
#include "common/log.h"
#include "common/message_body.h"
#include "common/util.h"

/* Reads from the socket are this large: some records of 16 KiB at once. */
#define READ_AHEAD_BYTES (256U << 10)

/* ---- sockets ---- */

void link_socket_setup(int fd, unsigned timeout_msec) {
        const int on = 1;
        const int probes = 4;
        int interval_sec = (int) (timeout_msec / 1000U / ((unsigned) probes + 1U));

        if (interval_sec < 1)
                interval_sec = 1;
        /* None of these can fail in a way that matters. The buffers' sizes are left to the kernel,
         * which fits them to the link. */
        (void) setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
        (void) setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
        (void) setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &interval_sec, sizeof(interval_sec));
        (void) setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval_sec, sizeof(interval_sec));
        (void) setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof(probes));
        (void) setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &timeout_msec, sizeof(timeout_msec));
}

static int connect_one(struct control *c, const struct addrinfo *a, unsigned timeout_msec, int *ret_fd, struct rm_error *err) {
        cleanup_close int fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        uint64_t deadline_usec = now_usec() + timeout_msec * UINT64_C(1000);
        socklen_t size = sizeof(int);
        int code = 0, r;

        if (fd < 0)
                return -errno;
        link_socket_setup(fd, timeout_msec);
        if (connect(fd, a->ai_addr, a->ai_addrlen) < 0 && errno != EINPROGRESS)
                return -errno;
        r = control_await(c, fd, POLLOUT, deadline_usec, err);
        if (r < 0)
                return r;
        if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &code, &size) < 0)
                return -errno;
        if (code != 0)
                return -code;
        *ret_fd = take_fd(&fd);
        return 0;
}

static int connect_any(struct control *c, const char *host, uint16_t port, unsigned timeout_msec, int *ret_fd,
                       struct rm_error *err) {
        struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV };
        struct addrinfo *list = NULL;
        char service[8];
        int r;

        (void) snprintf(service, sizeof(service), "%u", port);
        r = getaddrinfo(host, service, &hints, &list);
        if (r != 0)
                return error_set(err, -EHOSTUNREACH, "find %s: %s", host, gai_strerror(r));
        r = -EHOSTUNREACH;
        for (const struct addrinfo *a = list; a && r < 0 && !c->aborted; a = a->ai_next)
                r = connect_one(c, a, timeout_msec, ret_fd, err);
        freeaddrinfo(list);
        if (r < 0 && !c->aborted)
                (void) error_sys(err, r, "connect to %s port %u", host, port);
        return r;
}

static int listen_one(const struct addrinfo *a, uint16_t port, int *ret_fd, uint16_t *ret_port) {
        cleanup_close int fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        const int on = 1;
        union address address;
        socklen_t size = a->ai_addrlen;

        if (fd < 0)
                return -errno;
        memcpy(&address, a->ai_addr, a->ai_addrlen);
        if (address.any.sa_family == AF_INET6)
                address.in6.sin6_port = htons(port);
        else
                address.in.sin_port = htons(port);
        (void) setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
        if (bind(fd, &address.any, a->ai_addrlen) < 0 || listen(fd, SOMAXCONN) < 0 || getsockname(fd, &address.any, &size) < 0)
                return -errno;
        *ret_port = ntohs(address.any.sa_family == AF_INET6 ? address.in6.sin6_port : address.in.sin_port);
        *ret_fd = take_fd(&fd);
        return 0;
}

int link_listen(const char *address, uint16_t port_min, uint16_t port_max, int *ret_fd, uint16_t *ret_port, struct rm_error *err) {
        struct addrinfo hints = {
                .ai_family = *address ? AF_UNSPEC : AF_INET,
                .ai_socktype = SOCK_STREAM,
                .ai_flags = AI_PASSIVE | AI_NUMERICHOST | AI_NUMERICSERV,
        };
        struct addrinfo *list = NULL;
        unsigned last = port_max < port_min ? port_min : port_max;
        int r;

        r = getaddrinfo(*address ? address : NULL, "0", &hints, &list);
        if (r != 0)
                return error_set(err, -EINVAL, "listen on '%s': %s", address, gai_strerror(r));
        for (unsigned port = port_min; port <= last; port++) {
                r = listen_one(list, (uint16_t) port, ret_fd, ret_port);
                if (r != -EADDRINUSE)
                        break;
        }
        freeaddrinfo(list);
        if (r < 0)
                return error_sys(err, r, "listen on '%s' port %u to %u", address, port_min, last);
        return 0;
}

/* ---- bytes ---- */

static int peer_gone(int code, struct rm_error *err) {
        if (code == -ETIMEDOUT)
                return error_set(err, code, "the other node stopped responding");
        return error_sys(err, code, "lost the connection to the other node");
}

/* `code` of SSL_get_error as what to wait for, 0 = the stream has ended, or negative errno. */
static int tls_result(struct link *l, int r, struct rm_error *err) {
        int saved = errno;
        char text[200];

        switch (SSL_get_error(l->ssl, r)) {
        case SSL_ERROR_WANT_READ:
                return POLLIN;
        case SSL_ERROR_WANT_WRITE:
                return POLLOUT;
        case SSL_ERROR_ZERO_RETURN:
                return 0;
        case SSL_ERROR_SYSCALL:
                ERR_clear_error();
                return saved ? peer_gone(-saved, err) : 0;
        default:
                ERR_error_string_n(ERR_get_error(), text, sizeof(text));
                ERR_clear_error();
                return error_set(err, -EPROTO, "TLS: %s", text);
        }
}

/* Lets the layer below write once: bytes taken (> 0), or 0 and what to wait for in *ret_wait, or
 * negative errno. */
static ssize_t write_some(struct link *l, const void *data, size_t size_bytes, int *ret_wait, struct rm_error *err) {
        size_t done = 0;
        ssize_t n;
        int r;

        errno = 0;
        if (l->ssl) {
                r = SSL_write_ex(l->ssl, data, size_bytes, &done);
                if (r == 1)
                        return (ssize_t) done;
                r = tls_result(l, r, err);
                *ret_wait = r;
                return r == 0 ? peer_gone(-EPIPE, err) : r < 0 ? r : 0;
        }
        n = send(l->fd, data, size_bytes, MSG_NOSIGNAL);
        if (n > 0)
                return n;
        *ret_wait = POLLOUT;
        return errno == EAGAIN || errno == EINTR ? 0 : peer_gone(-errno, err);
}

/* As write_some; -ENODATA when the stream has ended. */
ssize_t link_read_some(struct link *l, void *data, size_t size_bytes, int *ret_wait, struct rm_error *err) {
        size_t done = 0;
        ssize_t n;
        int r;

        errno = 0;
        if (l->ssl) {
                r = SSL_read_ex(l->ssl, data, size_bytes, &done);
                if (r == 1)
                        return (ssize_t) done;
                r = tls_result(l, r, err);
                *ret_wait = r;
                return r == 0 ? -ENODATA : r < 0 ? r : 0;
        }
        n = recv(l->fd, data, size_bytes, 0);
        if (n > 0)
                return n;
        if (n == 0)
                return -ENODATA;
        *ret_wait = POLLIN;
        return errno == EAGAIN || errno == EINTR ? 0 : peer_gone(-errno, err);
}

static int link_wait(struct link *l, int events, struct rm_error *err) {
        struct pollfd fds[2] = { { .fd = -1 }, { .fd = l->fd, .events = (short) events } };
        uint64_t start_usec = now_usec();
        int r = control_poll(l->control, fds, 2, -1, err);

        l->waited_usec += now_usec() - start_usec;
        return r < 0 ? r : 0;
}

/* While something in the queue has not even been sent, the link, or the peer, is what everything
 * waits for: and so it was since the last look, as there is one before each write, and the queue
 * only becomes shorter between writes. */
static void queue_scan(struct link *l) {
        uint64_t now = now_usec();
        uint64_t acked_bytes;
        int unsent_bytes = 0;
        int queued_bytes = 0;

        if (ioctl(l->fd, SIOCOUTQNSD, &unsent_bytes) < 0 || ioctl(l->fd, SIOCOUTQ, &queued_bytes) < 0)
                return;
        /* The queue also has what TLS adds. */
        acked_bytes = l->figures.sent_bytes > (uint64_t) queued_bytes ? l->figures.sent_bytes - (uint64_t) queued_bytes : 0;
        if (unsent_bytes > 0 && l->scan_usec > 0 && acked_bytes >= l->scan_acked_bytes) {
                l->figures.busy_bytes += acked_bytes - l->scan_acked_bytes;
                l->figures.busy_usec += now - l->scan_usec;
        } else if (unsent_bytes == 0)
                l->figures.idle_bytes += l->figures.sent_bytes - l->scan_sent_bytes;
        l->scan_usec = now;
        l->scan_sent_bytes = l->figures.sent_bytes;
        l->scan_acked_bytes = acked_bytes;
}

uint32_t link_peer_codecs(const struct link *l) {
        return l->peer_codecs;
}

bool link_peer_files_ahead(const struct link *l) {
        return l->peer_files_ahead;
}

bool link_peer_counts_later(const struct link *l) {
        return l->peer_counts_later;
}

struct link_figures link_figures(struct link *l) {
        queue_scan(l);
        return l->figures;
}

size_t link_queued_bytes(const struct link *l) {
        int bytes = 0;

        return ioctl(l->fd, SIOCOUTQ, &bytes) < 0 || bytes < 0 ? 0 : (size_t) bytes;
}

static int write_all_of(struct link *l, const uint8_t *p, size_t size_bytes, struct rm_error *err) {
        while (size_bytes > 0) {
                int wait = 0;
                ssize_t n = write_some(l, p, size_bytes, &wait, err);

                if (n == 0)
                        n = link_wait(l, wait, err);
                else if (n > 0) {
                        p += n;
                        size_bytes -= (size_t) n;
                }
                if (n < 0)
                        return (int) n;
        }
        return 0;
}

int link_write(struct link *l, const void *data, size_t size_bytes, struct rm_error *err) {
        uint64_t start_usec = now_usec();
        uint64_t start_nsec = thread_nsec();
        uint64_t waited_usec = l->waited_usec;
        int r;

        queue_scan(l);
        r = write_all_of(l, data, size_bytes, err);
        l->figures.sent_bytes += size_bytes;
        l->figures.send_nsec += thread_nsec() - start_nsec;
        l->figures.send_wall_nsec += (now_usec() - start_usec - (l->waited_usec - waited_usec)) * 1000U;
        return r;
}

int link_read(struct link *l, void *ret_data, size_t size_bytes, struct rm_error *err) {
        uint8_t *p = ret_data;
        size_t left = size_bytes;

        while (left > 0) {
                int wait = 0;
                ssize_t n = link_read_some(l, p, left, &wait, err);

                if (n == 0)
                        n = link_wait(l, wait, err);
                else if (n > 0) {
                        p += n;
                        left -= (size_t) n;
                }
                if (n == -ENODATA)
                        return error_set(err, left == size_bytes ? -ENODATA : -EPIPE, "the other node closed the connection");
                if (n < 0)
                        return (int) n;
        }
        return 0;
}

int link_send(struct link *l, const ProtobufCMessage *body, struct rm_error *err) {
        Rm__MoverPeerMessage message = RM__MOVER_PEER_MESSAGE__INIT;
        cleanup_free uint8_t *data = NULL;
        size_t size_bytes = 0;

        message_set_body(&message.base, body);
        data = frame_pack(FRAME_MAGIC_MOVER, &message.base, &size_bytes);
        return link_write(l, data, size_bytes, err);
}

int link_receive(struct link *l, Rm__MoverPeerMessage **ret_message, struct rm_error *err) {
        uint8_t header[FRAME_HEADER_BYTES];
        cleanup_free uint8_t *payload = NULL;
        Rm__MoverPeerMessage *m;
        uint32_t size_bytes = 0;
        int r;

        r = link_read(l, header, sizeof(header), err);
        if (r < 0)
                return r;
        r = frame_header_read(header, FRAME_MAGIC_MOVER, FRAME_MAX_MOVER_BYTES, &size_bytes);
        if (r < 0)
                return error_sys(err, r, "receive from the peer mover");
        payload = xcalloc(1, size_bytes);
        r = link_read(l, payload, size_bytes, err);
        if (r < 0)
                return r;
        m = rm__mover_peer_message__unpack(NULL, size_bytes, payload);
        if (!m)
                return error_set(err, -EBADMSG, "unexpected message from the peer mover");
        *ret_message = m;
        return 0;
}

int link_fd(const struct link *l) {
        return l->fd;
}

bool link_peer_speaks(struct link *l) {
        struct pollfd p = { .fd = l->fd, .events = POLLIN };

        return (l->ssl && SSL_has_pending(l->ssl)) || poll(&p, 1, 0) > 0;
}

void link_drain(struct link *l, unsigned timeout_msec) {
        uint64_t deadline_usec = now_usec() + timeout_msec * UINT64_C(1000);
        struct pollfd p = { .fd = l->fd, .events = POLLIN };
        cleanup_free char *junk = xcalloc(1, READ_AHEAD_BYTES);

        (void) shutdown(l->fd, SHUT_WR);
        for (;;) {
                uint64_t now = now_usec();

                if (now >= deadline_usec || poll(&p, 1, (int) ((deadline_usec - now) / 1000U) + 1) <= 0)
                        return;
                if (recv(l->fd, junk, READ_AHEAD_BYTES, MSG_DONTWAIT) <= 0)
                        return;
        }
}

/* ---- opening ---- */

/* rmd has read the keys at its start; an administrator who removes the second before he restarts
 * rmd does not need it any more. */
static const char *second_key_file(const struct link_config *config) {
        if (!*config->second_key_file || access(config->second_key_file, F_OK) == 0)
                return config->second_key_file;
        log_warn("%s: %m: only the first key is accepted", config->second_key_file);
        return "";
}

int link_make(struct control *c, const struct link_config *config, struct link **ret_link, struct rm_error *err) {
        struct link *l;
        int r;

        l = xcalloc(1, sizeof(*l));
        l->control = c;
        l->fd = -1;
        if (*config->key_file) {
                r = tls_create_from_files(config->cluster, TLS_MOVER, config->key_file, second_key_file(config), &l->tls, err);
                if (r < 0) {
                        link_close(l);
                        return r;
                }
        }
        *ret_link = l;
        return 0;
}

void link_close(struct link *l) {
        if (!l)
                return;
        if (l->ssl) {
                (void) SSL_shutdown(l->ssl);
                SSL_free(l->ssl);
        }
        tls_destroy(l->tls);
        cleanup_close_fd(&l->fd);
        free(l);
}

static void session_tune(SSL *ssl) {
        (void) SSL_clear_mode(ssl, SSL_MODE_RELEASE_BUFFERS);
}

/* Large reads from the socket have to be asked for before the session reads for the first time. */
SSL *link_session_create(struct tls *tls, bool server, int fd) {
        SSL *ssl = tls_session(tls, server);

        if (!ssl)
                return NULL;
        SSL_set_default_read_buffer_len(ssl, READ_AHEAD_BYTES);
        SSL_set_read_ahead(ssl, 1);
        session_tune(ssl);
        if (SSL_set_fd(ssl, fd) != 1) {
                SSL_free(ssl);
                return NULL;
        }
        return ssl;
}

/* 1: done; 0 and *ret_wait; or negative errno. */
int link_handshake_some(struct link *l, int *ret_wait, struct rm_error *err) {
        struct rm_error why = { 0 };
        int r;

        if (!l->ssl)
                return 1;
        errno = 0;
        r = SSL_do_handshake(l->ssl);
        if (r == 1)
                return tls_proven(l->ssl) ? 1 : error_set(err, -EACCES, "TLS: the peer does not have the cluster's key");
        r = tls_result(l, r, &why);
        *ret_wait = r;
        if (r > 0)
                return 0;
        return error_set(err, -EACCES, "TLS handshake: %s: %.300s", tls_refusal(l->ssl),
                         r < 0 ? error_text(&why) : "connection closed");
}

static int connect_handshake(struct link *l, unsigned timeout_msec, struct rm_error *err) {
        uint64_t deadline_usec = now_usec() + timeout_msec * UINT64_C(1000);

        for (;;) {
                int wait = 0;
                int r = link_handshake_some(l, &wait, err);

                if (r != 0)
                        return r < 0 ? r : 0;
                r = control_await(l->control, l->fd, (short) wait, deadline_usec, err);
                if (r < 0)
                        return r == -ETIMEDOUT ? error_set(err, r, "TLS handshake: timed out") : r;
        }
}

static int resync(struct link *l, const struct link_config *config, struct rm_error *err) {
        Rm__MoverPeerMessage *answer = NULL;
        Rm__MoverHello hello = RM__MOVER_HELLO__INIT;
        int r;

        hello.version = LINK_VERSION;
        hello.token.data = (uint8_t *) config->token;
        hello.token.len = config->token_bytes;
        r = link_send(l, &hello.base, err);
        if (r == 0)
                r = link_receive(l, &answer, err);
        if (r == -ENODATA)
                return error_set(err, -EACCES, "the peer mover does not know this move (token mismatch)");
        if (r < 0)
                return r;
        if (answer->body_case != RM__MOVER_PEER_MESSAGE__BODY_WELCOME || answer->welcome->version != LINK_VERSION) {
                r = error_set(err, -EPROTONOSUPPORT, "the peer mover has another protocol version");
        } else {
                l->peer_codecs = answer->welcome->codecs;
                l->peer_files_ahead = answer->welcome->files_ahead;
                l->peer_counts_later = answer->welcome->counts_later;
        }
        rm__mover_peer_message__free_unpacked(answer, NULL);
        return r;
}

int link_connect(struct control *c, const struct link_config *config, const char *host, uint16_t port, struct link **ret_link,
                 struct rm_error *err) {
        struct link *l = NULL;
        int r;

        r = link_make(c, config, &l, err);
        if (r < 0)
                return r;
        r = connect_any(c, host, port, config->timeout_msec, &l->fd, err);
        if (r == 0 && l->tls) {
                l->ssl = link_session_create(l->tls, false, l->fd);
                if (!l->ssl)
                        r = error_set(err, -ENOMEM, "TLS: out of memory");
        }
        if (r == 0)
                r = connect_handshake(l, config->timeout_msec, err);
        if (r == 0)
                r = resync(l, config, err);
        if (r < 0) {
                if (!c->aborted)
                        (void) error_prefix(err, "connect to the mover on %s port %u", host, port);
                link_close(l);
                return r;
        }
        *ret_link = l;
        return 0;
}
