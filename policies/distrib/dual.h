/*
 * A lower bound for a problem, in whole numbers, that only rises.
 *
 * Every cell belongs to two factors, its node's and its job's, and its prices are split between
 * them: however they are split, the sum of what the factors cost at least is at most what any plan
 * costs. A sweep moves costs from factors that know a value to be dear to the factors that do not
 * know it yet. Values that no plan can have which costs the target or less are dropped.
 *
 * Prices are scaled by 2^shift, with a remainder always rounded down: a bound is never too high.
 */
#ifndef RM_POLICIES_DISTRIB_DUAL_H
#define RM_POLICIES_DISTRIB_DUAL_H

#include <stdbool.h>
#include <stdint.h>

#include "policies/distrib/problem.h"

struct dual_value {
        uint32_t v;        /* as in the problem */
        uint32_t x, y, units;
        int32_t node_cost, job_cost;
};

struct dual_cell {
        size_t first; /* of its values */
        uint32_t n;
        int32_t reach; /* no cost of it gets larger, or lower than its negative */
};

struct dual {
        const struct problem *problem;
        int shift;
        int64_t base;   /* of the bound, scaled: what no factor holds */
        int64_t target; /* scaled */
        int64_t sum;    /* of what the factors cost at least */
        struct dual_cell *cells;
        struct dual_value *values;
        size_t n_values, space; /* room: of `values` */
        int64_t *node_least, *job_least;
        int64_t *node_price; /* of a unit that stays free */
        bool *node_changed, *job_changed; /* since the factor has been swept */
        uint32_t *least_degree, *most_degree; /* each job: how many nodes it is on; 0 and UINT32_MAX: any number */
        bool backwards;                   /* the order of cells in factors, turned over by every sweep */
};

/* Up to how many nodes of a job can be counted, and one more; 0: the problem has factors too long
 * for a dual at all. */
uint32_t dual_most_layers(const struct problem *problem);

struct dual_work; /* room to compute in, for one dual at a time */

struct dual_work *dual_work_create(const struct problem *problem); /* NULL: no memory */
void dual_work_destroy(struct dual_work *work);                    /* NULL ok */

/* Prices of the linear relaxation, scaled by 2^shift: of a unit of each job, and of each node (>=
 * 0). Any will do, good ones give a good start. */
struct dual_start {
        int64_t *job_price, *node_price;
};

/* No cost of a cell can be larger than this in the dual: prices are to be scaled so that what
 * matters stays below it. */
int32_t dual_reach(const struct problem *problem);

/* Looks for plans that cost `target` or less. -ENOMEM. The problem is borrowed. dual_finish() is
 * fine after a failure. */
int dual_init(struct dual *dual, const struct problem *problem, const struct dual_start *start, int shift, int64_t target);
void dual_finish(struct dual *dual);

/* `to` has been initialised as a copy before, or is all 0. -ENOMEM. */
int dual_copy(struct dual *to, const struct dual *from);

/* Nothing costs less than this, the problem's unit of cost; rounded up to what costs can be. */
int64_t dual_bound(const struct dual *dual);

/* How far the target is above what factors cost at least, scaled. */
static inline int64_t dual_gap(const struct dual *dual) {
        return dual->target - dual->base - dual->sum;
}

/* No plan can cost the target or less. */
static inline bool dual_is_over(const struct dual *dual) {
        return dual_gap(dual) < 0;
}

void dual_set_target(struct dual *dual, int64_t target);

/* Say that it is over. */
void dual_fail(struct dual *dual);

/* Makes a pass over all factors that have changed. True: something has. */
bool dual_sweep(struct dual *dual, struct dual_work *work);

/* Keep values v of the cell with low <= x + y * n_x <= high only. */
void dual_restrict(struct dual *dual, uint32_t job, uint32_t node, uint32_t low, uint32_t high);

/* Restricts a job whose groups have one size: keeps only plans where it is on `least` .. `most`
 * nodes. most: UINT32_MAX, or less than dual_most_layers(), as `least` is. */
void dual_restrict_degree(struct dual *dual, uint32_t job, uint32_t least, uint32_t most);

#endif
