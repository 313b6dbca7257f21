/* How two nodes get to know each other:
 *   the one that dialled      HELLO ------------->   checks; refuses, or
 *   checks; closes, or        <------------ HELLO    (reply)
 *                             HEARTBEAT --------->   the connection stands
 * The last step is the dialling side's word that it holds no other connection to this node: so a
 * connection that the accepting side still holds has ended over there, unless both are dialling at
 * this moment; then the lower name's attempt wins. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "common/util.h"
#include "daemon/peers/peer_message.h"
#include "daemon/peers/peers_internal.h"
#include "daemon/state/state.h"

static void send_refuse(struct link *link, int code, const char *text) {
        const struct link *leader = demand_leader(link->peers);
        Rm__PeerRefuse refuse = RM__PEER_REFUSE__INIT;

        refuse.code = -code;
        refuse.text = (char *) text;
        refuse.leader = leader ? leader->peer->node : NULL;
        (void) link_send(link, &PEER_MESSAGE(&refuse));
}

/* Say why, and close. */
static void refuse(struct link *link, int code, const char *text) {
        send_refuse(link, code, text);
        if (code == -EBUSY || code == -ELOOP)
                log_debug("%s: not needed: %s", conn_name(link->conn), text);
        else
                log_warn("%s: refused: %s", conn_name(link->conn), text);
        if (link->dialled)
                dial_failed(link, -EACCES, text);
        link_free(link, true);
}

static void say(struct link *link, bool reply) {
        struct peers *peers = link->peers;
        Rm__PeerHello hello = RM__PEER_HELLO__INIT;

        hello.version = PEERS_VERSION;
        hello.cluster = peers->cluster;
        hello.node = peers->self->name;
        hello.boot_id = peers->self->boot_id;
        hello.self = peers->self;
        hello.instance = peers->instance;
        hello.log = peers->log_id;
        hello.leader = peers->leading;
        hello.term = peers->leading_term;
        hello.reply = reply;
        (void) link_send(link, &PEER_MESSAGE(&hello));
}

/* ---- may this node have the name that it gives? ---- */

static int check_self(const struct link *link, const Rm__PeerHello *hello, struct rm_error *err) {
        const struct peers *peers = link->peers;

        if (strcmp(hello->node, peers->self->name) != 0)
                return 0;
        if (hello->instance == peers->instance)
                return error_set(err, -ELOOP, "this is node %s itself", hello->node);
        return error_set(err, -EEXIST, "two nodes are named '%s': one at %s:%u and one at %s:%u; give one another name",
                         hello->node, peers->self->address, peers->self->port, hello->self->address, hello->self->port);
}

/* Whether the one we know is alive elsewhere, only the leader can tell: it is to accept this one
 * first. */
static int check_unconnected(const struct peers *peers, const struct peer *peer, const Rm__PeerHello *hello, struct rm_error *err) {
        char known[INET_ADDRSTRLEN] = "?";

        (void) inet_ntop(AF_INET, &peer->address, known, sizeof(known));
        if (peers->leading || !demand_leader(peers) || peer->port == 0 ||
            (peer->port == hello->self->port && strcmp(known, hello->self->address) == 0))
                return 0;
        return error_set(err, -EEXIST, "node %s is at %s:%u and not at %s:%u, as far as is known here", hello->node, known,
                         (unsigned) peer->port, hello->self->address, hello->self->port);
}

/* A node that comes back is welcome from wherever it comes, but not while the one we know is alive
 * elsewhere. */
static int check_known(const struct link *link, const Rm__PeerHello *hello, struct rm_error *err) {
        const struct peers *peers = link->peers;
        const struct peer *peer = peer_find(peers, hello->node);
        const Rm__Node *known = peer && peer->link ? peer->link->node : NULL;

        if (!known)
                return peer ? check_unconnected(peers, peer, hello, err) : 0;
        if (peer->link->instance == hello->instance)
                return 0;
        if (known->port == hello->self->port && strcmp(known->address, hello->self->address) == 0)
                return 0;
        return error_set(err, -EEXIST, "two nodes are named '%s': one at %s:%u and one at %s:%u; give one another name",
                         hello->node, known->address, known->port, hello->self->address, hello->self->port);
}

