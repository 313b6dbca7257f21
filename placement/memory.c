#include "placement/memory.h"

#include <errno.h>
#include <stdlib.h>

int64_t memory_largest(const struct rm_job *job) {
        int64_t largest = 0;

        for (uint32_t g = 0; g < job->n_groups; g++)
                if (job->groups[g].memory > largest)
                        largest = job->groups[g].memory;
        return largest;
}

int memory_find_over(const struct rm_snapshot *snapshot, const struct rm_plan *plan, int32_t *ret_node) {
        int64_t *taken = calloc(snapshot->n_nodes + 1u, sizeof(*taken));

        if (!taken)
                return -ENOMEM;
        *ret_node = RM_NO_NODE;
        for (uint32_t j = 0; j < snapshot->n_jobs; j++) {
                const struct rm_job *job = &snapshot->jobs[j];

                for (uint32_t g = 0; plan->jobs[j].decision == RM_PLACE && g < job->n_groups; g++) {
                        int32_t node = plan->jobs[j].group_node[g];

                        taken[node] = memory_sum(taken[node], memory_taken(job, g, node));
                        if (taken[node] > snapshot->nodes[node].memory_free)
                                *ret_node = node;
                }
        }
        free(taken);
        return 0;
}
