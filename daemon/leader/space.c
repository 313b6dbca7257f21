#include "daemon/leader/space.h"

#include "common/util.h"

struct space *space_create_all(const struct rm_snapshot *snapshot) {
        struct space *spaces = xcalloc(snapshot->n_nodes + 1u, sizeof(*spaces));

        for (uint32_t n = 0; n < snapshot->n_nodes; n++)
                spaces[n] = (struct space) { .cores = snapshot->nodes[n].cores,
                                             .memory_free = snapshot->nodes[n].memory_free,
                                             .capsules_free = UINT32_MAX };
        for (uint32_t j = 0; j < snapshot->n_jobs; j++)
                for (uint32_t g = 0; g < snapshot->jobs[j].n_groups; g++) {
                        int32_t node = snapshot->jobs[j].groups[g].node;

                        if (node >= 0 && (uint32_t) node < snapshot->n_nodes)
                                spaces[node].ranks += snapshot->jobs[j].groups[g].ranks;
                }
        return spaces;
}

void space_take(struct space *space, uint32_t ranks, int64_t memory) {
        space->ranks += ranks;
        if (space->capsules_free > 0 && space->capsules_free < UINT32_MAX)
                space->capsules_free--;
        if (space->memory_free != RM_NO_MEMORY_LIMIT)
                space->memory_free -= memory < space->memory_free ? memory : space->memory_free;
}

bool space_is_better(const struct space *a, const struct space *b, uint32_t ranks) {
        return (a->ranks + ranks) * b->cores < (b->ranks + ranks) * a->cores;
}
