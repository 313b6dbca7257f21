#include "daemon/cluster/cluster_internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "common/util.h"
#include "daemon/cluster/loopback.h"
#include "daemon/peers/peer_message.h"
#include "daemon/state/state.h"

#define NODE_TIMEOUT_USEC UINT64_C(5000000)
#define HEARTBEAT_USEC UINT64_C(1000000)
#define LEASE_USEC UINT64_C(5000000)
#define ELECTION_MSEC 300U
#define SNAPSHOT_ENTRIES 1024U
#define VOTERS 3U
#define VOTER_TIMEOUT_USEC UINT64_C(120000000)
/* Longer than anything that is asked may wait for its answer; and than the time between two calls
 * of on_heartbeat, several times. */
#define IDLE_USEC UINT64_C(30000000)
#define IDLE_HEARTBEATS 10U

bool cluster_is_self(const struct cluster *c, const char *node) {
        return strcmp(node, peers_self(c->peers)->name) == 0;
}

bool cluster_is_led_by(const struct cluster *c, const char *node) {
        return c->leader && strcmp(c->leader, node) == 0;
}

/* ---- the state ---- */

void cluster_fail(void *userdata, const struct rm_error *why) {
        struct cluster *c = userdata;

        c->failed = true;
        if (c->ops.on_failed)
                c->ops.on_failed(c->userdata, why);
}

const Rm__State *cluster_get_state(void *userdata) {
        return ((const struct cluster *) userdata)->state;
}

void cluster_apply(struct cluster *c, uint64_t index, const Rm__Command *command, struct state_result *ret) {
        state_apply(c->state, c->index, index, command, ret);
        if (ret->unknown)
                return;
        if (command->time_usec > c->last_time_usec) {
                c->last_time_usec = command->time_usec;
                c->last_applied_usec = now_usec();
        }
        if (c->peers && command->body_case == RM__COMMAND__BODY_NODE_JOIN && command->node_join->node)
                peers_learn(c->peers, command->node_join->node);
        if (c->peers && command->body_case == RM__COMMAND__BODY_NODE_REMOVE && !state_node(c->state, command->node_remove->node))
                peers_forget(c->peers, command->node_remove->node);
}

void cluster_replace_state(void *userdata, Rm__State *state) {
        struct cluster *c = userdata;

        state_index_destroy(c->index);
        rm__state__free_unpacked(c->state, NULL);
        c->state = state;
        c->index = state_index_create(state);
        for (size_t i = 0; c->peers && i < state->n_nodes; i++)
                peers_learn(c->peers, state->nodes[i]);
}

void cluster_report_installed(void *userdata) {
        struct cluster *c = userdata;

        peers_set_log(c->peers, c->member ? raftlog_id(c->log) : following_log_id(c->following));
        role_reach_lease(c);
        if (c->ops.on_installed)
                c->ops.on_installed(c->userdata);
        proposals_applied(c->proposals);
}

static void suspect_lost(struct cluster *c, const Rm__Command *command) {
        if (command->body_case == RM__COMMAND__BODY_NODE_HEALTH &&
            command->node_health->health == RM__NODE_HEALTH__NODE_HEALTH_DOWN)
                peers_suspect(c->peers, command->node_health->node);
}

void cluster_report_applied(struct cluster *c, const Rm__Command *command, const struct state_result *result) {
        suspect_lost(c, command);
        if (c->ops.on_applied)
                c->ops.on_applied(c->userdata, command, result);
        role_reach_lease(c);
        proposals_applied(c->proposals);
}

/* ---- the transport tells ---- */

static void on_leading(void *userdata, const char *node, bool leading) {
        struct cluster *c = userdata;

        if (c->leading)
                return;
        if (leading == cluster_is_led_by(c, node)) {
                if (leading)
                        role_leads_still(c, node);
                return;
        }
        if (!leading)
                role_set_leader(c, NULL);
        else if (role_is_elected(c, node))
                role_set_leader(c, node);
        else if (c->member)
                log_ask_membership(c, node);
}

static void on_peer(void *userdata, const char *node, bool connected) {
        struct cluster *c = userdata;

        if (!connected && c->leading)
                leading_lost(c->leading, node);
        if (c->ops.on_peer)
                c->ops.on_peer(c->userdata, node, connected);
        if (!connected && cluster_is_led_by(c, node)) {
                if (c->log)
                        raftlog_leader_gone(c->log);
                role_set_leader(c, NULL);
        }
        if (connected && c->leading)
                leading_scan(c->leading, node);
}

/* Voters stay connected to each other: they elect. */
static void keep_voters(struct cluster *c) {
        const char *others[RAFTLOG_MEMBERS_MAX];
        size_t n = role_other_members(c, false, others, ARRAY_SIZE(others));

        for (size_t i = 0; i < n; i++)
                peers_keep(c->peers, others[i]);
}

