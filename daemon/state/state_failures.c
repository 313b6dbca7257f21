/* How often nodes are lost, and how many of these losses were predicted and thus avoided (Wang et
 * al. 2012, section 5.7). */
#include <stdlib.h>

#include "common/util.h"
#include "daemon/state/state_internal.h"

/* A node that was unwell at some time in this long before its loss announced it. A sensor may have
 * fallen silent with what broke, or have found everything well once the node had nothing to do any
 * more. */
#define FORESIGHT_USEC (24 * UINT64_C(3600) * 1000000)

static uint64_t nodes_up(const Rm__State *state) {
        uint64_t n = 0;

        for (size_t i = 0; i < state->n_nodes; i++)
                n += state->nodes[i]->health == RM__NODE_HEALTH__NODE_HEALTH_UP;
        return n;
}

static uint64_t node_usec(const Rm__State *state, uint64_t now_usec) {
        const Rm__Failures *known = state->failures;

        return known->node_usec + (now_usec > known->counted_usec ? nodes_up(state) * (now_usec - known->counted_usec) : 0);
}

void failures_advance(struct apply *a) {
        Rm__State *state = a->state;

        if (!state->failures) {
                state->failures = xcalloc(1, sizeof(*state->failures));
                rm__failures__init(state->failures);
                state->failures->counted_usec = a->time_usec;
        }
        state->failures->node_usec = node_usec(state, a->time_usec);
        state->failures->counted_usec = a->time_usec;
}

/* A head counts as a group does: its job is lost with it. Parked groups and spare ranks do, too:
 * what they were kept for is gone. */
static bool is_occupied(const struct apply *a, const Rm__Node *node) {
        uint32_t capsules = 0;

        (void) state_node_ranks(a->index, node->name, &capsules);
        return capsules > 0;
}

/* Nothing is on a drained node, or one that leaves: an administrator who switches it off or
 * restarts it repairs it, or has done with it. One that is not heard of may be cut off from a
 * leader that has just begun; if nothing is on it, it does not matter which. */
static bool is_loss(const struct apply *a, const Rm__Node *node) {
        if (node->health == RM__NODE_HEALTH__NODE_HEALTH_DOWN)
                return false; /* it was counted when it became so */
        return is_occupied(a, node) || (node->health == RM__NODE_HEALTH__NODE_HEALTH_UP && !node->drain && !node->leaving[0]);
}

/* A warning moves nothing, and a node that fails may be lost before all has left it: then the loss
 * has cost what any other costs, so the interval of checkpoints must not grow by it. The interval
 * counts on this share of losses to cost nothing. */
static bool is_foreseen(const struct apply *a, const Rm__Node *node) {
        if (a->state->level >= STATE_LEVEL_AVOIDED && is_occupied(a, node))
                return false;
        if (node_condition(node) > RM__CONDITION__CONDITION_OK)
                return true;
        return node->unwell_usec > 0 && a->time_usec - node->unwell_usec <= FORESIGHT_USEC;
}

void failures_lose(struct apply *a, const Rm__Node *node) {
        if (!a->state->failures || !is_loss(a, node))
                return;
        a->state->failures->losses++;
        a->state->failures->foreseen += is_foreseen(a, node);
}

void state_failures(const Rm__State *state, uint64_t now_usec, struct state_failures *ret_failures) {
        const Rm__Failures *known = state->failures;
        uint64_t until_usec = now_usec > state->time_usec ? now_usec : state->time_usec;

        *ret_failures = (struct state_failures) { 0 };
        if (!known)
                return;
        ret_failures->losses = known->losses;
        ret_failures->foreseen = known->foreseen;
        ret_failures->node_usec = node_usec(state, until_usec);
}
