/* The leader's proposals about nodes: that they joined, are up, are down. A leader that has only
 * just begun, or that hears fewer than half of the nodes and so is rather cut off itself, must not
 * bury the living: to such a leader a silent node is unknown at first, and down only after long. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "common/util.h"
#include "daemon/cluster/leading_internal.h"
#include "daemon/state/commands.h"

#define UNKNOWN_TIMEOUTS 6U /* node timeouts until a node that may be alive without us is down all the same */

/* A proposal about a node is under way: no second one meanwhile. */
struct pending {
        struct health *health;
        char *node; /* "": it is about the feature level */
        LIST_ENTRY(pending) entry;
};

struct health {
        struct leading *leading;
        uint64_t since_usec; /* when the leadership began: until then no node had to be heard */
        uint64_t cut_off_usec; /* when the leader last took itself for cut off; 0: never */
        LIST_HEAD(, pending) pending;
};

struct health *health_create(struct leading *leading) {
        struct health *h = xcalloc(1, sizeof(*h));

        h->leading = leading;
        h->since_usec = now_usec();
        LIST_INIT(&h->pending);
        return h;
}

static void pending_free(struct pending *pending) {
        LIST_REMOVE(pending, entry);
        free(pending->node);
        free(pending);
}

void health_destroy(struct health *h) {
        while (!LIST_EMPTY(&h->pending))
                pending_free(LIST_FIRST(&h->pending));
        free(h);
}

static bool is_pending(const struct health *h, const char *node) {
        const struct pending *pending;

        LIST_FOREACH (pending, &h->pending, entry)
                if (strcmp(pending->node, node) == 0)
                        return true;
        return false;
}

static void on_done(void *userdata, const struct raftlog_outcome *outcome) {
        struct pending *pending = userdata;
        struct health *h = pending->health;
        cleanup_free char *node = xstrdup(pending->node);

        if (outcome->error.code < 0 && outcome->error.code != -ECANCELED && outcome->error.code != -EHOSTUNREACH)
                log_warn("node %s: %s", *node ? node : "*", error_text(&outcome->error));
        pending_free(pending);
        /* Things may have changed again meanwhile; a refusal is tried again with the next beat
         * only. */
        if (outcome->error.code == 0)
                health_check(h, node);
}

static void propose(struct health *h, const char *node, Rm__Command *command) {
        struct pending *pending = xcalloc(1, sizeof(*pending));

        pending->health = h;
        pending->node = xstrdup(node);
        LIST_INSERT_HEAD(&h->pending, pending, entry);
        if (leading_propose(h->leading, command, on_done, pending, NULL) < 0)
                pending_free(pending);
}

static void propose_health(struct health *h, const char *node, Rm__NodeHealth health, const char *why) {
        struct command c;

        propose(h, node, command_node_health(&c, node, health, why));
}

/* A field that the log has no level for is told when it has. */
static Rm__Node describe(const struct health *h, const Rm__Node *node) {
        Rm__Node described = *node;

        if (leading_state(h->leading)->level < STATE_LEVEL_PROCESSORS)
                described.instruction_sets = (char *) "";
        return described;
}

static void propose_join(struct health *h, const Rm__Node *node) {
        Rm__Node described = describe(h, node);
        struct command c;

        propose(h, node->name, command_node_join(&c, &described));
}

static bool same_processors(const struct health *h, const Rm__Node *known, const Rm__Node *now) {
        return strcmp(known->instruction_sets, describe(h, now).instruction_sets) == 0;
}

static bool same_description(const Rm__Node *a, const Rm__Node *b) {
        return a->port == b->port && a->cores == b->cores && a->level == b->level && a->memory_bytes == b->memory_bytes &&
               strcmp(a->address, b->address) == 0 && strcmp(a->topology, b->topology) == 0 && strcmp(a->boot_id, b->boot_id) == 0;
}

