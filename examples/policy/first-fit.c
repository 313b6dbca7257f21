/*
 * first-fit: a whole policy for rmd. What runs stays; a job that waits goes as a whole on the first
 * node with room for it.
 *
 *      cc -shared -fPIC -o first-fit.so first-fit.c $(pkg-config --cflags rm-policy)
 */
#include <rm/policy.h>

/* Cores of a node that neither running groups nor the plan so far have taken. */
static int64_t space(const struct rm_snapshot *snapshot, const struct rm_plan *plan, int32_t node) {
        int64_t space = snapshot->nodes[node].cores;

        for (uint32_t j = 0; j < snapshot->n_jobs; j++)
                for (uint32_t g = 0; g < snapshot->jobs[j].n_groups; g++)
                        if (snapshot->jobs[j].groups[g].node == node || plan->jobs[j].group_node[g] == node)
                                space -= snapshot->jobs[j].groups[g].ranks;
        return space;
}

static int place(void *self, const struct rm_snapshot *snapshot, const struct rm_policy_run *run, struct rm_plan *plan) {
        for (uint32_t j = 0; j < snapshot->n_jobs; j++) {
                const struct rm_job *job = &snapshot->jobs[j];
                int32_t first = 0, n = (int32_t) snapshot->n_nodes;

                while (first < n && (space(snapshot, plan, first) < job->ranks || (job->node_limit && job->node_limit[first] < job->ranks)))
                        first++;
                for (uint32_t g = 0; g < job->n_groups; g++)
                        plan->jobs[j].group_node[g] = job->groups[0].node >= 0 ? job->groups[g].node : first < n ? first : RM_NO_NODE;
                plan->jobs[j].decision = plan->jobs[j].group_node[0] >= 0 ? RM_PLACE : RM_WAIT;
        }
        return (void) self, (void) run, 0;
}

RM_PLUGIN_EXPORT extern const struct rm_policy_plugin rm_plugin;
const struct rm_policy_plugin rm_plugin = {
        .plugin = { .abi = RM_PLUGIN_ABI, .size = sizeof(rm_plugin), .name = "first-fit", .kind = RM_POLICY_KIND,
                    .kind_abi = RM_POLICY_ABI, .description = "each job whole, on the first node with room for it" },
        .place = place,
};
