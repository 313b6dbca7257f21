#include "daemon/leader/node_losses.h"

#include "common/util.h"

static bool recovers(const Rm__Job *job) {
        return job->state == RM__JOB_STATE__JOB_RECOVERING;
}

/* A job that is to start again already waits until its capsules are gone: those on this node are
 * gone, too. */
static struct loss loss_of(const Rm__State *state, const struct state_placed *placed, const Rm__Node *node, bool must_fence) {
        const Rm__Job *job = placed->job;
        bool again = recovers(job) || job_may_restart(job) || job_end_may_be_loss(job, placed->capsule);

        return (struct loss) {
                .job = job->id,
                .node = node,
                .answer = !again                        ? LOSS_END
                          : must_fence && !node->fenced ? LOSS_FENCE
                                                        : LOSS_RESTART,
                .attempt = !again          ? 0
                           : recovers(job) ? job->attempt
                                           : job->attempt + 1,
        };
}

/* This is the one place that says so. */
static bool is_lost(const struct loss *loss, const struct node_losses_rule *rule, uint64_t now_usec) {
        if (loss->answer != LOSS_END)
                return rule->has_fenced(rule->userdata, loss->node->name);
        return now_usec >= loss->node->health_since_usec + rule->grace_usec;
}

static bool same(const struct loss *a, const struct loss *b) {
        switch (b->answer) {
        case LOSS_END:
                return a->job == b->job;
        case LOSS_RESTART:
                return a->job == b->job && a->node == b->node;
        default:
                return a->answer == LOSS_FENCE && a->node == b->node;
        }
}

static bool has(const struct loss *losses, size_t n, const struct loss *loss) {
        for (size_t i = 0; i < n; i++)
                if (same(&losses[i], loss))
                        return true;
        return false;
}

struct loss *losses_find(const struct state_index *index, const struct node_losses_rule *rule, uint64_t now_usec, size_t *ret_n) {
        const Rm__State *state = state_index_state(index);
        struct loss *losses = NULL;
        size_t n = 0;

        for (size_t i = 0; i < state->n_nodes; i++) {
                const Rm__Node *node = state->nodes[i];
                cleanup_free struct state_placed *placed = NULL;
                size_t n_placed = 0;

                if (node->health == RM__NODE_HEALTH__NODE_HEALTH_DOWN)
                        placed = state_placed_on(index, node->name, &n_placed);
                for (size_t k = 0; k < n_placed; k++) {
                        struct loss loss = loss_of(state, &placed[k], node, rule->must_fence);
                        bool concerned = job_running(placed[k].job) || recovers(placed[k].job) ||
                                         job_end_may_be_loss(placed[k].job, placed[k].capsule);

                        if (!concerned || !is_lost(&loss, rule, now_usec) || has(losses, n, &loss))
                                continue;
                        losses = xrealloc(losses, (n + 1) * sizeof(*losses));
                        losses[n++] = loss;
                }
        }
        *ret_n = n;
        return losses;
}

char *loss_reason(const struct loss *loss, const Rm__Job *job) {
        uint32_t attempts = job_counted_attempts(job), restarts = attempts > 0 ? attempts - 1 : 0;

        if (loss->answer == LOSS_RESTART || job->cancel || !job_wants_restart(job->spec))
                return xasprintf("node %s is down", loss->node->name);
        return xasprintf("node %s is down, and the job has been restarted %u time%s (--restarts %u)", loss->node->name, restarts,
                         restarts == 1 ? "" : "s", job->spec->restarts);
}