static int check_hello(const struct link *link, const Rm__PeerHello *hello, struct rm_error *err) {
        const struct peers *peers = link->peers;
        int r;

        if (hello->version != PEERS_VERSION)
                return error_set(err, -EPROTO, "has version %u of the peer protocol, this node has %u", hello->version,
                                 PEERS_VERSION);
        if (strcmp(hello->cluster, peers->cluster) != 0)
                return error_set(err, -EXDEV, "belongs to cluster '%s', this node to '%s'", hello->cluster, peers->cluster);
        if (!hello->self || !name_valid(hello->node) || strcmp(hello->self->name, hello->node) != 0)
                return error_set(err, -EINVAL, "sent no node name");
        r = check_self(link, hello, err);
        if (r == 0)
                r = check_known(link, hello, err);
        if (r == 0 && hello->leader && peers->leading)
                return error_set(err, -EEXIST,
                                 "nodes '%s' and '%s' have each begun a cluster: on the one that is to join, stop rmd, move its "
                                 "[cluster] state_dir away, set peers instead of bootstrap, and start it",
                                 hello->node, peers->self->name);
        return r;
}

/* ---- the connection stands ---- */

static void set_name(struct link *link) {
        cleanup_free char *name = xasprintf("peer %s (%s:%u)", link->node->name, link->node->address, link->node->port);

        conn_set_name(link->conn, name);
}

static void take_description(struct peer *peer, const Rm__Node *node) {
        if (peer->node)
                rm__node__free_unpacked(peer->node, NULL);
        peer->node = (Rm__Node *) message_copy(&node->base);
        (void) peer_set_address(peer, node);
}

static void establish(struct link *link) {
        struct peers *peers = link->peers;
        struct peer *peer = link->peer;
        unsigned silence_msec = (unsigned) (peers->timeout_usec / 1000U);
        struct link *old = peer->link;
        bool lost = old && !old->closing;

        link->stage = LINK_UP;
        conn_trust(link->conn);
        (void) setsockopt(conn_fd(link->conn), IPPROTO_TCP, TCP_USER_TIMEOUT, &silence_msec, sizeof(silence_msec));
        set_name(link);
        if (peer->dialling && peer->dialling != link)
                link_free(peer->dialling, false);
        peer->dialling = NULL;
        if (peer->accepted == link)
                peer->accepted = NULL;
        if (link->seed) {
                link->seed->dialling = NULL;
                link->seed->failures = 0;
                link->seed = NULL;
        }
        peer->link = link;
        peer->forgotten = false;
        peer->failures = 0;
        peer->received_usec = link->received_usec = link->up_usec = now_usec();
        take_description(peer, link->node);
        if (old)
                link_free(old, false);
        log_info("node %s is connected (%s:%u)", peer->name, link->node->address, link->node->port);
        if (lost && peers->ops.on_peer)
                peers->ops.on_peer(peers->userdata, peer->name, false);
        if (peer->link != link)
                return;
        demand_use(peers, peer);
        if (link->leading)
                demand_leader_found(link);
        else
                demand_report_leader(link);
        demand_flush(peer);
        if (peers->ops.on_peer)
                peers->ops.on_peer(peers->userdata, peer->name, true);
        if (peer->link == link && peers->ops.on_leading)
                peers->ops.on_leading(peers->userdata, peer->name, link->leading);
        if (peer->link == link && peers->leading)
                link_send_heartbeat(link, false); /* its answer renews the lease */
}

/* ---- the steps ---- */

static void take_hello(struct link *link, const Rm__PeerHello *hello) {
        if (link->node)
                rm__node__free_unpacked(link->node, NULL);
        link->node = (Rm__Node *) message_copy(&hello->self->base);
        link->instance = hello->instance;
        link->log_id = hello->log;
        link_set_leading(link, hello->leader, hello->term);
}

