/*
 * A bound for large problems: every job alone pays each core its price, each node its weight, and takes whole numbers of nodes;
 * what it pays at least is found exactly, and prices are raised where more is wanted than there is. In whole numbers.
 */
#ifndef RM_POLICIES_DISTRIB_HULL_H
#define RM_POLICIES_DISTRIB_HULL_H

#include <stdbool.h>

#include "placement/relaxation.h"
#include "policies/distrib/deadline.h"

struct hull;

/* The relaxation is borrowed, and gets the best prices found. NULL: no memory, or more than this is made for. */
struct hull *hull_create(struct relaxation *relaxation, int64_t distribution_weight);
void hull_destroy(struct hull *hull); /* NULL ok */

/* `cost`: of the best plan known. At most `steps`, fewer when time is over before `deadline_usec` are left, or nothing is gained.
 * Returns the bound: no plan costs less. */
int64_t hull_raise(struct hull *hull, int64_t cost, const struct deadline *deadline, int64_t until_usec, uint32_t steps);

/* More steps would gain nothing worth the time. */
bool hull_is_settled(const struct hull *hull);

#endif