static void on_heartbeat(void *userdata) {
        struct cluster *c = userdata;

        if (c->leading) {
                role_report_lease(c);
                leading_heartbeat(c->leading);
        }
        if (c->ops.on_heartbeat)
                c->ops.on_heartbeat(c->userdata);
        if (c->following)
                following_heartbeat(c->following);
        log_see_member(-1, 0, c);
        keep_voters(c);
        proposals_expire(c->proposals, now_usec());
}

static void on_drained(void *userdata, const char *node) {
        struct cluster *c = userdata;

        if (c->leading)
                leading_drained(c->leading, node);
}

static void refuse_proposal(struct cluster *c, const char *node, uint32_t id) {
        Rm__ProposeReply reply = RM__PROPOSE_REPLY__INIT;

        reply.id = id;
        reply.code = -EHOSTUNREACH;
        reply.text = (char *) "this node does not lead";
        (void) peers_send(c->peers, node, &PEER_MESSAGE(&reply));
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
                if (c->following && cluster_is_led_by(c, node))
                        following_take(c->following, message);
                break;
        case RM__PEER_MESSAGE__BODY_PROPOSE:
                if (c->leading)
                        leading_serve(c->leading, node, message->propose);
                else
                        refuse_proposal(c, node, message->propose->id);
                break;
        case RM__PEER_MESSAGE__BODY_PROPOSE_REPLY:
                if (cluster_is_led_by(c, node))
                        proposals_reply(c->proposals, message->propose_reply);
                break;
        case RM__PEER_MESSAGE__BODY_RAFT_PART:
                if (c->log)
                        raftlog_receive(c->log, node, message->raft_part);
                break;
        case RM__PEER_MESSAGE__BODY_VOTER_INVITE:
                if (cluster_is_led_by(c, node))
                        log_take_invite(c, node, message->voter_invite);
                break;
        case RM__PEER_MESSAGE__BODY_VOTER_RETIRE:
                log_take_retire(c, node, message->voter_retire);
                break;
        case RM__PEER_MESSAGE__BODY_VOTER_READY:
                if (c->leading)
                        leading_voter_ready(c->leading, node, message->voter_ready);
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

static const char *self_name(void *userdata) {
        return cluster_self(userdata);
}

static int propose_here(void *userdata, Rm__Command *command, raftlog_done_fn done, void *context, struct rm_error *err) {
        struct cluster *c = userdata;

        return leading_propose(c->leading, command, done, context, err);
}

void cluster_propose(struct cluster *c, const Rm__Command *command, cluster_propose_fn callback, void *userdata) {
        proposals_add(c->proposals, command, callback, userdata);
}

void cluster_decide(struct cluster *c, const Rm__Command *command) {
        proposals_add_decision(c->proposals, command);
}

/* ---- messages ---- */

static void on_self(void *userdata, const Rm__PeerMessage *message) {
        struct cluster *c = userdata;

        if (c->ops.on_message)
                c->ops.on_message(c->userdata, peers_self(c->peers)->name, message);
}

/* Nothing is tried in vain: the leader, which seeks it all the time, would have said otherwise. */
static bool is_down(const struct cluster *c, const char *name) {
        const Rm__Node *node = state_node(c->state, name);

        return cluster_synced(c) && node && node->health == RM__NODE_HEALTH__NODE_HEALTH_DOWN && !peers_connected(c->peers, name);
}

int cluster_send(struct cluster *c, const char *node, const Rm__PeerMessage *message) {
        if (!cluster_is_self(c, node))
                return is_down(c, node) ? -ENOTCONN : peers_post(c->peers, node, message);
        loopback_send(c->loopback, message);
        return 0;
}

void cluster_keep(struct cluster *c, const char *node) {
        peers_keep(c->peers, node);
}

bool cluster_connected(const struct cluster *c, const char *node) {
        return cluster_is_self(c, node) || peers_connected(c->peers, node);
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

uint64_t cluster_log_usec(const struct cluster *c) {
        uint64_t now = now_real_usec(), log = c->state->time_usec;
        uint64_t since = c->last_time_usec + (now_usec() - c->last_applied_usec); /* where this node's clock is behind */

        if (c->last_time_usec > 0 && since > log)
                log = since;
        return now > log ? now : log;
}

enum state_effect cluster_effect(const struct cluster *c, const Rm__Command *command, struct state_result *ret_result) {
        return state_effect(c->state, c->index, command, cluster_log_usec(c), ret_result);
}

uint64_t cluster_lease_end_usec(const struct cluster *c) {
        const char *other;

        if (!c->leading)
                return leases_end_usec(c->leases);
        return role_other_members(c, false, &other, 1) == 0 ? UINT64_MAX : role_given_end_usec(c);
}

uint64_t cluster_fence_safe_usec(const struct cluster *c, const char *node) {
        if (cluster_is_self(c, node))
                return UINT64_MAX;
        return leases_safe_usec(c->leases, peers_received_usec(c->peers, node));
}

bool cluster_disk_full(const struct cluster *c) {
        return c->log && raftlog_full(c->log);
}

bool cluster_is_leader(const struct cluster *c) {
        return c->leading;
}

bool cluster_hand_over(struct cluster *c) {
        const char *other;

        return c->leading && role_other_members(c, true, &other, 1) > 0 && raftlog_yield(c->log);
}

const char *cluster_leader(const struct cluster *c) {
        return c->leader;
}

const char *cluster_self(const struct cluster *c) {
        return peers_self(c->peers)->name;
}

char *cluster_join_failures(const struct cluster *c) {
        return peers_seed_failures(c->peers, c->leader != NULL);
}

uint32_t cluster_port(const struct cluster *c) {
        return peers_port(c->peers);
}

/* ---- create and destroy ---- */

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
                                              .on_lease = role_on_lease,
                                              .get_lease_end = role_get_lease_end,
                                              .may_hold_lease = role_may_hold_lease,
                                              .confirms = role_confirms,
                                              .on_confirmed = role_on_confirmed,
                                              .on_drained = on_drained,
                                              .on_heartbeat = on_heartbeat };
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
                .leading_term = c->member && raftlog_leading(c->log) ? raftlog_term(c->log) : 0,
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

/* Calls the callbacks that cluster_create() must not call itself. */
static void on_started(evutil_socket_t fd, short what, void *userdata) {
        struct cluster *c = userdata;

        if (!c->leading)
                return;
        if (c->ops.on_leader)
                c->ops.on_leader(c->userdata, c->leader);
        cluster_report_installed(c);
        leading_heartbeat(c->leading);
}

static int cluster_open(struct cluster *c, const struct cluster_config *config, struct rm_error *err) {
        int r;

        if (!name_valid(config->name) || !config->self || !name_valid(config->self->name))
                return error_set(err, -EINVAL, "cluster and node need names of 1 to 63 letters, digits, '.', '_', '-'");
        r = mkdir_p(config->state_dir, 0700);
        if (r < 0)
                return error_sys(err, r, "cannot make %s", config->state_dir);
        r = log_open(c, err);
        if (r == 0)
                r = log_begin_cluster(c, config, err);
        if (r == 0)
                r = open_peers(c, config, err);
        if (r < 0)
                return r;
        if (c->member && raftlog_leading(c->log)) {
                role_begin_leading(c);
                c->leader = xstrdup(config->self->name);
        } else {
                role_begin_following(c, 0);
                peers_set_log(c->peers, following_log_id(c->following));
        }
        return 0;
}

int cluster_create(struct event_base *base, const struct cluster_config *config, const struct cluster_ops *ops, void *userdata,
                   struct cluster **ret, struct rm_error *err) {
        static const struct proposals_ops proposals = {
                .route = route, .log = propose_here, .send = role_send_to_leader, .get_state = cluster_get_state, .self = self_name
        };
        struct cluster *c = xcalloc(1, sizeof(*c));
        int r;

        c->base = base;
        c->ops = *ops;
        c->userdata = userdata;
        c->node_timeout_usec = config->node_timeout_usec ? config->node_timeout_usec : NODE_TIMEOUT_USEC;
        c->voter_timeout_usec = config->voter_timeout_usec ? config->voter_timeout_usec : VOTER_TIMEOUT_USEC;
        c->voters = config->voters ? config->voters : VOTERS;
        c->election_msec = config->election_usec ? (unsigned) (config->election_usec / 1000U) : ELECTION_MSEC;
        c->snapshot_entries = config->snapshot_entries ? config->snapshot_entries : SNAPSHOT_ENTRIES;
        c->self_name = xstrdup(config->self ? config->self->name : "");
        c->state_dir = xstrdup(config->state_dir);
        c->cache_path = xasprintf("%s/state", config->state_dir);
        c->leases = leases_create(config->lease_usec ? config->lease_usec : LEASE_USEC);
        c->state = state_create(config->name);
        c->index = state_index_create(c->state);
        c->proposals = proposals_create(base, config->propose_timeout_usec, &proposals, c);
        c->loopback = loopback_create(base, on_self, c);
        c->start_event = evtimer_new(base, on_started, c);
        c->member_event = evtimer_new(base, log_see_member, c);
        if (!c->start_event || !c->member_event)
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
        log_close(c);
        proposals_destroy(c->proposals);
        following_destroy(c->following);
        peers_destroy(c->peers);
        loopback_destroy(c->loopback);
        event_free(c->start_event);
        event_free(c->member_event);
        if (c->bootstrap_event)
                event_free(c->bootstrap_event);
        state_index_destroy(c->index);
        rm__state__free_unpacked(c->state, NULL);
        leases_destroy(c->leases);
        free(c->leader);
        free(c->self_name);
        free(c->state_dir);
        free(c->cache_path);
        free(c);
}
