#include "daemon/cluster/members.h"

#include <string.h>

struct count {
        unsigned voters;   /* that are not leaving, in whatever state */
        unsigned good;     /* of these: neither lost nor drained */
        unsigned all;      /* voters, those that leave too */
        unsigned pending;  /* in the configuration without a vote, and to get one */
        unsigned fresh;    /* outside, and could get one */
};

/* The node may keep the log for long. */
static bool is_good(const struct members_node *node) {
        return !node->lost && !node->drained && !node->leaving;
}

static bool is_pending(const struct members_node *node) {
        return (node->role == RAFTLOG_SPARE || node->role == RAFTLOG_STANDBY) && node->usable && is_good(node);
}

static bool is_fresh(const struct members_node *node) {
        return node->role == RAFTLOG_NONE && node->usable && is_good(node);
}

static struct count count_nodes(const struct members_node *nodes, size_t n) {
        struct count count = { 0 };

        for (size_t i = 0; i < n; i++) {
                bool voter = nodes[i].role == RAFTLOG_VOTER;

                count.all += voter;
                count.voters += voter && !nodes[i].leaving;
                count.good += voter && is_good(&nodes[i]);
                count.pending += is_pending(&nodes[i]);
                count.fresh += is_fresh(&nodes[i]);
        }
        return count;
}

/* How many there are to be: an odd number. */
static unsigned target(const struct count *count, unsigned requested) {
        unsigned possible = count->voters + count->pending + count->fresh;
        unsigned most = possible < requested ? possible : requested;

        return most < 1 ? 1 : most % 2 == 0 ? most - 1 : most;
}

static struct members_step step(enum members_action action, const struct members_node *node) {
        return (struct members_step) { node ? action : MEMBERS_NOTHING, node };
}

/* ---- more voters ---- */

/* Voters, and those that are to become one, on the same switch. */
static unsigned crowd(const struct members_node *nodes, size_t n, const struct members_node *of) {
        unsigned crowded = 0;

        for (size_t i = 0; i < n; i++)
                crowded += nodes[i].switch_at == of->switch_at &&
                           ((nodes[i].role == RAFTLOG_VOTER && is_good(&nodes[i])) || is_pending(&nodes[i]));
        return crowded;
}

static const struct members_node *best_fresh(const struct members_node *nodes, size_t n) {
        const struct members_node *best = NULL;

        for (size_t i = 0; i < n; i++) {
                unsigned crowded = is_fresh(&nodes[i]) ? crowd(nodes, n, &nodes[i]) : 0;

                if (is_fresh(&nodes[i]) && (!best || crowded < crowd(nodes, n, best) ||
                                            (crowded == crowd(nodes, n, best) && strcmp(nodes[i].name, best->name) < 0)))
                        best = &nodes[i];
        }
        return best;
}

static const struct members_node *find_role(const struct members_node *nodes, size_t n, enum raftlog_role role) {
        for (size_t i = 0; i < n; i++)
                if (nodes[i].role == role && is_pending(&nodes[i]))
                        return &nodes[i];
        return NULL;
}

/* All at once, or one would be left alone with an even number for as long as the next one needs. */
static bool all_current(const struct members_node *nodes, size_t n) {
        for (size_t i = 0; i < n; i++)
                if (is_pending(&nodes[i]) && !nodes[i].current)
                        return false;
        return true;
}

static struct members_step grow(const struct members_node *nodes, size_t n, const struct count *count, unsigned need) {
        const struct members_node *fresh = best_fresh(nodes, n);
        const struct members_node *spare = find_role(nodes, n, RAFTLOG_SPARE);

        if (count->pending < need && fresh)
                return step(fresh->id != 0 ? MEMBERS_ADD : MEMBERS_INVITE, fresh);
        if (spare)
                return step(MEMBERS_FILL, spare);
        return step(all_current(nodes, n) ? MEMBERS_PROMOTE : MEMBERS_NOTHING, find_role(nodes, n, RAFTLOG_STANDBY));
}

/* ---- fewer ---- */

/* Finds a member of the configuration that is not to get a vote any more. */
static const struct members_node *orphan(const struct members_node *nodes, size_t n, const struct count *count, unsigned need) {
        for (size_t i = 0; i < n; i++)
                if ((nodes[i].role == RAFTLOG_SPARE || nodes[i].role == RAFTLOG_STANDBY) &&
                    (!is_pending(&nodes[i]) || count->pending > need))
                        return &nodes[i];
        return NULL;
}

static unsigned rank_to_go(const struct members_node *node) {
        return node->leaving ? 3 : node->lost ? 2 : node->drained ? 1 : 0;
}

/* The leader itself only if it is to go before all others. */
static const struct members_node *first_to_go(const struct members_node *nodes, size_t n) {
        const struct members_node *worst = NULL;

        for (size_t i = 0; i < n; i++) {
                const struct members_node *node = &nodes[i];

                if (node->role != RAFTLOG_VOTER)
                        continue;
                if (!worst || rank_to_go(node) > rank_to_go(worst) ||
                    (rank_to_go(node) == rank_to_go(worst) &&
                     (worst->self || (!node->self && strcmp(node->name, worst->name) > 0))))
                        worst = node;
        }
        return worst;
}

/* A voter that may lead instead of this node. */
static const struct members_node *heir(const struct members_node *nodes, size_t n) {
        for (size_t i = 0; i < n; i++)
                if (nodes[i].role == RAFTLOG_VOTER && !nodes[i].self && nodes[i].usable && is_good(&nodes[i]) && nodes[i].current)
                        return &nodes[i];
        return NULL;
}

static struct members_step shrink(const struct members_node *nodes, size_t n) {
        const struct members_node *node = first_to_go(nodes, n);

        return node && node->self ? step(MEMBERS_TRANSFER, heir(nodes, n)) : step(MEMBERS_REMOVE, node);
}

static const struct members_node *find_self(const struct members_node *nodes, size_t n) {
        for (size_t i = 0; i < n; i++)
                if (nodes[i].self)
                        return &nodes[i];
        return NULL;
}

struct members_step members_next(const struct members_node *nodes, size_t n, unsigned requested) {
        struct count count = count_nodes(nodes, n);
        const struct members_node *self = find_self(nodes, n), *odd_one;
        unsigned to_be = target(&count, requested);
        unsigned need = to_be > count.good ? to_be - count.good : 0;

        /* Lost and drained voters are replaced only as far as there are other nodes. */
        if (need > count.pending + count.fresh)
                need = count.pending + count.fresh;
        odd_one = orphan(nodes, n, &count, need);
        if (odd_one)
                return step(MEMBERS_REMOVE, odd_one);
        if (need > 0)
                return grow(nodes, n, &count, need);
        if (count.all > to_be)
                return shrink(nodes, n);
        if (self && (self->drained || self->leaving))
                return step(MEMBERS_TRANSFER, heir(nodes, n));
        return step(MEMBERS_NOTHING, NULL);
}
