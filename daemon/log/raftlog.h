/* The replicated log of one voter: libraft on its raft_uv storage, on the event loop; its messages
 * go over the peers' connections. */
#ifndef RM_LOG_RAFTLOG_H
#define RM_LOG_RAFTLOG_H

#include <stdbool.h>
#include <stdint.h>

#include <event2/event.h>

#include "common/error.h"
#include "proto/peer.pb-c.h"

struct raftlog;

/* The result of one command. */
struct raftlog_outcome {
        struct rm_error error; /* code 0 = applied */
        uint64_t index;
        uint64_t created;
};

struct raftlog_ops {
        /* Apply a committed command; called in order, also from raftlog_open() for those that the
         * log holds already. May not call into the raftlog but to read. < 0, with `ret->error` set:
         * it is not understood; no later one is applied. */
        int (*on_apply)(void *userdata, uint64_t index, const Rm__Command *command, struct raftlog_outcome *ret);
        /* Begin again from a snapshot; `state` is the callee's when it returns 0. < 0: it is not
         * understood. */
        int (*on_restore)(void *userdata, Rm__State *state, struct rm_error *err);
        /* An entry cannot be read, or is not understood: this node must not go on. Not told from
         * raftlog_open(), which fails. */
        void (*on_failed)(void *userdata, const struct rm_error *why);
        /* The state as of the last command applied, to be packed. */
        const Rm__State *(*get_state)(void *userdata);
        /* This voter has begun or ceased to lead (or both: see raftlog_term()), or another one
         * leads than before. From the loop, never from within raft. Not told of what is so when
         * raftlog_open() returns. */
        void (*on_role)(void *userdata);
        /* To the voter on this node, a RaftPart. < 0: it cannot be done now, and what belongs to it
         * is not sent either; raft does without what is lost. NULL ok: there are no other
         * voters. */
        int (*send)(void *userdata, const char *node, const Rm__PeerMessage *message);
};

struct raftlog_config {
        const char *dir; /* holds the log, or is to hold it */
        const char *name; /* this node's */
        uint32_t snapshot_entries;
        /* A voter that is not alone and has not heard of the leader for this long, or up to twice
         * as long, wants to lead. */
        unsigned election_msec;
        uint64_t join_log; /* not 0: when there is no log in `dir`, begin an empty one that other voters fill; this is its number */
};

/* Exactly once for every raftlog_propose() that returned 0. -EHOSTUNREACH: no longer leading;
 * -ECANCELED: closed. */
typedef void (*raftlog_done_fn)(void *userdata, const struct raftlog_outcome *outcome);

/* Does `dir` hold a log of ours? */
bool raftlog_exists(const char *dir);
/* Removes the log in `dir`, which is not open. 0 also when there is none, or negative errno. */
int raftlog_discard(const char *dir, struct rm_error *err);
/* Open the log, or make one. On return all of it that is known to be committed has been applied:
 * without other voters all of it, with them what the last snapshot holds.
 * -EBADMSG, -ENOTSUP: it is damaged, or of another version, and the error says what to do. */
int raftlog_open(struct event_base *base, const struct raftlog_config *config, const struct raftlog_ops *ops, void *userdata,
                 struct raftlog **ret, struct rm_error *err);
/* Waits for writes under way; open proposals are cancelled. NULL ok. */
void raftlog_close(struct raftlog *log);

/* True: this node leads, and all that earlier leaders have committed is applied, so that its state
 * is current. */
bool raftlog_leading(const struct raftlog *log);
/* Raft's number of the leader's election: another one each time that a leader is elected. */
uint64_t raftlog_term(const struct raftlog *log);
/* The name of the voter that leads, as far as raft knows; NULL: none. Valid until the loop goes
 * on. */
const char *raftlog_leader(const struct raftlog *log);
/* The number drawn when the log was made. */
uint64_t raftlog_id(const struct raftlog *log);
/* Put a command into the log. Not from within an op. -EHOSTUNREACH: not leading; -ENOSPC; -EIO. */
int raftlog_propose(struct raftlog *log, const Rm__Command *command, raftlog_done_fn done, void *userdata);
/* The last entry was refused because the disk is full. */
bool raftlog_full(const struct raftlog *log);

/* ---- the other voters ---- */

/* Takes a message that another voter's raft has sent to this one's. */
void raftlog_receive(struct raftlog *log, const char *node, const Rm__RaftPart *part);

enum raftlog_role {
        RAFTLOG_NONE, /* is not in the log's configuration */
        RAFTLOG_SPARE, /* is, and gets nothing */
        RAFTLOG_STANDBY, /* gets all entries, and has no vote */
        RAFTLOG_VOTER,
};

struct raftlog_member {
        uint64_t id;
        const char *node; /* valid until the loop goes on */
        enum raftlog_role role;
        bool current; /* on the leader: it has all that the leader has, or nearly */
};

/* This one's number, and its role. */
uint64_t raftlog_voter_id(const struct raftlog *log);
enum raftlog_role raftlog_role(const struct raftlog *log);
/* The term of the last entry in this log; 0: there is none. */
uint64_t raftlog_last_term(const struct raftlog *log);
/* The last entry applied: of any kind, so it may be beyond the state's. */
uint64_t raftlog_applied(const struct raftlog *log);
#define RAFTLOG_MEMBERS_MAX 64U /* more than members.h ever adds */
/* All in the configuration, which may not be committed yet; at most `max`. Returns how many. */
size_t raftlog_members(const struct raftlog *log, struct raftlog_member *members, size_t max);

/* 0: done. -EHOSTUNREACH: no longer leading; -ENOTCONN: the member does not catch up. */
typedef void (*raftlog_change_fn)(void *userdata, int code);
/* A change of the configuration is under way, or not all of the one before is committed. */
bool raftlog_changing(const struct raftlog *log);
/* Changes of the configuration, on the leader, and not from within an op. `done` is called exactly
 * once if the call returns 0. -EBUSY: another change is under way; -EHOSTUNREACH: not leading;
 * -EIO: raft refuses it. raftlog_add() adds a member, as a spare. */
int raftlog_add(struct raftlog *log, uint64_t id, const char *node, raftlog_change_fn done, void *userdata);
int raftlog_assign(struct raftlog *log, uint64_t id, enum raftlog_role role, raftlog_change_fn done, void *userdata);
int raftlog_remove(struct raftlog *log, uint64_t id, raftlog_change_fn done, void *userdata);
/* Has this voter lead in this one's place. `done` gets 0 also when that came to nothing: see
 * raftlog_leader(). The same errors. */
int raftlog_transfer(struct raftlog *log, uint64_t id, raftlog_change_fn done, void *userdata);
/* Have the voter that is furthest lead, whatever change is under way: that ends with -EHOSTUNREACH.
 * True: it is on its way, and may come to nothing. */
bool raftlog_yield(struct raftlog *log);
/* The connection to the leader is lost, so its process has most likely ended: an election is wanted
 * soon, and not only when the leader has been silent for as long as one may be that is merely
 * slow. */
void raftlog_leader_gone(struct raftlog *log);

#endif
