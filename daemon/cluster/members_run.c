/* The leader takes the steps of members.h, records in the log which nodes keep it, and removes
 * nodes from the state that are to leave it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "common/util.h"
#include "daemon/cluster/leading_internal.h"
#include "daemon/cluster/members.h"
#include "daemon/peers/peer_message.h"
#include "daemon/state/commands.h"
#include "daemon/state/state_index.h"

/* A step that failed, or has no answer yet, is tried again after this time. */
#define AGAIN_USEC UINT64_C(1000000)
/* A transfer that came to nothing. */
#define TRANSFER_AGAIN_USEC UINT64_C(10000000)
/* A voter that is not the only one any more has to do with a lease that ends; its capsules have
 * heard of that after this. */
#define COMPANY_USEC UINT64_C(1500000)
/* A standby that answered raft's heartbeats so long ago at most is there: one that was lost and not
 * missed yet would take the majority with it. */
#define RECENT_USEC UINT64_C(250000)
/* A change that has not come to its end for so long is left to another leader: raft may have lost
 * it. */
#define STUCK_USEC UINT64_C(10000000)

/* A node and raft's number of a log on it. */
struct ready {
        char *node;
        uint64_t id;
        LIST_ENTRY(ready) entry;
};

struct members {
        struct leading *leading;
        struct change *change; /* under way; NULL: none */
        bool telling; /* CmdVoters is under way */
        char *removing; /* CmdNodeRemove of this node is */
        uint64_t next_usec;
        uint64_t busy_usec; /* since when a change is under way; 0: none is */
        uint64_t company_usec; /* since when others are in the configuration; 0: none are */
        LIST_HEAD(, ready) ready;
        LIST_HEAD(, ready) without; /* members whose node has lost their log */
};

/* A step that raft is taking; it may be over after the leadership. */
struct change {
        struct members *members; /* NULL: is gone */
        char *node;
        uint64_t id;
        enum members_action action;
};

/* A view of the configuration and of the state, in one list. */
struct view {
        struct members_node *nodes;
        size_t n;
        struct raftlog_member members[RAFTLOG_MEMBERS_MAX];
        size_t n_members;
};

struct members *members_create(struct leading *leading) {
        struct members *m = xcalloc(1, sizeof(*m));

        m->leading = leading;
        LIST_INIT(&m->ready);
        LIST_INIT(&m->without);
        return m;
}

static void ready_free(struct ready *ready) {
        LIST_REMOVE(ready, entry);
        free(ready->node);
        free(ready);
}

void members_destroy(struct members *m) {
        while (!LIST_EMPTY(&m->ready))
                ready_free(LIST_FIRST(&m->ready));
        while (!LIST_EMPTY(&m->without))
                ready_free(LIST_FIRST(&m->without));
        if (m->change)
                m->change->members = NULL;
        free(m->removing);
        free(m);
}

static struct ready *find_ready(const struct members *m, const char *node) {
        struct ready *ready;

        LIST_FOREACH (ready, &m->ready, entry)
                if (strcmp(ready->node, node) == 0)
                        return ready;
        return NULL;
}

/* ---- what there is ---- */

static const struct raftlog_member *find_member(const struct view *view, const char *node) {
        for (size_t i = 0; i < view->n_members; i++)
                if (strcmp(view->members[i].node, node) == 0)
                        return &view->members[i];
        return NULL;
}

static bool is_self(const struct leading *l, const char *node) {
        return strcmp(l->transport_ops->self(l->transport)->name, node) == 0;
}

static bool is_without(const struct members *m, uint64_t id) {
        const struct ready *without;

        LIST_FOREACH (without, &m->without, entry)
                if (without->id == id)
                        return true;
        return false;
}

static bool received_lately(const struct members *m, const char *node) {
        return now_usec() < m->leading->transport_ops->received_usec(m->leading->transport, node) + RECENT_USEC;
}

/* A member without its log can only be removed; as a node it may be invited again. */
static void view_member(const struct members *m, struct members_node *node, const struct raftlog_member *member) {
        node->role = member ? member->role : RAFTLOG_NONE;
        node->leaving = node->leaving || (member && is_without(m, member->id));
        node->id = member ? member->id : 0;
        node->current = member && member->current && (member->role != RAFTLOG_STANDBY || received_lately(m, member->node));
}

static struct members_node view_node(const struct members *m, const struct view *view, const Rm__Node *in, int32_t switch_at) {
        struct leading *l = m->leading;
        const struct ready *ready = find_ready(m, in->name);
        bool down = in->health == RM__NODE_HEALTH__NODE_HEALTH_DOWN;
        struct members_node node = { .name = in->name,
                                     .switch_at = switch_at,
                                     .self = is_self(l, in->name),
                                     .drained = node_to_be_left(in),
                                     .leaving = in->leaving[0],
                                     .lost = down && in->health_since_usec < leading_long_down_usec(l) };

