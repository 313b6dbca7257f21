/* Rates and shares that the leader keeps from what nodes report of the last seconds. Pure. */
#ifndef RM_LEADER_SMOOTHING_H
#define RM_LEADER_SMOOTHING_H

#include <stdint.h>

/* Returns the weight of a report about `usec` in a value that was seen for `*seen_usec` before, and
 * adds to that. The value is a mean at first, so that a first short report does not count for more
 * than its time, and is then smoothed exponentially: what is older than `memory_usec` has a weight
 * of 1/e. */
double smoothing_weight(uint64_t *seen_usec, uint64_t usec, uint64_t memory_usec);

#endif
