#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <raft.h>
#include <raft/uv.h>

#include "common/log.h"
#include "common/util.h"
#include "daemon/log/log_format.h"
#include "daemon/log/raft_memory.h"
#include "daemon/log/raftlog_internal.h"
#include "daemon/state/state.h"

/* Two segments are made ahead at every start, so that small ones make for a quick start; a full
 * log's snapshot comes first. */
#define SEGMENT_BYTES (256U << 10)
/* With less than this left of what is made ahead, on a full disk, proposals are refused (-ENOSPC)
 * instead of hanging. */
#define DISK_RESERVE_KIB 64U
/* So much must be free besides for a large entry: others may be under way, and segments and
 * snapshots are made beside it. */
#define SPACE_BYTES (8U << 20)
/* A snapshot that was lost on its way is sent again after this time. */
#define INSTALL_MSEC 5000U
/* Each message about damage in the log ends with this advice. */
#define ADVICE                                                                                                                     \
        "; restore the folder 'log' and the file 'voter' beside it from a copy, or remove both: a node gets "                      \
        "the log from the "                                                                                                        \
        "other voters then, and one that keeps it alone begins with an empty one, and jobs that run are ended"
/* Entries kept behind a snapshot, in memory too; those that follow without a log catch up from
 * elsewhere (feed.h). */
#define TRAILING_ENTRIES 64U

struct request {
        struct raft_apply raft;
        struct raftlog *log;
        struct raftlog_outcome outcome;
        raftlog_done_fn done;
        void *userdata;
        TAILQ_ENTRY(request) entry;
};

/* ---- the state machine as raft sees it ---- */

int raftlog_fail(struct raftlog *log, const struct rm_error *why) {
        if (log->failed.code == 0) {
                log->failed = *why;
                if (log->opened)
                        log->ops.on_failed(log->userdata, why);
        }
        /* A raft that runs does not survive an error of its state machine. */
        return log->opened ? 0 : RAFT_CORRUPT;
}

static int apply_entry(struct raftlog *log, uint64_t index, const struct raft_buffer *buf, struct raftlog_outcome *ret) {
        Rm__Command *command = log_entry_unpack(buf);
        int r;

        if (!command)
                return error_set(&ret->error, -EBADMSG,
                                 "entry %" PRIu64 " cannot be read: it is damaged; the state after it cannot be known (%s)" ADVICE,
                                 index, log->log_dir);
        r = log->ops.on_apply(log->userdata, index, command, ret);
        rm__command__free_unpacked(command, NULL);
        if (r < 0)
                (void) error_prefix(&ret->error, "entry %" PRIu64 " of the log", index);
        return r;
}

/* Requests that were applied in the same call are still in the list: raft reports them
 * afterwards. */
static void set_outcome(struct raftlog *log, uint64_t index, const struct raftlog_outcome *outcome) {
        struct request *request;

        TAILQ_FOREACH (request, &log->pending, entry)
                if (request->raft.index == index) {
                        request->outcome = *outcome;
                        break;
                }
}

/* An entry that this rmd cannot apply is committed, so other voters may apply it. */
static int fail_entry(struct raftlog *log, uint64_t index, const struct rm_error *why) {
        struct raftlog_outcome unknown = { 0 };

        (void) error_set(&unknown.error, -EHOSTUNREACH, "the leader cannot go on from its log; it may be done or not");
        set_outcome(log, index, &unknown);
        return raftlog_fail(log, why);
}

/* After an error raft applies nothing more, and makes no snapshot of a state that lacks the
 * entry. */
static int fsm_apply(struct raft_fsm *fsm, const struct raft_buffer *buf, void **result) {
        struct raftlog *log = fsm->data;
        uint64_t index = raft_last_applied(&log->raft) + 1;
        struct raftlog_outcome outcome = { .index = index };

        *result = NULL;
        if (log->failed.code < 0)
                return fail_entry(log, index, &log->failed);
        if (index <= log->skip_index)
                return 0;
        if (apply_entry(log, index, buf, &outcome) < 0)
                return fail_entry(log, index, &outcome.error);
        outcome.index = index;
        set_outcome(log, index, &outcome);
        return 0;
}

static int fsm_snapshot(struct raft_fsm *fsm, struct raft_buffer *bufs[], unsigned *n_bufs) {
        struct raftlog *log = fsm->data;

        if (log->failed.code < 0)
                return RAFT_CANCELED;
        log_snapshot_pack(log->ops.get_state(log->userdata), bufs, n_bufs);
        return 0;
}