        node.usable =
                node.self || (in->health == RM__NODE_HEALTH__NODE_HEALTH_UP && l->transport_ops->node(l->transport, in->name));
        view_member(m, &node, find_member(view, in->name));
        if (node.id == 0 && ready)
                node.id = ready->id;
        return node;
}

/* Members of the configuration that the state does not know have left the cluster. */
static void view_fill(struct members *m, struct view *view) {
        const Rm__State *state = leading_state(m->leading);
        cleanup_free int32_t *switches = state_node_switches(state);

        memset(view, 0, sizeof(*view));
        view->n_members = raftlog_members(m->leading->log, view->members, ARRAY_SIZE(view->members));
        view->nodes = xcalloc(state->n_nodes + view->n_members, sizeof(*view->nodes));
        for (size_t i = 0; i < state->n_nodes; i++)
                view->nodes[view->n++] = view_node(m, view, state->nodes[i], switches[i]);
        for (size_t i = 0; i < view->n_members; i++)
                if (!state_node(state, view->members[i].node)) {
                        struct members_node *node = &view->nodes[view->n++];

                        *node = (struct members_node) { .name = view->members[i].node, .switch_at = -1, .leaving = true };
                        node->self = is_self(m->leading, node->name);
                        view_member(m, node, &view->members[i]);
                }
}

/* ---- steps ---- */

static void send_to(struct members *m, const char *node, const Rm__PeerMessage *message) {
        (void) m->leading->transport_ops->send(m->leading->transport, node, message);
}

static void invite(struct members *m, const char *node) {
        Rm__VoterInvite body = RM__VOTER_INVITE__INIT;

        body.log = m->leading->log_id;
        send_to(m, node, &PEER_MESSAGE(&body));
        m->next_usec = now_usec() + AGAIN_USEC;
}

void members_retire(struct members *m, const char *node, uint64_t id) {
        Rm__VoterRetire body = RM__VOTER_RETIRE__INIT;

        body.log = m->leading->log_id;
        body.voter = id;
        body.term = raftlog_term(m->leading->log);
        send_to(m, node, &PEER_MESSAGE(&body));
}

static void on_changed(void *userdata, int code) {
        struct change *change = userdata;
        struct members *m = change->members;

        if (m) {
                m->change = NULL;
                if (code < 0)
                        log_warn("node %s: its part in the log could not be changed: %s", change->node, strerror(-code));
                if (code < 0 || change->action == MEMBERS_TRANSFER)
                        m->next_usec = now_usec() + (code < 0 ? AGAIN_USEC : TRANSFER_AGAIN_USEC);
                if (code == 0 && change->action == MEMBERS_REMOVE)
                        members_retire(m, change->node, change->id);
                members_heartbeat(m);
        }
        free(change->node);
        free(change);
}

static void begin(struct members *m, const struct members_step *step) {
        struct raftlog *log = m->leading->log;
        struct ready *ready = find_ready(m, step->node->name);
        struct change *change = xcalloc(1, sizeof(*change));
        int r = -EINVAL;

        *change = (struct change) { .members = m, .node = xstrdup(step->node->name), .id = step->node->id, .action = step->action };
        if (step->action == MEMBERS_ADD)
                r = raftlog_add(log, change->id, change->node, on_changed, change);
        else if (step->action == MEMBERS_FILL)
                r = raftlog_assign(log, change->id, RAFTLOG_STANDBY, on_changed, change);
        else if (step->action == MEMBERS_PROMOTE)
                r = raftlog_assign(log, change->id, RAFTLOG_VOTER, on_changed, change);
        else if (step->action == MEMBERS_REMOVE)
                r = raftlog_remove(log, change->id, on_changed, change);
        else if (step->action == MEMBERS_TRANSFER)
                r = raftlog_transfer(log, change->id, on_changed, change);
        if (ready)
                ready_free(ready);
        if (r == 0) {
                m->change = change;
                return;
        }
        m->next_usec = now_usec() + AGAIN_USEC;
        free(change->node);
        free(change);
}

static void next_step(struct members *m, const struct view *view) {
        struct members_step step = members_next(view->nodes, view->n, m->leading->voters);

        if (step.action == MEMBERS_NOTHING || (step.action == MEMBERS_PROMOTE && now_usec() < m->company_usec + COMPANY_USEC))
                return;
        if (step.action == MEMBERS_INVITE) {
                invite(m, step.node->name);
                return;
        }
        if (step.action == MEMBERS_TRANSFER)
                log_info("node %s is to lead in this one's place", step.node->name);
        begin(m, &step);
}

