/* Hysteresis: taking out of a plan the moves that do not pay. Pure. */
#ifndef RM_SCHED_HYSTERESIS_H
#define RM_SCHED_HYSTERESIS_H

#include "rm/policy.h"

/*
 * Put groups of `plan` (valid for `snapshot`, see plan_validate()) back to where they run, as long
 * as the plan stays valid and what that adds to the objective is not more than the moves it saves.
 * A group whose node has no cores (for its job) moves, and so do those that would not fit: after a
 * change of capacity that is unfolding. Whole jobs are tried first, then single groups, then all
 * that take each other's places. With params.move_budget, what saves more bytes times hops from
 * node to node than its moves cost (by bytes_per_cost) stays moved, whatever the objective says.
 * Cores chosen for the ranks of a group that is put back are forgotten. `ret_back`: of each job,
 * how many groups were put back.
 */
void hysteresis_apply(const struct rm_snapshot *snapshot, struct rm_plan *plan, uint32_t *ret_back);

#endif
