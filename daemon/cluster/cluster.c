#include "daemon/cluster/cluster.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "common/util.h"
#include "daemon/cluster/cluster_internal.h"
#include "daemon/wire/unknown.h"

#define NODE_TIMEOUT_USEC UINT64_C(5000000)
#define HEARTBEAT_USEC UINT64_C(1000000)
/* Longer than anything that is asked may wait for its answer; and than the time between two calls of on_beat, several times. */
#define IDLE_USEC UINT64_C(30000000)
#define IDLE_HEARTBEATS 10U
#define PROPOSE_TIMEOUT_USEC UINT64_C(10000000)
#define SNAPSHOT_ENTRIES 1024U
/* A follower to whom nothing of what it lacks came for so long asks again; one to whom it came broken, later each time. */
#define STALLED_USEC UINT64_C(30000000)
#define ASK_AGAIN_USEC UINT64_C(1000000)
#define ASK_AGAIN_MAX_USEC UINT64_C(60000000)

static bool is_self(const struct cluster *c, const char *node) {
        return strcmp(node, peers_self(c->peers)->name) == 0;
}

/* ---- the state ---- */

static void fail(struct cluster *c, const struct rm_error *why) {
        c->synced = false;
        c->failed = true;
        if (c->ops.on_failed)
                c->ops.on_failed(c->userdata, why);
}

static void apply(struct cluster *c, uint64_t index, const Rm__Command *command, struct state_result *ret) {
        state_apply(c->state, c->index, index, command, ret);
        if (ret->unknown)
                return;
        if (command->time_usec > c->last_time_usec)
                c->last_time_usec = command->time_usec;
        if (!c->replaying && command->body_case == RM__COMMAND__BODY_NODE_JOIN && command->node_join->node)
                peers_learn(c->peers, command->node_join->node);
}

static void replace_state(struct cluster *c, Rm__State *state) {
        state_index_destroy(c->index);
        rm__state__free_unpacked(c->state, NULL);
        c->state = state;
        c->index = state_index_create(state);
        for (size_t i = 0; c->peers && i < state->n_nodes; i++)
                peers_learn(c->peers, state->nodes[i]);
}

static void tell_installed(struct cluster *c) {
        if (c->ops.on_installed)
                c->ops.on_installed(c->userdata);
}

static void tell_applied(struct cluster *c, const Rm__Command *command, const struct state_result *result) {
        if (c->ops.on_applied)
                c->ops.on_applied(c->userdata, command, result);
}

static void set_leader(struct cluster *c, const char *leader) {
        if (leader ? c->leader && strcmp(leader, c->leader) == 0 : !c->leader)
                return;
        if (leader)
                log_info("node %s leads", leader);
        else
                log_warn("the leader, node %s, is out of reach", c->leader);
        free(c->leader);
        c->leader = xstrdup(leader);
        if (!leader || !c->log)
                c->synced = false;
        parts_reset(&c->install);
        if (c->ops.on_leader)
                c->ops.on_leader(c->userdata, c->leader);
        proposals_leader_changed(c->proposals);
}

/* ---- at the leader: the log ---- */

static int on_log_apply(void *userdata, uint64_t index, const Rm__Command *command, struct raftlog_outcome *ret) {
        struct cluster *c = userdata;
        uint64_t before = c->state->index;
        struct state_result result;

        apply(c, index, command, &result);
        ret->error = result.error;
        ret->created = result.created;
        if (result.unknown)
                return result.error.code;
        followers_applied(c->followers, before, index, command);
        if (!c->replaying)
                tell_applied(c, command, &result);
        state_result_finish(&result);
        return 0;
}

static int on_log_restore(void *userdata, Rm__State *state, struct rm_error *err) {
        struct cluster *c = userdata;
        int r = state_understands_state(state, err);

        if (r < 0)
                return r;
        replace_state(c, state);
        followers_restored(c->followers, state->index);
        return 0;
}

static void on_log_failed(void *userdata, const struct rm_error *why) {
        fail(userdata, why);
}

static const Rm__State *on_log_state(void *userdata) {
        const struct cluster *c = userdata;

        return c->state;
}

