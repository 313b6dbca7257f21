/* Which nodes are kept free for whichever job needs room: `[sched] spare_nodes`. Pure. */
#ifndef RM_LEADER_SPARE_POOL_H
#define RM_LEADER_SPARE_POOL_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/state/state_index.h"

/* Marks up to `n` nodes: idle ones with a good condition that no job keeps for itself, with most
 * usable cores, the last of equals. One is idle if no capsule is there or on its way. The result
 * depends on the state alone, so every node gets the same. `ret`: an entry for each node, all
 * false. Returns how many. */
uint32_t spare_pool_choose(const struct state_index *index, uint32_t n, bool *ret);

#endif