/* ---- what the log says ---- */

static void on_reported(void *userdata, const struct raftlog_outcome *outcome) {
        struct members *m = userdata;

        m->telling = false;
        if (outcome->error.code == 0)
                members_heartbeat(m);
}

/* True: it is as it was told. */
static bool report_voters(struct members *m, const struct view *view) {
        const Rm__State *state = leading_state(m->leading);
        const char *names[RAFTLOG_MEMBERS_MAX];
        struct command c;
        size_t n = 0;
        bool same = true;

        for (size_t i = 0; i < view->n_members; i++)
                if (view->members[i].role == RAFTLOG_VOTER)
                        names[n++] = view->members[i].node;
        for (size_t i = 0; i < n; i++)
                same = same && state_is_voter(state, names[i]);
        if (same && n == state->n_voters)
                return true;
        m->telling = leading_propose(m->leading, command_voters(&c, names, n), on_reported, m, NULL) == 0;
        return false;
}

static void on_removed(void *userdata, const struct raftlog_outcome *outcome) {
        struct members *m = userdata;

        (void) outcome;
        free(take_ptr(m->removing));
}

static void remove_left(struct members *m) {
        const Rm__State *state = leading_state(m->leading);
        struct command c;

        for (size_t i = 0; i < state->n_nodes && !m->removing; i++) {
                const Rm__Node *node = state->nodes[i];
                uint32_t capsules = 0;

                if (!node->leaving[0] || state_is_voter(state, node->name))
                        continue;
                (void) state_node_ranks(m->leading->ops.get_index(m->leading->userdata), node->name, &capsules);
                if (capsules > 0)
                        continue;
                m->removing = xstrdup(node->name);
                if (leading_propose(m->leading, command_node_remove(&c, m->removing, node->leaving, true), on_removed, m, NULL) < 0)
                        free(take_ptr(m->removing));
        }
}

/* ---- what happens ---- */

static bool is_busy(struct members *m) {
        uint64_t now = now_usec();

        if (!m->change && !m->telling && !raftlog_changing(m->leading->log)) {
                m->busy_usec = 0;
                return false;
        }
        if (m->busy_usec == 0)
                m->busy_usec = now;
        if (now - m->busy_usec > STUCK_USEC) {
                log_warn("a change of the voters does not come to its end: another node is to lead");
                m->busy_usec = now;
                raftlog_yield(m->leading->log);
        }
        return true;
}

void members_heartbeat(struct members *m) {
        struct view view;

        if (!m->leading->log || leading_state(m->leading)->lease_usec == 0 || is_busy(m))
                return;
        view_fill(m, &view);
        if (view.n_members < 2)
                m->company_usec = 0;
        else if (m->company_usec == 0)
                m->company_usec = now_usec();
        if (report_voters(m, &view)) {
                remove_left(m);
                if (now_usec() >= m->next_usec)
                        next_step(m, &view);
        }
        free(view.nodes);
}

void members_ready(struct members *m, const char *node, const Rm__VoterReady *message) {
        struct ready *ready = find_ready(m, node);

        if (message->log != m->leading->log_id || message->voter == 0)
                return;
        if (!ready) {
                ready = xcalloc(1, sizeof(*ready));
                ready->node = xstrdup(node);
                LIST_INSERT_HEAD(&m->ready, ready, entry);
        }
        ready->id = message->voter;
        m->next_usec = 0;
        members_heartbeat(m);
}

void members_follows(struct members *m, const char *node, uint64_t id) {
        struct raftlog_member list[RAFTLOG_MEMBERS_MAX];
        size_t n = m->leading->log ? raftlog_members(m->leading->log, list, ARRAY_SIZE(list)) : 0;
        struct ready *without;

        for (size_t i = 0; i < n; i++) {
                if (strcmp(list[i].node, node) != 0 || list[i].id == id || is_without(m, list[i].id))
                        continue;
                log_warn("node %s keeps the log no more that it had", node);
                without = xcalloc(1, sizeof(*without));
                without->node = xstrdup(node);
                without->id = list[i].id;
                LIST_INSERT_HEAD(&m->without, without, entry);
        }
}

bool members_knows(const struct members *m, uint64_t id) {
        struct raftlog_member list[RAFTLOG_MEMBERS_MAX];
        size_t n;

        if (!m->leading->log || raftlog_changing(m->leading->log))
                return true;
        n = raftlog_members(m->leading->log, list, ARRAY_SIZE(list));
        for (size_t i = 0; i < n; i++)
                if (list[i].id == id)
                        return true;
        return false;
}
