#include "daemon/state/leave_by.h"

#include <stddef.h>

#include "daemon/state/state.h"

uint64_t node_leave_by_usec(const Rm__Node *node) {
        uint64_t critical_usec = node ? node_critical_usec(node) : 0;

        if (critical_usec > 0)
                return critical_usec;
        return node && node->drain && node->drain_deadline_usec > 0 ? node->drain_deadline_usec : UINT64_MAX;
}

uint64_t job_leave_by_usec(const Rm__State *state, const Rm__Job *job) {
        uint64_t first = UINT64_MAX;

        if (job->spec->checkpoint_at_limit && job->spec->time_limit_usec > 0)
                first = job->start_usec + job->spec->time_limit_usec;
        for (size_t i = 0; i < job->n_capsules; i++) {
                uint64_t usec = node_leave_by_usec(state_node(state, job->capsules[i]->node));

                if (usec < first)
                        first = usec;
        }
        return first;
}

uint64_t leave_by_wait_usec(uint64_t leave_by_usec, uint64_t now_usec, uint64_t most_usec) {
        uint64_t left_usec = leave_by_usec > now_usec ? leave_by_usec - now_usec : 0;

        return left_usec / 8 < most_usec ? left_usec / 8 : most_usec;
}
