/* The log on this node: what comes through it, how it comes to be and goes, and how a node becomes
 * a voter and ceases to be one. */
#include "daemon/cluster/cluster_internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/log.h"
#include "common/timer.h"
#include "common/util.h"
#include "daemon/peers/peer_message.h"
#include "daemon/state/state.h"

/* Waiting to be sent to one voter: more is dropped, raft sends again. */
#define RAFT_PENDING_MAX_BYTES ((size_t) 4 << 20)
/* So long does a node that is to begin a cluster seek one that is there. */
#define BOOTSTRAP_USEC UINT64_C(3000000)
/* A follower of an earlier leader, or one that was away, may have missed so much without being
 * sent the whole state. */
#define FEED_ENTRIES 2048U
#define FEED_BYTES ((size_t) 4 << 20)

/* ---- what comes through it ---- */

static int apply_entry(struct cluster *c, uint64_t index, const Rm__Command *command, struct raftlog_outcome *ret) {
        uint64_t before = c->state->index;
        struct state_result result;

        if (!c->member)
                event_active(c->member_event, EV_TIMEOUT, 0);
        /* The leader sent the command directly before it came through the log. */
        if (index <= before)
                return 0;
        cluster_apply(c, index, command, &result);
        ret->error = result.error;
        ret->created = result.created;
        if (result.unknown)
                return result.error.code;
        /* Raft may have lost the leadership already, and role_changed() is about to say so. */
        if (c->leading && raftlog_leading(c->log))
                leading_applied(c->leading, before, index, command);
        if (c->peers)
                cluster_report_applied(c, command, &result);
        if (c->following)
                following_applied(c->following);
        state_result_finish(&result);
        return 0;
}

static int on_log_apply(void *userdata, uint64_t index, const Rm__Command *command, struct raftlog_outcome *ret) {
        struct cluster *c = userdata;
        int r = apply_entry(c, index, command, ret);

        if (r == 0)
                feed_push(c->feed, index, command);
        return r;
}

static int restore(struct cluster *c, Rm__State *state, struct rm_error *err) {
        int r = state_understands_state(state, err);

        if (r < 0)
                return r;
        if (!c->member)
                event_active(c->member_event, EV_TIMEOUT, 0);
        if (c->state->index > 0 && state->index <= c->state->index) {
                rm__state__free_unpacked(state, NULL);
                return 0;
        }
        cluster_replace_state(c, state);
        if (c->peers)
                cluster_report_installed(c);
        if (c->following)
                following_applied(c->following);
        return 0;
}

static int on_log_restore(void *userdata, Rm__State *state, struct rm_error *err) {
        struct cluster *c = userdata;
        uint64_t index = state->index;
        int r = restore(c, state, err);

        if (r == 0)
                feed_reset(c->feed, index);
        return r;
}

static int on_raft_send(void *userdata, const char *node, const Rm__PeerMessage *message) {
        struct cluster *c = userdata;

        if (!c->peers)
                return -ENOTCONN;
        if (message->raft_part->offset == 0 && peers_pending_bytes(c->peers, node) > RAFT_PENDING_MAX_BYTES)
                return -ENOBUFS;
        return peers_send(c->peers, node, message);
}

static int open_raftlog(struct cluster *c, uint64_t join_log, struct rm_error *err) {
        static const struct raftlog_ops ops = { .on_apply = on_log_apply,
                                                .on_restore = on_log_restore,
                                                .on_failed = cluster_fail,
                                                .get_state = cluster_get_state,
                                                .on_role = role_changed,
                                                .send = on_raft_send };
        const struct raftlog_config config = { .dir = c->state_dir,
                                               .name = c->self_name,
                                               .snapshot_entries = c->snapshot_entries,
                                               .election_msec = c->election_msec,
                                               .join_log = join_log };
        int r;

        c->feed = feed_create(FEED_ENTRIES, FEED_BYTES);
        r = raftlog_open(c->base, &config, &ops, c, &c->log, err);
        if (r < 0)
                feed_destroy(take_ptr(c->feed));
        return r;
}

void log_close(struct cluster *c) {
        raftlog_close(take_ptr(c->log));
        feed_destroy(take_ptr(c->feed));
}

/* The node was to become a voter. Raft need not send it anything yet, so it goes by what the leader
 * sends, as before; but its log is kept: the leader may count on it already. The cached state may
 * be older than the log, and would miss the commands in between, so it is removed. */
static int await_vote(struct cluster *c, struct rm_error *err) {
        if (unlink(c->cache_path) < 0 && errno != ENOENT)
                return error_sys(err, -errno, "cannot remove %s", c->cache_path);
        return 0;
}

static char *joined_path(const struct cluster *c) {
        return xasprintf("%s/joined", c->state_dir);
}

int log_note_joined(struct cluster *c, struct rm_error *err) {
        cleanup_free char *path = joined_path(c);
        cleanup_free char *text = xasprintf("%s\n", c->state->cluster);
        int r;

        if (c->joined)
                return 0;
        if (access(path, F_OK) < 0) {
                r = write_file_atomic(path, text, strlen(text), 0600, true);
                if (r < 0)
                        return error_sys(err, r, "cannot write %s", path);
        }
        c->joined = true;
        return 0;
}

