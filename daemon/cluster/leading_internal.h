/* Between leading.c (proposals, the log's clock), followers.c (those that follow), health.c (what
 * the leader says about nodes) and members_run.c (the members of the log). */
#ifndef RM_CLUSTER_LEADING_INTERNAL_H
#define RM_CLUSTER_LEADING_INTERNAL_H

#include <sys/queue.h>

#include "daemon/cluster/leading.h"
#include "daemon/state/state.h"

struct asked;
struct followers;
struct health;
struct members;

struct leading {
        struct leading_ops ops;
        void *userdata;
        uint64_t log_id;
        const struct feed *feed;
        const struct transport_ops *transport_ops;
        void *transport;
        uint64_t since_usec; /* when the leadership began */
        uint64_t last_time_usec; /* of the log's clock, as it was read last */
        uint64_t node_timeout_usec;
        uint64_t voter_timeout_usec;
        unsigned voters;
        const struct leases *leases;
        bool logging_lease; /* CmdLease is under way */
        struct raftlog *log; /* NULL: the voters stay as they are */
        const struct feature_field *later;
        struct followers *followers;
        struct health *health;
        struct members *members;
        LIST_HEAD(, asked) asked; /* what the log has not answered */
};

static inline const Rm__State *leading_state(const struct leading *l) {
        return l->ops.get_state(l->userdata);
}

/* A node that is DOWN since before this time of the log has been so for voter_timeout. 0: this
 * leader has not led for so long. */
uint64_t leading_long_down_usec(struct leading *l);

/* ---- followers.c ---- */
struct followers *followers_create(struct leading *leading);
void followers_destroy(struct followers *fs);
void followers_serve(struct followers *fs, const char *node, const Rm__Follow *follow);
void followers_applied(struct followers *fs, uint64_t before, uint64_t index, const Rm__Command *command);
void followers_drained(struct followers *fs, const char *node);
void followers_lost(struct followers *fs, const char *node);
void followers_heartbeat(struct followers *fs);

/* ---- health.c ---- */
struct health *health_create(struct leading *leading);
void health_destroy(struct health *h);
/* Propose what the state does not say yet, about one node or (NULL) all. Safe to repeat. */
void health_check(struct health *h, const char *node);

/* ---- members_run.c ---- */
struct members *members_create(struct leading *leading);
void members_destroy(struct members *m);
/* Do what comes next, if nothing is under way. Safe to repeat. */
void members_heartbeat(struct members *m);
void members_ready(struct members *m, const char *node, const Rm__VoterReady *message);
/* A node follows whose log, or none, has this number of raft's. */
void members_follows(struct members *m, const char *node, uint64_t id);
/* Is raft's number one of the configuration, as far as that is certain? */
bool members_knows(const struct members *m, uint64_t id);
/* Tell a node that it keeps the log no more. */
void members_retire(struct members *m, const char *node, uint64_t id);

#endif
