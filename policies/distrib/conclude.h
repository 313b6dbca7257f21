/* Exact answers without branching: all components of the plans that a dual leaves over, see component.h, and the cheapest
 * partition into them. */
#ifndef RM_POLICIES_DISTRIB_CONCLUDE_H
#define RM_POLICIES_DISTRIB_CONCLUDE_H

#include <stdint.h>

#include "policies/distrib/deadline.h"
#include "policies/distrib/dual.h"

struct conclude;

/* NULL with *ret_none: the problem is none for it; else no memory. The problem is borrowed. */
struct conclude *conclude_create(const struct problem *problem, bool *ret_none);
void conclude_destroy(struct conclude *conclude); /* NULL ok */

struct conclude_task {
        const struct deadline *deadline;
        struct dual_work *work;
        int64_t target; /* plans that cost this or less are looked for */
        uint64_t max_steps; /* some 50 ns each */
};

/* The cheapest plan that the dual leaves over. 1: done, *ret_cost is what it costs (ret_values: each cell), PRICE_NEVER: there is
 * none; 0: not known, it would take too long; -ENOMEM. */
int conclude_at_once(struct conclude *conclude, const struct dual *dual, const struct conclude_task *task, uint32_t *ret_values,
                     int64_t *ret_cost);

/* The same, but first only plans are looked for that cost little more than the dual's bound, then more and more. *settled: no plan
 * that the dual leaves over costs this or less; raised. *ret_quick_gap: how far the target was above the bound, scaled, when it
 * was last known in hardly any time; 0: never. */
int conclude_bit_by_bit(struct conclude *conclude, const struct dual *dual, const struct conclude_task *task, int64_t *settled,
                        int64_t *ret_quick_gap, uint32_t *ret_values, int64_t *ret_cost);

/* Spent until now. */
uint64_t conclude_steps(const struct conclude *conclude);

#endif
