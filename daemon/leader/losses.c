#include "daemon/leader/losses.h"

#include "common/util.h"

static bool is_lost(const Rm__Node *node, uint64_t grace_usec, uint64_t now_usec) {
        return node->health == RM__NODE_HEALTH__NODE_HEALTH_DOWN && now_usec >= node->health_since_usec + grace_usec;
}

static bool has(const struct loss *losses, size_t n, uint64_t job) {
        for (size_t i = 0; i < n; i++)
                if (losses[i].job == job)
                        return true;
        return false;
}

struct loss *losses_find(const struct state_index *index, uint64_t grace_usec, uint64_t now_usec, size_t *ret_n) {
        const Rm__State *state = state_index_state(index);
        struct loss *losses = NULL;
        size_t n = 0;

        for (size_t i = 0; i < state->n_nodes; i++) {
                const Rm__Node *node = state->nodes[i];
                cleanup_free struct state_placed *placed = NULL;
                size_t n_placed = 0;

                if (is_lost(node, grace_usec, now_usec))
                        placed = state_placed_on(index, node->name, &n_placed);
                for (size_t k = 0; k < n_placed; k++) {
                        const Rm__Job *job = placed[k].job;

                        if (!job_running(job) || has(losses, n, job->id))
                                continue;
                        losses = xrealloc(losses, (n + 1) * sizeof(*losses));
                        losses[n++] = (struct loss) { job->id, node };
                }
        }
        *ret_n = n;
        return losses;
}
