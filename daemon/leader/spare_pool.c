#include "daemon/leader/spare_pool.h"

#include "common/util.h"

static void note(const struct state_index *index, const char *name, bool *taken) {
        int32_t node = state_node_position(index, name);

        if (node >= 0)
                taken[node] = true;
}

/* Nodes that jobs keep for themselves, and those that something moves to. */
static bool *find_taken(const struct state_index *index) {
        const Rm__State *state = state_index_state(index);
        bool *taken = xcalloc(state->n_nodes + 1, sizeof(*taken));
        size_t n;
        Rm__Move *const *moves = state_open_moves(index, &n);

        for (size_t i = 0; i < n; i++)
                note(index, moves[i]->to, taken);
        for (size_t j = 0; j < state->n_jobs; j++)
                for (size_t i = 0; i < state->jobs[j]->n_spare_nodes && !job_ended(state->jobs[j]); i++)
                        note(index, state->jobs[j]->spare_nodes[i], taken);
        return taken;
}

/* 0: it is not idle, or not fit. */
static uint32_t idle_cores(const struct state_index *index, const Rm__Node *node) {
        uint32_t capsules = 0;

        (void) state_node_ranks(index, node->name, &capsules);
        if (capsules > 0 || node->leaving[0] || node_condition(node) != RM__CONDITION__CONDITION_OK)
                return 0;
        return node_usable_cores(node);
}

uint32_t spare_pool_choose(const struct state_index *index, uint32_t n, bool *ret) {
        const Rm__State *state = state_index_state(index);
        cleanup_free bool *taken = n > 0 ? find_taken(index) : NULL;
        uint32_t found = 0;

        while (found < n) {
                uint32_t most = 0;
                size_t best = 0;

                for (size_t i = 0; i < state->n_nodes; i++) {
                        uint32_t cores = taken[i] ? 0 : idle_cores(index, state->nodes[i]);

                        if (cores > 0 && cores >= most) {
                                most = cores;
                                best = i;
                        }
                }
                if (most == 0)
                        break;
                taken[best] = ret[best] = true;
                found++;
        }
        return found;
}
