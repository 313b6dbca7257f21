/* Between raftlog.c (the log and its state machine), raftlog_identity.c (the numbers of this voter
 * and its log) and raftlog_members.c (the other voters). */
#ifndef RM_LOG_RAFTLOG_INTERNAL_H
#define RM_LOG_RAFTLOG_INTERNAL_H

#include <sys/queue.h>

#include <raft.h>
#include <raft/uv.h>

#include "daemon/log/raftlog.h"
#include "daemon/log/uvloop.h"
#include "daemon/peers/parts.h"

struct change;
struct request;

/* A message of one voter that comes in several parts. */
struct inbound {
        uint64_t from;
        struct parts parts;
        LIST_ENTRY(inbound) entry;
};

/* Up to where another voter knows, or will soon, what is committed. */
struct reported {
        uint64_t id;
        uint64_t index;
        LIST_ENTRY(reported) entry;
};

/* An entry that was on the disk when the log was opened. */
struct loaded {
        uint64_t index;
        struct raft_buffer buf; /* of its own */
        TAILQ_ENTRY(loaded) entry;
};

/* The functions of raft_uv whose place ours take, and what raft wants to be called. */
struct raftlog_uv {
        int (*start)(struct raft_io *io, unsigned msecs, raft_io_tick_cb tick, raft_io_recv_cb receive);
        int (*put)(struct raft_io *io, unsigned trailing, struct raft_io_snapshot_put *req, const struct raft_snapshot *snapshot,
                   raft_io_snapshot_put_cb cb);
        int (*load)(struct raft_io *io, raft_term *term, raft_id *voted_for, struct raft_snapshot **snapshot,
                    raft_index *start_index, struct raft_entry *entries[], size_t *n_entries);
        int (*set_term)(struct raft_io *io, raft_term term);
        int (*set_vote)(struct raft_io *io, raft_id id);
        int (*get)(struct raft_io *io, struct raft_io_snapshot_get *req, raft_io_snapshot_get_cb cb);
        raft_io_tick_cb tick;
        raft_io_recv_cb receive;
};

struct raftlog {
        struct uvloop *loop;
        struct raft_uv_transport transport;
        struct raft_io io;
        struct raftlog_uv uv;
        struct raft_fsm fsm;
        struct raft raft;
        struct raftlog_ops ops;
        void *userdata;
        TAILQ_HEAD(, request) pending; /* in the order of the log, until applied */
        uint64_t voter_id;
        uint64_t log_id;
        bool raft_up;
        bool closing;
        bool closed;
        bool full; /* the last entry was refused for want of room */
        bool opened; /* raftlog_open() has returned */
        uint64_t won_term; /* the last one in which this voter was elected */
        uint64_t won_index; /* when that is applied, all that earlier leaders have committed is */
        uint64_t won_commit; /* what was known as committed then; all that is committed after it is of that term */
        uint64_t reported_term; /* what was told by on_role: the term that is led; 0: none */
        char *reported_leader;
        struct event *role_event;
        struct rm_error failed; /* why nothing more is applied; code 0: it is */
        char *log_dir;
        char *identity_path;
        uint64_t known_index; /* so far a previous rmd has applied it: what was committed, although raft need not know it yet */
        uint64_t skip_index; /* so far apply_known() has applied it: what raft brings up to there is passed over */
        uint64_t next_note_usec;
        uint64_t noted_index; /* in the file that says so */
        TAILQ_HEAD(, loaded) loaded; /* commands up to known_index, until they are applied */
        /* ---- raftlog_members.c ---- */
        struct event *tick_event;
        uint64_t tick_usec; /* 0: not begun */
        unsigned heartbeat_msec;
        bool barring; /* `barrier` is under way */
        struct raft_barrier barrier;
        uint64_t got_index, got_term; /* of the snapshot that was read last, to be sent */
        unsigned puts; /* snapshots on their way to the disk */
        LIST_HEAD(, inbound) inbound;
        struct event *commit_event;
        struct raft_message early_lead; /* see keep_early_lead(); of type 0: there is none */
        char *early_lead_node;
        struct event *early_lead_event;
        LIST_HEAD(, reported) reported;
        LIST_HEAD(, change) changes; /* raftlog_changes.c */
        bool changing; /* `change` or `transfer` is under way */
        struct raft_change change;
        struct raft_transfer transfer, yield;
        bool yielding;
        raftlog_change_fn change_done;
        void *change_userdata;
};

/* ---- raftlog_identity.c ---- */
char *raftlog_identity_path(const char *dir);
uint64_t raftlog_draw_id(void);
/* Reads the file "voter". -EBADMSG: it is damaged; -ENOTSUP: it is of another format; or another
 * negative errno. */
int raftlog_identity_read(struct raftlog *log, struct rm_error *err);
/* Writes the file "voter", and forces it to the disk. 0 or negative errno. */
int raftlog_identity_write(const struct raftlog *log, struct rm_error *err);
/* How far the log was applied, in the file "applied": to be read before it is opened, and noted now
 * and then; it needs not be on the disk. */
void raftlog_known_read(struct raftlog *log);
void raftlog_known_note(struct raftlog *log);
/* Renames a directory of logs without the file that names their voter. 0 also when there is none,
 * or negative errno. */
int raftlog_set_aside(const struct raftlog *log, struct rm_error *err);

/* ---- raftlog_members.c ---- */
void raftlog_transport_init(struct raft_uv_transport *transport);
/* To be called between raft_uv_init() and raft_init(). */
void raftlog_members_init(struct raftlog *log, struct event_base *base, unsigned election_msec);
void raftlog_members_finish(struct raftlog *log);
/* The disk has failed, or an entry is not understood: this node must not go on. Returns the value
 * for raft: 0, or RAFT_CORRUPT while the log is being opened. */
int raftlog_fail(struct raftlog *log, const struct rm_error *why);
/* Within raft, after each of its steps: the pace of its clock, and what the others are to be
 * told. */
void raftlog_members_step(struct raftlog *log);
/* While `urgent` is set, raft sends all its messages at once, to all voters; to be reset before
 * anything else is called. */
void raftlog_members_urge(struct raftlog *log, bool urgent);

/* ---- raftlog_changes.c ---- */
/* Raft is about to get these entries. */
void raftlog_changes_come(struct raftlog *log, const struct raft_append_entries *append);
/* Notes that the configuration that is applied is committed. To be called after raft got entries,
 * and before it gets anything else. */
void raftlog_changes_note(struct raftlog *log);
/* The configuration at that index, if it is one of which raft has not noted that it is committed;
 * else NULL. */
const struct raft_configuration *raftlog_changes_at(const struct raftlog *log, uint64_t index, uint64_t *ret_index);
void raftlog_changes_finish(struct raftlog *log);
/* `to` is empty. False: no memory. */
bool raftlog_copy_configuration(const struct raft_configuration *from, struct raft_configuration *to);

#endif
