#include "placement/cost.h"

#include <errno.h>
#include <stdlib.h>

int64_t cost_job(const struct rm_snapshot *snapshot, const struct rm_job *job, const int32_t *group_node, uint8_t *scratch) {
        int64_t cost = 0;

        for (uint32_t g = 0; g < job->n_groups; g++) {
                int32_t node = group_node[g];

                if (node < 0)
                        continue;
                cost += snapshot->nodes[node].penalty * (int64_t) job->groups[g].ranks;
                if (!scratch[node])
                        cost += snapshot->params.distribution_weight;
                scratch[node] = 1;
        }
        for (uint32_t g = 0; g < job->n_groups; g++)
                if (group_node[g] >= 0)
                        scratch[group_node[g]] = 0;
        return cost * job->priority;
}

int64_t cost_job_moves(const struct rm_job *job, const int32_t *group_node) {
        int64_t cost = 0;

        for (uint32_t g = 0; g < job->n_groups; g++)
                if (job->groups[g].node >= 0 && job->groups[g].node != group_node[g])
                        cost += job->groups[g].move_cost;
        return cost;
}

int cost_plan(const struct rm_snapshot *snapshot, const struct rm_plan *plan, int64_t *ret_cost) {
        uint8_t *scratch = calloc(snapshot->n_nodes + 1u, 1);
        int64_t cost = 0;

        if (!scratch)
                return -ENOMEM;
        for (uint32_t j = 0; j < snapshot->n_jobs; j++) {
                if (plan->jobs[j].decision != RM_PLACE)
                        continue;
                cost += cost_job(snapshot, &snapshot->jobs[j], plan->jobs[j].group_node, scratch);
                cost += cost_job_moves(&snapshot->jobs[j], plan->jobs[j].group_node);
        }
        free(scratch);
        *ret_cost = cost;
        return 0;
}

bool job_runs(const struct rm_job *job) {
        for (uint32_t g = 0; g < job->n_groups; g++)
                if (job->groups[g].node >= 0)
                        return true;
        return false;
}

bool any_job_runs(const struct rm_snapshot *snapshot) {
        for (uint32_t j = 0; j < snapshot->n_jobs; j++)
                if (job_runs(&snapshot->jobs[j]))
                        return true;
        return false;
}
