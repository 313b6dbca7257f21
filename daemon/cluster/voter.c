#include "daemon/cluster/voter.h"

#include <errno.h>
#include <stdlib.h>

#include "common/util.h"

#define SNAPSHOT_ENTRIES 1024U
#define ELECTION_MSEC 300U
/* A follower of an earlier leader, or one that was away, may have missed so much without being
 * sent the whole state. */
#define FEED_ENTRIES 2048U
#define FEED_BYTES ((size_t) 4 << 20)

struct voter {
        struct raftlog *log;
        struct feed *feed;
        struct raftlog_ops ops;
        void *userdata;
};

static int on_apply(void *userdata, uint64_t index, const Rm__Command *command, struct raftlog_outcome *ret) {
        struct voter *voter = userdata;
        int r = voter->ops.on_apply(voter->userdata, index, command, ret);

        if (r == 0)
                feed_push(voter->feed, index, command);
        return r;
}

static int on_restore(void *userdata, Rm__State *state, struct rm_error *err) {
        struct voter *voter = userdata;
        uint64_t index = state->index;
        int r = voter->ops.on_restore(voter->userdata, state, err);

        if (r == 0)
                feed_reset(voter->feed, index);
        return r;
}

static void on_failed(void *userdata, const struct rm_error *why) {
        struct voter *voter = userdata;

        voter->ops.on_failed(voter->userdata, why);
}

static const Rm__State *get_state(void *userdata) {
        struct voter *voter = userdata;

        return voter->ops.get_state(voter->userdata);
}

static void on_role(void *userdata) {
        struct voter *voter = userdata;

        voter->ops.on_role(voter->userdata);
}

static int on_send(void *userdata, const char *node, const Rm__PeerMessage *message) {
        struct voter *voter = userdata;

        return voter->ops.send(voter->userdata, node, message);
}

bool voter_exists(const char *state_dir) {
        return raftlog_exists(state_dir);
}

int voter_discard(const char *state_dir, struct rm_error *err) {
        return raftlog_discard(state_dir, err);
}

int voter_open(struct event_base *base, const struct voter_config *config, const struct raftlog_ops *ops, void *userdata,
               struct voter **ret, struct rm_error *err) {
        static const struct raftlog_ops own = { .on_apply = on_apply,
                                                .on_restore = on_restore,
                                                .on_failed = on_failed,
                                                .get_state = get_state,
                                                .on_role = on_role,
                                                .send = on_send };
        const struct raftlog_config log = { .dir = config->state_dir,
                                            .name = config->name,
                                            .snapshot_entries =
                                                    config->snapshot_entries ? config->snapshot_entries : SNAPSHOT_ENTRIES,
                                            .election_msec = config->election_msec ? config->election_msec : ELECTION_MSEC,
                                            .join_log = config->join_log };
        struct voter *voter = xcalloc(1, sizeof(*voter));
        int r;

        voter->ops = *ops;
        voter->userdata = userdata;
        voter->feed = feed_create(FEED_ENTRIES, FEED_BYTES);
        r = raftlog_open(base, &log, &own, voter, &voter->log, err);
        if (r < 0) {
                voter_close(voter);
                return r;
        }
        *ret = voter;
        return 0;
}

void voter_close(struct voter *voter) {
        if (!voter)
                return;
        raftlog_close(voter->log);
        feed_destroy(voter->feed);
        free(voter);
}

bool voter_leading(const struct voter *voter) {
        return raftlog_leading(voter->log);
}

uint64_t voter_term(const struct voter *voter) {
        return raftlog_term(voter->log);
}

const char *voter_leader(const struct voter *voter) {
        return raftlog_leader(voter->log);
}

uint64_t voter_log_id(const struct voter *voter) {
        return raftlog_id(voter->log);
}

bool voter_full(const struct voter *voter) {
        return raftlog_full(voter->log);
}

int voter_propose(struct voter *voter, const Rm__Command *command, raftlog_done_fn done, void *userdata) {
        return raftlog_propose(voter->log, command, done, userdata);
}

void voter_receive(struct voter *voter, const char *node, const Rm__RaftPart *part) {
        raftlog_receive(voter->log, node, part);
}

uint64_t voter_id(const struct voter *voter) {
        return raftlog_voter_id(voter->log);
}

enum raftlog_role voter_role(const struct voter *voter) {
        return raftlog_role(voter->log);
}

uint64_t voter_applied(const struct voter *voter) {
        return raftlog_applied(voter->log);
}

struct raftlog *voter_log(struct voter *voter) {
        return voter ? voter->log : NULL;
}

const struct feed *voter_feed(const struct voter *voter) {
        return voter->feed;
}
