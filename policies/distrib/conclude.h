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
        uint64_t wait_for; /* bit by bit: stop as soon as all of it can be expected to take less than this, but more than is left */
};

/* The cheapest plan that the dual leaves over. 1: done, *ret_cost is what it costs (ret_values: each cell), PRICE_NEVER: there is
 * none; 0: not known, it would take too long; -ENOMEM. */
int conclude_at_once(struct conclude *conclude, const struct dual *dual, const struct conclude_task *task, uint32_t *ret_values,
                     int64_t *ret_cost);

#define CONCLUDE_NEVER 1e18

/* How far it has come with a dual. All 0 and settled INT64_MIN / 2: not yet begun. */
struct conclude_progress {
        int64_t settled; /* no plan that the dual leaves over costs this or less */
        int64_t gap; /* how far the target was above the bound, scaled, when it was last known; */
        uint64_t steps; /* what that took; 0: never */
        double growth; /* of the logarithm of that since the time before; 0: not known */
        int64_t gap_before;
        int64_t too_large; /* a gap with which there is no room for it; 0: not known */
};

/* How many steps all of it can be expected to take, up to plans that cost `target`; 0: not known; CONCLUDE_NEVER: there is no room. */
double conclude_expected(const struct conclude_progress *progress, const struct dual *dual, int64_t target);

/* With what gap it takes hardly any time, as far as is known; 0: not known. */
int64_t conclude_quick_gap(const struct conclude_progress *progress);

/* As conclude_at_once(), but first only plans are looked for that cost little more than the dual's bound, then more and more, as long as
 * they can be expected to be done with within task->max_steps. Goes on from where it has been left. */
int conclude_bit_by_bit(struct conclude *conclude, const struct dual *dual, const struct conclude_task *task,
                        struct conclude_progress *progress, uint32_t *ret_values, int64_t *ret_cost);

/* Spent until now. */
uint64_t conclude_steps(const struct conclude *conclude);

#endif
