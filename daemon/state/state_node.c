#include <stdlib.h>
#include <string.h>

#include "common/util.h"
#include "daemon/state/state_internal.h"

static int refuse_unknown_node(struct apply *a, const char *verb, const char *name) {
        cleanup_free char *known = state_known_nodes(a->state);

        return apply_refuse(a, -ENOENT, "%s: no node '%s' (known: %s)", verb, name, known);
}

/* The list is sorted: it goes where it belongs. */
static Rm__Node *add_node(struct apply *a, const char *name) {
        Rm__State *state = a->state;
        Rm__Node *node = xcalloc(1, sizeof(*node));
        size_t at;

        rm__node__init(node);
        message_set_string(&node->name, name);
        REPEATED_PUSH(state->nodes, state->n_nodes, node);
        for (at = state->n_nodes - 1; at > 0 && strcmp(state->nodes[at - 1]->name, name) > 0; at--)
                state->nodes[at] = state->nodes[at - 1];
        state->nodes[at] = node;
        state_index_node(a->index, at);
        return node;
}

/* Forgets the fence of a node that is back, whether the node was fenced or not. */
static void forget_fence(Rm__Node *node) {
        node->fenced = false;
        message_set_string(&node->fence, NULL);
}

int apply_node_join(struct apply *a) {
        const Rm__Node *in = a->command->node_join->node;
        bool booted;
        Rm__Node *node;

        if (!in || !name_valid(in->name))
                return apply_refuse(a, -EINVAL, "join: a node without a valid name");
        if (in->level < a->state->level)
                return apply_refuse(a, -EPROTO,
                                    "join: the rmd of node '%s' knows feature level %u, the cluster is at %u: update it", in->name,
                                    in->level, a->state->level);
        failures_advance(a);
        node = state_node(a->state, in->name);
        if (!node)
                node = add_node(a, in->name);
        booted = strcmp(node->boot_id, in->boot_id) != 0;
        if (booted && node->boot_id[0])
                failures_lose(a, node);
        message_set_string(&node->address, in->address);
        message_set_string(&node->topology, in->topology);
        message_set_string(&node->boot_id, in->boot_id);
        message_set_string(&node->instruction_sets, in->instruction_sets);
        node->port = in->port;
        node->cores = in->cores;
        node->memory_bytes = in->memory_bytes;
        node->level = in->level;
        state_index_cores(a->index, node->name);
        forget_fence(node);
        node->health = RM__NODE_HEALTH__NODE_HEALTH_UP;
        node->health_since_usec = a->time_usec;
        apply_event(a, "node-joined", node->name, 0, 0, 0, "node %s joined (%s, %u cores)", node->name, node->address, node->cores);
        if (booted)
                jobs_lose_boot(a, node->name);
        return 0;
}

int apply_node_health(struct apply *a) {
        const Rm__CmdNodeHealth *in = a->command->node_health;
        Rm__Node *node = state_node(a->state, in->node);
        static const char *const words[] = { "unknown", "up", "down" };
        static const char *const kinds[] = { "node-unknown", "node-up", "node-down" };

        if (!node)
                return refuse_unknown_node(a, "node-health", in->node);
        if (node->health == in->health)
                return 0;
        if (in->health == RM__NODE_HEALTH__NODE_HEALTH_UP)
                forget_fence(node);
        failures_advance(a);
        if (in->health == RM__NODE_HEALTH__NODE_HEALTH_DOWN)
                failures_lose(a, node);
        node->health = in->health;
        state_index_cores(a->index, node->name);
        node->health_since_usec = a->time_usec;
        apply_event(a, kinds[in->health], node->name, 0, 0, 0, "node %s is %s%s%s", node->name, words[in->health],
                    in->why[0] ? ": " : "", in->why);
        jobs_finish(a);
        return 0;
}

static int check_fence(struct apply *a, const Rm__CmdNodeFence *in, const Rm__Node *node) {
        const char *verb = in->by[0] ? "confirm-lost" : "fence";

        if (!node)
                return refuse_unknown_node(a, verb, in->node);
        if (node->health != RM__NODE_HEALTH__NODE_HEALTH_DOWN)
                return apply_refuse(a, -EBUSY, "%s: node '%s' is not DOWN", verb, in->node);
        if (in->down_since_usec != 0 && in->down_since_usec != node->health_since_usec)
                return apply_refuse(a, -EAGAIN, "%s: node '%s' was up again meanwhile", verb, in->node);
        if (node->fenced)
                return apply_refuse(a, -EALREADY, "%s: node '%s' is fenced already", verb, in->node);
        return 0;
}

int apply_node_fence(struct apply *a) {
        const Rm__CmdNodeFence *in = a->command->node_fence;
        Rm__Node *node = state_node(a->state, in->node);
        int r = check_fence(a, in, node);

        if (r < 0 || !apply_goes_on(a, true))
                return r;
        node->fenced = in->fenced;
        message_set_string(&node->fence, in->fenced ? NULL : in->text);
        if (in->by[0])
                apply_event(a, "node-fenced", node->name, 0, 0, 0, "node %s is lost for certain, says %s", node->name, in->by);
        else
                apply_event(a, in->fenced ? "node-fenced" : "node-fence", node->name, 0, 0, 0, "fence of node %s: %s", node->name,
                            in->text);
        return 0;
}

