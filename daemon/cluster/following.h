/* The role of a node that does not lead: which leader it follows, whether its state is current, and
 * how it catches up. One without a log is sent the state or the commands it lacks, and keeps a copy
 * of the state on its disk. One with a log gets the commands through raft; from the leader it only
 * learns how far it must have come. Made when a node starts or has lost the leadership, destroyed
 * when it has won it. */
#ifndef RM_CLUSTER_FOLLOWING_H
#define RM_CLUSTER_FOLLOWING_H

#include <stdbool.h>
#include <stdint.h>

#include <event2/event.h>

#include "common/error.h"
#include "proto/peer.pb-c.h"

struct following;

struct following_config {
        struct event_base *base;
        const char *cluster;
        const char *cache_path; /* of the copy on disk; not used with a log */
        uint64_t log_id;        /* of the log that this node keeps; 0: it keeps none */
        /* A node without a log has its state from this log, and the copy on disk is older; 0: the
         * state is taken from the copy on disk. */
        uint64_t state_log_id;
};

/* All are needed. */
struct following_ops {
        const Rm__State *(*get_state)(void *userdata);
        /* Replace the state, which is the callee's then; nothing may be told yet. */
        void (*replace)(void *userdata, Rm__State *state);
        /* Apply a command, and tell. < 0: it is not understood. */
        int (*apply)(void *userdata, uint64_t index, const Rm__Command *command, struct rm_error *err);
        /* Raft's number of the log that is on this node; 0: there is none. */
        uint64_t (*get_number)(void *userdata);
        /* Sends a message to the leader; the result is ignored, since the loss of the leader is
         * reported otherwise. */
        int (*send)(void *userdata, const Rm__PeerMessage *message);
        /* The state was replaced, or is current now. */
        void (*on_installed)(void *userdata);
        /* The leader sends commands that this version does not understand: no more are taken. */
        void (*on_failed)(void *userdata, const struct rm_error *why);
};

/* Creates the role. Without a log it takes the state from the disk, by `replace`, if there is
 * one. */
struct following *following_create(const struct following_config *config, const struct following_ops *ops, void *userdata);
/* Writes the copy on disk if it is behind. NULL ok. */
void following_destroy(struct following *following);

/* Follow this node, which is connected, from now on; NULL: there is no leader. The state is not
 * current any more. */
void following_set_leader(struct following *following, const char *leader);
/* The log that the state is of; 0: of none. */
uint64_t following_log_id(const struct following *following);
/* The leader has told all, and all of it is here. */
bool following_synced(const struct following *following);
/* A message of the leader: an InstallPart, Append or Followed. */
void following_take(struct following *following, const Rm__PeerMessage *message);
/* The log that this node keeps has applied something. */
void following_applied(struct following *following);
/* Does what is due; to be called from time to time. */
void following_heartbeat(struct following *following);

#endif
