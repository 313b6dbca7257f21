/* Between cluster.c (the state, messages, and its interface), cluster_role.c (the leader, and its
 * leases) and cluster_log.c (the log on this node, if there is one). */
#ifndef RM_CLUSTER_CLUSTER_INTERNAL_H
#define RM_CLUSTER_CLUSTER_INTERNAL_H

#include "daemon/cluster/cluster.h"
#include "daemon/cluster/following.h"
#include "daemon/cluster/leading.h"
#include "daemon/cluster/lease.h"
#include "daemon/cluster/propose.h"
#include "daemon/log/feed.h"
#include "daemon/log/raftlog.h"
#include "daemon/peers/peers.h"

/* The state and its index, the callbacks about them, and the connected nodes. */
struct cluster {
        struct event_base *base;
        struct cluster_ops ops;
        void *userdata;
        Rm__State *state;
        struct state_index *index; /* of the state */
        struct raftlog *log; /* NULL unless there is a log on this node */
        struct feed *feed; /* likewise: its last commands, for those that follow this node if it leads */
        bool member; /* and it has all that this node knows: the state follows it, not what the leader sends */
        struct leading *leading; /* one of these two: this node leads, */
        struct following *following; /* or it does not */
        uint64_t leading_term; /* of the leadership that `leading` is for */
        struct peers *peers; /* NULL until all of the log has been read */
        struct proposals *proposals;
        struct loopback *loopback;
        struct leases *leases;
        struct event *start_event;
        char *leader;
        uint64_t leader_term; /* that it was elected in, as it has said; 0: `leader` is NULL, or this node */
        uint64_t seen_log, seen_term; /* the latest election that this node knows of, and the log that it was in; 0: of none */
        uint64_t overtaken_term; /* of a leader that was told not to be followed */
        bool failed; /* the log has what is not understood here: nothing more is applied */
        uint64_t last_time_usec; /* of a command, real */
        uint64_t last_applied_usec; /* when that command was applied, by this node's monotonic clock */
        uint64_t node_timeout_usec;
        uint64_t voter_timeout_usec;
        unsigned voters;
        unsigned election_msec;
        uint32_t snapshot_entries;
        char *self_name;
        char *state_dir;
        char *cache_path;
        bool joined; /* the file `joined` is there */
        struct event *member_event; /* the log on this node has come further: log_see_member() */
        struct event *bootstrap_event; /* NULL: this node begins no cluster */
};

/* ---- cluster.c ---- */
bool cluster_is_self(const struct cluster *c, const char *node);
bool cluster_is_led_by(const struct cluster *c, const char *node);
/* The log has what is not understood, or its disk has failed. `userdata` here and below: the
 * cluster. */
void cluster_fail(void *userdata, const struct rm_error *why);
const Rm__State *cluster_get_state(void *userdata);
void cluster_apply(struct cluster *c, uint64_t index, const Rm__Command *command, struct state_result *ret);
void cluster_replace_state(void *userdata, Rm__State *state);
void cluster_report_installed(void *userdata);
void cluster_report_applied(struct cluster *c, const Rm__Command *command, const struct state_result *result);

/* ---- cluster_role.c ---- */
/* The members of the log's configuration but this node; with `voters`, only those with a vote. */
size_t role_other_members(const struct cluster *c, bool voters, const char **names, size_t max);
/* Returns, while this node leads, when the leases end that it gives, and its own. */
uint64_t role_given_end_usec(const struct cluster *c);
void role_report_lease(struct cluster *c);
/* The state has changed: a lease that was given for this index may begin. */
void role_reach_lease(struct cluster *c);
/* These are functions of peers_ops. */
uint64_t role_get_lease_end(void *userdata, uint64_t *ret_index);
bool role_may_hold_lease(void *userdata, const char *node);
bool role_confirms(void *userdata, const char *node, uint64_t term);
void role_on_confirmed(void *userdata, const char *node, uint64_t sent_boot_usec);
void role_on_lease(void *userdata, const char *node, uint64_t sent_usec, uint64_t lease_usec, uint64_t index);
void role_begin_leading(struct cluster *c);
/* `state_log_id`: of the log that the state is of, where this node has kept it until now; 0: it is
 * what the copy on the disk says. */
void role_begin_following(struct cluster *c, uint64_t state_log_id);
int role_send_to_leader(void *userdata, const Rm__PeerMessage *message);
void role_set_leader(struct cluster *c, const char *leader);
/* The one that is followed says that it leads. */
void role_leads_still(struct cluster *c, const char *leader);
bool role_is_elected(struct cluster *c, const char *node);
/* Raft tells of another leader. */
void role_changed(void *userdata);

/* ---- cluster_log.c ---- */
/* Open the log, if there is one. */
int log_open(struct cluster *c, struct rm_error *err);
void log_close(struct cluster *c);
/* This node is in a cluster, and never begins one again, whatever is lost of the state: said by the
 * file `joined` in state_dir. A voter's log says it too, as long as it is there. */
int log_note_joined(struct cluster *c, struct rm_error *err);
/* Begin a cluster, now or when others have been asked, if the configuration says so. */
int log_begin_cluster(struct cluster *c, const struct cluster_config *config, struct rm_error *err);
/* Is the log on this node what it goes by from now on? */
void log_see_member(evutil_socket_t fd, short what, void *userdata);
/* This node keeps the log, and has not elected the node that says that it leads: does that one
 * count on this log? */
void log_ask_membership(struct cluster *c, const char *node);
void log_take_invite(struct cluster *c, const char *node, const Rm__VoterInvite *invite);
void log_take_retire(struct cluster *c, const char *node, const Rm__VoterRetire *retire);

#endif