int apply_node_drain(struct apply *a) {
        const Rm__CmdNodeDrain *in = a->command->node_drain;
        Rm__Node *node = state_node(a->state, in->node);
        cleanup_free char *within = NULL;

        if (!node)
                return refuse_unknown_node(a, "drain-node", in->node);
        if (node->drain && !in->update)
                return apply_refuse(a, -EALREADY,
                                    "drain-node: node '%s' is already drained by %s (reason: %s); use --update to "
                                    "change the reason and the deadline, resume-node to bring it back",
                                    in->node, node->drain_by, node->drain_reason[0] ? node->drain_reason : "none");
        if (!apply_goes_on(a, !node->drain || strcmp(node->drain_reason, in->reason) != 0 ||
                                      node->drain_deadline_usec != in->drain_deadline_usec))
                return 0;
        node->drain = true;
        state_index_cores(a->index, node->name);
        message_set_string(&node->drain_reason, in->reason);
        message_set_string(&node->drain_by, in->by);
        node->drain_since_usec = a->time_usec;
        node->drain_deadline_usec = in->drain_deadline_usec;
        node->drain_overdue = false;
        if (in->drain_deadline_usec > 0)
                within = xasprintf(" within %.0f s", in->drain_deadline_usec > a->time_usec
                                                             ? (double) (in->drain_deadline_usec - a->time_usec) / 1e6
                                                             : 0);
        apply_event(a, "node-drain", node->name, 0, 0, 0, "node %s is being drained%s by %s%s%s", node->name, within ? within : "",
                    in->by, in->reason[0] ? ": " : "", in->reason);
        node_emptied(a, node->name);
        return 0;
}

int apply_node_overdue(struct apply *a) {
        const Rm__CmdNodeOverdue *in = a->command->node_overdue;
        Rm__Node *node = state_node(a->state, in->node);
        uint32_t capsules = 0;
        uint32_t ranks;

        if (!node)
                return refuse_unknown_node(a, "node-overdue", in->node);
        ranks = state_node_ranks(a->index, node->name, &capsules);
        if (!node->drain || node->drain_overdue || node->drain_deadline_usec != in->drain_deadline_usec || capsules == 0)
                return apply_refuse(a, -EALREADY, "node-overdue: node '%s' is empty, has another deadline, or was told of",
                                    in->node);
        node->drain_overdue = true;
        apply_event(a, "node-overdue", node->name, 0, 0, 0,
                    "node %s is not empty at its deadline: %u ranks in %u capsules are left", node->name, ranks, capsules);
        return 0;
}

int apply_node_resume(struct apply *a) {
        const Rm__CmdNodeResume *in = a->command->node_resume;
        Rm__Node *node = state_node(a->state, in->node);

        if (!node)
                return refuse_unknown_node(a, "resume-node", in->node);
        if (!node->drain)
                return apply_refuse(a, -EALREADY, "resume-node: node '%s' is not drained", in->node);
        if (!apply_goes_on(a, true))
                return 0;
        node->drain = false;
        state_index_cores(a->index, node->name);
        message_set_string(&node->drain_reason, NULL);
        message_set_string(&node->drain_by, NULL);
        node->drain_since_usec = 0;
        node->drain_deadline_usec = 0;
        node->drain_overdue = false;
        apply_event(a, "node-resumed", node->name, 0, 0, 0, "node %s is back, by %s", node->name, in->by);
        return 0;
}

void node_emptied(struct apply *a, const char *name) {
        const Rm__Node *node = state_node(a->state, name);
        uint32_t capsules = 0;

        if (!node || !node_to_be_left(node) || node->health != RM__NODE_HEALTH__NODE_HEALTH_UP)
                return;
        (void) state_node_ranks(a->index, name, &capsules);
        if (capsules > 0)
                return;
        if (node->drain)
                apply_event(a, "node-drained", name, 0, 0, 0, "node %s is drained", name);
        else
                apply_event(a, "node-empty", name, 0, 0, 0, "node %s is %s, and nothing is left on it", name,
                            condition_name(node_condition(node)));
}

static const Rm__NodeCores *find_cores(Rm__NodeCores **list, size_t n, const char *node) {
        for (size_t i = 0; i < n; i++)
                if (strcmp(list[i]->node, node) == 0)
                        return list[i];
        return NULL;
}

int apply_availability(struct apply *a) {
        const Rm__CmdAvailability *in = a->command->availability;

        if (in->status) {
                if (in->status->error[0] && strcmp(in->status->error, a->state->availability->error) != 0)
                        apply_event(a, "availability-error", NULL, 0, 0, 0, "availability: %s; the last good content stays",
                                    in->status->error);
                rm__availability_status__free_unpacked(a->state->availability, NULL);
                a->state->availability = (Rm__AvailabilityStatus *) message_copy(&in->status->base);
                a->state->availability->changed_usec = a->time_usec;
        }
        for (size_t i = 0; in->content && i < a->state->n_nodes; i++) {
                Rm__Node *node = a->state->nodes[i];
                const Rm__NodeCores *cores = find_cores(in->nodes, in->n_nodes, node->name);

                if (node->available_set == (cores != NULL) && (!cores || node->available_cores == cores->cores))
                        continue;
                state_index_cores(a->index, node->name);
                node->available_set = cores != NULL;
                node->available_cores = cores ? cores->cores : 0;
                if (cores)
                        apply_event(a, "availability", node->name, 0, 0, 0, "node %s may use %u of %u cores", node->name,
                                    cores->cores, node->cores);
                else
                        apply_event(a, "availability", node->name, 0, 0, 0, "node %s may use all its %u cores", node->name,
                                    node->cores);
        }
        return 0;
}
