#include "daemon/cluster/cluster.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "common/util.h"
#include "daemon/cluster/following.h"
#include "daemon/cluster/leading.h"
#include "daemon/cluster/lease.h"
#include "daemon/cluster/loopback.h"
#include "daemon/cluster/peers.h"
#include "daemon/cluster/propose.h"
#include "daemon/cluster/state.h"
#include "daemon/cluster/voter.h"

#define NODE_TIMEOUT_USEC UINT64_C(5000000)
#define HEARTBEAT_USEC UINT64_C(1000000)
#define LEASE_USEC UINT64_C(5000000)
/* Longer than anything that is asked may wait for its answer; and than the time between two calls of on_beat, several times. */
#define IDLE_USEC UINT64_C(30000000)
#define IDLE_HEARTBEATS 10U

/* The state and its index, who is told of them, and who of the others is there. */
struct cluster {
        struct event_base *base;
        struct cluster_ops ops;
        void *userdata;
        Rm__State *state;
        struct state_index *index; /* of the state */
        struct voter *voter; /* NULL unless this node keeps the log */
        struct leading *leading; /* one of these two: this node leads, */
        struct following *following; /* or it does not */
        uint64_t leading_term; /* of the leadership that `leading` is for */
        struct peers *peers; /* NULL until all of the log has been read */
        struct proposals *proposals;
        struct loopback *loopback;
        struct leases *leases;
        struct event *start_event;
        char *leader;
        bool failed; /* the log has what is not understood here: nothing more is applied */
        uint64_t last_time_usec; /* of a command, real */
        uint64_t node_timeout_usec;
};

static bool is_self(const struct cluster *c, const char *node) {
        return strcmp(node, peers_self(c->peers)->name) == 0;
}

static bool is_leader(const struct cluster *c, const char *node) {
        return c->leader && strcmp(c->leader, node) == 0;
}

/* ---- the state ---- */

static void fail(void *userdata, const struct rm_error *why) {
        struct cluster *c = userdata;

        c->failed = true;
        if (c->ops.on_failed)
                c->ops.on_failed(c->userdata, why);
}

static const Rm__State *get_state(void *userdata) {
        return ((const struct cluster *) userdata)->state;
}

static void apply(struct cluster *c, uint64_t index, const Rm__Command *command, struct state_result *ret) {
        state_apply(c->state, c->index, index, command, ret);
        if (ret->unknown)
                return;
        if (command->time_usec > c->last_time_usec)
                c->last_time_usec = command->time_usec;
        if (c->peers && command->body_case == RM__COMMAND__BODY_NODE_JOIN && command->node_join->node)
                peers_learn(c->peers, command->node_join->node);
}

static void replace_state(void *userdata, Rm__State *state) {
        struct cluster *c = userdata;

        state_index_destroy(c->index);
        rm__state__free_unpacked(c->state, NULL);
        c->state = state;
        c->index = state_index_create(state);
        for (size_t i = 0; c->peers && i < state->n_nodes; i++)
                peers_learn(c->peers, state->nodes[i]);
}

static void tell_installed(void *userdata) {
        struct cluster *c = userdata;

        if (c->ops.on_installed)
                c->ops.on_installed(c->userdata);
        proposals_applied(c->proposals);
}

static void tell_applied(struct cluster *c, const Rm__Command *command, const struct state_result *result) {
        if (c->ops.on_applied)
                c->ops.on_applied(c->userdata, command, result);
        proposals_applied(c->proposals);
}

/* ---- the log of this node ---- */

static int on_log_apply(void *userdata, uint64_t index, const Rm__Command *command, struct raftlog_outcome *ret) {
        struct cluster *c = userdata;
        uint64_t before = c->state->index;
        struct state_result result;

        apply(c, index, command, &result);
        ret->error = result.error;
        ret->created = result.created;
        if (result.unknown)
                return result.error.code;
        /* Raft may have lost the leadership already, and on_role() is about to say so. */
        if (c->leading && voter_leading(c->voter))
                leading_applied(c->leading, before, index, command);
        if (c->peers)
                tell_applied(c, command, &result);
        if (c->following)
                following_applied(c->following);
        state_result_finish(&result);
        return 0;
}

