/* Candidates for branching: the values on which the two factors of a cell disagree. */
#ifndef RM_POLICIES_DISTRIB_CHOICE_H
#define RM_POLICIES_DISTRIB_CHOICE_H

#include <stdbool.h>
#include <stdint.h>

#include "policies/distrib/ascent.h"
#include "policies/distrib/dual.h"

/* A branch: the values of a cell below `split` or from it on; or, node RM_NO_NODE, on how many
 * nodes a job is. */
struct choice {
        uint32_t job;
        int32_t node;
        uint32_t split;
        int64_t score;
};

/* Each lists at most `max` of them and returns how many; `ascent` has looked at the dual last. */

/* Open cells, those first that are worth most: between nothing and something where that is open,
 * else in the middle. */
uint32_t choices_of_cells(const struct ascent *ascent, const struct dual *dual, struct choice *ret_choices, uint32_t max);

/* True: only amounts are open in the cell of this choice. */
bool choice_is_of_amount(const struct choice *choice);

/* Degrees that nodes and jobs see differently, of the jobs whose nodes cost most. */
uint32_t choices_of_degrees(const struct ascent *ascent, const struct dual *dual, struct choice *ret_choices, uint32_t max);

/* Cells of which node and job want most different amounts: split in the middle. */
uint32_t choices_of_amounts(const struct ascent *ascent, const struct dual *dual, struct choice *ret_choices, uint32_t max);

/* The side of the branch where values, or degrees, are low; or the other. */
void choice_take(struct dual *dual, const struct choice *choice, bool low);

#endif
