#include "daemon/peers/peers.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "common/frame.h"
#include "common/log.h"
#include "common/timer.h"
#include "common/util.h"
#include "daemon/peers/peer_message.h"
#include "daemon/peers/peers_internal.h"
#include "daemon/state/state.h"

/* Heartbeats go from the leader to all every heartbeat_usec, and are answered at once: so all that
 * a quiet follower wakes up for comes together. Two nodes neither of which leads need each other
 * less often. */
#define QUIET_BEATS 3U
#define CATCH_UP_USEC UINT64_C(20000)

struct peer *peer_find(const struct peers *peers, const char *name) {
        struct peer *peer;

        HASH_FIND_STR(peers->by_name, name, peer);
        return peer;
}

struct peer *peer_get(struct peers *peers, const char *name) {
        struct peer *peer = peer_find(peers, name);

        if (peer)
                return peer;
        peer = xcalloc(1, sizeof(*peer));
        peer->name = xstrdup(name);
        STAILQ_INIT(&peer->posted);
        LIST_INSERT_HEAD(&peers->peer_list, peer, entry);
        HASH_ADD_KEYPTR(hh, peers->by_name, peer->name, strlen(peer->name), peer);
        return peer;
}

bool peer_set_address(struct peer *peer, const Rm__Node *node) {
        struct in_addr address;

        if (node->port == 0 || node->port > UINT16_MAX || inet_pton(AF_INET, node->address, &address) != 1)
                return false;
        if (peer->port == node->port && peer->address.s_addr == address.s_addr)
                return false;
        peer->port = (uint16_t) node->port;
        peer->address = address;
        return true;
}

/* ---- links ---- */

struct link *link_new(struct peers *peers, bool dialled) {
        struct link *link = xcalloc(1, sizeof(*link));

        link->peers = peers;
        link->dialled = dialled;
        link->begin_usec = now_usec();
        LIST_INSERT_HEAD(&peers->links, link, entry);
        return link;
}

void link_free(struct link *link, bool flush) {
        if (link->peer && link->peer->link == link)
                link->peer->link = NULL;
        if (link->peer && link->peer->dialling == link)
                link->peer->dialling = NULL;
        if (link->peer && link->peer->accepted == link)
                link->peer->accepted = NULL;
        if (link->seed && link->seed->dialling == link)
                link->seed->dialling = NULL;
        if (flush)
                conn_close(link->conn);
        else
                conn_destroy(link->conn);
        if (link->node)
                rm__node__free_unpacked(link->node, NULL);
        LIST_REMOVE(link, entry);
        free(link);
}

void link_over(struct link *link, int code, const char *reason) {
        struct peers *peers = link->peers;
        struct peer *peer = link->peer;

        if (link->stage == LINK_UP && link->closing) {
                link_free(link, false);
                peers_wake(peers);
                return;
        }
        if (link->stage == LINK_UP) {
                log_info("node %s: connection lost: %s", peer->name, reason);
                if (link->leading)
                        demand_leader_lost(peers);
                dial_lost(peers, peer, now_usec() - link->up_usec);
                link_free(link, false);
                if (peers->ops.on_peer)
                        peers->ops.on_peer(peers->userdata, peer->name, false);
                return;
        }
        if (link->dialled) {
                log_debug("%s: %s", link->conn ? conn_name(link->conn) : "peer", reason);
                dial_failed(link, code, reason);
        }
        link_free(link, false);
}

int link_send(struct link *link, const Rm__PeerMessage *message) {
        return conn_send(link->conn, &message->base);
}

/* The lease that this node gives to others. */
struct given {
        uint64_t end_usec; /* 0: it gives none */
        uint64_t index;
};

static struct given given_now(const struct peers *peers) {
        struct given given = { 0 };

        if (peers->leading && peers->ops.get_lease_end)
                given.end_usec = peers->ops.get_lease_end(peers->userdata, &given.index);
        return given;
}

static void fill_leader(const struct link *link, const struct given *given, Rm__Heartbeat *heartbeat) {
        const struct peers *peers = link->peers;
        uint64_t now = now_boot_usec();

        heartbeat->leader_usec = now;
        heartbeat->got_usec = link->got_usec;
        if (given->end_usec <= now || !link->peer || !peers->ops.may_hold_lease(peers->userdata, link->peer->name))
                return;
        heartbeat->lease_usec = given->end_usec - now;
        heartbeat->lease_index = given->index;
}

