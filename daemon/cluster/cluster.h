/* The cluster as one daemon sees it: the state that all share, the way to change it, and messages
 * between nodes. */
#ifndef RM_CLUSTER_CLUSTER_H
#define RM_CLUSTER_CLUSTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <event2/event.h>

#include "common/error.h"
#include "daemon/state/state_index.h"
#include "daemon/wire/tls.h"
#include "proto/peer.pb-c.h"
#include "proto/state.pb-c.h"

struct cluster;

/* All is copied by cluster_create(), but `tls`, which must outlive the cluster. */
struct cluster_config {
        const char *name;           /* of the cluster; nodes of another name are refused */
        const Rm__Node *self;       /* name, address, port (0 = any free one), cores, topology, boot_id, memory_bytes */
        const char *listen_address; /* IPv4; NULL = 0.0.0.0 */
        const char *const *peers;   /* "host:port" of nodes to join through */
        size_t n_peers;
        bool bootstrap;             /* begin a new cluster, unless this node was in one or `peers` know of one */
        const char *state_dir;      /* log and cached state; made when not there */
        struct tls *tls;
        uint64_t node_timeout_usec;    /* 0 = 5 s: silence that makes a node DOWN */
        uint64_t heartbeat_usec;       /* 0 = 1 s */
        uint64_t lease_usec;           /* 0 = 5 s: the lease that other nodes get from this one while it leads */
        uint64_t idle_usec;            /* 0 = 30 s: after so long unused the connection of two followers is closed */
        uint64_t propose_timeout_usec; /* 0 = 10 s */
        uint32_t snapshot_entries;     /* 0 = 1024: log entries between snapshots */
        unsigned voters;               /* 0 = 3: nodes that keep the log, while this one leads: 1, 3 or 5 */
        uint64_t voter_timeout_usec;   /* 0 = 2 min: a voter that is DOWN for so long is replaced */
        uint64_t election_usec; /* 0 = 0.3 s: silence of the leader, up to twice that, after which another voter wants to lead */
};

/* NULL members are skipped. Callbacks come from the loop, except that cluster_destroy() answers
 * open proposals. None may call cluster_destroy(). */
struct cluster_ops {
        /* A command was applied (refused ones too: result->error.code < 0). Every node gets the
         * same commands in the same order. This is not called for what was applied before this
         * daemon started, nor for what came by on_installed. */
        void (*on_applied)(void *userdata, const Rm__Command *command, const struct state_result *result);
        /* Look at all of the state again: it was replaced as a whole (own log replayed, or the
         * leader's snapshot), or has become certain (cluster_synced() turned true). Pointers into
         * an older state are gone. */
        void (*on_installed)(void *userdata);
        /* A message that is not the cluster's own. `message` is valid during the call. */
        void (*on_message)(void *userdata, const char *node, const Rm__PeerMessage *message);
        /* A connection to the node stands / is lost, or could not be made for what was to be sent.
         * Messages in between arrive in order or not at all. Connections end without a word when
         * both ends have no use for them. */
        void (*on_peer)(void *userdata, const char *node, bool connected);
        /* Every few seconds, often enough to call cluster_keep() from. */
        void (*on_heartbeat)(void *userdata);
        /* cluster_lease_end_usec() has grown. */
        void (*on_lease)(void *userdata);
        /* The leader has changed; NULL = none is known. */
        void (*on_leader)(void *userdata, const char *leader);
        /* The log has what this version cannot read or does not understand: nothing more is
         * applied, the daemon is to end. */
        void (*on_failed)(void *userdata, const struct rm_error *why);
};

/* Called exactly once, from the loop (or from cluster_destroy() with -ECANCELED: do not propose
 * again then), after the local state holds the command. `code` 0 = applied; negative: `text` is the
 * reason. From state_apply(): refused. -EHOSTUNREACH: no leader was found in time. -ETIMEDOUT:
 * leaders were lost, or have not answered in time: the command may still be applied. `created`: id
 * of the job or move made. */
typedef void (*cluster_propose_fn)(void *userdata, int code, const char *text, uint64_t index, uint64_t created);

