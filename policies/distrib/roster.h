/* Which nodes are in each class of the staircase. */
#ifndef RM_POLICIES_DISTRIB_ROSTER_H
#define RM_POLICIES_DISTRIB_ROSTER_H

#include <stdbool.h>

#include "policies/distrib/arena.h"
#include "policies/place/staircase.h"

/* Fields are the interface, to be read only. */
struct roster {
        uint32_t *stair_of; /* each node of the snapshot; n_stairs: none */
        uint32_t *nodes;    /* by stair, those of none last */
        uint32_t *first;    /* each stair, in nodes; one more */
};

/* Lives as long as the arena. False: no memory. */
bool roster_init(struct roster *roster, struct arena *arena, const struct staircase *stairs, const struct rm_snapshot *snapshot);

#endif
