#include "daemon/leader/fold_place.h"

#include <stdlib.h>

#include "common/util.h"

struct room {
        uint32_t cores;
        uint32_t ranks; /* of all jobs */
        uint32_t own;   /* of this job */
        int64_t memory_free;
};

static struct room *rooms_of(const struct rm_snapshot *snapshot) {
        struct room *rooms = xcalloc(snapshot->n_nodes + 1, sizeof(*rooms));

        for (uint32_t n = 0; n < snapshot->n_nodes; n++) {
                rooms[n].cores = snapshot->nodes[n].cores;
                rooms[n].memory_free = snapshot->nodes[n].memory_free;
        }
        for (uint32_t j = 0; j < snapshot->n_jobs; j++)
                for (uint32_t g = 0; g < snapshot->jobs[j].n_groups; g++) {
                        int32_t node = snapshot->jobs[j].groups[g].node;

                        if (node >= 0 && (uint32_t) node < snapshot->n_nodes)
                                rooms[node].ranks += snapshot->jobs[j].groups[g].ranks;
                }
        return rooms;
}

static bool fits(const struct rm_job *job, const struct rm_group *group, const struct room *room, uint32_t node) {
        uint32_t limit = job->node_limit ? job->node_limit[node] : RM_NO_LIMIT;

        if (room->cores == 0 || (uint64_t) room->ranks + group->ranks > (uint64_t) room->cores * FOLD_PLACE_MOST)
                return false;
        if (limit != RM_NO_LIMIT && (uint64_t) room->own + group->ranks > limit)
                return false;
        return room->memory_free == RM_NO_MEMORY_LIMIT || group->memory <= room->memory_free;
}

/* a has, with so many ranks more on each, fewer for each core. */
static bool is_better(const struct room *a, const struct room *b, uint32_t ranks) {
        return ((uint64_t) a->ranks + ranks) * b->cores < ((uint64_t) b->ranks + ranks) * a->cores;
}

static int32_t best_node(const struct rm_snapshot *snapshot, const struct rm_job *job, const struct rm_group *group,
                         const struct room *rooms) {
        int32_t best = RM_NO_NODE;

        for (uint32_t n = 0; n < snapshot->n_nodes; n++)
                if (fits(job, group, &rooms[n], n) && (best < 0 || is_better(&rooms[n], &rooms[best], group->ranks)))
                        best = (int32_t) n;
        return best;
}

bool fold_place(const struct rm_snapshot *snapshot, uint32_t index, int32_t *ret_group_node, int32_t *ret_head) {
        const struct rm_job *job = &snapshot->jobs[index];
        const struct rm_group none = { 0 };
        cleanup_free struct room *rooms = rooms_of(snapshot);

        for (uint32_t g = 0; g < job->n_groups; g++) {
                int32_t node = best_node(snapshot, job, &job->groups[g], rooms);

                if (node < 0)
                        return false;
                rooms[node].ranks += job->groups[g].ranks;
                rooms[node].own += job->groups[g].ranks;
                if (rooms[node].memory_free != RM_NO_MEMORY_LIMIT)
                        rooms[node].memory_free -= job->groups[g].memory;
                ret_group_node[g] = node;
        }
        *ret_head = best_node(snapshot, job, &none, rooms);
        return *ret_head >= 0;
}