/* Leaders before us may have had a clock that was ahead: the log's times never go back. */
int cluster_log(struct cluster *c, Rm__Command *command, raftlog_done_fn done, void *userdata) {
        uint64_t now = now_real_usec();
        struct rm_error err = { 0 };

        if (!c->log)
                return -EHOSTUNREACH;
        if (state_understands(command, &err) < 0)
                return err.code;
        if (now < c->last_time_usec)
                now = c->last_time_usec;
        c->last_time_usec = now;
        command->time_usec = now;
        return raftlog_propose(c->log, command, done, userdata);
}

/* ---- at a follower ---- */

static void ask_to_follow(struct cluster *c) {
        Rm__PeerMessage message = RM__PEER_MESSAGE__INIT;
        Rm__Follow follow = RM__FOLLOW__INIT;

        parts_reset(&c->install);
        c->ask_usec = 0;
        c->progress_usec = now_usec();
        follow.index = c->state->index;
        follow.log = c->cached_log;
        message.body_case = RM__PEER_MESSAGE__BODY_FOLLOW;
        message.follow = &follow;
        (void) peers_send(c->peers, c->leader, &message);
}

/* What comes is not what was asked for: on_beat() asks again, so that neither side is busy with a fault that stays. */
static void ask_later(struct cluster *c, const char *why) {
        uint64_t wait = ASK_AGAIN_USEC << (c->ask_failures < 6 ? c->ask_failures : 6);

        if (wait > ASK_AGAIN_MAX_USEC)
                wait = ASK_AGAIN_MAX_USEC;
        log_warn("the state that node %s sends is of no use: %s; asking for it again in %" PRIu64 " s", c->leader, why,
                 wait / 1000000U);
        parts_reset(&c->install);
        c->synced = false;
        c->ask_failures++;
        c->ask_usec = now_usec() + wait;
}

static void ask_if_due(struct cluster *c) {
        uint64_t now = now_usec();

        if (c->log || !c->leader || c->synced || c->failed)
                return;
        if (c->ask_usec == 0 && now - c->progress_usec > STALLED_USEC)
                ask_later(c, "nothing comes");
        else if (c->ask_usec != 0 && now >= c->ask_usec)
                ask_to_follow(c);
}

/* What is on its way when it has been asked for anew is passed over. */
static bool asked(const struct cluster *c) {
        return c->ask_usec == 0 && !c->failed;
}

static Rm__State *unpack_state(const struct cluster *c) {
        Rm__State *state = rm__state__unpack(NULL, c->install.received_bytes, c->install.data);

        if (!state)
                return NULL;
        unknown_drop(&state->base);
        if (strcmp(state->cluster, c->state->cluster) == 0 && state->index == c->install_index)
                return state;
        rm__state__free_unpacked(state, NULL);
        return NULL;
}

static void take_install(struct cluster *c) {
        Rm__State *state = unpack_state(c);
        struct rm_error err = { 0 };

        parts_reset(&c->install);
        if (state && state_understands_state(state, &err) < 0) {
                rm__state__free_unpacked(state, NULL);
                (void) error_prefix(&err, "the state that node %s sends", c->leader);
                fail(c, &err);
                return;
        }
        if (!state) {
                ask_later(c, "it is not a state of this cluster");
                return;
        }
        if (c->cached_log != 0 && c->install_log != c->cached_log)
                log_warn("the leader has another log than the one this node knew: all that was known is replaced");
        replace_state(c, state);
        c->cached_log = c->install_log;
        state_cache_touch(c->cache);
        tell_installed(c);
}

static void take_install_part(struct cluster *c, const Rm__InstallPart *part) {
        bool first = part->offset == 0;
        int r = -EPROTO;

        if (!asked(c) || (!first && c->install.received_bytes == 0))
                return;
        if (first) {
                c->install_log = part->log;
                c->install_index = part->index;
        }
        if (part->log != 0 && part->log == c->install_log && part->index == c->install_index)
                r = parts_add(&c->install, part->total_bytes, part->offset, part->data.data, part->data.len, STATE_MAX_BYTES);
        c->progress_usec = now_usec();
        if (r < 0)
                ask_later(c, r == -EMSGSIZE ? "it is too long" : "a part is missing or does not fit");
        else if (r > 0)
                take_install(c);
}

