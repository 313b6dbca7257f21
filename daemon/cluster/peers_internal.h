/* Between peers.c (connections and who is at their end), hello.c (how two nodes get to know each other) and dial.c (when to
 * connect to whom). */
#ifndef RM_CLUSTER_PEERS_INTERNAL_H
#define RM_CLUSTER_PEERS_INTERNAL_H

#include <netinet/in.h>
#include <sys/queue.h>

#include <event2/dns.h>

#include "daemon/cluster/peers.h"
#include "daemon/wire/conn.h"
#include "daemon/wire/listener.h"

#define PEERS_VERSION 2U
#define PEERS_DIAL_USEC UINT64_C(3000000)   /* a dialled connection has to stand by then, hello and all */
#define PEERS_ACCEPT_USEC UINT64_C(5000000) /* and an accepted one by then */
#define PEERS_WAITING_MAX 128U              /* accepted and not yet known, at once */

enum link_stage {
        LINK_OPENING, /* TCP and TLS */
        LINK_HELLO,   /* dialled: hello sent, its reply is awaited. Accepted: the hello is awaited */
        LINK_CONFIRM, /* accepted: replied, the other side's first heartbeat is awaited */
        LINK_UP,
};

/* One connection, from its first moment on. */
struct link {
        struct peers *peers;
        struct conn *conn;
        struct peer *peer; /* whom it leads to: as dialled, then as told; NULL = not known yet */
        struct seed *seed; /* dialled for */
        Rm__Node *node;    /* as told in hello */
        uint64_t instance;
        uint64_t heard_usec;
        uint64_t up_usec; /* when it came to stand */
        enum link_stage stage;
        bool dialled;
        bool leading;
        LIST_ENTRY(link) entry;
};

/* A node we know of. Never forgotten while we run: there are few. */
struct peer {
        char *name;
        struct in_addr address;
        uint16_t port; /* 0 = not known */
        Rm__Node *node;
        struct link *link;     /* in stage UP */
        struct link *dialling; /* an attempt of ours */
        uint64_t heard_usec;
        uint64_t next_dial_usec;
        unsigned failures;
        unsigned flaps; /* connections in a row that were lost as soon as they stood */
        LIST_ENTRY(peer) entry;
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
        struct log_rate strangers; /* lines about those who are none of us */
        struct event *timer;
        struct evdns_base *dns; /* only when a seed is a name */
        char *cluster;
        Rm__Node *self;
        uint64_t instance;
        uint64_t heartbeat_usec;
        uint64_t timeout_usec;
        uint64_t next_beat_usec;
        uint64_t beats;
        bool leading;
        bool catching_up; /* a beat came late: it is seen to the end once all has been read */
        bool destroying;
        LIST_HEAD(, link) links;
        LIST_HEAD(, peer) peer_list;
        LIST_HEAD(, seed) seeds;
};

/* peers.c */
struct peer *peer_find(const struct peers *peers, const char *name);
struct peer *peer_get(struct peers *peers, const char *name); /* made when not there */
bool peer_set_address(struct peer *peer, const Rm__Node *node); /* is it new? */
struct link *link_new(struct peers *peers, bool dialled);
/* Close and free, with the conn; tells nobody. `flush`: what was sent still leaves. */
void link_free(struct link *link, bool flush);
/* The connection is over: free the link, note the failure or tell of the loss, see that it is made again. */
void link_over(struct link *link, int code, const char *reason);
int link_send(struct link *link, const Rm__PeerMessage *message);
void link_send_heartbeat(struct link *link, bool reply);
const struct conn_ops *link_conn_ops(void);

/* hello.c: both may free the link. */
void hello_begin(struct link *link);
void hello_message(struct link *link, Rm__PeerMessage *message);
void hello_say(struct link *link, bool reply);

/* dial.c */
int dial_add_seed(struct peers *peers, const char *text, struct rm_error *err);
void dial_free_seed(struct seed *seed);
/* Connect to all whose time has come. */
void dial_due(struct peers *peers, uint64_t now);
/* When the next one is due; UINT64_MAX = none. */
uint64_t dial_next(const struct peers *peers);
void dial_failed(struct link *link, int code, const char *reason);
/* A first attempt at this peer: at once by the lower name, a little later by the higher one. */
void dial_soon(struct peers *peers, struct peer *peer);
/* Its connection, which had stood for so long, is lost: as dial_soon(), but later each time that it did not last. */
void dial_lost(struct peers *peers, struct peer *peer, uint64_t stood_usec);
/* Look at the times again, from the loop. */
void peers_wake(struct peers *peers);

#endif
