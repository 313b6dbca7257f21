#include "daemon/sched/memory_limits.h"

#include <stdlib.h>

#include "common/util.h"
#include "placement/memory.h"
#include "placement/pack.h"

struct lowering {
        struct snapshot *snapshot;
        uint32_t *order;     /* nodes, those with the least free memory first: for most jobs only these count */
        uint32_t *here;      /* each node: ranks of the job in hand; all 0 between jobs */
        uint32_t most_cores; /* of a node */
};

static int compare_memory(const void *a, const void *b, void *context) {
        const struct rm_node *nodes = context;
        int64_t x = nodes[*(const uint32_t *) a].memory_free, y = nodes[*(const uint32_t *) b].memory_free;

        return (x > y) - (x < y);
}

static int compare_bytes(const void *a, const void *b) {
        int64_t x = *(const int64_t *) a, y = *(const int64_t *) b;

        return (x > y) - (x < y);
}

/* The memory of each group, the smallest first. */
static int64_t *sorted_memory(const struct rm_job *job) {
        int64_t *bytes = xcalloc(job->n_groups, sizeof(*bytes));

        for (uint32_t g = 0; g < job->n_groups; g++)
                bytes[g] = job->groups[g].memory;
        qsort(bytes, job->n_groups, sizeof(*bytes), compare_bytes);
        return bytes;
}

static void lower_limits_of(struct lowering *l, uint32_t j) {
        const struct rm_snapshot *view = snapshot_view(l->snapshot);
        const struct rm_job *job = &view->jobs[j];
        uint32_t most = l->most_cores / job->group_size + 1, groups = 0;
        cleanup_free int64_t *bytes = sorted_memory(job);
        int64_t taken = bytes[0]; /* by the groups counted, and one more */

        most = most < job->n_groups ? most : job->n_groups;
        for (uint32_t g = 0; g < job->n_groups; g++)
                if (job->groups[g].node >= 0)
                        l->here[job->groups[g].node] += job->groups[g].ranks;
        for (uint32_t i = 0; i < view->n_nodes; i++) {
                uint32_t s = l->order[i];
                uint64_t allowed;

                for (; groups < most && taken <= view->nodes[s].memory_free; groups++)
                        taken = memory_sum(taken, groups + 1 < job->n_groups ? bytes[groups + 1] : 0);
                if (groups == most)
                        break;
                allowed = l->here[s] + (uint64_t) groups * job->group_size;
                if (allowed < job_node_limit(job, s) && allowed < view->nodes[s].cores)
                        snapshot_set_limit(l->snapshot, j, s, (uint32_t) allowed);
        }
        for (uint32_t g = 0; g < job->n_groups; g++)
                if (job->groups[g].node >= 0)
                        l->here[job->groups[g].node] = 0;
}

void memory_lower_limits(struct snapshot *snapshot) {
        const struct rm_snapshot *view = snapshot_view(snapshot);
        cleanup_free uint32_t *order = xcalloc(view->n_nodes + 1u, sizeof(*order));
        cleanup_free uint32_t *here = xcalloc(view->n_nodes + 1u, sizeof(*here));
        struct lowering lowering = { .snapshot = snapshot, .order = order, .here = here };

        for (uint32_t s = 0; s < view->n_nodes; s++) {
                order[s] = s;
                if (view->nodes[s].cores > lowering.most_cores)
                        lowering.most_cores = view->nodes[s].cores;
        }
        qsort_r(order, view->n_nodes, sizeof(*order), compare_memory, (void *) view->nodes);
        for (uint32_t j = 0; j < view->n_jobs; j++)
                if (memory_largest(&view->jobs[j]) > 0)
                        lower_limits_of(&lowering, j);
}

bool memory_never_fits(const struct rm_snapshot *snapshot, int64_t bytes, int64_t *ret_largest) {
        *ret_largest = 0;
        for (uint32_t s = 0; s < snapshot->n_nodes; s++)
                if (snapshot->nodes[s].cores > 0 && snapshot->nodes[s].memory > *ret_largest)
                        *ret_largest = snapshot->nodes[s].memory;
        return bytes > *ret_largest;
}