static void take_append(struct cluster *c, const Rm__Append *append) {
        Rm__Command nothing = RM__COMMAND__INIT;
        const Rm__Command *command = append->command ? append->command : &nothing;
        struct state_result result;

        if (!asked(c) || append->index <= c->state->index)
                return;
        if (append->after != c->state->index) {
                ask_later(c, "commands are missing");
                return;
        }
        c->progress_usec = now_usec();
        apply(c, append->index, command, &result);
        if (result.unknown) {
                (void) error_prefix(&result.error, "entry %" PRIu64 " of the log of node %s", append->index, c->leader);
                fail(c, &result.error);
                return;
        }
        state_cache_touch(c->cache);
        tell_applied(c, command, &result);
        state_result_finish(&result);
}

static void take_followed(struct cluster *c, const Rm__Followed *followed) {
        if (c->synced || c->failed || followed->index != c->state->index || followed->log != c->cached_log)
                return;
        c->synced = true;
        c->ask_failures = 0;
        log_info("following node %s, at entry %" PRIu64, c->leader, c->state->index);
        /* For those who wait to act until the state is certain. */
        tell_installed(c);
}

static const Rm__State *get_cached(void *userdata, uint64_t *ret_log) {
        struct cluster *c = userdata;

        *ret_log = c->cached_log;
        return c->state;
}

/* ---- the mesh tells ---- */

static void on_leading(void *userdata, const char *node, bool leading) {
        struct cluster *c = userdata;
        bool is_leader = c->leader && strcmp(c->leader, node) == 0;

        if (c->log || leading == is_leader)
                return;
        if (!leading) {
                set_leader(c, NULL);
                return;
        }
        set_leader(c, node);
        ask_to_follow(c);
}

static void on_peer(void *userdata, const char *node, bool connected) {
        struct cluster *c = userdata;

        if (!connected && c->followers)
                followers_lost(c->followers, node);
        if (c->ops.on_peer)
                c->ops.on_peer(c->userdata, node, connected);
        if (!connected && !c->log && c->leader && strcmp(c->leader, node) == 0)
                set_leader(c, NULL);
        if (c->health && connected)
                health_check(c->health, node);
}

static void on_changed(void *userdata, const char *node) {
        struct cluster *c = userdata;

        if (c->health)
                health_check(c->health, node);
}

static void on_beat(void *userdata) {
        struct cluster *c = userdata;

        if (c->health)
                health_check(c->health, NULL);
        if (c->followers)
                followers_beat(c->followers);
        if (c->ops.on_beat)
                c->ops.on_beat(c->userdata);
        ask_if_due(c);
        proposals_expire(c->proposals, now_usec());
}

static void on_drained(void *userdata, const char *node) {
        struct cluster *c = userdata;

        if (c->followers)
                followers_drained(c->followers, node);
}

static void on_message(void *userdata, const char *node, Rm__PeerMessage *message) {
        struct cluster *c = userdata;
        bool from_leader = !c->log && c->leader && strcmp(c->leader, node) == 0;

        switch (message->body_case) {
        case RM__PEER_MESSAGE__BODY_FOLLOW:
                if (c->log)
                        followers_serve(c->followers, node, message->follow);
                break;
        case RM__PEER_MESSAGE__BODY_INSTALL_PART:
                if (from_leader)
                        take_install_part(c, message->install_part);
                break;
        case RM__PEER_MESSAGE__BODY_APPEND:
                if (from_leader)
                        take_append(c, message->append);
                break;
        case RM__PEER_MESSAGE__BODY_FOLLOWED:
                if (from_leader)
                        take_followed(c, message->followed);
                break;
        case RM__PEER_MESSAGE__BODY_PROPOSE:
                proposals_serve(c->proposals, node, message->propose);
                break;
        case RM__PEER_MESSAGE__BODY_PROPOSE_REPLY:
                proposals_reply(c->proposals, node, message->propose_reply);
                break;
        default:
                if (c->ops.on_message)
                        c->ops.on_message(c->userdata, node, message);
                break;
        }
}

