/* Which rank gets which core of its node, by its traffic. */
#ifndef RM_TREEMATCH_CORES_BY_TRAFFIC_H
#define RM_TREEMATCH_CORES_BY_TRAFFIC_H

#include "placement/topology/map_context.h"

/* Fill rank_core of all jobs that the plan places: by the leaves that were chosen, and where there
 * are none, by the traffic within the node. */
void cores_by_traffic(struct map_context *context);

#endif
