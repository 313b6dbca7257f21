/* The placement by slot: ranks in order, nodes in order, each filled before the next, as mpirun
 * does by default. */
#ifndef RM_PLACEMENT_SLOTS_H
#define RM_PLACEMENT_SLOTS_H

#include <stdbool.h>

#include "placement/topology/map_context.h"

/* Put the jobs that the plan places and that do not run yet (`all`: running ones as well) by slot,
 * beside everything else in the plan: true. False, and nothing changed, when they do not fit like
 * that. */
bool slots_place(struct map_context *context, bool all);

#endif