static void check_present(struct health *h, const Rm__Node *now) {
        const Rm__Node *known = state_node(leading_state(h->leading), now->name);

        /* A node that was DOWN when the level was raised is refused as if it joined, with a reason;
         * its rmd ends. */
        if (!known || !same_description(known, now) || !same_processors(h, known, now) ||
            now->level < leading_state(h->leading)->level)
                propose_join(h, now);
        else if (known->health != RM__NODE_HEALTH__NODE_HEALTH_UP)
                propose_health(h, now->name, RM__NODE_HEALTH__NODE_HEALTH_UP, "");
}

/* As soon as all nodes know a higher feature level than the log's, entries may make use of it. A
 * node that is DOWN for as long as costs a voter its vote is not waited for. */
static void check_level(struct health *h) {
        const Rm__State *state = leading_state(h->leading);
        uint32_t level = state_known_level(state, leading_long_down_usec(h->leading));
        struct command c;

        if (level > STATE_LEVEL)
                level = STATE_LEVEL;
        if (level > state->level && !is_pending(h, ""))
                propose(h, "", command_level(&c, level));
}

/* This node is connected to itself. */
static const Rm__Node *present(const struct health *h, const char *name) {
        const struct leading *l = h->leading;
        const Rm__Node *self = l->transport_ops->self(l->transport);

        return strcmp(name, self->name) == 0 ? self : l->transport_ops->node(l->transport, name);
}

static bool cut_off(const struct health *h) {
        const Rm__State *state = leading_state(h->leading);
        unsigned connected = 0;
        unsigned all = 0;

        for (size_t i = 0; i < state->n_nodes; i++) {
                if (state->nodes[i]->health == RM__NODE_HEALTH__NODE_HEALTH_DOWN)
                        continue;
                all++;
                connected += present(h, state->nodes[i]->name) != NULL;
        }
        return 2 * connected < all;
}

/* Nodes are not all back at once when a network is: no node is declared DOWN before all have had
 * the whole time to be heard of. */
static bool is_whole(const struct health *h) {
        return !cut_off(h) && now_usec() - h->cut_off_usec > h->leading->node_timeout_usec;
}

static void check_absent(struct health *h, const Rm__Node *known) {
        const struct leading *l = h->leading;
        uint64_t received = l->transport_ops->received_usec(l->transport, known->name);
        uint64_t silent = now_usec() - (received > h->since_usec ? received : h->since_usec);
        char why[96];

        if (known->health == RM__NODE_HEALTH__NODE_HEALTH_DOWN || silent <= l->node_timeout_usec)
                return;
        (void) snprintf(why, sizeof(why), "not heard of for %.1f s", (double) silent / 1e6);
        if (silent > UNKNOWN_TIMEOUTS * l->node_timeout_usec || (received > 0 && is_whole(h)))
                propose_health(h, known->name, RM__NODE_HEALTH__NODE_HEALTH_DOWN, why);
        else if (known->health == RM__NODE_HEALTH__NODE_HEALTH_UP)
                propose_health(h, known->name, RM__NODE_HEALTH__NODE_HEALTH_UNKNOWN, why);
}

static void check_one(struct health *h, const char *name) {
        const Rm__Node *known = state_node(leading_state(h->leading), name);
        const Rm__Node *now = present(h, name);

        if (is_pending(h, name))
                return;
        if (now)
                check_present(h, now);
        else if (known)
                check_absent(h, known);
}

static void visit_peer(void *context, const char *name) {
        check_one(context, name);
}

void health_check(struct health *h, const char *node) {
        const struct leading *l = h->leading;
        const Rm__State *state = leading_state(l);

        check_level(h);
        if (node && !*node)
                return;
        if (node) {
                check_one(h, node);
                return;
        }
        if (cut_off(h))
                h->cut_off_usec = now_usec();
        check_one(h, l->transport_ops->self(l->transport)->name);
        l->transport_ops->foreach(l->transport, visit_peer, h);
        for (size_t i = 0; i < state->n_nodes; i++)
                check_one(h, state->nodes[i]->name);
}
