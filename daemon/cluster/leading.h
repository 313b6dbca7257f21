/* The role of the leader: its followers, the health of nodes and the feature level as it proposes
 * them, the members of the log, the log's clock, and what it was asked to put into the log. Made
 * when this node has won the leadership, destroyed when it has lost it: a node that wins it again
 * begins with nothing. It has no timers: leading_heartbeat() is its clock. */
#ifndef RM_CLUSTER_LEADING_H
#define RM_CLUSTER_LEADING_H

#include <stdint.h>

#include "daemon/cluster/lease.h"
#include "daemon/log/feed.h"
#include "daemon/log/raftlog.h"
#include "daemon/peers/transport.h"
#include "proto/peer.pb-c.h"

struct leading;
struct state_index;

struct leading_config {
        uint64_t log_id;
        const struct feed *feed; /* it, and the transport, outlive the object */
        const struct transport_ops *transport_ops;
        void *transport;
        uint64_t last_time_usec; /* of the last command applied, real */
        uint64_t node_timeout_usec;
        uint64_t voter_timeout_usec; /* a voter that is DOWN for so long is replaced */
        unsigned voters; /* that there are to be: 1, 3 or 5 */
        const struct leases *leases; /* that are given while it leads; NULL: the log says nothing of them */
        struct raftlog *log; /* whose voters are changed; NULL: they stay as they are */
        const struct feature_field *later; /* feature_levels() */
};

/* All are needed. */
struct leading_ops {
        const Rm__State *(*get_state)(void *userdata);
        const struct state_index *(*get_index)(void *userdata);
        /* As raftlog_propose(). */
        int (*log)(void *userdata, const Rm__Command *command, raftlog_done_fn done, void *context);
};

struct leading *leading_create(const struct leading_config *config, const struct leading_ops *ops, void *userdata);
/* Answers all proposals that the log has not answered yet with `code`: -EHOSTUNREACH when the
 * leadership is lost (the command may be applied or not), -ECANCELED when this node stops. These
 * callbacks must not use the object; later results of the log are dropped. NULL ok. */
void leading_destroy(struct leading *leading, int code);

/* Stamp the command and put it into the log; as raftlog_propose(). -ENOTSUP: this version does not
 * understand it; -EAGAIN: the log's feature level is too low for it; of these `err` (NULL ok) names
 * what, and which nodes are to be updated. */
int leading_propose(struct leading *leading, Rm__Command *command, raftlog_done_fn done, void *context, struct rm_error *err);
/* Another node's proposal: it is answered with a ProposeReply. */
void leading_serve(struct leading *leading, const char *node, const Rm__Propose *propose);
/* A node asks to be brought up to date, and to be told of every command from then on. */
void leading_follow(struct leading *leading, const char *node, const Rm__Follow *follow);

/* A node has prepared a log. */
void leading_voter_ready(struct leading *leading, const char *node, const Rm__VoterReady *message);

/* A command was applied as entry `index`; the state was at `before`. */
void leading_applied(struct leading *leading, uint64_t before, uint64_t index, const Rm__Command *command);
/* A node is connected, or describes itself again (this one too). */
void leading_scan(struct leading *leading, const char *node);
/* The node's connection is lost. */
void leading_lost(struct leading *leading, const char *node);
/* The messages to the node have left its queue. */
void leading_drained(struct leading *leading, const char *node);
/* From time to time, and at the beginning. */
void leading_heartbeat(struct leading *leading);

#endif