static void fill_other(const struct link *link, Rm__Heartbeat *heartbeat) {
        const struct peers *peers = link->peers;

        heartbeat->sent_usec = now_boot_usec();
        if (link->leading && link->peer && peers->ops.confirms &&
            peers->ops.confirms(peers->userdata, link->peer->name, link->leading_term)) {
                heartbeat->echo_usec = link->leader_usec;
                heartbeat->echo_term = link->leading_term;
        }
}

static void send_heartbeat(struct link *link, bool reply, const struct given *given) {
        Rm__Heartbeat heartbeat = RM__HEARTBEAT__INIT;

        heartbeat.sequence = link->peers->beats;
        heartbeat.leader = link->peers->leading;
        heartbeat.term = link->peers->leading_term;
        heartbeat.reply = reply;
        if (heartbeat.leader)
                fill_leader(link, given, &heartbeat);
        else
                fill_other(link, &heartbeat);
        (void) link_send(link, &PEER_MESSAGE(&heartbeat));
}

void link_send_heartbeat(struct link *link, bool reply) {
        struct given given = given_now(link->peers);

        send_heartbeat(link, reply, &given);
}

/* A node leads only with the term in which it was elected. */
void link_set_leading(struct link *link, bool leading, uint64_t term) {
        link->leading = leading && term > 0;
        link->leading_term = link->leading ? term : 0;
}

/* ---- what arrives ---- */

/* The first is confirmed at once: a node that is back may have capsules that are frozen for want of
 * a lease. */
static void confirm(struct link *link, uint64_t sent_usec) {
        bool first = link->got_usec == 0;

        if (sent_usec > link->got_usec)
                link->got_usec = sent_usec;
        if (first && link->got_usec > 0)
                link_send_heartbeat(link, false);
}

static void up_heartbeat(struct link *link, const Rm__Heartbeat *heartbeat) {
        struct peers *peers = link->peers;
        const struct peer *peer = link->peer;
        bool news = heartbeat->leader && !link->leading;

        if (peers->leading)
                confirm(link, heartbeat->sent_usec);
        if (peers->leading && heartbeat->echo_usec > 0 && heartbeat->echo_term == peers->leading_term && peers->ops.on_confirmed)
                peers->ops.on_confirmed(peers->userdata, peer->name, heartbeat->echo_usec);
        link_set_leading(link, heartbeat->leader, heartbeat->term);
        link->leader_usec = heartbeat->leader_usec;
        if (link->leading && !heartbeat->reply)
                link_send_heartbeat(link, true);
        if (news)
                demand_leader_found(link);
        if (peers->ops.on_leading)
                peers->ops.on_leading(peers->userdata, peer->name, link->leading);
        if (heartbeat->leader && heartbeat->got_usec > 0 && heartbeat->got_usec <= now_boot_usec() && peers->ops.on_lease)
                peers->ops.on_lease(peers->userdata, peer->name, heartbeat->got_usec, heartbeat->lease_usec,
                                    heartbeat->lease_index);
}

static void up_message(struct link *link, Rm__PeerMessage *message) {
        struct peers *peers = link->peers;
        struct peer *peer = link->peer;

        peer->received_usec = link->received_usec;
        switch (message->body_case) {
        case RM__PEER_MESSAGE__BODY_HELLO:
                link_over(link, -EPROTO, "it describes itself a second time");
                break;
        case RM__PEER_MESSAGE__BODY_HEARTBEAT:
                up_heartbeat(link, message->heartbeat);
                break;
        case RM__PEER_MESSAGE__BODY_LEADER:
                demand_leader_hint(peers, message->leader->node);
                break;
        case RM__PEER_MESSAGE__BODY_IDLE:
                demand_idle(link, message->idle);
                break;
        case RM__PEER_MESSAGE__BODY_REFUSE:
                link_over(link, -ECONNRESET, message->refuse->text);
                break;
        case RM__PEER_MESSAGE__BODY__NOT_SET:
                log_debug("node %s sends a message that this version does not know", peer->name);
                break;
        default:
                demand_use(peers, peer);
                if (peers->ops.on_message)
                        peers->ops.on_message(peers->userdata, peer->name, message);
                break;
        }
}

static void on_ready(struct conn *conn, void *userdata) {
        (void) conn;
        hello_begin(userdata);
}

static void on_message(struct conn *conn, ProtobufCMessage *message, void *userdata) {
        struct link *link = userdata;

        (void) conn;
        link->received_usec = now_usec();
        if (link->stage == LINK_UP)
                up_message(link, (Rm__PeerMessage *) message);
        else
                hello_message(link, (Rm__PeerMessage *) message);
}

