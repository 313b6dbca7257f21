#include "tests/sim/sockets.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "common/util.h"
#include "daemon/wire/conn.h"
#include "daemon/wire/listener.h"
#include "daemon/wire/tls.h"
#include "tests/sim/network.h"
#include "tests/sim/trace.h"

/* A lost packet is sent again after this time, and given up after that. */
#define AGAIN_USEC 150000U
#define GIVE_UP_USEC 700000U
#define TRUST_USEC UINT64_C(30000000)

enum packet_type { SOCKET_OPEN, SOCKET_ACCEPTED, SOCKET_DATA, SOCKET_END, SOCKET_RESET };

/* The head of a packet, whose data follows. */
struct packet {
        enum packet_type type;
        bool to_dialler;
        uint64_t id; /* of the connection */
        uint64_t number; /* of DATA and END, from 0 */
};

/* A packet that came before one that must be taken first. */
struct early {
        struct packet head;
        size_t size_bytes;
        LIST_ENTRY(early) entry;
        uint8_t data[];
};

/* An end of a connection. */
struct conn {
        struct sockets *sockets;
        unsigned peer;
        uint64_t id;
        bool dialled, stands, trusted;
        bool closing; /* its last callback is under way */
        uint64_t sent, received;
        LIST_HEAD(, early) early;
        const ProtobufCMessageDescriptor *type;
        struct conn_ops ops;
        void *userdata;
        char *name;
        LIST_ENTRY(conn) entry;
};

struct listener {
        listener_accept_fn on_accept;
        void *userdata;
};

struct sockets {
        struct host *host;
        struct listener *listener;
        unsigned accepting; /* from this host, */
        uint64_t accepting_id;
        LIST_HEAD(, conn) conns;
};

static struct sockets *current_sockets(void) {
        return host_part(host_current(), HOST_SOCKETS);
}

static struct conn *find(const struct sockets *s, unsigned peer, uint64_t id, bool dialled) {
        struct conn *conn;

        LIST_FOREACH (conn, &s->conns, entry)
                if (conn->id == id && conn->peer == peer && conn->dialled == dialled)
                        return conn;
        return NULL;
}

/* ---- the end ---- */

static void conn_free(struct conn *conn) {
        struct early *early;

        while ((early = LIST_FIRST(&conn->early))) {
                LIST_REMOVE(early, entry);
                free(early);
        }
        free(conn->name);
        free(conn);
}

static void over(struct conn *conn, int code, const char *reason) {
        LIST_REMOVE(conn, entry);
        conn->closing = true;
        conn->ops.on_close(conn, code, reason, conn->userdata);
        conn_free(conn);
}

/* ---- on its way ---- */

/* The system sends it, whatever becomes of the process, as long as that lives. */
struct transit {
        struct host *host;
        uint64_t life, begin_usec;
        unsigned to;
        size_t size_bytes;
        uint8_t data[];
};

static void transit_failed(void *userdata) {
        struct transit *transit = userdata;
        struct sockets *s = host_part(transit->host, HOST_SOCKETS);
        struct packet head;
        struct conn *conn;

        memcpy(&head, transit->data, sizeof(head));
        conn = find(s, transit->to, head.id, !head.to_dialler);
        if (conn)
                over(conn, -ETIMEDOUT, "nothing gets through");
        free(transit);
}

static void transit_try(void *userdata) {
        struct transit *transit = userdata;
        struct timeline *t = host_timeline(transit->host);
        uint64_t now_usec = timeline_now_usec(t);

        if (host_state(transit->host) == HOST_DEAD || host_life(transit->host) != transit->life ||
            network_send(host_part(transit->host, HOST_NETWORK), host_number(transit->host), transit->to, transit->data,
                         transit->size_bytes))
                free(transit);
        else if (now_usec - transit->begin_usec < GIVE_UP_USEC)
                timeline_at(t, now_usec + AGAIN_USEC, transit_try, free, transit);
        else
                host_deliver(transit->host, transit->life, transit_failed, free, transit);
}

static void send_packet(struct sockets *s, unsigned to, const struct packet *head, const void *data, size_t size_bytes) {
        struct transit *transit = xcalloc(1, sizeof(*transit) + sizeof(*head) + size_bytes);

        *transit = (struct transit) { .host = s->host,
                                      .life = host_life(s->host),
                                      .begin_usec = timeline_now_usec(host_timeline(s->host)),
                                      .to = to,
                                      .size_bytes = sizeof(*head) + size_bytes };
        memcpy(transit->data, head, sizeof(*head));
        if (size_bytes > 0)
                memcpy(transit->data + sizeof(*head), data, size_bytes);
        transit_try(transit);
}

static void send_control(struct conn *conn, enum packet_type type) {
        struct packet head = { .type = type, .to_dialler = !conn->dialled, .id = conn->id };

        if (type == SOCKET_END)
                head.number = conn->sent++;
        send_packet(conn->sockets, conn->peer, &head, NULL, 0);
}

