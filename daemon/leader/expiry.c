#include "daemon/leader/expiry.h"

/* Ended jobs beyond so many go as soon as their output is not read any more. */
#define JOBS_KEPT 500U

uint64_t expiry_over_limit(const Rm__State *state, uint64_t now_usec) {
        for (size_t i = 0; i < state->n_jobs; i++) {
                const Rm__Job *job = state->jobs[i];

                if (job->state == RM__JOB_STATE__JOB_RUNNING && !job->cancel && job->spec->time_limit_usec &&
                    now_usec > job->start_usec + job->spec->time_limit_usec)
                        return job->id;
        }
        return 0;
}

uint64_t expiry_to_forget(const Rm__State *state, uint64_t keep_usec, uint64_t now_usec) {
        size_t ended = 0;

        for (size_t i = 0; i < state->n_jobs; i++)
                ended += job_ended(state->jobs[i]);
        for (size_t i = 0; i < state->n_jobs; i++) {
                const Rm__Job *job = state->jobs[i];

                if (job_ended(job) && (now_usec > job->end_usec + keep_usec || (ended > JOBS_KEPT && job->output_done)))
                        return job->id;
        }
        return 0;
}

const Rm__Node *expiry_overdue_node(const struct state_index *index, uint64_t now_usec) {
        const Rm__State *state = state_index_state(index);

        for (size_t i = 0; i < state->n_nodes; i++) {
                const Rm__Node *node = state->nodes[i];
                uint32_t capsules = 0;

                if (node->drain_deadline_usec == 0 || node->drain_overdue || now_usec < node->drain_deadline_usec ||
                    node->health != RM__NODE_HEALTH__NODE_HEALTH_UP)
                        continue;
                (void) state_node_ranks(index, node->name, &capsules);
                if (capsules > 0)
                        return node;
        }
        return NULL;
}