static int fsm_restore(struct raft_fsm *fsm, struct raft_buffer *buf) {
        struct raftlog *log = fsm->data;
        Rm__State *state = log_snapshot_unpack(buf);
        struct rm_error why = { 0 };

        int r = 0;

        if (!state)
                (void) error_set(&why, -EBADMSG, "the snapshot cannot be read: it is damaged" ADVICE);
        else if (log->ops.on_restore(log->userdata, state, &why) < 0) {
                rm__state__free_unpacked(state, NULL);
                (void) error_prefix(&why, "the snapshot");
        }
        if (why.code < 0)
                r = raftlog_fail(log, &why);
        if (r == 0)
                raft_free(buf->base);
        return r;
}

/* ---- the leader ---- */

/* A new leader does not know which of its entries are committed until one of its own term is, which
 * raft puts into the log at once. */
static void note_won(struct raftlog *log) {
        if (raft_state(&log->raft) != RAFT_LEADER || log->won_term == raft_current_term(&log->raft))
                return;
        assert(raft_current_term(&log->raft) > log->won_term); /* a term has one leader, and none comes again */
        assert(raft_last_index(&log->raft) >= raft_commit_index(&log->raft)); /* it has all that was acknowledged */
        log->won_term = raft_current_term(&log->raft);
        log->won_index = raft_last_index(&log->raft);
        log->won_commit = raft_commit_index(&log->raft);
}

bool raftlog_leading(const struct raftlog *log) {
        struct raft *raft = (struct raft *) &log->raft;

        return raft_state(raft) == RAFT_LEADER && log->won_term == raft_current_term(raft) &&
               raft_last_applied(raft) >= log->won_index;
}

uint64_t raftlog_term(const struct raftlog *log) {
        return raft_current_term(&log->raft);
}

const char *raftlog_leader(const struct raftlog *log) {
        const char *name = NULL;
        raft_id id = 0;

        raft_leader((struct raft *) &log->raft, &id, &name);
        return id != 0 ? name : NULL;
}

static bool same_leader(const struct raftlog *log) {
        const char *leader = raftlog_leader(log);

        return leader && log->reported_leader ? strcmp(leader, log->reported_leader) == 0 : leader == log->reported_leader;
}

/* Is it as it was told? */
static bool role_reported(struct raftlog *log) {
        uint64_t term = raftlog_leading(log) ? raftlog_term(log) : 0;

        if (term == log->reported_term && same_leader(log))
                return true;
        log->reported_term = term;
        free(log->reported_leader);
        log->reported_leader = xstrdup(raftlog_leader(log));
        return false;
}

static void on_role_event(evutil_socket_t fd, short what, void *userdata) {
        struct raftlog *log = userdata;

        if (!role_reported(log))
                log->ops.on_role(log->userdata);
}

/* Within raft, where nothing can be proposed, and before what this step commits is applied. */
static void on_step(struct raft *raft) {
        struct raftlog *log = raft->data;
        uint64_t term = raft_state(raft) == RAFT_LEADER ? raft_current_term(raft) : 0;

        note_won(log);
        raftlog_members_step(log);
        if (log->opened && (term != log->reported_term || !same_leader(log)))
                event_active(log->role_event, EV_TIMEOUT, 0);
}

/* ---- create and destroy ---- */

static void free_loaded(struct raftlog *log) {
        struct loaded *loaded;

        while ((loaded = TAILQ_FIRST(&log->loaded))) {
                TAILQ_REMOVE(&log->loaded, loaded, entry);
                free(loaded->buf.base);
                free(loaded);
        }
}

/* With other voters raft knows what is committed only when one leads. What this node has applied
 * before was. */
static int apply_known(struct raftlog *log, struct rm_error *err) {
        struct raftlog_outcome outcome = { 0 };
        struct loaded *loaded;

        TAILQ_FOREACH (loaded, &log->loaded, entry)
                if (loaded->index > raft_last_applied(&log->raft)) {
                        if (apply_entry(log, loaded->index, &loaded->buf, &outcome) < 0) {
                                *err = outcome.error;
                                return outcome.error.code;
                        }
                        log->skip_index = loaded->index;
                }
        free_loaded(log);
        return 0;
}

static int raft_error(struct raftlog *log, struct rm_error *err, int code, const char *what) {
        const char *detail = raft_errmsg(&log->raft);

        if (log->failed.code < 0)
                return error_set(err, log->failed.code, "%s", log->failed.text);
        return error_set(err,
                         code == RAFT_NOSPACE   ? -ENOSPC
                         : code == RAFT_CORRUPT ? -EBADMSG
                                                : -EIO,
                         "%s: %s (%s)%s", what, raft_strerror(code), detail[0] ? detail : log->io.errmsg,
                         code == RAFT_CORRUPT ? ADVICE : "");
}

