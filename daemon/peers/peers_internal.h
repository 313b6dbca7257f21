/* Between peers.c (connections and the nodes at their ends), hello.c (how two nodes get to know
 * each other), demand.c (which connections are needed) and dial.c (when to connect). */
#ifndef RM_PEERS_PEERS_INTERNAL_H
#define RM_PEERS_PEERS_INTERNAL_H

#include <netinet/in.h>
#include <sys/queue.h>

#include <event2/dns.h>
/* The usual one has fall-throughs that clang warns of. */
#define HASH_FUNCTION HASH_OAT
#include <uthash.h>

#include "daemon/peers/peers.h"
#include "daemon/wire/conn.h"
#include "daemon/wire/listener.h"

#define PEERS_VERSION 5U
#define PEERS_DIAL_USEC UINT64_C(3000000) /* a dialled connection has to stand by then, hello and all */
#define PEERS_CROSS_USEC                                                                                                           \
        UINT64_C(300000) /* one that is older does not cross the other side's, but waits for an answer that was lost */
#define PEERS_ACCEPT_USEC UINT64_C(5000000) /* and an accepted one by then */
#define PEERS_WAITING_MAX 256U /* accepted and not yet known, at once */
#define PEERS_PATIENCE_USEC UINT64_C(500000) /* many times what they need to become known */

enum link_stage {
        LINK_OPENING, /* TCP and TLS */
        LINK_HELLO, /* dialled: hello sent, its reply is awaited. Accepted: the hello is awaited */
        LINK_CONFIRM, /* accepted: replied, the other side's first heartbeat is awaited */
        LINK_UP,
};

/* A connection, from its first moment on. */
struct link {
        struct peers *peers;
        struct conn *conn;
        struct peer *peer; /* whom it leads to: as dialled, then as told; NULL = not known yet */
        struct seed *seed; /* dialled for */
        Rm__Node *node; /* as told in hello */
        uint64_t instance;
        uint64_t log_id; /* that it knows; 0: none */
        uint64_t begin_usec;
        uint64_t received_usec;
        uint64_t up_usec; /* when it came to stand */
        uint64_t leader_usec; /* the latest Heartbeat.leader_usec of the other end, while it leads */
        uint64_t got_usec; /* when leading: the latest Heartbeat.sent_usec, by the other end's clock; 0: none yet */
        enum link_stage stage;
        uint64_t leading_term; /* 0: not leading */
        bool dialled;
        bool leading;
        bool closing; /* we have said that we have no use for it: what is sent waits for the answer */
        LIST_ENTRY(link) entry;
};

/* A message to a node that is not connected yet. */
struct posted {
        Rm__PeerMessage *message;
        size_t size_bytes;
        STAILQ_ENTRY(posted) entry;
};

/* A node we know of. Never forgotten while we run: there are few. */
struct peer {
        char *name;
        struct in_addr address;
        uint16_t port; /* 0 = not known */
        Rm__Node *node;
        struct link *link; /* in stage UP */
        struct link *dialling; /* an attempt of ours */
        struct link *accepted; /* an attempt of its, in stage CONFIRM */
        uint64_t received_usec;
        uint64_t next_dial_usec;
        unsigned failures;
        unsigned flaps; /* connections in a row that were lost as soon as they stood */
        uint64_t needed_usec; /* until when a connection is needed, unless it is used again */
        uint64_t posted_usec; /* since when something is posted */
        size_t posted_bytes;
        bool led; /* it was the last one to lead, as far as we know */
        bool forgotten; /* has left the cluster */
        bool unreachable; /* what was posted cannot be sent: to be told from the loop */
        STAILQ_HEAD(, posted) posted;
        LIST_ENTRY(peer) entry;
        UT_hash_handle hh;
};

/* An address to join through, from the configuration. */
struct seed {
        struct peers *peers;
        char *host;
        uint16_t port;
        char *name; /* of the node that answered there last */
        struct link *dialling;
        struct evdns_getaddrinfo_request *resolving;
        uint64_t next_dial_usec;
        unsigned failures;
        char *why; /* the last attempt has failed; NULL: it has not */
        bool refused; /* likewise, by whoever answers there, or by this node */
        bool self; /* it is our own address */
        LIST_ENTRY(seed) entry;
};

