/*
 * The linear program over patterns: what one node could hold of all jobs is a column. Rows are the
 * groups of each job, one pattern for each node, and cuts: on how many nodes jobs are, each counted
 * as often as a weight says, from low to high. Its prices give a bound in whole numbers.
 *
 * What a cell may hold is a range, which branches and fixing make narrower; patterns outside it
 * count nothing.
 */
#ifndef RM_POLICIES_DISTRIB_PROGRAM_H
#define RM_POLICIES_DISTRIB_PROGRAM_H

#include <stdbool.h>
#include <stdint.h>

#include "policies/distrib/pricing.h"

enum {
        PROGRAM_MAX_SIDE = 32,   /* jobs, and nodes */
        PROGRAM_MAX_CUTS = 256,
        PROGRAM_NO_CUT = PROGRAM_MAX_CUTS,
};

struct program;

/* Is the problem small enough, and are its groups of one size? `cost`: of a plan. */
bool program_applies(const struct problem *problem, int64_t cost);

/* `values`: a valid plan, to begin with. `low`, `high` (n_jobs x n_nodes): only plans within are
 * looked for. NULL: no memory. The problem is borrowed. */
struct program *program_create(const struct problem *problem, const uint32_t *values, const uint32_t *low, const uint32_t *high);
void program_destroy(struct program *program); /* NULL ok */

/* ---- ranges of cells: n_jobs x n_nodes, to be changed at will, then program_apply_ranges()
 * ---- */

uint16_t *program_low(struct program *program);
uint16_t *program_high(struct program *program);
void program_apply_ranges(struct program *program);

/* ---- cuts ---- */

/* low <= a sum <= high: over cells where there is anything, of `use`. */
struct program_cut {
        int32_t *use; /* each cell */
        int64_t low, high;
};

/* The number of groups that any node can hold, and one more. */
uint32_t program_stride(const struct program *program);

/* A new one, or one that is there with the same left side. PROGRAM_NO_CUT: no more room. */
uint32_t program_find_cut(struct program *program, const struct program_cut *like);
void program_get_cut(const struct program *program, uint32_t cut, int64_t *ret_low, int64_t *ret_high);
void program_set_cut(struct program *program, uint32_t cut, int64_t low, int64_t high);

/* Held cuts are not forgotten. To be called once less with false than with true. */
void program_hold_cut(struct program *program, uint32_t cut, bool hold);

/* ---- solving ---- */

enum program_end {
        PROGRAM_FAILED, /* the solver, or time was over */
        PROGRAM_OVER, /* the bound exceeds the target */
        PROGRAM_OPEN, /* or hardly anything may be missing that no price makes up for */
};

/* How long there is. */
struct program_clock {
        void *context;
        int64_t (*left_usec)(void *context);
};

/* Patterns are added until the bound exceeds `target`; or until it cannot any more, or, if
 * `to_the_end`, there are no better ones. *ret_bound: the best one found, scaled by PRICING_SHIFT,
 * of plans within the ranges and cuts. */
enum program_end program_solve(struct program *program, int64_t target, bool to_the_end, const struct program_clock *clock,
                               int64_t *ret_bound);

/* Narrows ranges, after PROGRAM_OPEN, where no plan that costs `target` or less would be left out.
 * Returns how many have changed. */
uint32_t program_fix(struct program *program, int64_t target);

/* The cost of the program, after PROGRAM_OPEN. */
double program_value(const struct program *program);

/* The use of each cell, after PROGRAM_OPEN: how much of it is used for any groups, and by how many.
 * Valid until the next call of program_solve(). */
const double *program_used(const struct program *program);
const double *program_amount(const struct program *program);

/* The weight with which each number of groups of the job is on each node: n_nodes x
 * program_stride(). */
void program_shares(const struct program *program, uint32_t job, double *ret_shares);

/* How much dearer the program gets at least, with the patterns that there are, after a few pivots,
 * if the cell is in, or the cut within, low .. high. */
double program_try_cell(struct program *program, uint32_t job, uint32_t node, uint32_t low, uint32_t high);
double program_try_cut(struct program *program, uint32_t cut, int64_t low, int64_t high);

#endif
