#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"
#include "daemon/state/state_internal.h"

/* The file's reader has checked all of this; the log is not to rest on it. */
static int check_switches(struct apply *a, const Rm__CmdTopology *in) {
        for (size_t i = 0; i < in->n_switches; i++) {
                size_t steps = 0;

                if (!name_valid(in->switches[i]->name))
                        return apply_refuse(a, -EINVAL, "topology: a switch without a valid name");
                for (size_t above = in->switches[i]->above; above > 0; above = in->switches[above - 1]->above)
                        if (above > in->n_switches || ++steps > STATE_SWITCH_DEPTH_MAX)
                                return apply_refuse(a, -EINVAL, "topology: switch '%s': cycle, or unknown parent switch",
                                                    in->switches[i]->name);
        }
        return 0;
}

int apply_topology(struct apply *a) {
        const Rm__CmdTopology *in = a->command->topology;
        Rm__State *state = a->state;
        int r = check_switches(a, in);

        if (r < 0)
                return r;
        message_set_string(&state->topology_error, in->error);
        if (in->error[0]) {
                apply_event(a, "topology", NULL, 0, 0, 0, "%s; the switches stay as they were", in->error);
                return 0;
        }
        REPEATED_SET(state->switches, state->n_switches, in->switches, in->n_switches);
        message_set_string(&state->topology_path, in->path);
        apply_event(a, "topology", NULL, 0, 0, 0, "%zu switches are known", state->n_switches);
        return 0;
}

/* ---- reading ---- */

static int compare_name(const void *key, const void *node) {
        return strcmp(key, (*(Rm__Node *const *) node)->name);
}

int32_t *state_node_switches(const Rm__State *state) {
        int32_t *switches = xcalloc(state->n_nodes, sizeof(*switches));

        for (size_t i = 0; i < state->n_nodes; i++)
                switches[i] = -1;
        for (size_t s = 0; s < state->n_switches; s++)
                for (size_t k = 0; k < state->switches[s]->n_nodes; k++) {
                        Rm__Node **node = bsearch(state->switches[s]->nodes[k], state->nodes, state->n_nodes, sizeof(*state->nodes),
                                                  compare_name);

                        if (node)
                                switches[node - state->nodes] = (int32_t) s;
                }
        return switches;
}

/* The first that is not in the cluster, and how many there are. */
static char *unknown_nodes(const Rm__State *state) {
        const Rm__Switch *at = NULL;
        const char *first = NULL;
        size_t n = 0;

        for (size_t s = 0; s < state->n_switches; s++)
                for (size_t k = 0; k < state->switches[s]->n_nodes; k++) {
                        const char *name = state->switches[s]->nodes[k];

                        if (bsearch(name, state->nodes, state->n_nodes, sizeof(*state->nodes), compare_name))
                                continue;
                        if (n++ == 0) {
                                at = state->switches[s];
                                first = name;
                        }
                }
        if (n == 0)
                return NULL;
        if (n == 1)
                return xasprintf("%s:%" PRIu32 ": no node '%s' in this cluster", state->topology_path, at->line, first);
        return xasprintf("%s:%" PRIu32 ": no node '%s' in this cluster, and %zu more that are not", state->topology_path, at->line,
                         first, n - 1);
}

static char *loose_nodes(const Rm__State *state) {
        cleanup_free int32_t *switches = state_node_switches(state);
        const char *first = NULL;
        size_t n = 0;

        for (size_t i = 0; i < state->n_nodes; i++)
                if (switches[i] < 0 && n++ == 0)
                        first = state->nodes[i]->name;
        if (n == 0)
                return NULL;
        if (n == 1)
                return xasprintf("%s: it has no switch for node '%s'", state->topology_path, first);
        return xasprintf("%s: it has no switch for node '%s', nor for %zu others", state->topology_path, first, n - 1);
}

void state_topology_mismatches(const Rm__State *state, char **ret_unknown, char **ret_loose) {
        *ret_unknown = unknown_nodes(state);
        *ret_loose = state->n_switches > 0 ? loose_nodes(state) : NULL;
}