static void on_drained(struct conn *conn, void *userdata) {
        struct link *link = userdata;
        struct peers *peers = link->peers;

        (void) conn;
        if (link->stage == LINK_UP && peers->ops.on_drained)
                peers->ops.on_drained(peers->userdata, link->peer->name);
}

static void on_close(struct conn *conn, int code, const char *reason, void *userdata) {
        struct link *link = userdata;

        (void) conn;
        link_over(link, code, reason);
}

const struct conn_ops *link_conn_ops(void) {
        static const struct conn_ops ops = {
                .on_ready = on_ready, .on_message = on_message, .on_drained = on_drained, .on_close = on_close
        };

        return &ops;
}

static void on_accept(void *userdata, int fd, const char *name) {
        struct peers *peers = userdata;
        cleanup_free char *label = xasprintf("peer at %s", name);
        struct conn_config config = {
                .magic = FRAME_MAGIC_PEER,
                .max_bytes = FRAME_MAX_PEER_BYTES,
                .type = &rm__peer_message__descriptor,
                .ssl = tls_session(peers->tls, true),
                .name = label,
                .trust_usec = PEERS_ACCEPT_USEC,
                .gate = &peers->gate,
                .log = &peers->strangers,
        };
        struct link *link = link_new(peers, false);

        if (!config.ssl)
                abort();
        if (conn_create(peers->base, fd, &config, link_conn_ops(), link, &link->conn) < 0)
                link_free(link, false);
}

/* A thousand nodes come at once when one begins to lead: they get in one after the other. */
static bool has_space(void *userdata) {
        const struct peers *peers = userdata;

        return !conn_gate_full(&peers->gate, now_usec());
}

/* ---- time ---- */

static void give_up_if_silent(struct peer *peer, uint64_t now, uint64_t most_usec) {
        char reason[64];

        if (!peer->link || now - peer->link->received_usec <= most_usec)
                return;
        (void) snprintf(reason, sizeof(reason), "silent for %.1f s", (double) (now - peer->link->received_usec) / 1e6);
        link_over(peer->link, -ETIMEDOUT, reason);
}

static void give_up_silent(struct peers *peers, uint64_t now) {
        struct peer *peer;

        LIST_FOREACH (peer, &peers->peer_list, entry)
                give_up_if_silent(peer, now, peers->timeout_usec);
}

/* When the leader is to take the next node for lost, if nothing comes from it. */
static uint64_t next_silent(const struct peers *peers) {
        const struct peer *peer;
        uint64_t next = UINT64_MAX;

        LIST_FOREACH (peer, &peers->peer_list, entry)
                if (peers->leading && peer->link && peer->link->received_usec + peers->timeout_usec < next)
                        next = peer->link->received_usec + peers->timeout_usec;
        return next;
}

static uint64_t heartbeat_usec(const struct peers *peers) {
        uint64_t quiet_usec = QUIET_BEATS * peers->heartbeat_usec;
        /* The other side must not take us for lost meanwhile, nor when one is a little late. */
        uint64_t most_usec = peers->timeout_usec > 2 * peers->heartbeat_usec ? peers->timeout_usec - peers->heartbeat_usec
                                                                             : peers->heartbeat_usec;

        if (peers->leading)
                return peers->heartbeat_usec;
        return quiet_usec < most_usec ? quiet_usec : most_usec;
}

/* Leases end at the same time for all. */
static void send_heartbeats(struct peers *peers) {
        struct given given = given_now(peers);
        struct peer *peer;

        peers->beats++;
        LIST_FOREACH (peer, &peers->peer_list, entry)
                if (peer->link && (peers->leading || !peer->link->leading) && !peer->link->closing)
                        send_heartbeat(peer->link, false, &given);
}

/* When the next one is due. */
static uint64_t heartbeat(struct peers *peers, uint64_t now) {
        bool late = now > peers->next_heartbeat_usec + heartbeat_usec(peers);

        /* We were held up ourselves: what others have sent meanwhile is to be read before they are
         * called silent. */
        if (late && !peers->catching_up) {
                peers->catching_up = true;
                send_heartbeats(peers);
                return now + CATCH_UP_USEC;
        }
        if (!peers->catching_up)
                send_heartbeats(peers);
        peers->catching_up = false;
        give_up_silent(peers, now_usec());
        if (peers->ops.on_heartbeat)
                peers->ops.on_heartbeat(peers->userdata);
        demand_close_idle(peers, now_usec());
        return now + heartbeat_usec(peers);
}

