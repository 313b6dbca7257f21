#include <arpa/inet.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <openssl/crypto.h>

#include "common/frame.h"
#include "common/log.h"
#include "common/util.h"
#include "daemon/image/codec.h"
#include "daemon/mover/link_internal.h"

#define HELLO_MAX_BYTES 256U
#define PENDING_MAX 128U
#define REPORTED_MAX 5U /* refusals that are logged, of one acceptor */
#define HANDSHAKE_USEC 5000000U

/* Anyone may connect; the first one with the key and the token is accepted. */

struct pending {
        struct link link; /* tls shared, not owned */
        uint64_t deadline_usec;
        bool handshaken;
        uint8_t hello[FRAME_HEADER_BYTES + HELLO_MAX_BYTES];
        size_t hello_bytes;
        int wait;
        union address address;
        char name[INET6_ADDRSTRLEN + 8];
};

struct acceptor {
        struct control *control;
        const struct link_config *config;
        struct tls *tls;
        int listen_fd;
        unsigned refused;
        struct pending *pending[PENDING_MAX];
};

static void pending_destroy(struct pending *k) {
        SSL_free(k->link.ssl);
        cleanup_close_fd(&k->link.fd);
        free(k);
}

static void pending_refuse(struct acceptor *a, size_t i, const char *why) {
        struct pending *k = a->pending[i];

        if (a->refused++ < REPORTED_MAX)
                log_warn("refused a connection from %s: %s", k->name, why);
        pending_destroy(k);
        a->pending[i] = NULL;
}

static void name_address(const union address *address, char *out, size_t space_bytes) {
        bool six = address->any.sa_family == AF_INET6;
        char text[INET6_ADDRSTRLEN] = "?";

        (void) inet_ntop(address->any.sa_family,
                         six ? (const void *) &address->in6.sin6_addr : (const void *) &address->in.sin_addr, text, sizeof(text));
        (void) snprintf(out, space_bytes, "%s:%u", text, ntohs(six ? address->in6.sin6_port : address->in.sin_port));
}

static bool same_host(const union address *a, const union address *b) {
        if (a->any.sa_family != b->any.sa_family)
                return false;
        return a->any.sa_family == AF_INET6 ? memcmp(&a->in6.sin6_addr, &b->in6.sin6_addr, sizeof(a->in6.sin6_addr)) == 0
                                            : a->in.sin_addr.s_addr == b->in.sin_addr.s_addr;
}

static unsigned count_from(const struct acceptor *a, const union address *host) {
        unsigned n = 0;

        for (size_t i = 0; i < PENDING_MAX; i++)
                n += a->pending[i] && same_host(&a->pending[i]->address, host);
        return n;
}

/* A free slot; if there is none, the oldest of the host that has the most of them is refused: a
 * host that floods the port harms only itself, and the mover that is waited for comes from another
 * host. */
static size_t acceptor_slot(struct acceptor *a) {
        size_t victim = 0;
        unsigned most = 0;

        for (size_t i = 0; i < PENDING_MAX; i++) {
                unsigned n = a->pending[i] ? count_from(a, &a->pending[i]->address) : 0;

                if (!a->pending[i])
                        return i;
                if (n > most || (n == most && a->pending[i]->deadline_usec < a->pending[victim]->deadline_usec)) {
                        most = n;
                        victim = i;
                }
        }
        pending_refuse(a, victim, "too many at once");
        return victim;
}

/* False: no other peer wants to connect now. */
static bool pending_add(struct acceptor *a) {
        union address address = { 0 };
        socklen_t size = sizeof(address);
        int fd = accept4(a->listen_fd, &address.any, &size, SOCK_CLOEXEC | SOCK_NONBLOCK);
        struct pending *k;

        if (fd < 0)
                return false;
        link_socket_setup(fd, a->config->timeout_msec);
        k = xcalloc(1, sizeof(*k));
        k->link.control = a->control;
        k->link.fd = fd;
        k->deadline_usec = now_usec() + HANDSHAKE_USEC;
        k->wait = POLLIN;
        k->address = address;
        name_address(&address, k->name, sizeof(k->name));
        if (a->tls) {
                k->link.ssl = link_session_create(a->tls, true, fd);
                if (!k->link.ssl) {
                        pending_destroy(k);
                        return true;
                }
        }
        a->pending[acceptor_slot(a)] = k;
        return true;
}

/* How many bytes of the hello are missing; 0: it is complete. */
static int hello_missing(const struct pending *k, size_t *ret_bytes) {
        uint32_t payload_bytes = 0;
        int r;

        if (k->hello_bytes < FRAME_HEADER_BYTES) {
                *ret_bytes = FRAME_HEADER_BYTES - k->hello_bytes;
                return 0;
        }
        r = frame_header_read(k->hello, FRAME_MAGIC_MOVER, HELLO_MAX_BYTES, &payload_bytes);
        if (r < 0)
                return r;
        *ret_bytes = FRAME_HEADER_BYTES + payload_bytes - k->hello_bytes;
        return 0;
}