static int on_log_restore(void *userdata, Rm__State *state, struct rm_error *err) {
        struct cluster *c = userdata;
        int r = state_understands_state(state, err);

        if (r < 0)
                return r;
        replace_state(c, state);
        if (c->peers)
                tell_installed(c);
        if (c->following)
                following_applied(c->following);
        return 0;
}

/* ---- leading ---- */

static int leading_log(void *userdata, const Rm__Command *command, raftlog_done_fn done, void *context) {
        struct cluster *c = userdata;

        return voter_propose(c->voter, command, done, context);
}

static void begin_leading(struct cluster *c) {
        static const struct leading_ops ops = { .get_state = get_state, .log = leading_log };
        const struct leading_config config = { .log_id = voter_log_id(c->voter),
                                               .feed = voter_feed(c->voter),
                                               .mesh_ops = mesh_of_peers(),
                                               .mesh = c->peers,
                                               .last_time_usec = c->last_time_usec,
                                               .node_timeout_usec = c->node_timeout_usec };

        following_destroy(take_ptr(c->following));
        c->leading = leading_create(&config, &ops, c);
        c->leading_term = voter_term(c->voter);
        leases_lead(c->leases, now_usec());
}

/* ---- following ---- */

static int following_apply(void *userdata, uint64_t index, const Rm__Command *command, struct rm_error *err) {
        struct cluster *c = userdata;
        struct state_result result;

        apply(c, index, command, &result);
        if (result.unknown) {
                *err = result.error;
                return result.error.code;
        }
        tell_applied(c, command, &result);
        state_result_finish(&result);
        return 0;
}

static int send_to_leader(void *userdata, const Rm__PeerMessage *message) {
        struct cluster *c = userdata;

        return peers_send(c->peers, c->leader, message);
}

static void begin_following(struct cluster *c, const char *cache_path) {
        static const struct following_ops ops = { .get_state = get_state,
                                                  .replace = replace_state,
                                                  .apply = following_apply,
                                                  .send = send_to_leader,
                                                  .on_installed = tell_installed,
                                                  .on_failed = fail };
        const struct following_config config = { .base = c->base,
                                                 .cluster = c->state->cluster,
                                                 .cache_path = cache_path,
                                                 .log_id = c->voter ? voter_log_id(c->voter) : 0 };

        c->following = following_create(&config, &ops, c);
}

/* ---- who leads ---- */

static void set_leader(struct cluster *c, const char *leader) {
        if (leader ? is_leader(c, leader) : !c->leader)
                return;
        if (leader)
                log_info("node %s leads", leader);
        else if (is_self(c, c->leader))
                log_warn("this node, %s, does not lead any more", c->leader);
        else
                log_warn("the leader, node %s, is out of reach", c->leader);
        free(c->leader);
        c->leader = xstrdup(leader);
        if (c->following)
                following_set_leader(c->following, leader);
        if (c->ops.on_leader)
                c->ops.on_leader(c->userdata, c->leader);
        proposals_leader_changed(c->proposals);
}

static void win(struct cluster *c) {
        begin_leading(c);
        peers_set_leading(c->peers, c->leading_term);
        set_leader(c, peers_self(c->peers)->name);
        tell_installed(c); /* the state is certain now */
        leading_beat(c->leading);
}

/* Those whom it tells see a node that does not lead. */
static void lose(struct cluster *c) {
        struct leading *leading = take_ptr(c->leading);

        begin_following(c, NULL);
        peers_set_leading(c->peers, 0);
        set_leader(c, NULL);
        leading_destroy(leading, -EHOSTUNREACH);
}

/* Of those who say that they lead, a node with the log believes the one whom the voters have elected, and any other node the one who was
 * elected last. */
static bool is_elected(const struct cluster *c, const char *node) {
        const char *elected = c->voter ? voter_leader(c->voter) : NULL;

        if (c->voter)
                return elected && strcmp(elected, node) == 0;
        return !c->leader || peers_leading_term(c->peers, node) > peers_leading_term(c->peers, c->leader);
}

static void on_role(void *userdata) {
        struct cluster *c = userdata;
        bool leads = voter_leading(c->voter);
        const char *elected;

        if (c->leading && (!leads || voter_term(c->voter) != c->leading_term))
                lose(c);
        if (c->leading)
                return;
        if (c->leader && !is_elected(c, c->leader))
                set_leader(c, NULL);
        elected = voter_leader(c->voter);
        if (leads)
                win(c);
        else if (elected && peers_leading_term(c->peers, elected) > 0)
                set_leader(c, elected);
}

