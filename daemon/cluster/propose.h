/* This node's proposals on their way: kept until there is a leader, put into the own log or sent to
 * the leader's, and to the next one's when that leader is lost; answered exactly once, and applied
 * at most once. */
#ifndef RM_CLUSTER_PROPOSE_H
#define RM_CLUSTER_PROPOSE_H

#include <stdint.h>

#include <event2/event.h>

#include "daemon/log/raftlog.h"
#include "proto/peer.pb-c.h"

struct proposals;

/* As cluster_propose_fn. */
typedef void (*propose_fn)(void *userdata, int code, const char *text, uint64_t index, uint64_t created);

/* Where a proposal can go now. */
enum propose_route {
        PROPOSE_NOWHERE, /* no leader, or no connection to it */
        PROPOSE_HERE, /* this node leads */
        PROPOSE_THERE,
};

struct proposals_ops {
        enum propose_route (*route)(void *userdata);
        /* HERE: as leading_propose(). The command may be stamped. `done` comes before
         * proposals_destroy(), or not at all. */
        int (*log)(void *userdata, Rm__Command *command, raftlog_done_fn done, void *context, struct rm_error *err);
        /* THERE: as peers_send(). */
        int (*send)(void *userdata, const Rm__PeerMessage *message);
        const Rm__State *(*get_state)(void *userdata);
        /* The name of this node. Not called before there is a leader. */
        const char *(*self)(void *userdata);
};

/* `timeout_usec`: 0 = 10 s. */
struct proposals *proposals_create(struct event_base *base, uint64_t timeout_usec, const struct proposals_ops *ops, void *userdata);
void proposals_destroy(struct proposals *p); /* answers all with -ECANCELED; NULL ok */

/* As cluster_propose(). */
void proposals_add(struct proposals *p, const Rm__Command *command, propose_fn callback, void *userdata);
/* As cluster_decide(). */
void proposals_add_decision(struct proposals *p, const Rm__Command *command);
/* Another node leads than before, or this one, or none: what was sent to the one before is sent
 * again, and decisions of a leadership that has ended are dropped. */
void proposals_leader_changed(struct proposals *p);
/* The leader answers. Passed on when the local state holds the command. */
void proposals_reply(struct proposals *p, const Rm__ProposeReply *reply);
/* The local state holds more than before. */
void proposals_applied(struct proposals *p);
/* Ends proposals whose time is over; to be called from time to time. */
void proposals_expire(struct proposals *p, uint64_t now);

#endif
