#include <stdlib.h>
#include <string.h>

#include "common/util.h"
#include "daemon/cluster/state_internal.h"

static int refuse_unknown_node(struct apply *a, const char *verb, const char *name) {
        cleanup_free char *known = state_known_nodes(a->state);

        return apply_refuse(a, -ENOENT, "%s: no node '%s' (known: %s)", verb, name, known);
}

static int compare_nodes(const void *x, const void *y) {
        return strcmp((*(Rm__Node *const *) x)->name, (*(Rm__Node *const *) y)->name);
}

int apply_node_join(struct apply *a) {
        const Rm__Node *in = a->command->node_join->node;
        Rm__Node *node;

        if (!in || !name_valid(in->name))
                return apply_refuse(a, -EINVAL, "join: a node without a valid name");
        if (in->level < a->state->level)
                return apply_refuse(a, -EPROTO,
                                    "join: the rmd of node '%s' knows feature level %u, the cluster is at %u: update it", in->name,
                                    in->level, a->state->level);
        node = state_node(a->state, in->name);
        if (!node) {
                node = xcalloc(1, sizeof(*node));
                rm__node__init(node);
                message_set_string(&node->name, in->name);
                REPEATED_PUSH(a->state->nodes, a->state->n_nodes, node);
                qsort(a->state->nodes, a->state->n_nodes, sizeof(Rm__Node *), compare_nodes);
                state_index_node(a->index);
        }
        message_set_string(&node->address, in->address);
        message_set_string(&node->topology, in->topology);
        message_set_string(&node->boot_id, in->boot_id);
        node->port = in->port;
        node->cores = in->cores;
        node->memory_bytes = in->memory_bytes;
        node->level = in->level;
        node->health = RM__NODE_HEALTH__NODE_HEALTH_UP;
        node->health_since_usec = a->time_usec;
        apply_event(a, "node-joined", node->name, 0, 0, 0, "node %s joined (%s, %u cores)", node->name, node->address, node->cores);
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
        node->health = in->health;
        node->health_since_usec = a->time_usec;
        apply_event(a, kinds[in->health], node->name, 0, 0, 0, "node %s is %s%s%s", node->name, words[in->health],
                    in->why[0] ? ": " : "", in->why);
        jobs_finish(a);
        return 0;
}

int apply_node_drain(struct apply *a) {
        const Rm__CmdNodeDrain *in = a->command->node_drain;
        Rm__Node *node = state_node(a->state, in->node);
        uint32_t capsules = 0;

        if (!node)
                return refuse_unknown_node(a, "drain-node", in->node);
        if (node->drain && !in->update)
                return apply_refuse(a, -EALREADY,
                                    "drain-node: node '%s' is already drained by %s (reason: %s); use --update to "
                                    "change the reason, resume-node to bring it back",
                                    in->node, node->drain_by, node->drain_reason[0] ? node->drain_reason : "none");
        node->drain = true;
        message_set_string(&node->drain_reason, in->reason);
        message_set_string(&node->drain_by, in->by);
        node->drain_since_usec = a->time_usec;
        (void) state_node_ranks(a->index, node->name, &capsules);
        apply_event(a, "node-drain", node->name, 0, 0, 0, "node %s is being drained by %s%s%s", node->name, in->by,
                    in->reason[0] ? ": " : "", in->reason);
        node_emptied(a, node->name);
        return 0;
}

int apply_node_resume(struct apply *a) {
        const Rm__CmdNodeResume *in = a->command->node_resume;
        Rm__Node *node = state_node(a->state, in->node);

        if (!node)
                return refuse_unknown_node(a, "resume-node", in->node);
        if (!node->drain)
                return apply_refuse(a, -EALREADY, "resume-node: node '%s' is not drained", in->node);
        node->drain = false;
        message_set_string(&node->drain_reason, NULL);
        message_set_string(&node->drain_by, NULL);
        node->drain_since_usec = 0;
        apply_event(a, "node-resumed", node->name, 0, 0, 0, "node %s is back, by %s", node->name, in->by);
        return 0;
}

void node_emptied(struct apply *a, const char *name) {
        const Rm__Node *node = state_node(a->state, name);
        uint32_t capsules = 0;

        if (!node || !node->drain || node->health != RM__NODE_HEALTH__NODE_HEALTH_UP)
                return;
        (void) state_node_ranks(a->index, name, &capsules);
        if (capsules == 0)
                apply_event(a, "node-drained", name, 0, 0, 0, "node %s is drained", name);
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
