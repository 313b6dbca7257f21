/*
 * A factor is what one node or one job is to the dual: cells in a row, of each one value is chosen,
 * and the sizes of the chosen values add up, to at most the node's capacity or to exactly the job's
 * groups. Two passes of dynamic programming give for each value the least cost of all choices that
 * contain it: its marginal. Costs are whole numbers throughout.
 *
 * A state is (x, y): how much of the sum is used up. y counts what else there is to count: the
 * smaller last group of a job, or the nodes that it is on; nodes know y = 0 only.
 */
#ifndef RM_POLICIES_DISTRIB_FACTOR_H
#define RM_POLICIES_DISTRIB_FACTOR_H

#include <stdbool.h>
#include <stdint.h>

/* Two of it can be added. */
#define FACTOR_NEVER ((1 << 30) - 1)
/* The cost of a factor stays below it: the cells of a factor together within half of it, its end
 * within a quarter. So sums neither overflow, nor does one look like FACTOR_NEVER, nor FACTOR_NEVER
 * with all other costs added like one. */
#define FACTOR_REACH (1 << 29)

struct factor_value {
        uint32_t x, y;
        int32_t cost;
};

/* `state` before the link and `next` after it have `layers` layers of `stride` entries. */
struct factor_shape {
        uint32_t stride; /* entries of a layer: largest x + 1 */
        uint32_t layers; /* largest y + 1 */
        bool at_least; /* the last layer stands for its y and all above; else there is nothing above */
};

/* The layer that a value of `y` leads to from `layer`; layers or more: none. */
static inline uint32_t factor_layer(const struct factor_shape *shape, uint32_t layer, uint32_t y) {
        return shape->at_least && layer + y >= shape->layers ? shape->layers - 1 : layer + y;
}

struct factor_link {
        const struct factor_value *values;
        uint32_t n;
        uint32_t low, high; /* reachable x before this link, both included: low > high when nothing is */
};

/* next = the least over the values of `state`, moved on by the value; `low`, `high`: the window of
 * `next`, set here outside which nothing is read or written. */
void factor_forward(const struct factor_shape *shape, const struct factor_link *link, const int32_t *state, int32_t *next,
                    uint32_t low, uint32_t high);

/* state = what the rest of the factor costs from here on, given that after the link, `next`. */
void factor_backward(const struct factor_shape *shape, const struct factor_link *link, const int32_t *next, int32_t *state,
                     uint32_t low, uint32_t high);

/* Each value's marginal, without its own cost added: ret_marginal, `link->n` entries. */
void factor_marginals(const struct factor_shape *shape, const struct factor_link *link, const int32_t *state, const int32_t *next,
                      uint32_t low, uint32_t high, int32_t *ret_marginal);

#endif
