/* Where a job that starts again goes when there is no room for it: onto cores that others use, or
 * that its own ranks share. Pure. */
#ifndef RM_LEADER_FOLD_PLACE_H
#define RM_LEADER_FOLD_PLACE_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/sched/snapshot.h"

/* So many ranks may share a core at most. */
#define FOLD_PLACE_MOST 4U

/* Each group of the waiting job at `index` in turn onto the node on which, with it, the fewest
 * ranks share a core, and that has memory for it; `ret_group_node` has n_groups entries.
 * `ret_head`: for mpirun, the node with the most cores for each rank then. False: there is not even
 * that much room. */
bool fold_place(const struct rm_snapshot *snapshot, uint32_t index, int32_t *ret_group_node, int32_t *ret_head);

#endif
