/* The price of a move in the objective, from what moves were measured to take. Pure. */
#ifndef RM_SCHED_MOVE_COST_H
#define RM_SCHED_MOVE_COST_H

#include <stdint.h>

/* A horizon's parts: a freeze of one of them costs one unit of the objective. Within the default of
 * ten minutes that is a tenth of a second, so a second's freeze weighs as much as using one node
 * more does with the default distribution_weight. */
#define MOVE_COST_PARTS 6000u
/* The cost of a move that takes no time, so that no group moves without a gain. */
#define MOVE_COST_BASE 3

/*
 * A move that is a choice must pay for itself within the horizon: what it gains, by the objective,
 * over that time against what the group loses by a freeze of `freeze_usec`. A longer horizon makes
 * moves cheaper. `horizon_usec` 0 counts as 1.
 */
int64_t move_cost(uint64_t freeze_usec, uint64_t horizon_usec);

/* The value of saved traffic on links of so many bytes in a second: the bytes that weigh as much as
 * one unit of cost, as the link is busy with them for as long as that unit lets a group be frozen.
 * For traffic that is reckoned for the same horizon. At least 1. */
int64_t move_cost_bytes(uint64_t link_bytes_per_sec, uint64_t horizon_usec);

#endif
