/* The cheapest pattern of a node at given prices, by dynamic programming in whole numbers. */
#ifndef RM_POLICIES_DISTRIB_PRICING_H
#define RM_POLICIES_DISTRIB_PRICING_H

#include <stdbool.h>
#include <stdint.h>

#include "policies/distrib/arena.h"
#include "policies/distrib/problem.h"

enum { PRICING_SHIFT = 24 };

/* More than any pattern costs: there is none. */
#define PRICING_NEVER ((int64_t) 1 << 60)

struct pricing {
        const struct problem *problem;
        uint16_t *low, *high; /* each cell: groups that may be there; to be set */
        int64_t *job_price;   /* paid for a group of the job, scaled; to be set */
        int64_t *use_price;   /* each cell: paid for there being any; to be set */
        int64_t *before;      /* least cost, scaled, by jobs before one and groups on the node */
        int64_t *after;       /* by jobs from one on */
        int64_t *cost;        /* by jobs and groups: of these there */
        uint32_t stride;
        struct arena arena;
};

/* False: no memory. pricing_finish() is fine after it. The problem is borrowed. */
bool pricing_init(struct pricing *pricing, const struct problem *problem);
void pricing_finish(struct pricing *pricing);

/* The cost of the cheapest pattern, scaled, less the paid prices; or PRICING_NEVER at least.
 * ret_amount: each job. */
int64_t pricing_best(struct pricing *pricing, uint32_t node, uint16_t *ret_amount);

/* Narrow ranges of cells of the node where only patterns that cost more than `most` would be left
 * out. Returns how many have changed. */
uint32_t pricing_narrow(struct pricing *pricing, uint32_t node, int64_t most);

#endif