static void refuse(struct sockets *s, unsigned to, const struct packet *in) {
        struct packet head = { .type = SOCKET_RESET, .to_dialler = !in->to_dialler, .id = in->id };

        if (in->type != SOCKET_RESET)
                send_packet(s, to, &head, NULL, 0);
}

/* ---- life of a connection ---- */

struct trust {
        struct sockets *sockets;
        unsigned peer;
        uint64_t id;
        bool dialled;
};

static void on_trust_timeout(void *userdata) {
        struct trust *trust = userdata;
        struct conn *conn = find(trust->sockets, trust->peer, trust->id, trust->dialled);

        if (conn && !conn->trusted)
                over(conn, -ETIMEDOUT, "it has not shown who it is");
        free(trust);
}

/* The peer of a connection must prove its trust in time. */
static void watch(struct conn *conn, uint64_t trust_usec) {
        struct trust *trust = xcalloc(1, sizeof(*trust));

        *trust = (struct trust) { conn->sockets, conn->peer, conn->id, conn->dialled };
        host_after(conn->sockets->host, trust_usec ? trust_usec : TRUST_USEC, on_trust_timeout, free, trust);
}

static struct conn *make(struct sockets *s, unsigned peer, uint64_t id, bool dialled, const struct conn_config *config,
                         const struct conn_ops *ops, void *userdata) {
        struct conn *conn = xcalloc(1, sizeof(*conn));

        conn->sockets = s;
        conn->peer = peer;
        conn->id = id;
        conn->dialled = dialled;
        conn->type = config->type;
        conn->ops = *ops;
        conn->userdata = userdata;
        conn->name = xstrdup(config->name ? config->name : "");
        LIST_INIT(&conn->early);
        LIST_INSERT_HEAD(&s->conns, conn, entry);
        watch(conn, config->trust_usec);
        return conn;
}

int conn_create(struct event_base *base, int fd, const struct conn_config *config, const struct conn_ops *ops, void *userdata,
                struct conn **ret) {
        struct sockets *s = current_sockets();

        *ret = make(s, s->accepting, s->accepting_id, false, config, ops, userdata);
        return 0;
}

int conn_dial(struct event_base *base, const struct sockaddr *address, socklen_t address_bytes, const struct conn_config *config,
              const struct conn_ops *ops, void *userdata, struct conn **ret) {
        const struct sockaddr_in *in = (const struct sockaddr_in *) (const void *) address;
        struct sockets *s = current_sockets();
        unsigned peer = (ntohl(in->sin_addr.s_addr) & 0xff) - 1;

        *ret = make(s, peer, 1 + timeline_random(host_timeline(s->host), UINT64_MAX - 1), true, config, ops, userdata);
        send_control(*ret, SOCKET_OPEN);
        return 0;
}

int conn_send(struct conn *conn, const ProtobufCMessage *message) {
        struct packet head = { .type = SOCKET_DATA, .to_dialler = !conn->dialled, .id = conn->id, .number = conn->sent };
        size_t size_bytes = protobuf_c_message_get_packed_size(message);
        cleanup_free uint8_t *data = xcalloc(1, size_bytes + 1);

        if (conn->closing || !conn->stands)
                return -ENOTCONN;
        conn->sent++;
        (void) protobuf_c_message_pack(message, data);
        timeline_note(host_timeline(conn->sockets->host), data, size_bytes);
        trace_message(conn->sockets->host, conn->peer, message);
        send_packet(conn->sockets, conn->peer, &head, data, size_bytes);
        return 0;
}

void conn_destroy(struct conn *conn) {
        if (!conn || conn->closing)
                return;
        send_control(conn, SOCKET_END);
        LIST_REMOVE(conn, entry);
        conn_free(conn);
}

void conn_close(struct conn *conn) {
        conn_destroy(conn);
}

void conn_trust(struct conn *conn) {
        conn->trusted = true;
}

size_t conn_pending_bytes(const struct conn *conn) {
        return 0;
}

bool conn_gate_full(const struct conn_gate *gate, uint64_t now_usec) {
        return false;
}

const char *conn_name(const struct conn *conn) {
        return conn->name;
}

void conn_set_name(struct conn *conn, const char *name) {
        free(conn->name);
        conn->name = xstrdup(name);
}

int conn_fd(const struct conn *conn) {
        return -1;
}

/* ---- what comes ---- */

static void take_open(struct sockets *s, unsigned from, const struct packet *head) {
        struct conn *conn = find(s, from, head->id, false);

        if (conn)
                return; /* it came twice */
        if (!s->listener) {
                refuse(s, from, head);
                return;
        }
        s->accepting = from;
        s->accepting_id = head->id;
        s->listener->on_accept(s->listener->userdata, -1, "a host");
        conn = find(s, from, head->id, false);
        if (!conn)
                return;
        conn->stands = true;
        send_control(conn, SOCKET_ACCEPTED);
        conn->ops.on_ready(conn, conn->userdata);
}

