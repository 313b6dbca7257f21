/* The free cores and memory on each node of a snapshot, and what remains with groups that are put
 * there one after the other. Pure. */
#ifndef RM_LEADER_ROOM_H
#define RM_LEADER_ROOM_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/sched/snapshot.h"

struct room {
        uint32_t cores;
        uint64_t ranks; /* of all jobs */
        uint32_t own; /* of the one that is placed, as the code that places it counts them */
        int64_t memory_free;
        uint32_t capsules_free; /* UINT32_MAX, unless the caller knows better */
};

/* Returns a malloc'ed array, with the room of each node. */
struct room *room_create_all(const struct rm_snapshot *snapshot);
/* A group with so many ranks, which takes so much. */
void room_take(struct room *room, uint32_t ranks, int64_t memory);
/* a has, with so many ranks more on each, fewer for each core. */
bool room_is_better(const struct room *a, const struct room *b, uint32_t ranks);

#endif
