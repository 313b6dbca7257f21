/* The role of this node: which node leads, whether this one follows it, and the leases that it
 * gives and holds. */
#include "daemon/cluster/cluster_internal.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "common/util.h"
#include "daemon/state/feature_level.h"
#include "daemon/state/state.h"

/* ---- leases ---- */

/* The members of the log's configuration but this node; with `voters`, only those with a vote. */
size_t role_other_members(const struct cluster *c, bool voters, const char **names, size_t max) {
        struct raftlog_member members[RAFTLOG_MEMBERS_MAX];
        const struct raftlog *log = c->log;
        size_t n = log ? raftlog_members(log, members, ARRAY_SIZE(members)) : 0, n_others = 0;

        for (size_t i = 0; i < n && n_others < max; i++)
                if (strcmp(members[i].node, c->self_name) != 0 && (!voters || members[i].role == RAFTLOG_VOTER))
                        names[n_others++] = members[i].node;
        return n_others;
}

/* Returns, while this node leads, when the leases end that it gives, and its own. None is given
 * before the log says how long they are. */
uint64_t role_given_end_usec(const struct cluster *c) {
        const char *others[RAFTLOG_MEMBERS_MAX];
        size_t n = role_other_members(c, true, others, ARRAY_SIZE(others));

        if (c->state->lease_usec == 0)
                return 0;
        return leases_given_end_usec(c->leases, leases_quorum_usec(c->leases, others, n, now_boot_usec()), c->state->lease_usec);
}

void role_report_lease(struct cluster *c) {
        if (c->ops.on_lease)
                c->ops.on_lease(c->userdata);
}

uint64_t role_get_lease_end(void *userdata, uint64_t *ret_index) {
        const struct cluster *c = userdata;

        *ret_index = c->state->index;
        return c->leading ? role_given_end_usec(c) : 0;
}

/* While it is DOWN in the log its jobs may start again elsewhere. From when it is UP they do not,
 * and a node that has that entry has those before. */
bool role_may_hold_lease(void *userdata, const char *name) {
        const struct cluster *c = userdata;
        const Rm__Node *node = state_node(c->state, name);

        return node && node->health != RM__NODE_HEALTH__NODE_HEALTH_DOWN;
}

bool role_confirms(void *userdata, const char *node, uint64_t term) {
        const struct cluster *c = userdata;
        const char *elected = c->log && raftlog_term(c->log) == term ? raftlog_leader(c->log) : NULL;

        return elected && strcmp(elected, node) == 0;
}

/* The first ones do not wait for the next heartbeat: capsules may be frozen for want of a lease. */
void role_on_confirmed(void *userdata, const char *node, uint64_t sent_boot_usec) {
        struct cluster *c = userdata;
        bool had = role_given_end_usec(c) > now_boot_usec();

        if (!c->leading)
                return;
        leases_confirm(c->leases, node, sent_boot_usec);
        if (!had && role_given_end_usec(c) > now_boot_usec())
                peers_heartbeat(c->peers);
        role_report_lease(c);
}

void role_on_lease(void *userdata, const char *node, uint64_t sent_usec, uint64_t lease_usec, uint64_t index) {
        struct cluster *c = userdata;

        if (c->leading || !cluster_is_led_by(c, node))
                return;
        leases_offer(c->leases, lease_end_usec(sent_usec, lease_usec), index);
        role_reach_lease(c);
}

void role_reach_lease(struct cluster *c) {
        if (leases_reach(c->leases, c->state->index))
                role_report_lease(c);
}

/* ---- leading ---- */

static const struct state_index *get_index(void *userdata) {
        return ((const struct cluster *) userdata)->index;
}

static int leading_log(void *userdata, const Rm__Command *command, raftlog_done_fn done, void *context) {
        struct cluster *c = userdata;

        return raftlog_propose(c->log, command, done, context);
}

/* Notes that a node was elected in this term of this log: no leader of an earlier term is followed
 * any more. */
static void remember(struct cluster *c, uint64_t log_id, uint64_t term) {
        if (log_id != 0 && log_id != c->seen_log)
                c->seen_term = 0;
        if (log_id != 0)
                c->seen_log = log_id;
        if (term > c->seen_term)
                c->seen_term = term;
}

void role_begin_leading(struct cluster *c) {
        static const struct leading_ops ops = { .get_state = cluster_get_state, .get_index = get_index, .log = leading_log };
        const struct leading_config config = { .log_id = raftlog_id(c->log),
                                               .feed = c->feed,
                                               .transport_ops = transport_of_peers(),
                                               .transport = c->peers,
                                               .last_time_usec = c->last_time_usec,
                                               .node_timeout_usec = c->node_timeout_usec,
                                               .voter_timeout_usec = c->voter_timeout_usec,
                                               .voters = c->voters,
                                               .leases = c->leases,
                                               .log = c->log,
                                               .later = feature_levels() };

        following_destroy(take_ptr(c->following));
        c->leading = leading_create(&config, &ops, c);
        c->leading_term = raftlog_term(c->log);
        remember(c, raftlog_id(c->log), c->leading_term);
        leases_lead(c->leases, now_usec(), c->state->lease_usec);
}

/* ---- following ---- */

static int following_apply(void *userdata, uint64_t index, const Rm__Command *command, struct rm_error *err) {
        struct cluster *c = userdata;
        struct state_result result;

        cluster_apply(c, index, command, &result);
        if (result.unknown) {
                *err = result.error;
                return result.error.code;
        }
        cluster_report_applied(c, command, &result);
        state_result_finish(&result);
        return 0;
}

