/* Jobs that run: the groups that leave a node that has become too small, their destinations, and
 * the moves that pay beyond that. */
#ifndef RM_TREEMATCH_REPLACE_H
#define RM_TREEMATCH_REPLACE_H

#include "placement/topology/map_context.h"

/* The plan has a valid placement of all jobs it places. Those that run and whose traffic is known
 * get another one with as few moves as possible, and at most `budget` more, each of which saves
 * more bytes times hops than its group's move_cost times bytes_per_cost. */
void replace_running(struct map_context *context, uint32_t budget);

#endif
