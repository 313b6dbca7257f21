/* Which nodes are in each class of the relaxation. */
#ifndef RM_POLICIES_DISTRIB_ROSTER_H
#define RM_POLICIES_DISTRIB_ROSTER_H

#include <stdbool.h>

#include "placement/relaxation.h"
#include "policies/distrib/arena.h"

/* Fields are the interface, to be read only. */
struct roster {
        uint32_t *class_of; /* each node of the snapshot; n_classes: none */
        uint32_t *nodes;    /* by class, those of none last */
        uint32_t *first;    /* each class, in nodes; one more */
};

/* Lives as long as the arena. False: no memory. */
bool roster_init(struct roster *roster, struct arena *arena, const struct relaxation *classes, const struct rm_snapshot *snapshot);

#endif
