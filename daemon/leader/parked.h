/* Where groups go all ranks of which are parked. They need no cores, so no policy sees them; but they are to be where cores are when they are wanted, and to leave nodes that
 * others leave. Pure. */
#ifndef RM_LEADER_PARKED_H
#define RM_LEADER_PARKED_H

#include "daemon/cluster/state_index.h"
#include "daemon/sched/round.h"

/* The node of each of the job's groups, `n_groups` of them, of which the first are placed as in `group_node`: job `index` of the snapshot has those. malloc'ed; NULL:
 * no node has memory for a parked one. */
int32_t *parked_place(const struct rm_snapshot *snapshot, uint32_t index, const Rm__Job *job, const int32_t *group_node,
                      uint32_t n_groups);

/* Adds the moves of parked groups of the job, which is `index` in the snapshot, that must leave their nodes. */
void parked_moves(const struct state_index *state, const struct rm_snapshot *snapshot, uint32_t index, const Rm__Job *job,
                  struct round_result *result);

/* Adds the move of one parked group to a node that has cores for it, if it can go there now. */
void parked_move(const struct state_index *state, const struct rm_snapshot *snapshot, uint32_t index, const Rm__Job *job,
                 uint32_t group, int32_t to, struct round_result *result);

#endif