static int raft_make(struct raftlog *log, const char *name, struct rm_error *err) {
        struct raft_configuration configuration;
        int r;

        raft_configuration_init(&configuration);
        r = raft_configuration_add(&configuration, log->voter_id, name, RAFT_VOTER);
        if (r == 0)
                r = raft_bootstrap(&log->raft, &configuration);
        raft_configuration_close(&configuration);
        if (r != 0)
                return raft_error(log, err, r, "cannot make a log");
        return raftlog_identity_write(log, err);
}

static int raft_open(struct raftlog *log, struct event_base *base, const struct raftlog_config *config, bool make,
                     struct rm_error *err) {
        int r;

        if (mkdir(log->log_dir, 0700) < 0 && errno != EEXIST)
                return error_sys(err, -errno, "cannot make %s", log->log_dir);
        raft_memory_use();
        raftlog_transport_init(&log->transport);
        r = raft_uv_init(&log->io, uvloop_get(log->loop), log->log_dir, &log->transport);
        if (r != 0)
                return error_set(err, -EIO, "%s: %s", raft_strerror(r), log->io.errmsg);
        raft_uv_set_segment_size(&log->io, SEGMENT_BYTES);
        /* With automatic recovery raft would rename segments that it cannot read, and begin with
         * the rest: a state that lacks commands that were acknowledged. */
        raft_uv_set_auto_recovery(&log->io, false);
        log->fsm = (struct raft_fsm) {
                .version = 1, .data = log, .apply = fsm_apply, .snapshot = fsm_snapshot, .restore = fsm_restore
        };
        raftlog_members_init(log, base, config->election_msec);
        r = raft_init(&log->raft, &log->io, &log->fsm, log->voter_id, config->name);
        if (r != 0) {
                (void) raft_error(log, err, r, "cannot use it");
                raft_uv_close(&log->io);
                return -EIO;
        }
        log->raft.data = log;
        log->raft.legacy.step_cb = on_step;
        log->raft_up = true;
        /* Or voters that start together would always want to lead at the same moment: raft_uv's
         * numbers are the same in each process. */
        raft_seed(&log->raft, (unsigned) raftlog_draw_id());
        raft_set_pre_vote(&log->raft, true);
        raft_set_heartbeat_timeout(&log->raft, log->heartbeat_msec);
        raft_set_election_timeout(&log->raft, config->election_msec);
        raft_set_install_snapshot_timeout(&log->raft, INSTALL_MSEC);
        raft_set_capacity_threshold(&log->raft, DISK_RESERVE_KIB);
        raft_set_snapshot_threshold(&log->raft, config->snapshot_entries);
        raft_set_snapshot_trailing(&log->raft, TRAILING_ENTRIES);
        if (make) {
                r = config->join_log ? raftlog_identity_write(log, err) : raft_make(log, config->name, err);
                if (r < 0)
                        return r;
        }
        r = raft_start(&log->raft);
        if (r != 0 || log->failed.code < 0)
                return raft_error(log, err, r, "cannot start from it");
        raftlog_changes_note(log);
        return 0;
}

int raftlog_open(struct event_base *base, const struct raftlog_config *config, const struct raftlog_ops *ops, void *userdata,
                 struct raftlog **ret, struct rm_error *err) {
        struct raftlog *log = xcalloc(1, sizeof(*log));
        bool make = !raftlog_exists(config->dir);
        int r;

        log->ops = *ops;
        log->userdata = userdata;
        log->log_dir = xasprintf("%s/log", config->dir);
        log->identity_path = raftlog_identity_path(config->dir);
        TAILQ_INIT(&log->pending);
        TAILQ_INIT(&log->loaded);
        log->role_event = evtimer_new(base, on_role_event, log);
        if (!log->role_event)
                abort();
        r = uvloop_create(base, &log->loop);
        if (r < 0)
                r = error_sys(err, r, "cannot make a loop for the log");
        else if (make) {
                log->voter_id = raftlog_draw_id();
                log->log_id = config->join_log ? config->join_log : raftlog_draw_id();
                r = raftlog_set_aside(log, err);
        } else
                r = raftlog_identity_read(log, err);
        if (r == 0)
                raftlog_known_read(log);
        if (r == 0)
                r = raft_open(log, base, config, make, err);
        if (r == 0)
                r = apply_known(log, err);
        if (r < 0) {
                (void) error_prefix(err, "log in %s", log->log_dir);
                raftlog_close(log);
                return r;
        }
        uvloop_kick(log->loop);
        (void) role_reported(log);
        log->opened = true;
        *ret = log;
        return 0;
}