/* ---- the mesh tells ---- */

static void on_leading(void *userdata, const char *node, bool leading) {
        struct cluster *c = userdata;

        if (c->leading || leading == is_leader(c, node))
                return;
        if (!leading)
                set_leader(c, NULL);
        else if (is_elected(c, node))
                set_leader(c, node);
}

static void on_peer(void *userdata, const char *node, bool connected) {
        struct cluster *c = userdata;

        if (!connected && c->leading)
                leading_lost(c->leading, node);
        if (c->ops.on_peer)
                c->ops.on_peer(c->userdata, node, connected);
        if (!connected && is_leader(c, node))
                set_leader(c, NULL);
        if (connected && c->leading)
                leading_look(c->leading, node);
}

static void on_lease(void *userdata, const char *node, uint64_t end_boot_usec) {
        struct cluster *c = userdata;

        if (c->leading || !is_leader(c, node) || !leases_take(c->leases, end_boot_usec))
                return;
        if (c->ops.on_lease)
                c->ops.on_lease(c->userdata);
}

static void on_changed(void *userdata, const char *node) {
        struct cluster *c = userdata;

        if (c->leading)
                leading_look(c->leading, node);
}

static void on_beat(void *userdata) {
        struct cluster *c = userdata;

        if (c->leading) {
                leases_beat(c->leases, now_usec());
                leading_beat(c->leading);
        }
        if (c->ops.on_beat)
                c->ops.on_beat(c->userdata);
        if (c->following)
                following_beat(c->following);
        proposals_expire(c->proposals, now_usec());
}

static void on_drained(void *userdata, const char *node) {
        struct cluster *c = userdata;

        if (c->leading)
                leading_drained(c->leading, node);
}

static void refuse_proposal(struct cluster *c, const char *node, uint32_t id) {
        Rm__PeerMessage message = RM__PEER_MESSAGE__INIT;
        Rm__ProposeReply reply = RM__PROPOSE_REPLY__INIT;

        reply.id = id;
        reply.code = -EHOSTUNREACH;
        reply.text = (char *) "this node does not lead";
        message.body_case = RM__PEER_MESSAGE__BODY_PROPOSE_REPLY;
        message.propose_reply = &reply;
        (void) peers_send(c->peers, node, &message);
}

static void on_message(void *userdata, const char *node, Rm__PeerMessage *message) {
        struct cluster *c = userdata;

        switch (message->body_case) {
        case RM__PEER_MESSAGE__BODY_FOLLOW:
                if (c->leading)
                        leading_follow(c->leading, node, message->follow);
                break;
        case RM__PEER_MESSAGE__BODY_INSTALL_PART:
        case RM__PEER_MESSAGE__BODY_APPEND:
        case RM__PEER_MESSAGE__BODY_FOLLOWED:
                if (c->following && is_leader(c, node))
                        following_take(c->following, message);
                break;
        case RM__PEER_MESSAGE__BODY_PROPOSE:
                if (c->leading)
                        leading_serve(c->leading, node, message->propose);
                else
                        refuse_proposal(c, node, message->propose->id);
                break;
        case RM__PEER_MESSAGE__BODY_PROPOSE_REPLY:
                if (is_leader(c, node))
                        proposals_reply(c->proposals, message->propose_reply);
                break;
        default:
                if (c->ops.on_message)
                        c->ops.on_message(c->userdata, node, message);
                break;
        }
}

/* ---- proposals ---- */

static enum propose_route route(void *userdata) {
        const struct cluster *c = userdata;

        if (c->leading)
                return PROPOSE_HERE;
        return c->leader && peers_connected(c->peers, c->leader) ? PROPOSE_THERE : PROPOSE_NOWHERE;
}

static int propose_here(void *userdata, Rm__Command *command, raftlog_done_fn done, void *context) {
        struct cluster *c = userdata;

        return leading_propose(c->leading, command, done, context);
}

void cluster_propose(struct cluster *c, const Rm__Command *command, cluster_propose_fn callback, void *userdata) {
        proposals_add(c->proposals, command, callback, userdata);
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

        return cluster_synced(c) && node && node->health == RM__NODE_HEALTH__NODE_HEALTH_DOWN && !peers_connected(c->peers, name);
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
        return !c->failed && (c->leading || (c->following && following_synced(c->following)));
}

