/* Plans come from plugins: nothing in them is believed. */
#include <string.h>

#include "common/util.h"
#include "daemon/sched/plan.h"
#include "placement/cost.h"
#include "placement/memory.h"
#include "placement/pack.h"

struct validation {
        const struct rm_snapshot *snapshot;
        uint64_t *load, *pinned;         /* ranks on each node, of all jobs */
        uint32_t *job_load, *job_pinned; /* of the job in hand; all 0 between jobs */
        int64_t *memory; /* that groups take which come to the node */
        size_t *core_first; /* each node: where its cores begin in `core_taken`; NULL until a rank is given a core */
        bool *core_taken;
};

static int validate_group(struct validation *v, const struct rm_job *job, uint32_t g, int32_t node, struct rm_error *err) {
        const struct rm_group *group = &job->groups[g];

        if (node < 0 || node >= (int32_t) v->snapshot->n_nodes)
                return error_set(err, -EINVAL, "job '%s': group %u is placed on node number %d of %u nodes", job->name, g, node,
                                 v->snapshot->n_nodes);
        if ((group->flags & RM_GROUP_PINNED) && node != group->node)
                return error_set(err, -EINVAL, "job '%s': group %u must stay on '%s', but is placed on '%s'", job->name, g,
                                 v->snapshot->nodes[group->node].name, v->snapshot->nodes[node].name);
        v->memory[node] = memory_sum(v->memory[node], memory_taken(job, g, node));
        v->load[node] += group->ranks;
        v->job_load[node] += group->ranks;
        if (group->flags & RM_GROUP_PINNED) {
                v->pinned[node] += group->ranks;
                v->job_pinned[node] += group->ranks;
        }
        return 0;
}

static int validate_limits(struct validation *v, const struct rm_job *job, const struct rm_plan_job *planned,
                           struct rm_error *err) {
        for (uint32_t g = 0; g < job->n_groups; g++) {
                int32_t node = planned->group_node[g];

                if (v->job_load[node] > job_node_limit(job, (uint32_t) node) && v->job_load[node] > v->job_pinned[node])
                        return error_set(err, -EINVAL, "job '%s': %u ranks on '%s', but its availability allows %u", job->name,
                                         v->job_load[node], v->snapshot->nodes[node].name, job_node_limit(job, (uint32_t) node));
        }
        return 0;
}

static void make_cores(struct validation *v) {
        size_t cores = 0;

        v->core_first = xcalloc(v->snapshot->n_nodes + 1u, sizeof(*v->core_first));
        for (uint32_t s = 0; s < v->snapshot->n_nodes; s++) {
                v->core_first[s] = cores;
                cores += v->snapshot->nodes[s].cores;
        }
        v->core_taken = xcalloc(cores + 1u, sizeof(*v->core_taken));
}

static int validate_cores(struct validation *v, const struct rm_job *job, const struct rm_plan_job *planned, struct rm_error *err) {
        for (uint32_t rank = 0; planned->rank_core && rank < job->ranks; rank++) {
                int32_t core = planned->rank_core[rank], node;

                if (core == RM_NO_CORE)
                        continue;
                node = planned->group_node[rank / job->group_size];
                if (core < 0 || core >= (int32_t) v->snapshot->nodes[node].cores)
                        return error_set(err, -EINVAL, "job '%s': rank %u is given core %d of '%s', which has %u", job->name, rank,
                                         core, v->snapshot->nodes[node].name, v->snapshot->nodes[node].cores);
                if (!v->core_taken)
                        make_cores(v);
                if (v->core_taken[v->core_first[node] + (uint32_t) core])
                        return error_set(err, -EINVAL, "job '%s': core %d of '%s' is given twice", job->name, core,
                                         v->snapshot->nodes[node].name);
                v->core_taken[v->core_first[node] + (uint32_t) core] = true;
        }
        return 0;
}

static int validate_job(struct validation *v, const struct rm_job *job, const struct rm_plan_job *planned, struct rm_error *err) {
        int r;

        if (planned->decision == RM_WAIT)
                return job_runs(job) ? error_set(err, -EINVAL, "job '%s' is running, but the plan lets it wait", job->name) : 0;
        if (planned->decision != RM_PLACE)
                return error_set(err, -EINVAL, "job '%s': invalid decision %u", job->name, planned->decision);
        for (uint32_t g = 0; g < job->n_groups; g++)
                if ((r = validate_group(v, job, g, planned->group_node[g], err)) < 0)
                        return r;
        if ((r = validate_limits(v, job, planned, err)) < 0)
                return r;
        for (uint32_t g = 0; g < job->n_groups; g++)
                v->job_load[planned->group_node[g]] = v->job_pinned[planned->group_node[g]] = 0;
        return validate_cores(v, job, planned, err);
}

static int validate_all(struct validation *v, const struct rm_plan *plan, struct rm_error *err) {
        const struct rm_snapshot *snapshot = v->snapshot;
        int r;

        for (uint32_t j = 0; j < snapshot->n_jobs; j++)
                if ((r = validate_job(v, &snapshot->jobs[j], &plan->jobs[j], err)) < 0)
                        return r;
        for (uint32_t s = 0; s < snapshot->n_nodes; s++) {
                const struct rm_node *node = &snapshot->nodes[s];

                if (v->load[s] > node->cores && v->load[s] > v->pinned[s])
                        return error_set(err, -EINVAL, "node '%s' gets %llu ranks, but has %u cores", node->name,
                                         (unsigned long long) v->load[s], node->cores);
                if (v->memory[s] > node->memory_free)
                        return error_set(err, -EINVAL,
                                         "groups that come to node '%s' need %lld MB of memory, but it has %lld MB free",
                                         node->name, (long long) v->memory[s] / 1000000, (long long) node->memory_free / 1000000);
        }
        return 0;
}

int plan_validate(const struct rm_snapshot *snapshot, const struct rm_plan *plan, struct rm_error *err) {
        size_t n = snapshot->n_nodes + 1u;
        cleanup_free uint64_t *load = xcalloc(n, sizeof(*load)), *pinned = xcalloc(n, sizeof(*pinned));
        cleanup_free uint32_t *job_load = xcalloc(n, sizeof(*job_load)), *job_pinned = xcalloc(n, sizeof(*job_pinned));
        cleanup_free int64_t *memory = xcalloc(n, sizeof(*memory));
        struct validation v = { .snapshot = snapshot,
                                .load = load,
                                .pinned = pinned,
                                .job_load = job_load,
                                .job_pinned = job_pinned,
                                .memory = memory };
        int r;

        if (plan->n_jobs != snapshot->n_jobs)
                return error_set(err, -EINVAL, "the plan has %u jobs, expected %u", plan->n_jobs, snapshot->n_jobs);
        r = validate_all(&v, plan, err);
        free(v.core_first);
        free(v.core_taken);
        return r;
}
