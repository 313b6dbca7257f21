/* Commands about the voters, the length of leases, and nodes that leave for good. */
#include <stdlib.h>
#include <string.h>

#include "common/util.h"
#include "daemon/state/state_internal.h"

bool state_is_voter(const Rm__State *state, const char *node) {
        return names_have(state->voters, state->n_voters, node);
}

static void report_voters(struct apply *a, char *const *old, size_t n_old) {
        const Rm__State *state = a->state;

        for (size_t i = 0; i < state->n_voters; i++)
                if (!names_have(old, n_old, state->voters[i]))
                        apply_event(a, "voter-added", state->voters[i], 0, 0, 0, "node %s keeps the log now (%zu voters)",
                                    state->voters[i], state->n_voters);
        for (size_t i = 0; i < n_old; i++)
                if (!names_have(state->voters, state->n_voters, old[i]))
                        apply_event(a, "voter-removed", old[i], 0, 0, 0, "node %s keeps the log no more (%zu voters)", old[i],
                                    state->n_voters);
}

int apply_voters(struct apply *a) {
        const Rm__CmdVoters *in = a->command->voters;
        Rm__State *state = a->state;
        char **old = state->voters;
        size_t n_old = state->n_voters;

        state->voters = NULL;
        state->n_voters = 0;
        for (size_t i = 0; i < in->n_nodes; i++)
                if (name_valid(in->nodes[i]) && !state_is_voter(state, in->nodes[i]))
                        REPEATED_PUSH(state->voters, state->n_voters, xstrdup(in->nodes[i]));
        report_voters(a, old, n_old);
        free_all(old, n_old);
        return 0;
}

int apply_lease(struct apply *a) {
        a->state->lease_usec = a->command->lease->usec;
        return 0;
}

/* ---- nodes that leave ---- */

/* Jobs that keep it as a spare do without. */
static void drop_spares(struct apply *a, const char *name) {
        for (size_t i = 0; i < a->state->n_jobs; i++) {
                Rm__Job *job = a->state->jobs[i];
                size_t kept = 0;

                for (size_t k = 0; k < job->n_spare_nodes; k++)
                        if (strcmp(job->spare_nodes[k], name) == 0)
                                free(job->spare_nodes[k]);
                        else
                                job->spare_nodes[kept++] = job->spare_nodes[k];
                job->n_spare_nodes = kept;
        }
}

static void forget(struct apply *a, Rm__Node *node) {
        Rm__State *state = a->state;
        size_t at = 0;

        failures_advance(a);
        while (state->nodes[at] != node)
                at++;
        REPEATED_REMOVE(state->nodes, state->n_nodes, at);
        drop_spares(a, node->name);
        state_index_node_gone(a->index, node->name);
        apply_event(a, "node-removed", node->name, 0, 0, 0, "node %s is removed from the cluster, by %s", node->name,
                    node->leaving);
        rm__node__free_unpacked(node, NULL);
}

static int refuse_busy(struct apply *a, const Rm__Node *node, uint32_t capsules) {
        return apply_refuse(
                a, -EBUSY,
                "remove-node: node '%s' has %u capsules of jobs; drain it first (rmctl drain-node %s), so that they move "
                "to other nodes",
                node->name, capsules, node->name);
}

int apply_node_remove(struct apply *a) {
        const Rm__CmdNodeRemove *in = a->command->node_remove;
        Rm__Node *node = state_node(a->state, in->node);
        cleanup_free char *known = node ? NULL : state_known_nodes(a->state);
        uint32_t capsules = 0;

        if (!node)
                return apply_refuse(a, -ENOENT, "remove-node: no node '%s' (known: %s)", in->node, known);
        if (a->state->n_nodes == 1)
                return apply_refuse(a, -EBUSY, "remove-node: node '%s' is the only one of the cluster", in->node);
        (void) state_node_ranks(a->index, node->name, &capsules);
        if (capsules > 0 && !node->drain)
                return refuse_busy(a, node, capsules);
        if (!apply_goes_on(a, !node->leaving[0] || (capsules == 0 && !state_is_voter(a->state, node->name))))
                return 0;
        if (!node->leaving[0])
                message_set_string(&node->leaving, in->by[0] ? in->by : "?");
        if (capsules == 0 && !state_is_voter(a->state, node->name))
                forget(a, node);
        else if (!in->again)
                apply_event(a, "node-leaves", node->name, 0, 0, 0, "node %s is to be removed from the cluster, by %s", node->name,
                            node->leaving);
        return 0;
}
