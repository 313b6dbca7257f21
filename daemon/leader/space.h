/* The free cores and memory on each node of a snapshot, and what remains with groups that are put
 * there one after the other. Pure. */
#ifndef RM_LEADER_SPACE_H
#define RM_LEADER_SPACE_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/sched/snapshot.h"

struct space {
        uint32_t cores;
        uint64_t ranks; /* of all jobs */
        uint32_t own; /* of the one that is placed, as the code that places it counts them */
        int64_t memory_free;
        uint32_t capsules_free; /* UINT32_MAX, unless the caller knows better */
};

/* Returns a malloc'ed array, with the space of each node. */
struct space *space_create_all(const struct rm_snapshot *snapshot);
/* A group with so many ranks, which takes so much. */
void space_take(struct space *space, uint32_t ranks, int64_t memory);
/* a has, with so many ranks more on each, fewer for each core. */
bool space_is_better(const struct space *a, const struct space *b, uint32_t ranks);

#endif