struct peers {
        struct event_base *base;
        struct peers_ops ops;
        void *userdata;
        struct tls *tls;
        struct listener *listener;
        struct conn_gate gate;
        struct log_rate strangers; /* lines about strangers */
        struct event *timer;
        struct evdns_base *dns; /* only when a seed is a name */
        char *cluster;
        Rm__Node *self;
        uint64_t instance;
        uint64_t log_id;
        uint64_t heartbeat_usec;
        uint64_t timeout_usec;
        uint64_t idle_usec;
        uint64_t next_heartbeat_usec;
        uint64_t next_ask_usec; /* demand_ask() */
        unsigned asked; /* in a row */
        uint64_t beats;
        uint64_t leading_term; /* 0: not leading */
        bool leading;
        bool catching_up; /* a beat came late: it is seen to the end once all has been read */
        bool destroying;
        LIST_HEAD(, link) links;
        LIST_HEAD(, peer) peer_list;
        struct peer *by_name; /* the same, for peer_find() */
        LIST_HEAD(, seed) seeds;
};

/* peers.c */
struct peer *peer_find(const struct peers *peers, const char *name);
struct peer *peer_get(struct peers *peers, const char *name); /* made when not there */
bool peer_set_address(struct peer *peer, const Rm__Node *node); /* is it new? */
struct link *link_new(struct peers *peers, bool dialled);
/* Close and free, with the conn; calls no callback. `flush`: what was sent still leaves. */
void link_free(struct link *link, bool flush);
/* The connection is over: free the link, note the failure or tell of the loss, see that it is made
 * again. */
void link_over(struct link *link, int code, const char *reason);
int link_send(struct link *link, const Rm__PeerMessage *message);
void link_send_heartbeat(struct link *link, bool reply);
void link_set_leading(struct link *link, bool leading, uint64_t term); /* as its other end says */
const struct conn_ops *link_conn_ops(void);

/* demand.c */
/* Should there be a connection to it? */
bool demand_is(const struct peers *peers, const struct peer *peer, uint64_t now);
/* A message went over the connection, or is to go. */
void demand_use(struct peers *peers, struct peer *peer);
/* The connection is there: what was posted goes. */
void demand_flush(struct peer *peer);
/* An attempt to connect has failed. */
void demand_failed(struct peers *peers, struct peer *peer);
/* Report the nodes that could not be reached. */
void demand_report(struct peers *peers, uint64_t now);
void demand_drop(struct peer *peer); /* what was posted */
/* Ask the other end of each connection that is not needed to close it. */
void demand_close_idle(struct peers *peers, uint64_t now);
/* The other end asks or answers. May free the link. */
void demand_idle(struct link *link, const Rm__PeerIdle *idle);
/* The connection to the leader; NULL when there is none. */
struct link *demand_leader(const struct peers *peers);
/* A peer says of this node that it leads. */
void demand_leader_hint(struct peers *peers, const Rm__Node *node);
/* This connection leads to the leader: the connected nodes are told. */
void demand_leader_found(struct link *link);
/* Tell a node that has just connected, if there is anything to tell. */
void demand_report_leader(struct link *link);
/* There is no connection to the leader any more, or not yet. */
void demand_leader_lost(struct peers *peers);
/* No leader is known, and the nodes of the configuration do not help: asks the others, one after
 * the other. */
void demand_ask(struct peers *peers, uint64_t now);
uint64_t demand_next_ask(const struct peers *peers); /* UINT64_MAX = not needed */

/* hello.c: both may free the link. */
void hello_begin(struct link *link);
void hello_message(struct link *link, Rm__PeerMessage *message);

/* dial.c */
int dial_add_seed(struct peers *peers, const char *text, struct rm_error *err);
void dial_free_seed(struct seed *seed);
/* Connect to all whose time has come. */
void dial_due(struct peers *peers, uint64_t now);
/* When the next one is due; UINT64_MAX = none. */
uint64_t dial_next(const struct peers *peers);
void dial_failed(struct link *link, int code, const char *reason);
/* A first attempt at this peer: at once by the lower name, a little later by the higher one where
 * both may want it. */
void dial_soon(struct peers *peers, struct peer *peer);
/* Resets the delays of failed attempts: there is a new reason to reach the node. */
void dial_again(struct peer *peer);
/* The peer's connection, which had stood for so long, is lost: like dial_soon(), but later each
 * time that it did not last. */
void dial_lost(struct peers *peers, struct peer *peer, uint64_t stood_usec);
/* Look at the times again, from the loop. */
void peers_wake(struct peers *peers);

#endif
