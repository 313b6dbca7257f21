/* A factor of a dual, laid out for the passes of dynamic programming over it. */
#ifndef RM_POLICIES_DISTRIB_DP_ROW_H
#define RM_POLICIES_DISTRIB_DP_ROW_H

#include "policies/distrib/dual.h"
#include "policies/distrib/factor.h"

struct dp_row {
        struct factor_shape shape;
        uint32_t total;   /* what the sizes add up to: exactly, or at most for a node */
        int64_t price;    /* of a unit that stays free */
        bool of_node, degrees; /* degrees: layers count nodes that the job is on */
        uint32_t first_layer;  /* the lowest one that the factor may end in */
        uint32_t n;         /* links: cells that can hold something */
        uint32_t low, high; /* the window after the last link; set by dp_row_least() */
        int64_t constant;   /* what the other cells cost */
};

struct dual_work {
        struct factor_link *links;
        struct factor_value *values;
        struct dual_cell **cells; /* of each link */
        int32_t *marginal;
        uint32_t *picked; /* each link: the index of a value */
        bool *changed;    /* each link: its cell has other costs or values now */
        int32_t *suffix;  /* (links + 1) states */
        int32_t *state[2];
        uint32_t most_layers;
        struct arena arena;
};

/* Lay the factor out in `work`, links in the order that dual->backwards says. */
void dp_row_of_node(const struct dual *dual, struct dual_work *work, uint32_t node, struct dp_row *ret_row);
void dp_row_of_job(const struct dual *dual, struct dual_work *work, uint32_t job, struct dp_row *ret_row);

/* Computes the least cost of the factor, without the constant. Leaves in work->suffix the least
 * cost of the rest from before each link on. False: the values of the factor cannot add up. */
bool dp_row_least(struct dual_work *work, struct dp_row *row, int64_t *ret_least);

/* A cheapest choice, into work->picked. After dp_row_least(). */
void dp_row_trace(struct dual_work *work, const struct dp_row *row);

static inline size_t dp_row_states(const struct dp_row *row) {
        return (size_t) row->shape.stride * row->shape.layers;
}

#endif
