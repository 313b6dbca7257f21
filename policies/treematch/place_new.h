/* Jobs that do not run yet: mapping them onto the cores that no other job has in the plan. */
#ifndef RM_TREEMATCH_PLACE_NEW_H
#define RM_TREEMATCH_PLACE_NEW_H

#include "placement/topology/map_context.h"

/* The plan has a valid placement of all jobs it places; what is known of the traffic of new ones
 * makes theirs better. Jobs without a limit of their own and with groups of one size are mapped
 * together, others one after the other. Groups of one rank get leaves, too. */
void place_new(struct map_context *context);

#endif