static void on_timer(evutil_socket_t fd, short what, void *userdata) {
        struct peers *peers = userdata;
        uint64_t now = now_usec();
        uint64_t silent = next_silent(peers);
        uint64_t next;

        /* Jobs wait for it. Where this timer is late, beat() sees to it that what has come
         * meanwhile is read before. */
        if (now < peers->next_heartbeat_usec && now > silent && now - silent < CATCH_UP_USEC)
                give_up_silent(peers, now);
        if (now >= peers->next_heartbeat_usec)
                peers->next_heartbeat_usec = heartbeat(peers, now);
        demand_report(peers, now);
        demand_ask(peers, now);
        dial_due(peers, now);
        next = dial_next(peers);
        if (next > demand_next_ask(peers))
                next = demand_next_ask(peers);
        if (next > peers->next_heartbeat_usec)
                next = peers->next_heartbeat_usec;
        now = now_usec();
        silent = next_silent(peers);
        if (silent >= now && silent < next)
                next = silent + 1;
        timer_arm(peers->timer, next > now ? next - now : 0);
}

void peers_wake(struct peers *peers) {
        if (!peers->destroying)
                event_active(peers->timer, EV_TIMEOUT, 0);
}

/* ---- create and destroy ---- */

static int peers_listen(struct peers *peers, const char *address, struct rm_error *err) {
        int r;

        if (peers->self->port > UINT16_MAX)
                return error_set(err, -EINVAL, "port %u is invalid", peers->self->port);
        r = listener_create_tcp(peers->base, address ? address : "0.0.0.0", (uint16_t) peers->self->port, on_accept, peers,
                                &peers->listener, err);
        if (r < 0)
                return error_prefix(err, "peers");
        listener_set_ready(peers->listener, has_space);
        peers->self->port = listener_port(peers->listener);
        return 0;
}

int peers_create(struct event_base *base, const struct peers_config *config, const struct peers_ops *ops, void *userdata,
                 struct peers **ret, struct rm_error *err) {
        struct peers *peers = xcalloc(1, sizeof(*peers));
        int r;

        LIST_INIT(&peers->links);
        LIST_INIT(&peers->peer_list);
        LIST_INIT(&peers->seeds);
        peers->base = base;
        peers->ops = *ops;
        peers->userdata = userdata;
        peers->tls = config->tls;
        peers->cluster = xstrdup(config->cluster);
        peers->self = (Rm__Node *) message_copy(&config->self->base);
        peers->heartbeat_usec = config->heartbeat_usec;
        peers->timeout_usec = config->timeout_usec;
        peers->idle_usec = config->idle_usec;
        peers->leading = config->leading_term > 0;
        peers->leading_term = config->leading_term;
        TAILQ_INIT(&peers->gate.conns);
        peers->gate.waiting_max = PEERS_WAITING_MAX;
        peers->gate.patience_usec = PEERS_PATIENCE_USEC;
        if (getrandom(&peers->instance, sizeof(peers->instance), 0) != (ssize_t) sizeof(peers->instance))
                peers->instance = now_real_usec();
        peers->next_heartbeat_usec = now_usec() + heartbeat_usec(peers);
        peers->timer = evtimer_new(base, on_timer, peers);
        if (!peers->timer)
                abort();
        demand_leader_lost(peers);
        r = peers_listen(peers, config->listen_address, err);
        for (size_t i = 0; r == 0 && i < config->n_seeds; i++)
                r = dial_add_seed(peers, config->seeds[i], err);
        if (r < 0) {
                peers_destroy(peers);
                return r;
        }
        peers_wake(peers);
        *ret = peers;
        return 0;
}

void peers_destroy(struct peers *peers) {
        struct peer *peer;

        if (!peers)
                return;
        peers->destroying = true;
        listener_destroy(peers->listener);
        while (!LIST_EMPTY(&peers->links))
                link_free(LIST_FIRST(&peers->links), false);
        while (!LIST_EMPTY(&peers->seeds))
                dial_free_seed(LIST_FIRST(&peers->seeds));
        HASH_CLEAR(hh, peers->by_name);
        while ((peer = LIST_FIRST(&peers->peer_list))) {
                LIST_REMOVE(peer, entry);
                demand_drop(peer);
                if (peer->node)
                        rm__node__free_unpacked(peer->node, NULL);
                free(peer->name);
                free(peer);
        }
        if (peers->dns)
                evdns_base_free(peers->dns, 0);
        event_free(peers->timer);
        rm__node__free_unpacked(peers->self, NULL);
        free(peers->cluster);
        free(peers);
}

