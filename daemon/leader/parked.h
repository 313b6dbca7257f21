/* Where groups go all ranks of which are parked. They need no cores, so no policy sees them; but
 * they are to be where cores are when they are wanted, and to leave nodes that others leave.
 * Pure. */
#ifndef RM_LEADER_PARKED_H
#define RM_LEADER_PARKED_H

#include "daemon/sched/round.h"
#include "daemon/state/state_index.h"

/* A job that starts. */
struct parked_start {
        uint32_t n_groups; /* all that it has */
        uint32_t group_size;
        const int32_t *group_node; /* of the first ones, which job `index` of the snapshot has */
        int32_t head_node;
        uint32_t capsules_per_core; /* that a node may have, all counted; 0: no limit */
};

/* The node of each of its groups. malloc'ed; NULL: no node has memory, or may have another capsule,
 * for one that is parked, or may come to be. */
int32_t *parked_place(const struct state_index *state, const struct rm_snapshot *snapshot, uint32_t index, const Rm__Job *job,
                      const struct parked_start *start);

/* A parked group stays on a node that it should leave. */
struct parked_stay {
        char *reason; /* malloc'ed; NULL: none does */
        const char *node; /* its name in the snapshot */
};

/* Adds the moves of parked groups of the job, which is `index` in the snapshot, that must leave
 * their nodes: to nodes that may have more capsules, `capsules_per_core` of them (0: any number),
 * or to any if nothing may stay on their own. `ret_stay`: of one that cannot leave such a node. */
void parked_moves(const struct state_index *state, const struct rm_snapshot *snapshot, uint32_t index, const Rm__Job *job,
                  uint32_t capsules_per_core, struct round_result *result, struct parked_stay *ret_stay);

/* Adds the move of one parked group to a node that has cores for it, if it can go there now. */
void parked_move(const struct state_index *state, const struct rm_snapshot *snapshot, uint32_t index, const Rm__Job *job,
                 uint32_t group, int32_t to, struct round_result *result);

#endif