uint64_t cluster_lease_end_usec(const struct cluster *c) {
        return c->leading ? UINT64_MAX : leases_end_usec(c->leases);
}

uint64_t cluster_fence_safe_usec(const struct cluster *c, const char *node) {
        return leases_safe_usec(c->leases, peers_heard_usec(c->peers, node));
}

bool cluster_disk_full(const struct cluster *c) {
        return c->voter && voter_full(c->voter);
}

bool cluster_is_leader(const struct cluster *c) {
        return c->leading;
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
        if (c->leading)
                leading_look(c->leading, peers_self(c->peers)->name);
}

/* ---- life ---- */

static uint64_t lease_usec(const struct cluster_config *config) {
        return config->lease_usec ? config->lease_usec : LEASE_USEC;
}

static int open_log(struct cluster *c, const struct cluster_config *config, struct rm_error *err) {
        static const struct raftlog_ops ops = { .on_apply = on_log_apply,
                                                .on_restore = on_log_restore,
                                                .on_failed = fail,
                                                .get_state = get_state,
                                                .on_role = on_role };
        const struct voter_config voter = { .name = config->self->name,
                                            .state_dir = config->state_dir,
                                            .snapshot_entries = config->snapshot_entries };
        int r;

        if (!config->bootstrap && !voter_exists(config->state_dir))
                return 0;
        r = leases_load(c->leases, err);
        if (r < 0)
                return r;
        r = voter_open(c->base, &voter, &ops, c, &c->voter, err);
        if (r < 0)
                return r;
        log_info("keeping the log of cluster %s, at entry %" PRIu64, config->name, c->state->index);
        return 0;
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
                                              .on_lease = on_lease,
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
                .leading_term = c->voter && voter_leading(c->voter) ? voter_term(c->voter) : 0,
                .lease_usec = lease_usec(config),
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

        if (!c->leading)
                return;
        if (c->ops.on_leader)
                c->ops.on_leader(c->userdata, c->leader);
        tell_installed(c);
        leading_beat(c->leading);
}

static int cluster_open(struct cluster *c, const struct cluster_config *config, struct rm_error *err) {
        cleanup_free char *cache_path = xasprintf("%s/state", config->state_dir);
        int r;

        if (!name_valid(config->name) || !config->self || !name_valid(config->self->name))
                return error_set(err, -EINVAL, "cluster and node need names of 1 to 63 letters, digits, '.', '_', '-'");
        r = mkdir_p(config->state_dir, 0700);
        if (r < 0)
                return error_sys(err, r, "cannot make %s", config->state_dir);
        r = open_log(c, config, err);
        if (r < 0)
                return r;
        r = open_peers(c, config, err);
        if (r < 0)
                return r;
        if (c->voter && voter_leading(c->voter)) {
                begin_leading(c);
                c->leader = xstrdup(config->self->name);
        } else {
                begin_following(c, cache_path);
        }
        return 0;
}

int cluster_create(struct event_base *base, const struct cluster_config *config, const struct cluster_ops *ops, void *userdata,
                   struct cluster **ret, struct rm_error *err) {
        static const struct proposals_ops proposals = {
                .route = route, .log = propose_here, .send = send_to_leader, .get_state = get_state
        };
        struct cluster *c = xcalloc(1, sizeof(*c));
        int r;

        c->base = base;
        c->ops = *ops;
        c->userdata = userdata;
        c->node_timeout_usec = config->node_timeout_usec ? config->node_timeout_usec : NODE_TIMEOUT_USEC;
        c->leases = leases_create(config->state_dir, lease_usec(config));
        c->state = state_create(config->name);
        c->index = state_index_create(c->state);
        c->proposals = proposals_create(base, config->propose_timeout_usec, &proposals, c);
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
        leading_destroy(take_ptr(c->leading), -ECANCELED);
        voter_close(c->voter);
        proposals_destroy(c->proposals);
        following_destroy(c->following);
        peers_destroy(c->peers);
        loopback_destroy(c->loopback);
        event_free(c->start_event);
        state_index_destroy(c->index);
        rm__state__free_unpacked(c->state, NULL);
        leases_destroy(c->leases);
        free(c->leader);
        free(c);
}