static bool alive(const struct link *link) {
        return link && now_usec() - link->received_usec < link->peers->timeout_usec / 2;
}

/* A hello from a node that has dialled us. */
static void accepted_hello(struct link *link, const Rm__PeerHello *hello) {
        struct peers *peers = link->peers;
        struct rm_error err = { 0 };
        struct peer *peer;

        if (check_hello(link, hello, &err) < 0) {
                refuse(link, err.code, err.text);
                return;
        }
        peer = peer_get(peers, hello->node);
        if (peer->dialling && now_usec() - peer->dialling->begin_usec < PEERS_CROSS_USEC &&
            strcmp(peers->self->name, peer->name) < 0) {
                refuse(link, -EBUSY, "this node is connecting too and has the lower name");
                return;
        }
        if (peer->dialling)
                link_free(take_ptr(peer->dialling), false);
        take_hello(link, hello);
        link->peer = peer;
        peer->accepted = link;
        set_name(link);
        say(link, true);
        link->stage = LINK_CONFIRM;
}

/* The heartbeat of a node that has dialled us confirms the connection. */
static void accepted_confirm(struct link *link) {
        const struct link *standing = link->peer->link;

        if (standing && standing->dialled && standing->instance == link->instance && alive(standing) && !standing->closing &&
            strcmp(link->peers->self->name, link->peer->name) < 0) {
                refuse(link, -EBUSY, "already connected");
                return;
        }
        establish(link);
}

/* The reply of one whom we have dialled. */
static void dialled_hello(struct link *link, const Rm__PeerHello *hello) {
        struct rm_error err = { 0 };
        struct peer *peer;

        if (check_hello(link, hello, &err) < 0) {
                refuse(link, err.code, err.text);
                return;
        }
        peer = peer_get(link->peers, hello->node);
        if (link->seed) {
                free(link->seed->name);
                link->seed->name = xstrdup(peer->name);
                free(take_ptr(link->seed->why));
        }
        if (link->peer && link->peer != peer) {
                /* Another node lives at the address now. */
                link->peer->dialling = NULL;
                link->peer->port = 0;
                demand_failed(link->peers, link->peer);
        }
        link->peer = peer;
        if (peer->link && peer->link->instance == hello->instance) {
                if (peer->dialling == link)
                        peer->dialling = NULL;
                link_free(link, false);
                return;
        }
        take_hello(link, hello);
        link_send_heartbeat(link, false);
        establish(link);
}

static void dialled_refused(struct link *link, const Rm__PeerRefuse *in) {
        demand_leader_hint(link->peers, in->leader);
        if (in->code == EBUSY) {
                link_over(link, 0, in->text);
                return;
        }
        if (in->code == ELOOP && link->seed)
                link->seed->self = true;
        else
                log_warn("%s refuses us: %s", conn_name(link->conn), in->text);
        link_over(link, -EACCES, in->text);
}

void hello_begin(struct link *link) {
        link->stage = LINK_HELLO;
        if (link->dialled)
                say(link, false);
}

void hello_message(struct link *link, Rm__PeerMessage *message) {
        bool hello = message->body_case == RM__PEER_MESSAGE__BODY_HELLO;

        if (link->stage == LINK_HELLO && hello && message->hello->reply == link->dialled) {
                if (link->dialled)
                        dialled_hello(link, message->hello);
                else
                        accepted_hello(link, message->hello);
        } else if (message->body_case == RM__PEER_MESSAGE__BODY_REFUSE) {
                if (link->dialled)
                        dialled_refused(link, message->refuse);
                else
                        link_over(link, -EACCES, message->refuse->text);
        } else if (link->stage == LINK_CONFIRM && message->body_case == RM__PEER_MESSAGE__BODY_HEARTBEAT) {
                accepted_confirm(link);
        } else {
                log_warn("%s: message %d before it has said who it is; connection closed", conn_name(link->conn),
                         (int) message->body_case);
                link_over(link, -EPROTO, "spoke out of turn");
        }
}
