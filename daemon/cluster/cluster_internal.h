/* Between cluster.c (state, leader, following), followers.c (those who follow this node), propose.c (proposals on their way) and
 * health.c (what the leader proposes about nodes). */
#ifndef RM_CLUSTER_CLUSTER_INTERNAL_H
#define RM_CLUSTER_CLUSTER_INTERNAL_H

#include <sys/queue.h>

#include "daemon/cluster/cluster.h"
#include "daemon/cluster/feed.h"
#include "daemon/cluster/loopback.h"
#include "daemon/cluster/parts.h"
#include "daemon/cluster/peers.h"
#include "daemon/cluster/raftlog.h"
#include "daemon/cluster/state_cache.h"
#include "daemon/cluster/state_index.h"

struct proposals;
struct health;
struct followers;

struct cluster {
        struct event_base *base;
        struct cluster_ops ops;
        void *userdata;
        Rm__State *state;
        struct state_index *index; /* of the state */
        struct raftlog *log; /* NULL unless this node keeps the log */
        struct followers *followers; /* likewise */
        struct state_cache *cache;
        uint64_t cached_log; /* follower: the log that the state is of; 0 = of none */
        struct parts install; /* follower: of a state on its way */
        uint64_t install_log;
        uint64_t install_index;
        uint64_t ask_usec; /* when to ask for the state again; 0: it is on its way */
        uint64_t progress_usec; /* when something of it came last */
        unsigned ask_failures;
        struct peers *peers;
        struct proposals *proposals;
        struct health *health; /* likewise */
        struct loopback *loopback;
        struct event *start_event;
        char *leader;
        bool synced;
        bool failed; /* the log has what is not understood here: nothing more is applied */
        bool replaying; /* raftlog_open() is running */
        bool closing;
        uint64_t last_time_usec; /* of a command, real */
        uint64_t node_timeout_usec;
        uint64_t propose_timeout_usec;
};

/* Stamp and put into the log; as raftlog_propose(). -ENOTSUP: this version does not understand it. */
int cluster_log(struct cluster *c, Rm__Command *command, raftlog_done_fn done, void *userdata);

/* ---- followers.c ---- */
struct followers *followers_create(struct cluster *c);
void followers_destroy(struct followers *fs); /* NULL ok */
/* A node asks to be brought up to date, and to be told of every command from then on. */
void followers_serve(struct followers *fs, const char *node, const Rm__Follow *follow);
/* A command was applied as entry `index`; the state was at `before`. */
void followers_applied(struct followers *fs, uint64_t before, uint64_t index, const Rm__Command *command);
/* The log begins with a state at `index`. */
void followers_restored(struct followers *fs, uint64_t index);
/* What was sent to the node has left. */
void followers_drained(struct followers *fs, const char *node);
void followers_lost(struct followers *fs, const char *node);
/* From time to time. */
void followers_beat(struct followers *fs);

/* ---- propose.c ---- */
struct proposals *proposals_create(struct cluster *c);
void proposals_destroy(struct proposals *p); /* answers all with -ECANCELED; NULL ok */
/* There is a leader now, or none any more. */
void proposals_leader_changed(struct proposals *p);
void proposals_reply(struct proposals *p, const char *node, const Rm__ProposeReply *reply);
/* At the leader: somebody else's. */
void proposals_serve(struct proposals *p, const char *node, const Rm__Propose *propose);
void proposals_expire(struct proposals *p, uint64_t now);

/* ---- health.c ---- */
struct health *health_create(struct cluster *c);
void health_destroy(struct health *h); /* NULL ok */
/* Propose what the state does not say yet, about one node or (NULL) all. Safe to repeat. */
void health_check(struct health *h, const char *node);

#endif