/* ---- messages ---- */

static void on_self(void *userdata, const Rm__PeerMessage *message) {
        struct cluster *c = userdata;

        if (c->ops.on_message)
                c->ops.on_message(c->userdata, peers_self(c->peers)->name, message);
}

/* Nothing is tried in vain: the leader, who seeks it all the time, would have said otherwise. */
static bool is_down(const struct cluster *c, const char *name) {
        const Rm__Node *node = state_node(c->state, name);

        return c->synced && node && node->health == RM__NODE_HEALTH__NODE_HEALTH_DOWN && !peers_connected(c->peers, name);
}

int cluster_send(struct cluster *c, const char *node, const Rm__PeerMessage *message) {
        if (!is_self(c, node))
                return is_down(c, node) ? -ENOTCONN : peers_post(c->peers, node, message);
        loopback_send(c->loopback, message);
        return 0;
}

void cluster_keep(struct cluster *c, const char *node) {
        peers_keep(c->peers, node);
}

bool cluster_connected(const struct cluster *c, const char *node) {
        return is_self(c, node) || peers_connected(c->peers, node);
}

size_t cluster_pending_bytes(const struct cluster *c, const char *node) {
        return peers_pending_bytes(c->peers, node);
}

/* ---- reading ---- */

const Rm__State *cluster_state(const struct cluster *c) {
        return c->state;
}

const struct state_index *cluster_index(const struct cluster *c) {
        return c->index;
}

bool cluster_synced(const struct cluster *c) {
        return c->synced;
}

bool cluster_disk_full(const struct cluster *c) {
        return c->log && raftlog_full(c->log);
}

bool cluster_is_leader(const struct cluster *c) {
        return c->log && raftlog_leading(c->log);
}

const char *cluster_leader(const struct cluster *c) {
        return c->leader;
}

const char *cluster_self(const struct cluster *c) {
        return peers_self(c->peers)->name;
}

uint32_t cluster_port(const struct cluster *c) {
        return peers_port(c->peers);
}

void cluster_set_self(struct cluster *c, const Rm__Node *self) {
        Rm__Node described = *self;

        described.level = STATE_LEVEL;
        peers_set_self(c->peers, &described);
        if (c->health)
                health_check(c->health, peers_self(c->peers)->name);
}

/* ---- life ---- */

static int open_log(struct cluster *c, const struct cluster_config *config, struct rm_error *err) {
        static const struct raftlog_ops ops = {
                .on_apply = on_log_apply, .on_restore = on_log_restore, .on_failed = on_log_failed, .get_state = on_log_state
        };
        int r;

        if (!config->bootstrap && !raftlog_exists(config->state_dir))
                return 0;
        c->followers = followers_create(c);
        c->replaying = true;
        r = raftlog_open(c->base, config->state_dir, config->self->name,
                         config->snapshot_entries ? config->snapshot_entries : SNAPSHOT_ENTRIES, &ops, c, &c->log, err);
        c->replaying = false;
        if (r < 0)
                return r;
        if (!raftlog_leading(c->log))
                return error_set(err, -EIO, "log in %s: has other voters, which this version cannot reach", config->state_dir);
        log_info("keeping the log of cluster %s, at entry %" PRIu64, config->name, c->state->index);
        c->leader = xstrdup(config->self->name);
        c->health = health_create(c);
        c->synced = true;
        return 0;
}

static void open_cache(struct cluster *c, const struct cluster_config *config) {
        cleanup_free char *path = xasprintf("%s/state", config->state_dir);
        Rm__State *state = NULL;
        struct rm_error err = { 0 };
        uint64_t log = 0;
        int r;

        if (c->log)
                return;
        r = state_cache_load(path, &state, &log);
        if (r == 0)
                r = state_understands_state(state, &err);
        if (r == 0 && strcmp(state->cluster, config->name) == 0) {
                replace_state(c, take_ptr(state));
                c->cached_log = log;
        } else if (r < 0 && r != -ENOENT) {
                log_warn("%s: the cached state is unusable (%s); asking the leader for all", path, strerror(-r));
        }
        if (state)
                rm__state__free_unpacked(state, NULL);
        c->cache = state_cache_create(c->base, path, get_cached, c);
}

