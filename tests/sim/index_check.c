#include <stdlib.h>
#include <string.h>

#include "common/util.h"
#include "tests/sim/checks.h"

static bool nodes_differ(const Rm__State *state, const struct state_index *a, const struct state_index *b) {
        for (size_t i = 0; i < state->n_nodes; i++) {
                const Rm__Node *node = state->nodes[i];
                uint32_t capsules_a, capsules_b;

                if (state_node_ranks(a, node->name, &capsules_a) != state_node_ranks(b, node->name, &capsules_b) ||
                    capsules_a != capsules_b || strcmp(state_node_name(a, node), state_node_name(b, node)) != 0 ||
                    state_node_position(a, node->name) != state_node_position(b, node->name))
                        return true;
        }
        return false;
}

static bool placed_differ(const Rm__State *state, const struct state_index *a, const struct state_index *b) {
        bool differ = false;

        for (size_t i = 0; i < state->n_nodes && !differ; i++) {
                size_t n_a, n_b;
                struct state_placed *on_a = state_placed_on(a, state->nodes[i]->name, &n_a);
                struct state_placed *on_b = state_placed_on(b, state->nodes[i]->name, &n_b);

                differ = n_a != n_b;
                for (size_t k = 0; k < n_a && !differ; k++)
                        differ = on_a[k].job != on_b[k].job || on_a[k].capsule != on_b[k].capsule;
                free(on_a);
                free(on_b);
        }
        return differ;
}

/* The state says since when it is folded if, and only if, it is. */
static bool fold_differs(const struct state_index *index, const Rm__Job *job) {
        uint32_t ranks;

        return (state_job_fold(index, job, &ranks) != NULL) != (job->fold_since_usec != 0);
}

static bool jobs_differ(const Rm__State *state, const struct state_index *a, const struct state_index *b) {
        for (size_t i = 0; i < state->n_jobs; i++) {
                const Rm__Job *job = state->jobs[i];

                if (strcmp(state_job_name(a, job), state_job_name(b, job)) != 0 || fold_differs(b, job))
                        return true;
                for (size_t k = 0; k < job->n_capsules; k++) {
                        int32_t capsule = job->capsules[k]->index;

                        if (state_capsule_move(a, job->id, capsule) != state_capsule_move(b, job->id, capsule) ||
                            state_capsule_position(a, job, capsule) != state_capsule_position(b, job, capsule) ||
                            state_address_used(a, job->capsules[k]->address) != state_address_used(b, job->capsules[k]->address))
                                return true;
                }
        }
        for (int i = RM__JOB_STATE__JOB_PENDING; i <= RM__JOB_STATE__JOB_NODE_FAIL; i++)
                if (state_jobs_in(a, (Rm__JobState) i) != state_jobs_in(b, (Rm__JobState) i))
                        return true;
        return false;
}

static bool moves_differ(const struct state_index *a, const struct state_index *b) {
        size_t n_a, n_b;
        Rm__Move *const *moves_a = state_open_moves(a, &n_a);
        Rm__Move *const *moves_b = state_open_moves(b, &n_b);

        return n_a != n_b || (n_a > 0 && memcmp(moves_a, moves_b, n_a * sizeof(*moves_a)) != 0);
}

const char *index_difference(Rm__State *state, const struct state_index *indexed) {
        struct state_index *fresh = state_index_create(state);
        const char *what = nodes_differ(state, indexed, fresh)    ? "nodes"
                           : placed_differ(state, indexed, fresh) ? "capsules on nodes"
                           : jobs_differ(state, indexed, fresh)   ? "jobs"
                           : moves_differ(indexed, fresh)         ? "moves in progress"
                                                                  : NULL;

        state_index_destroy(fresh);
        return what;
}