static void on_closed(struct raft *raft) {
        struct raftlog *log = raft->data;

        log->closed = true;
}

void raftlog_close(struct raftlog *log) {
        if (!log)
                return;
        log->closing = true;
        if (log->opened)
                raftlog_known_note(log);
        free_loaded(log);
        if (log->raft_up) {
                raft_close(&log->raft, on_closed);
                while (!log->closed)
                        (void) uv_run(uvloop_get(log->loop), UV_RUN_ONCE);
                raft_uv_close(&log->io);
        }
        uvloop_destroy(log->loop);
        raftlog_members_finish(log);
        event_free(log->role_event);
        free(log->reported_leader);
        free(log->log_dir);
        free(log->identity_path);
        free(log);
}

uint64_t raftlog_id(const struct raftlog *log) {
        return log->log_id;
}

/* ---- proposing ---- */

static void on_raft_applied(struct raft_apply *raft, int status, void *result) {
        struct request *request = raft->data;

        (void) result;
        TAILQ_REMOVE(&request->log->pending, request, entry);
        if (status == RAFT_LEADERSHIPLOST || status == RAFT_NOTLEADER)
                (void) error_set(&request->outcome.error, -EHOSTUNREACH, "the leader has changed; it may be done or not");
        else if (status == RAFT_CANCELED || status == RAFT_SHUTDOWN)
                (void) error_set(&request->outcome.error, -ECANCELED, "shutting down");
        else if (status != 0)
                (void) error_set(&request->outcome.error, -EIO, "the log: %s", raft_strerror(status));
        /* Only a command that was applied is acknowledged as done. */
        assert(request->outcome.error.code < 0 || request->outcome.index == request->raft.index);
        request->done(request->userdata, &request->outcome);
        free(request);
}

/* Small entries fit into what is made ahead, or raft refuses them. A large one goes beyond it, and
 * raft does not survive that there is no room: it would die, and leave a log that cannot be
 * read. */
static bool has_space(const struct raftlog *log, size_t bytes) {
        struct statvfs disk;

        if (bytes <= DISK_RESERVE_KIB * 1024U / 2)
                return true;
        return statvfs(log->log_dir, &disk) < 0 || (uint64_t) disk.f_bavail * disk.f_frsize >= 2 * (uint64_t) bytes + SPACE_BYTES;
}

bool raftlog_full(const struct raftlog *log) {
        return log->full;
}

/* Proposals are made again and again; it is said once. */
static void set_full(struct raftlog *log, bool full) {
        if (full && !log->full)
                log_error("%s: the disk is full; nothing can be changed until there is room, jobs run on", log->log_dir);
        else if (!full && log->full)
                log_info("%s: space is available again", log->log_dir);
        log->full = full;
}

int raftlog_propose(struct raftlog *log, const Rm__Command *command, raftlog_done_fn done, void *userdata) {
        size_t size_bytes = log_entry_bytes(command);
        raft_index last = raft_last_index(&log->raft);
        struct raft_buffer buf;
        struct request *request;
        int r;

        if (!raftlog_leading(log))
                return -EHOSTUNREACH;
        if (size_bytes <= LOG_ENTRY_MAX_BYTES && !has_space(log, size_bytes)) {
                log_warn("%s: the disk is nearly full; an entry of %zu bytes is refused", log->log_dir, size_bytes);
                return -ENOSPC;
        }
        r = log_entry_pack(command, &buf);
        if (r < 0)
                return r;
        request = xcalloc(1, sizeof(*request));
        request->log = log;
        request->done = done;
        request->userdata = userdata;
        request->raft.data = request;
        uv_update_time(uvloop_get(log->loop));
        raftlog_members_urge(log, true);
        r = raft_apply(&log->raft, &request->raft, &buf, 1, on_raft_applied);
        raftlog_members_urge(log, false);
        uvloop_kick(log->loop);
        set_full(log, r == RAFT_NOSPACE);
        if (r != 0) {
                if (r != RAFT_NOSPACE)
                        log_error("the log rejects an entry: %s (%s)", raft_strerror(r), raft_errmsg(&log->raft));
                free(request);
                /* An entry that was counted may be in the log's memory already: rather lose it than
                 * free it twice. */
                if (raft_last_index(&log->raft) == last)
                        raft_free(buf.base);
                return r == RAFT_NOTLEADER ? -EHOSTUNREACH : r == RAFT_NOSPACE ? -ENOSPC : -EIO;
        }
        TAILQ_INSERT_TAIL(&log->pending, request, entry);
        return 0;
}