/* Opens log and listener, starts to connect. On return a follower has its cached state, a voter its
 * last snapshot; later entries follow by on_installed. */
int cluster_create(struct event_base *base, const struct cluster_config *config, const struct cluster_ops *ops, void *userdata,
                   struct cluster **ret, struct rm_error *err);
/* Runs the loop for the moment that closing the log takes. NULL ok. */
void cluster_destroy(struct cluster *cluster);

/* The current state. Never NULL; valid until the next callback. */
const Rm__State *cluster_state(const struct cluster *cluster);
/* The index of that state; valid as long. */
const struct state_index *cluster_index(const struct cluster *cluster);
/* The state is known to be current: own log replayed, or the leader has told all. False after the
 * leader is lost. */
bool cluster_synced(const struct cluster *cluster);
/* Returns what the command would do to that state now: see state_effect(). On the leader it has all
 * commands that were ever answered. */
enum state_effect cluster_effect(const struct cluster *cluster, const Rm__Command *command, struct state_result *ret_result);
/* The log's clock (real time), by which times in the state are to be judged: this node's, but never
 * before a time that is in the log, and what has passed here since. */
uint64_t cluster_log_usec(const struct cluster *cluster);
/* Until when (now_boot_usec()) this node may let capsules run that the leader would start again
 * elsewhere, see lease.h. UINT64_MAX: as long as it leads, which is enough while only one node
 * keeps the log: without that no job is started again. */
uint64_t cluster_lease_end_usec(const struct cluster *cluster);
/* Returns, on the leader, when (now_usec()) the last lease that this node can have has surely
 * ended, and its capsules of jobs that may be started again are frozen and cut off, if nothing is
 * heard of it any more. Grows as long as it is heard of. UINT64_MAX: this node itself, which may be
 * DOWN in the log when it comes to lead, and lives. */
uint64_t cluster_fence_safe_usec(const struct cluster *cluster, const char *node);
/* True on a leader whose log's disk is full, so that nothing can be changed. */
bool cluster_disk_full(const struct cluster *cluster);
bool cluster_is_leader(const struct cluster *cluster);
/* Have another voter lead, so that no client waits for an election when this node stops. True: it
 * is on its way, and on_leader() tells when it has come to that; it may come to nothing. False:
 * this node does not lead, or keeps the log alone. */
bool cluster_hand_over(struct cluster *cluster);
/* NULL when not known. */
const char *cluster_leader(const struct cluster *cluster);
const char *cluster_self(const struct cluster *cluster);
/* As peers_seed_failures(): why this node does not join. With a leader only those that refuse. The
 * caller frees it. */
char *cluster_join_failures(const struct cluster *cluster);
uint32_t cluster_port(const struct cluster *cluster);

/* Have one command put into the log; it is copied, the leader stamps time_usec. Without a leader it
 * waits for one, up to propose_timeout_usec, and if the leader is lost before it has answered, for
 * the next one: it is applied once however often it was sent. Proposals of one node are applied in
 * the order they were made. `callback` NULL ok. */
void cluster_propose(struct cluster *cluster, const Rm__Command *command, cluster_propose_fn callback, void *userdata);
/* A decision that this node makes since it leads: as cluster_propose(), but dropped if the
 * leadership ends before it is in the log. The next leader makes its own. */
void cluster_decide(struct cluster *cluster, const Rm__Command *command);

/* Sends a message to one node; a message to this node comes back by on_message from the loop. If
 * there is no connection, one is made and the message waits for it; on_peer(false) tells when it
 * cannot be. -ENOTCONN: that has just failed, or the node is DOWN; -ENOBUFS: too much waits. */
int cluster_send(struct cluster *cluster, const char *node, const Rm__PeerMessage *message);
/* A part of this rmd depends on hearing from this node, or of its loss: the connection is kept (and
 * made again) for the next idle_usec, although nothing is sent. */
void cluster_keep(struct cluster *cluster, const char *node);
bool cluster_connected(const struct cluster *cluster, const char *node);
/* Bytes queued to the node and not yet handed to the kernel: for those that send much. */
size_t cluster_pending_bytes(const struct cluster *cluster, const char *node);

#endif
