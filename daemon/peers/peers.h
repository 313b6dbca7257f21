/* TLS connections to other nodes, at most one to each: the leader has one to all, any two others
 * one while they need it. Knows the nodes' names; knows nothing of jobs, logs or states. */
#ifndef RM_PEERS_PEERS_H
#define RM_PEERS_PEERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <event2/event.h>

#include "common/error.h"
#include "daemon/wire/tls.h"
#include "proto/peer.pb-c.h"

struct peers;

struct peers_config {
        const char *cluster;
        const Rm__Node *self; /* port 0 = any free one */
        const char *listen_address;
        const char *const *seeds; /* "host:port" */
        size_t n_seeds;
        struct tls *tls;
        uint64_t heartbeat_usec;
        uint64_t timeout_usec; /* silence after which a connection is given up */
        uint64_t idle_usec;    /* a connection that was not used for so long is closed, unless one end leads */
        uint64_t leading_term; /* this node leads at first, elected in this term; 0: it does not */
};

/* All from the loop; none may call peers_destroy(). */
struct peers_ops {
        /* The node is connected; or its connection is lost, or cannot be made although something
         * was posted (which is dropped). The end of an idle connection is not reported: nothing was
         * on its way. */
        void (*on_peer)(void *userdata, const char *name, bool connected);
        /* Messages that are not the transport's own. Parts may be taken over as with conn. */
        void (*on_message)(void *userdata, const char *name, Rm__PeerMessage *message);
        /* After every heartbeat, and when a connection begins: does this peer say that it leads? */
        void (*on_leading)(void *userdata, const char *name, bool leading);
        /* This peer, which says that it leads, has given this node a lease of `lease_usec` from
         * `sent_usec` on (now_boot_usec(), when this node sent what the peer has answered), for
         * when this node's state has come to that index. */
        void (*on_lease)(void *userdata, const char *name, uint64_t sent_usec, uint64_t lease_usec, uint64_t index);
        /* Returns, while this node leads, until when (now_boot_usec()) the leases last that it
         * gives now, and from which index of the state on they may be used. */
        uint64_t (*get_lease_end)(void *userdata, uint64_t *ret_index);
        /* May this peer have one now? */
        bool (*may_hold_lease)(void *userdata, const char *name);
        /* Has this node, a voter, elected that peer in this term, and none since? */
        bool (*confirms)(void *userdata, const char *name, uint64_t term);
        /* A voter has confirmed that this node led in its term when it sent what it sent then
         * (now_boot_usec()). */
        void (*on_confirmed)(void *userdata, const char *name, uint64_t sent_boot_usec);
        /* The messages queued to the node have left, or nearly: more may be sent. */
        void (*on_drained)(void *userdata, const char *name);
        /* Once every heartbeat_usec when leading, less often otherwise. To call peers_keep() from,
         * too. */
        void (*on_heartbeat)(void *userdata);
};

int peers_create(struct event_base *base, const struct peers_config *config, const struct peers_ops *ops, void *userdata,
                 struct peers **ret, struct rm_error *err);
void peers_destroy(struct peers *peers); /* NULL ok */
uint32_t peers_port(const struct peers *peers);

/* There is, or was, such a node; the leader connects to it. Only name, address and port matter.
 * Connected ones know better. */
void peers_learn(struct peers *peers, const Rm__Node *node);
/* The node has left the cluster: it is not sought, and not looked at until it connects again. */
void peers_forget(struct peers *peers, const char *name);
bool peers_forgotten(const struct peers *peers, const char *name);
/* Over the connection that there is. -ENOTCONN, or as conn_send(). */
int peers_send(struct peers *peers, const char *name, const Rm__PeerMessage *message);
/* Like peers_send(), but where there is no connection, one is made and the message waits for it:
 * on_peer(false) tells when that fails. -ENOTCONN: it has just failed, or the node is unknown;
 * -ENOBUFS: too much waits. */
int peers_post(struct peers *peers, const char *name, const Rm__PeerMessage *message);
/* The connection to this node is not idle even if nothing is sent; a lost one is made again. Holds
 * for idle_usec. */
void peers_keep(struct peers *peers, const char *name);
/* The bytes queued to the node, with those that wait for a connection. */
size_t peers_pending_bytes(const struct peers *peers, const char *name);
bool peers_connected(const struct peers *peers, const char *name);
/* Give the connection up; it is made again. */
void peers_reset(struct peers *peers, const char *name, const char *why);
/* Other nodes have lost this node: gives the connection up if nothing came over it for half of the
 * time that counts as silence, too. If the node comes back, that connection would be of its
 * previous rmd, and messages sent over it would be lost. */
void peers_suspect(struct peers *peers, const char *name);
/* The description that the node sent when it connected last; NULL when it never did. */
const Rm__Node *peers_node(const struct peers *peers, const char *name);
/* The term in which this node says that it was elected; 0: it does not lead, or is not
 * connected. */
uint64_t peers_leading_term(const struct peers *peers, const char *name);
/* The log that it knew when it connected; 0: none, or it is not connected. */
uint64_t peers_log_id(const struct peers *peers, const char *name);
/* When it was last heard (monotonic); 0 = never. */
uint64_t peers_received_usec(const struct peers *peers, const char *name);
/* The nodes of the configuration to join through whose last attempt has failed, each with the
 * reason: "n1:7700: Connection refused; n2:7700: ...". NULL: none. `only_refused`: only those that
 * will not do without a person. The caller frees it. */
char *peers_seed_failures(const struct peers *peers, bool only_refused);
/* Every peer that is connected. Peers may come and go inside of the callback. */
void peers_foreach(struct peers *peers, void (*visit)(void *userdata, const char *name), void *userdata);
const Rm__Node *peers_self(const struct peers *peers);
/* Send heartbeats now: while leading, the leases that it gives have grown. */
void peers_heartbeat(struct peers *peers);
/* The log that this node knows, for nodes that want to begin a cluster; 0: none. */
void peers_set_log(struct peers *peers, uint64_t log_id);
/* Does one of the connected nodes know a log? */
bool peers_know_log(const struct peers *peers);
/* This node leads now, elected in this term, or (0) ceases to: the connected ones are told at once,
 * the others are connected if it leads. */
void peers_set_leading(struct peers *peers, uint64_t term);

#endif
