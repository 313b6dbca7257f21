#include "daemon/leader/fold_place.h"

#include "common/util.h"
#include "daemon/leader/space.h"

static bool fits(const struct rm_job *job, const struct rm_group *group, const struct space *space, uint32_t node) {
        uint32_t limit = job->node_limit ? job->node_limit[node] : RM_NO_LIMIT;

        if (space->cores == 0 || space->ranks + group->ranks > (uint64_t) space->cores * FOLD_PLACE_MOST)
                return false;
        if (limit != RM_NO_LIMIT && (uint64_t) space->own + group->ranks > limit)
                return false;
        return space->memory_free == RM_NO_MEMORY_LIMIT || group->memory <= space->memory_free;
}

static int32_t best_node(const struct rm_snapshot *snapshot, const struct rm_job *job, const struct rm_group *group,
                         const struct space *spaces) {
        int32_t best = RM_NO_NODE;

        for (uint32_t n = 0; n < snapshot->n_nodes; n++)
                if (fits(job, group, &spaces[n], n) && (best < 0 || space_is_better(&spaces[n], &spaces[best], group->ranks)))
                        best = (int32_t) n;
        return best;
}

bool fold_place(const struct rm_snapshot *snapshot, uint32_t index, int32_t *ret_group_node, int32_t *ret_head) {
        const struct rm_job *job = &snapshot->jobs[index];
        const struct rm_group none = { 0 };
        cleanup_free struct space *spaces = space_create_all(snapshot);

        for (uint32_t g = 0; g < job->n_groups; g++) {
                int32_t node = best_node(snapshot, job, &job->groups[g], spaces);

                if (node < 0)
                        return false;
                space_take(&spaces[node], job->groups[g].ranks, job->groups[g].memory);
                spaces[node].own += job->groups[g].ranks;
                ret_group_node[g] = node;
        }
        *ret_head = best_node(snapshot, job, &none, spaces);
        return *ret_head >= 0;
}
