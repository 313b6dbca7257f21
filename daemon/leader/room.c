#include "daemon/leader/room.h"

#include "common/util.h"

struct room *room_create_all(const struct rm_snapshot *snapshot) {
        struct room *rooms = xcalloc(snapshot->n_nodes + 1u, sizeof(*rooms));

        for (uint32_t n = 0; n < snapshot->n_nodes; n++)
                rooms[n] = (struct room) { .cores = snapshot->nodes[n].cores,
                                           .memory_free = snapshot->nodes[n].memory_free,
                                           .capsules_free = UINT32_MAX };
        for (uint32_t j = 0; j < snapshot->n_jobs; j++)
                for (uint32_t g = 0; g < snapshot->jobs[j].n_groups; g++) {
                        int32_t node = snapshot->jobs[j].groups[g].node;

                        if (node >= 0 && (uint32_t) node < snapshot->n_nodes)
                                rooms[node].ranks += snapshot->jobs[j].groups[g].ranks;
                }
        return rooms;
}

void room_take(struct room *room, uint32_t ranks, int64_t memory) {
        room->ranks += ranks;
        if (room->capsules_free > 0 && room->capsules_free < UINT32_MAX)
                room->capsules_free--;
        if (room->memory_free != RM_NO_MEMORY_LIMIT)
                room->memory_free -= memory < room->memory_free ? memory : room->memory_free;
}

bool room_is_better(const struct room *a, const struct room *b, uint32_t ranks) {
        return (a->ranks + ranks) * b->cores < (b->ranks + ranks) * a->cores;
}