static int discard(struct cluster *c, struct rm_error *err) {
        int r = log_note_joined(c, err);

        log_close(c);
        return r < 0 ? r : raftlog_discard(c->state_dir, err);
}

/* A log whose node was never made a voter, or is one no more, is of no use: its leader begins
 * again. */
int log_open(struct cluster *c, struct rm_error *err) {
        int r;

        if (!raftlog_exists(c->state_dir))
                return 0;
        r = open_raftlog(c, 0, err);
        if (r < 0)
                return r;
        if (raftlog_role(c->log) == RAFTLOG_NONE)
                return discard(c, err);
        if (raftlog_role(c->log) != RAFTLOG_VOTER)
                return await_vote(c, err);
        c->member = true;
        log_info("keeping the log of cluster %s, at entry %" PRIu64, c->state->cluster, c->state->index);
        return 0;
}

/* ---- voters come and go ---- */

static void follow_again(struct cluster *c, uint64_t state_log_id) {
        following_destroy(take_ptr(c->following));
        role_begin_following(c, state_log_id);
        if (c->leader)
                following_set_leader(c->following, c->leader);
}

/* A log that was prepared becomes what this node goes by once it has a vote and all that this node
 * knows. */
void log_see_member(evutil_socket_t fd, short what, void *userdata) {
        struct cluster *c = userdata;

        if (c->member || !c->log || raftlog_role(c->log) != RAFTLOG_VOTER || raftlog_applied(c->log) < c->state->index)
                return;
        c->member = true;
        log_info("this node keeps the log now, at entry %" PRIu64, c->state->index);
        follow_again(c, 0);
        role_changed(c);
}

static void send_ready(struct cluster *c, const char *node) {
        Rm__VoterReady ready = RM__VOTER_READY__INIT;

        ready.log = raftlog_id(c->log);
        ready.voter = raftlog_voter_id(c->log);
        (void) peers_send(c->peers, node, &PEER_MESSAGE(&ready));
}

void log_take_invite(struct cluster *c, const char *node, const Rm__VoterInvite *invite) {
        struct rm_error err = { 0 };

        if (c->leading || !c->following || (!c->log && following_log_id(c->following) != invite->log))
                return;
        if (!c->log && open_raftlog(c, invite->log, &err) < 0) {
                log_warn("this node is to keep the log, and cannot: %s", err.text);
                return;
        }
        send_ready(c, node);
}

/* A former leader may not know that this node was asked to keep the log after that, so its order is
 * checked. */
void log_take_retire(struct cluster *c, const char *node, const Rm__VoterRetire *retire) {
        struct rm_error err = { 0 };
        uint64_t log_id;

        if (c->leading || !c->log || retire->voter != raftlog_voter_id(c->log) || retire->log != raftlog_id(c->log) ||
            retire->term < (c->member ? raftlog_last_term(c->log) : raftlog_term(c->log)))
                return;
        log_info("node %s says that this node keeps the log no more", node);
        log_id = retire->log;
        if (discard(c, &err) < 0)
                log_warn("%s", err.text);
        if (c->member) {
                c->member = false;
                follow_again(c, log_id);
        }
}

/* Asks the leader whether this node is still a member. Voters ignore a voter that was removed while
 * it was away, which would wait indefinitely for a leader of its own. The leader answers with
 * VoterRetire, or with an answer that is passed over. */
void log_ask_membership(struct cluster *c, const char *node) {
        Rm__Follow follow = RM__FOLLOW__INIT;

        follow.index = c->state->index;
        follow.log = raftlog_id(c->log);
        follow.voter = true;
        follow.number = raftlog_voter_id(c->log);
        (void) peers_send(c->peers, node, &PEER_MESSAGE(&follow));
}

/* ---- a new cluster ---- */

/* Make the log of a new cluster. */
static int bootstrap(struct cluster *c, struct rm_error *err) {
        int r = open_raftlog(c, 0, err);

        if (r < 0)
                return r;
        c->member = true;
        log_info("this node begins cluster %s", c->state->cluster);
        return 0;
}

/* None of the nodes to join through has answered that there is a cluster. */
static void on_bootstrap(evutil_socket_t fd, short what, void *userdata) {
        struct cluster *c = userdata;
        struct rm_error err = { 0 };

        if (c->log || c->leader || following_log_id(c->following) != 0 || peers_know_log(c->peers))
                return;
        if (bootstrap(c, &err) < 0)
                cluster_fail(c, &err);
        else
                role_changed(c);
}

/* The key only begins a cluster. A node that was in one, or can ask others, is not to begin a
 * second one. */
int log_begin_cluster(struct cluster *c, const struct cluster_config *config, struct rm_error *err) {
        cleanup_free char *joined = joined_path(c);

        if (!config->bootstrap || c->log || access(c->cache_path, F_OK) == 0 || access(joined, F_OK) == 0)
                return 0;
        if (config->n_peers == 0)
                return bootstrap(c, err);
        c->bootstrap_event = evtimer_new(c->base, on_bootstrap, c);
        if (!c->bootstrap_event)
                abort();
        timer_arm(c->bootstrap_event, BOOTSTRAP_USEC);
        return 0;
}
