/* The replicated log of one voter: libraft on its raft_uv storage, on the event loop. */
#ifndef RM_CLUSTER_RAFTLOG_H
#define RM_CLUSTER_RAFTLOG_H

#include <stdbool.h>
#include <stdint.h>

#include <event2/event.h>

#include "common/error.h"
#include "proto/state.pb-c.h"

struct raftlog;

/* What became of one command. */
struct raftlog_outcome {
        struct rm_error error; /* code 0 = applied */
        uint64_t index;
        uint64_t created;
};

struct raftlog_ops {
        /* Apply a committed command; called in order, also from raftlog_open() for those that the log holds already. May not call
         * into the raftlog but to read. < 0, with `ret->error` set: it is not understood; no later one is applied. */
        int (*on_apply)(void *userdata, uint64_t index, const Rm__Command *command, struct raftlog_outcome *ret);
        /* Begin anew from a snapshot; `state` is the callee's when it returns 0. < 0: it is not understood. */
        int (*on_restore)(void *userdata, Rm__State *state, struct rm_error *err);
        /* An entry cannot be read, or is not understood: this node must not go on. Not told from raftlog_open(), which fails. */
        void (*on_failed)(void *userdata, const struct rm_error *why);
        /* The state as of the last command applied, to be packed. */
        const Rm__State *(*get_state)(void *userdata);
        /* This voter has begun or ceased to lead (or both: see raftlog_term()), or another one leads than before. From the loop, never
         * from within raft. Not told of what is so when raftlog_open() returns. */
        void (*on_role)(void *userdata);
};

/* Exactly once for every raftlog_propose() that returned 0. -EHOSTUNREACH: no longer leading; -ECANCELED: closed. */
typedef void (*raftlog_done_fn)(void *userdata, const struct raftlog_outcome *outcome);

/* Does `dir` hold a log of ours? */
bool raftlog_exists(const char *dir);
/* Open the log in `dir`, or make one. On return all of it has been applied. `name`: this voter's, for the log's records.
 * -EBADMSG, -ENOTSUP: it is damaged, or of another version, and the error says what to do. */
int raftlog_open(struct event_base *base, const char *dir, const char *name, uint32_t snapshot_entries,
                 const struct raftlog_ops *ops, void *userdata, struct raftlog **ret, struct rm_error *err);
/* Waits for writes under way; open proposals are cancelled. NULL ok. */
void raftlog_close(struct raftlog *log);

/* It leads, and all that earlier leaders have committed is applied: the state is current. */
bool raftlog_leading(const struct raftlog *log);
/* Raft's number of the leader's election: another one each time that a leader is elected. */
uint64_t raftlog_term(const struct raftlog *log);
/* The name of the voter that leads, as far as raft knows; NULL: none. Valid until the loop goes on. */
const char *raftlog_leader(const struct raftlog *log);
/* The number drawn when the log was made. */
uint64_t raftlog_id(const struct raftlog *log);
/* Put a command into the log. Not from within an op. -EHOSTUNREACH: not leading; -ENOSPC; -EIO. */
int raftlog_propose(struct raftlog *log, const Rm__Command *command, raftlog_done_fn done, void *userdata);
/* The last entry was refused because the disk is full. */
bool raftlog_full(const struct raftlog *log);

#endif
