/* The configuration of the log: its members, and changes of it. */
#include "daemon/log/raftlog_internal.h"

#include <errno.h>
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/lsan_interface.h>
#endif
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "common/util.h"

/* ---- the configuration ---- */

static enum raftlog_role role_of(int raft_role) {
        return raft_role == RAFT_VOTER ? RAFTLOG_VOTER : raft_role == RAFT_STANDBY ? RAFTLOG_STANDBY : RAFTLOG_SPARE;
}

uint64_t raftlog_voter_id(const struct raftlog *log) {
        return log->voter_id;
}

uint64_t raftlog_applied(const struct raftlog *log) {
        return raft_last_applied((struct raft *) &log->raft);
}

uint64_t raftlog_last_term(const struct raftlog *log) {
        const struct raft_trail *trail = &log->raft.trail; /* where each term ends, in a ring */

        if (trail->front == trail->back)
                return trail->snapshot.term;
        return trail->records[(trail->back + trail->size - 1) % trail->size].term;
}

enum raftlog_role raftlog_role(const struct raftlog *log) {
        const struct raft_configuration *configuration = &log->raft.configuration;

        for (unsigned i = 0; i < configuration->n; i++)
                if (configuration->servers[i].id == log->voter_id)
                        return role_of(configuration->servers[i].role);
        return RAFTLOG_NONE;
}

static bool is_current(const struct raftlog *log, uint64_t id) {
        struct raft *raft = (struct raft *) &log->raft;
        raft_index index = 0;

        return raft_state(raft) == RAFT_LEADER && raft_match_index(raft, id, &index) == 0 && index >= raft_commit_index(raft);
}

size_t raftlog_members(const struct raftlog *log, struct raftlog_member *members, size_t max) {
        const struct raft_configuration *configuration = &log->raft.configuration;
        size_t n = configuration->n < max ? configuration->n : max;

        for (size_t i = 0; i < n; i++)
                members[i] = (struct raftlog_member) { .id = configuration->servers[i].id,
                                                       .node = configuration->servers[i].address,
                                                       .role = role_of(configuration->servers[i].role),
                                                       .current = is_current(log, configuration->servers[i].id) };
        return n;
}

bool raftlog_changing(const struct raftlog *log) {
        return log->changing || log->raft.configuration_uncommitted_index != 0;
}

static void change_ended(struct raftlog *log, int code) {
        raftlog_change_fn done = log->change_done;

        log->changing = false;
        done(log->change_userdata, code);
}

static void on_changed(struct raft_change *change, int status) {
        change_ended(change->data, status == 0 ? 0 : status == RAFT_NOCONNECTION ? -ENOTCONN : -EHOSTUNREACH);
}

static void on_transferred(struct raft_transfer *transfer) {
        change_ended(transfer->data, 0);
}

/* libraft 0.22.1 loses the entry of a change that it has refused for want of room, some hundred
 * bytes. */
#ifdef __SANITIZE_ADDRESS__
#define IGNORE_LEAKS(call)                                                                                                         \
        ({                                                                                                                         \
                int _r;                                                                                                            \
                                                                                                                                   \
                __lsan_disable();                                                                                                  \
                _r = (call);                                                                                                       \
                __lsan_enable();                                                                                                   \
                _r;                                                                                                                \
        })
#else
#define IGNORE_LEAKS(call) (call)
#endif

/* May a change begin? */
static int change_begin(struct raftlog *log, raftlog_change_fn done, void *userdata) {
        if (!raftlog_leading(log))
                return -EHOSTUNREACH;
        if (raftlog_changing(log))
                return -EBUSY;
        memset(&log->change, 0, sizeof(log->change));
        memset(&log->transfer, 0, sizeof(log->transfer));
        log->change.data = log->transfer.data = log;
        log->change_done = done;
        log->change_userdata = userdata;
        uv_update_time(uvloop_get(log->loop));
        return 0;
}

static int change_begun(struct raftlog *log, int code) {
        log->changing = code == 0;
        uvloop_kick(log->loop);
        if (code == 0)
                return 0;
        /* libraft 0.22.1 keeps one that it has refused for want of room, and would call back when
         * it loses the leadership, or ends. */
        log->raft.legacy.change = NULL;
        log_warn("the voters cannot be changed: %s (%s)", raft_strerror(code), raft_errmsg(&log->raft));
        return code == RAFT_CANTCHANGE ? -EBUSY : code == RAFT_NOTLEADER ? -EHOSTUNREACH : -EIO;
}

int raftlog_add(struct raftlog *log, uint64_t id, const char *node, raftlog_change_fn done, void *userdata) {
        int r = change_begin(log, done, userdata);

        return r < 0 ? r : change_begun(log, IGNORE_LEAKS(raft_add(&log->raft, &log->change, id, node, on_changed)));
}

int raftlog_assign(struct raftlog *log, uint64_t id, enum raftlog_role role, raftlog_change_fn done, void *userdata) {
        int raft_role = role == RAFTLOG_VOTER ? RAFT_VOTER : role == RAFTLOG_STANDBY ? RAFT_STANDBY : RAFT_SPARE;
        int r = change_begin(log, done, userdata);

        return r < 0 ? r : change_begun(log, IGNORE_LEAKS(raft_assign(&log->raft, &log->change, id, raft_role, on_changed)));
}

int raftlog_remove(struct raftlog *log, uint64_t id, raftlog_change_fn done, void *userdata) {
        int r = change_begin(log, done, userdata);

        return r < 0 ? r : change_begun(log, IGNORE_LEAKS(raft_remove(&log->raft, &log->change, id, on_changed)));
}

int raftlog_transfer(struct raftlog *log, uint64_t id, raftlog_change_fn done, void *userdata) {
        int r = change_begin(log, done, userdata);

        return r < 0 ? r : change_begun(log, raft_transfer(&log->raft, &log->transfer, id, on_transferred));
}

static void on_yielded(struct raft_transfer *transfer) {
        struct raftlog *log = transfer->data;

        log->yielding = false;
}

bool raftlog_yield(struct raftlog *log) {
        if (log->yielding || !raftlog_leading(log))
                return log->yielding;
        memset(&log->yield, 0, sizeof(log->yield));
        log->yield.data = log;
        uv_update_time(uvloop_get(log->loop));
        log->yielding = raft_transfer(&log->raft, &log->yield, 0, on_yielded) == 0;
        uvloop_kick(log->loop);
        return log->yielding;
}