static int hello_check(const struct pending *k, const struct link_config *config, struct rm_error *err) {
        Rm__MoverPeerMessage *m =
                rm__mover_peer_message__unpack(NULL, k->hello_bytes - FRAME_HEADER_BYTES, k->hello + FRAME_HEADER_BYTES);
        int r = 1;

        if (!m || m->body_case != RM__MOVER_PEER_MESSAGE__BODY_HELLO)
                r = error_set(err, -EBADMSG, "no hello");
        else if (m->hello->version != LINK_VERSION)
                r = error_set(err, -EPROTONOSUPPORT, "version %u, expected %u", m->hello->version, LINK_VERSION);
        else if (m->hello->token.len != config->token_bytes ||
                 CRYPTO_memcmp(m->hello->token.data, config->token, config->token_bytes) != 0)
                r = error_set(err, -EACCES, "the wrong token");
        rm__mover_peer_message__free_unpacked(m, NULL);
        return r;
}

/* 1: accept it; 0: it has not sent all; negative: refuse it. */
static int pending_step(struct acceptor *a, struct pending *k, struct rm_error *err) {
        size_t missing = 0;

        if (!k->handshaken) {
                int r = link_handshake_some(&k->link, &k->wait, err);

                if (r <= 0)
                        return r;
                k->handshaken = true;
        }
        for (;;) {
                ssize_t n = hello_missing(k, &missing);

                if (n < 0)
                        return error_set(err, (int) n, "not a mover");
                if (missing == 0)
                        return hello_check(k, a->config, err);
                n = link_read_some(&k->link, k->hello + k->hello_bytes, missing, &k->wait, err);
                if (n == -ENODATA)
                        return error_set(err, -ENODATA, "it closed the connection before its hello");
                if (n <= 0)
                        return (int) n;
                k->hello_bytes += (size_t) n;
        }
}

static int acceptor_wait(struct acceptor *a, uint64_t deadline_usec, struct pollfd *fds, struct rm_error *err) {
        uint64_t now = now_usec();
        int timeout_msec;

        if (now >= deadline_usec)
                return error_set(err, -ETIMEDOUT, "no mover connected with the token of this move");
        timeout_msec = (int) ((deadline_usec - now) / 1000U) + 1;
        fds[1] = (struct pollfd) { .fd = a->listen_fd, .events = POLLIN };
        for (size_t i = 0; i < PENDING_MAX; i++) {
                struct pending *k = a->pending[i];

                fds[2 + i] = (struct pollfd) { .fd = k ? k->link.fd : -1, .events = (short) (k ? k->wait : 0) };
        }
        return control_poll(a->control, fds, PENDING_MAX + 2, timeout_msec < 1000 ? timeout_msec : 1000, err);
}

/* 1: accept *ret_index. */
static int acceptor_scan(struct acceptor *a, const struct pollfd *fds, size_t *ret_index) {
        for (size_t i = 0; i < PENDING_MAX; i++) {
                struct pending *k = a->pending[i];
                struct rm_error why = { 0 };
                int r = 0;

                if (!k)
                        continue;
                if (fds[2 + i].revents)
                        r = pending_step(a, k, &why);
                else if (now_usec() >= k->deadline_usec)
                        r = error_set(&why, -ETIMEDOUT, "it sent nothing");
                if (r > 0) {
                        *ret_index = i;
                        return 1;
                }
                if (r < 0)
                        pending_refuse(a, i, error_text(&why));
        }
        return 0;
}

static int welcome(struct link *l, struct rm_error *err) {
        Rm__MoverWelcome m = RM__MOVER_WELCOME__INIT;

        m.version = LINK_VERSION;
        m.codecs = IMAGE_CODECS_KNOWN;
        m.files_ahead = true;
        m.counts_later = true;
        return link_send(l, &m.base, err);
}

int link_accept(struct control *c, const struct link_config *config, int listen_fd, unsigned accept_timeout_msec,
                struct link **ret_link, struct rm_error *err) {
        struct acceptor a = { .control = c, .config = config, .listen_fd = listen_fd };
        uint64_t deadline_usec = now_usec() + accept_timeout_msec * UINT64_C(1000);
        struct pollfd fds[PENDING_MAX + 2];
        struct link *l = NULL;
        size_t index = 0;
        int r;

        r = link_make(c, config, &l, err);
        if (r < 0)
                return r;
        a.tls = l->tls;
        for (;;) {
                r = acceptor_wait(&a, deadline_usec, fds, err);
                if (r < 0)
                        break;
                r = acceptor_scan(&a, fds, &index);
                if (r > 0) {
                        l->fd = take_fd(&a.pending[index]->link.fd);
                        l->ssl = take_ptr(a.pending[index]->link.ssl);
                        r = welcome(l, err);
                        break;
                }
                /* No more at once: connections that wait have their turn between. */
                for (unsigned i = 0; fds[1].revents && i < PENDING_MAX / 4 && pending_add(&a); i++)
                        ;
        }
        if (a.refused > REPORTED_MAX)
                log_warn("refused %u connections in all", a.refused);
        for (size_t i = 0; i < PENDING_MAX; i++)
                if (a.pending[i])
                        pending_destroy(a.pending[i]);
        if (r < 0) {
                link_close(l);
                return r;
        }
        *ret_link = l;
        return 0;
}