uint32_t peers_port(const struct peers *peers) {
        return listener_port(peers->listener);
}

void peers_learn(struct peers *peers, const Rm__Node *node) {
        struct peer *peer;

        if (!name_valid(node->name) || strcmp(node->name, peers->self->name) == 0)
                return;
        peer = peer_get(peers, node->name);
        peer->forgotten = false;
        if (!peer->link && peer_set_address(peer, node))
                dial_soon(peers, peer); /* if it is needed */
}

void peers_forget(struct peers *peers, const char *name) {
        struct peer *peer = peer_find(peers, name);

        if (peer)
                peer->forgotten = true;
}

bool peers_forgotten(const struct peers *peers, const char *name) {
        const struct peer *peer = peer_find(peers, name);

        return peer && peer->forgotten;
}

int peers_send(struct peers *peers, const char *name, const Rm__PeerMessage *message) {
        struct peer *peer = peer_find(peers, name);

        if (!peer || !peer->link)
                return -ENOTCONN;
        demand_use(peers, peer);
        return link_send(peer->link, message);
}

size_t peers_pending_bytes(const struct peers *peers, const char *name) {
        const struct peer *peer = peer_find(peers, name);

        return peer ? peer->posted_bytes + (peer->link ? conn_pending_bytes(peer->link->conn) : 0) : 0;
}

bool peers_connected(const struct peers *peers, const char *name) {
        const struct peer *peer = peer_find(peers, name);

        return peer && peer->link;
}

void peers_reset(struct peers *peers, const char *name, const char *why) {
        struct peer *peer = peer_find(peers, name);

        if (peer && peer->link)
                link_over(peer->link, -ECONNRESET, why);
}

void peers_suspect(struct peers *peers, const char *name) {
        struct peer *peer = peer_find(peers, name);

        if (peer)
                give_up_if_silent(peer, now_usec(), peers->timeout_usec / 2);
}

const Rm__Node *peers_node(const struct peers *peers, const char *name) {
        const struct peer *peer = peer_find(peers, name);

        return peer ? peer->node : NULL;
}

uint64_t peers_leading_term(const struct peers *peers, const char *name) {
        const struct peer *peer = peer_find(peers, name);

        return peer && peer->link ? peer->link->leading_term : 0;
}

uint64_t peers_log_id(const struct peers *peers, const char *name) {
        const struct peer *peer = peer_find(peers, name);

        return peer && peer->link ? peer->link->log_id : 0;
}

uint64_t peers_received_usec(const struct peers *peers, const char *name) {
        const struct peer *peer = peer_find(peers, name);

        return peer ? peer->received_usec : 0;
}

void peers_foreach(struct peers *peers, void (*visit)(void *userdata, const char *name), void *userdata) {
        struct peer *peer;

        /* Peers are never freed, new ones come in front. */
        LIST_FOREACH (peer, &peers->peer_list, entry)
                if (peer->link)
                        visit(userdata, peer->name);
}

const Rm__Node *peers_self(const struct peers *peers) {
        return peers->self;
}

void peers_heartbeat(struct peers *peers) {
        send_heartbeats(peers);
}

void peers_set_log(struct peers *peers, uint64_t log_id) {
        peers->log_id = log_id;
}

bool peers_know_log(const struct peers *peers) {
        const struct peer *peer;

        LIST_FOREACH (peer, &peers->peer_list, entry)
                if (peer->link && peer->link->log_id != 0)
                        return true;
        return false;
}

void peers_set_leading(struct peers *peers, uint64_t term) {
        struct peer *peer;

        if (peers->leading_term == term)
                return;
        peers->leading = term > 0;
        peers->leading_term = term;
        /* To the one whom they have followed until now, too. Nodes that were not reached a moment
         * ago do not know of it, and wait for the leader. */
        LIST_FOREACH (peer, &peers->peer_list, entry) {
                if (peer->link && !peer->link->closing)
                        link_send_heartbeat(peer->link, false);
                if (term > 0)
                        dial_again(peer);
        }
        demand_leader_lost(peers);
        peers->next_heartbeat_usec = now_usec() + heartbeat_usec(peers);
        peers_wake(peers);
}