static void take_message(struct conn *conn, const uint8_t *data, size_t size_bytes) {
        ProtobufCMessage *message = protobuf_c_message_unpack(conn->type, NULL, size_bytes, data);

        if (!message)
                abort();
        conn->ops.on_message(conn, message, conn->userdata);
        protobuf_c_message_free_unpacked(message, NULL);
}

/* Takes a packet in its turn. It may end the connection. */
static void take(struct conn *conn, const struct packet *head, const uint8_t *data, size_t size_bytes) {
        conn->received++;
        if (head->type == SOCKET_END)
                over(conn, 0, "closed by the other end");
        else
                take_message(conn, data, size_bytes);
}

static struct early *next_early(const struct conn *conn) {
        struct early *early;

        LIST_FOREACH (early, &conn->early, entry)
                if (early->head.number == conn->received)
                        return early;
        return NULL;
}

static void keep_early(struct conn *conn, const struct packet *head, const uint8_t *data, size_t size_bytes) {
        struct early *early = xcalloc(1, sizeof(*early) + size_bytes);

        early->head = *head;
        early->size_bytes = size_bytes;
        memcpy(early->data, data, size_bytes);
        LIST_INSERT_HEAD(&conn->early, early, entry);
}

static void take_numbered(struct sockets *s, unsigned from, const struct packet *head, const uint8_t *data, size_t size_bytes) {
        struct conn *conn = find(s, from, head->id, head->to_dialler);
        struct early *early;

        if (head->number > conn->received)
                keep_early(conn, head, data, size_bytes);
        if (head->number != conn->received)
                return;
        take(conn, head, data, size_bytes);
        while ((conn = find(s, from, head->id, head->to_dialler)) && (early = next_early(conn))) {
                LIST_REMOVE(early, entry);
                take(conn, &early->head, early->data, early->size_bytes);
                free(early);
        }
}

/* The connection stands; packets behind the message that says so may have overtaken it. */
static void begin(struct conn *conn) {
        if (conn->stands)
                return;
        conn->stands = true;
        conn->ops.on_ready(conn, conn->userdata);
}

void sockets_packet(struct host *host, unsigned from, const void *data, size_t size_bytes) {
        struct sockets *s = host_part(host, HOST_SOCKETS);
        struct packet head;
        struct conn *conn;

        memcpy(&head, data, sizeof(head));
        if (head.type == SOCKET_OPEN) {
                take_open(s, from, &head);
                return;
        }
        conn = find(s, from, head.id, head.to_dialler);
        if (!conn) {
                refuse(s, from, &head);
        } else if (head.type == SOCKET_RESET) {
                over(conn, -ECONNRESET, "reset by the other end");
        } else {
                begin(conn);
                if (head.type != SOCKET_ACCEPTED && find(s, from, head.id, head.to_dialler))
                        take_numbered(s, from, &head, (const uint8_t *) data + sizeof(head), size_bytes - sizeof(head));
        }
}

/* ---- listening; who may ---- */

int listener_create_tcp(struct event_base *base, const char *address, uint16_t port, listener_accept_fn on_accept, void *userdata,
                        struct listener **ret, struct rm_error *err) {
        struct sockets *s = current_sockets();

        s->listener = xcalloc(1, sizeof(*s->listener));
        *s->listener = (struct listener) { on_accept, userdata };
        *ret = s->listener;
        return 0;
}

void listener_set_ready(struct listener *listener, listener_ready_fn ready) {
}

uint16_t listener_port(const struct listener *listener) {
        return SOCKETS_PORT;
}

void listener_destroy(struct listener *listener) {
        free(listener);
        current_sockets()->listener = NULL;
}

SSL *tls_session(struct tls *tls, bool server) {
        static char session; /* only asked whether it is there */

        return (SSL *) (void *) &session;
}

/* ---- the process ---- */

void sockets_begin(struct host *host) {
        struct sockets *s = xcalloc(1, sizeof(*s));

        s->host = host;
        LIST_INIT(&s->conns);
        host_set_part(host, HOST_SOCKETS, s);
}

void sockets_reset(struct host *host) {
        const struct sockets *s = host_part(host, HOST_SOCKETS);
        const struct conn *conn;

        LIST_FOREACH (conn, &s->conns, entry) {
                struct packet head = { .type = SOCKET_RESET, .to_dialler = !conn->dialled, .id = conn->id };

                network_send(host_part(host, HOST_NETWORK), host_number(host), conn->peer, &head, sizeof(head));
        }
}

void sockets_end(struct host *host) {
        struct sockets *s = host_part(host, HOST_SOCKETS);
        struct conn *conn;

        while ((conn = LIST_FIRST(&s->conns))) {
                LIST_REMOVE(conn, entry);
                conn_free(conn);
        }
        host_set_part(host, HOST_SOCKETS, NULL);
        free(s);
}
