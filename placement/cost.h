/* The objective of rm/policy.h, evaluated. Pure; includes nothing but the public header. */
#ifndef RM_PLACEMENT_COST_H
#define RM_PLACEMENT_COST_H

#include <stdbool.h>
#include <stdint.h>

#include "rm/policy.h"

/* The cost of job `job` with its groups on `group_node`, without the moves. Entries of RM_NO_NODE
 * count nothing. `scratch`: n_nodes bytes, all 0; left all 0. */
int64_t cost_job(const struct rm_snapshot *snapshot, const struct rm_job *job, const int32_t *group_node, uint8_t *scratch);

/* The cost of bringing the groups of `job` from where they are to `group_node`. */
int64_t cost_job_moves(const struct rm_job *job, const int32_t *group_node);

/* The cost of all jobs that `plan` places, moves included. -ENOMEM. */
int cost_plan(const struct rm_snapshot *snapshot, const struct rm_plan *plan, int64_t *ret_cost);

/* Running: at least one group has a node. */
bool job_runs(const struct rm_job *job);
bool any_job_runs(const struct rm_snapshot *snapshot);

#endif