static uint64_t idle_usec(const struct cluster_config *config) {
        uint64_t beats_usec = IDLE_HEARTBEATS * config->heartbeat_usec;

        if (config->idle_usec)
                return config->idle_usec;
        return beats_usec > IDLE_USEC ? beats_usec : IDLE_USEC;
}

static int open_peers(struct cluster *c, const struct cluster_config *config, struct rm_error *err) {
        static const struct peers_ops ops = { .on_peer = on_peer,
                                              .on_message = on_message,
                                              .on_leading = on_leading,
                                              .on_changed = on_changed,
                                              .on_drained = on_drained,
                                              .on_beat = on_beat };
        Rm__Node self = *config->self;
        struct peers_config peers = {
                .cluster = config->name,
                .self = &self,
                .listen_address = config->listen_address,
                .seeds = config->peers,
                .n_seeds = config->n_peers,
                .tls = config->tls,
                .timeout_usec = c->node_timeout_usec,
                .heartbeat_usec = config->heartbeat_usec ? config->heartbeat_usec : HEARTBEAT_USEC,
                .idle_usec = idle_usec(config),
                .leading = c->log != NULL,
        };
        int r;

        self.level = STATE_LEVEL;
        r = peers_create(c->base, &peers, &ops, c, &c->peers, err);
        if (r < 0)
                return r;
        for (size_t i = 0; i < c->state->n_nodes; i++)
                peers_learn(c->peers, c->state->nodes[i]);
        return 0;
}

/* What create() must not tell from within. */
static void on_started(evutil_socket_t fd, short what, void *userdata) {
        struct cluster *c = userdata;

        if (!c->log)
                return;
        if (c->ops.on_leader)
                c->ops.on_leader(c->userdata, c->leader);
        tell_installed(c);
        health_check(c->health, NULL);
}

static int cluster_open(struct cluster *c, const struct cluster_config *config, struct rm_error *err) {
        int r;

        if (!name_valid(config->name) || !config->self || !name_valid(config->self->name))
                return error_set(err, -EINVAL, "cluster and node need names of 1 to 63 letters, digits, '.', '_', '-'");
        r = mkdir_p(config->state_dir, 0700);
        if (r < 0)
                return error_sys(err, r, "cannot make %s", config->state_dir);
        r = open_log(c, config, err);
        if (r < 0)
                return r;
        open_cache(c, config);
        return open_peers(c, config, err);
}

int cluster_create(struct event_base *base, const struct cluster_config *config, const struct cluster_ops *ops, void *userdata,
                   struct cluster **ret, struct rm_error *err) {
        struct cluster *c = xcalloc(1, sizeof(*c));
        int r;

        c->base = base;
        c->ops = *ops;
        c->userdata = userdata;
        c->node_timeout_usec = config->node_timeout_usec ? config->node_timeout_usec : NODE_TIMEOUT_USEC;
        c->propose_timeout_usec = config->propose_timeout_usec ? config->propose_timeout_usec : PROPOSE_TIMEOUT_USEC;
        c->state = state_create(config->name);
        c->index = state_index_create(c->state);
        c->proposals = proposals_create(c);
        c->loopback = loopback_create(base, on_self, c);
        c->start_event = evtimer_new(base, on_started, c);
        if (!c->start_event)
                abort();
        r = cluster_open(c, config, err);
        if (r < 0) {
                (void) error_prefix(err, "cluster");
                cluster_destroy(c);
                return r;
        }
        event_active(c->start_event, EV_TIMEOUT, 0);
        *ret = c;
        return 0;
}

void cluster_destroy(struct cluster *c) {
        if (!c)
                return;
        c->closing = true;
        raftlog_close(take_ptr(c->log));
        proposals_destroy(c->proposals);
        state_cache_destroy(c->cache);
        peers_destroy(c->peers);
        health_destroy(c->health);
        followers_destroy(c->followers);
        parts_reset(&c->install);
        loopback_destroy(c->loopback);
        event_free(c->start_event);
        state_index_destroy(c->index);
        rm__state__free_unpacked(c->state, NULL);
        free(c->leader);
        free(c);
}
