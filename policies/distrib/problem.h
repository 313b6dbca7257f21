/*
 * The program that distrib solves, in plain numbers: which jobs are placed is settled, what is left
 * is how many groups of each job go to each node. A (job, node) pair is a cell. What a cell holds
 * is a value:
 *
 *      v = x + y * n_x     x: groups of full size, 0 .. n_x - 1
 *                          y: 1 when the smaller last group is here
 *
 * and has a price, moves included: groups that leave are the ones that are cheapest to move. The
 * cost of a plan is the sum of the prices of its cells. Pinned groups, limits and what fits on no
 * node make prices PRICE_NEVER.
 */
#ifndef RM_POLICIES_DISTRIB_PROBLEM_H
#define RM_POLICIES_DISTRIB_PROBLEM_H

#include <stdbool.h>
#include <stdint.h>

#include "policies/distrib/arena.h"
#include "rm/policy.h"

#define PRICE_NEVER (INT64_MAX / 4)

struct problem_job {
        uint32_t index; /* in the snapshot */
        uint32_t full;  /* groups of full size */
        uint32_t size;  /* ranks of such a group, in units */
        uint32_t rest;  /* ranks of the smaller last group, in units; 0: there is none */
        uint32_t units; /* all of it */
        int64_t priority;
};

struct problem_node {
        uint32_t index;    /* in the snapshot */
        uint32_t capacity; /* in units */
        int64_t penalty;
};

struct cell {
        size_t first; /* of its prices */
        uint32_t n_x; /* 1 + groups of full size that could be here; 0: nothing of the job ever is */
        uint32_t n;   /* values */
        uint32_t here; /* groups of full size that are here now */
};

struct problem {
        const struct rm_snapshot *snapshot;
        uint32_t n_jobs, n_nodes; /* those that matter */
        uint32_t unit_ranks;      /* ranks in a unit: what all groups are multiples of */
        struct problem_job *jobs;
        struct problem_node *nodes;
        struct cell *cells; /* n_jobs x n_nodes */
        int64_t *prices;
        size_t n_prices;
        int64_t step; /* costs of all plans differ by multiples of it; 0: they are all the same */
        struct arena arena;
};

/* Makes the problem of the jobs that `plan` places. -EFBIG when there are more than `max_prices`;
 * -ENOMEM. The snapshot is borrowed. */
int problem_init(struct problem *problem, const struct rm_snapshot *snapshot, const struct rm_plan *plan, size_t max_prices);
void problem_finish(struct problem *problem); /* fine after a failed init */

static inline const struct cell *problem_cell(const struct problem *problem, uint32_t job, uint32_t node) {
        return &problem->cells[(size_t) job * problem->n_nodes + node];
}

/* True: some group is placed already, and its move would cost something. */
bool problem_is_running(const struct problem *problem);

/* Which value each cell has in `plan`, into ret_values (n_jobs x n_nodes), and what it costs. */
int64_t problem_read_plan(const struct problem *problem, const struct rm_plan *plan, uint32_t *ret_values);

/* The other way. -EINVAL when the values are no valid plan (`plan` is then spoilt); -ENOMEM. */
int problem_write_plan(const struct problem *problem, const uint32_t *values, struct rm_plan *plan);

/* The cost of the values, PRICE_NEVER when they are no valid plan: all is computed again. */
int64_t problem_judge(const struct problem *problem, const uint32_t *values);

#endif