int role_send_to_leader(void *userdata, const Rm__PeerMessage *message) {
        struct cluster *c = userdata;

        return peers_send(c->peers, c->leader, message);
}

static uint64_t get_number(void *userdata) {
        struct cluster *c = userdata;

        return c->log ? raftlog_voter_id(c->log) : 0;
}

static void on_installed(void *userdata) {
        struct cluster *c = userdata;
        struct rm_error err = { 0 };

        if (log_note_joined(c, &err) < 0)
                log_warn("%s", error_text(&err));
        cluster_report_installed(c);
}

/* `state_log_id`: of the log that the state is of, where this node has kept it until now; 0: it is
 * what the copy on the disk says. */
void role_begin_following(struct cluster *c, uint64_t state_log_id) {
        static const struct following_ops ops = { .get_state = cluster_get_state,
                                                  .replace = cluster_replace_state,
                                                  .apply = following_apply,
                                                  .get_number = get_number,
                                                  .send = role_send_to_leader,
                                                  .on_installed = on_installed,
                                                  .on_failed = cluster_fail };
        const struct following_config config = { .base = c->base,
                                                 .cluster = c->state->cluster,
                                                 .cache_path = c->cache_path,
                                                 .log_id = c->member ? raftlog_id(c->log) : 0,
                                                 .state_log_id = state_log_id };

        c->following = following_create(&config, &ops, c);
}

/* ---- the leader ---- */

/* Notes the term of the leader that is followed. */
static void remember_leader(struct cluster *c, const char *leader) {
        remember(c, peers_log_id(c->peers, leader), peers_leading_term(c->peers, leader));
}

/* The node was replaced as the leader, and does not know. */
static bool is_overtaken(struct cluster *c, const char *node) {
        uint64_t log_id = peers_log_id(c->peers, node), term = peers_leading_term(c->peers, node);
        bool other_log = log_id != 0 && c->seen_log != 0 && log_id != c->seen_log;

        if (other_log || term >= c->seen_term)
                return false;
        if (c->overtaken_term != term)
                log_warn("node %s says that it leads, but another one was elected after it (term %" PRIu64 ", not %" PRIu64
                         "): not followed",
                         node, c->seen_term, term);
        c->overtaken_term = term;
        return true;
}

void role_set_leader(struct cluster *c, const char *leader) {
        if (leader ? cluster_is_led_by(c, leader) : !c->leader)
                return;
        if (leader)
                log_info("node %s leads", leader);
        else if (cluster_is_self(c, c->leader))
                log_warn("this node, %s, does not lead any more", c->leader);
        else
                log_warn("the leader, node %s, is out of reach", c->leader);
        free(c->leader);
        c->leader = xstrdup(leader);
        c->leader_term = leader && !c->leading ? peers_leading_term(c->peers, leader) : 0;
        if (leader && !c->leading)
                remember_leader(c, leader);
        if (c->following)
                following_set_leader(c->following, leader);
        if (c->ops.on_leader)
                c->ops.on_leader(c->userdata, c->leader);
        proposals_leader_changed(c->proposals);
}

/* A leader that was elected again does not know which nodes it led before. It tells its peers when
 * it leads no more, but not those with which a connection is just being made. */
void role_leads_still(struct cluster *c, const char *leader) {
        bool again = peers_leading_term(c->peers, leader) != c->leader_term;

        remember_leader(c, leader);
        if (!again)
                return;
        role_set_leader(c, NULL);
        if (role_is_elected(c, leader))
                role_set_leader(c, leader);
}

static void win(struct cluster *c) {
        role_begin_leading(c);
        peers_set_leading(c->peers, c->leading_term);
        role_set_leader(c, peers_self(c->peers)->name);
        cluster_report_installed(c); /* the state is certain now */
        leading_heartbeat(c->leading);
}

/* This node loses the leadership; peers that it tells see a node that does not lead. */
static void lose(struct cluster *c) {
        struct leading *leading;

        (void) leases_take(c->leases, role_given_end_usec(c)); /* it keeps what it had */
        leading = take_ptr(c->leading);
        role_begin_following(c, 0);
        peers_set_leading(c->peers, 0);
        role_set_leader(c, NULL);
        leading_destroy(leading, -EHOSTUNREACH);
}

/* Among several nodes that claim to lead, a node with the log believes the one that the voters have
 * elected, and any other node the one that was elected last, also of those that it has known
 * before. */
bool role_is_elected(struct cluster *c, const char *node) {
        const char *elected = c->member ? raftlog_leader(c->log) : NULL;

        if (c->member)
                return elected && strcmp(elected, node) == 0;
        if (is_overtaken(c, node))
                return false;
        /* A leader that does not know yet that it was replaced would send an older state, to which
         * the log here does not belong. */
        if (c->log && peers_leading_term(c->peers, node) < raftlog_term(c->log))
                return false;
        return !c->leader || peers_leading_term(c->peers, node) > peers_leading_term(c->peers, c->leader);
}

void role_changed(void *userdata) {
        struct cluster *c = userdata;
        bool leads = raftlog_leading(c->log);
        const char *elected;

        if (!c->member)
                return;
        if (c->leading && (!leads || raftlog_term(c->log) != c->leading_term))
                lose(c);
        if (c->leading)
                return;
        if (c->leader && !role_is_elected(c, c->leader))
                role_set_leader(c, NULL);
        elected = raftlog_leader(c->log);
        if (leads)
                win(c);
        else if (elected && peers_leading_term(c->peers, elected) > 0)
                role_set_leader(c, elected);
}
