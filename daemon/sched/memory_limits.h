/* Limits by memory, for policies that look at cores only. Pure. */
#ifndef RM_SCHED_MEMORY_LIMITS_H
#define RM_SCHED_MEMORY_LIMITS_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/sched/snapshot.h"

/* Lower each job's limit on a node to what it has there and what the free memory allows to come,
 * where that is less than cores and limits allow. A plan within these limits can go over the memory
 * of a node only by several jobs together, or by a job that sends groups there which take more than
 * others of it. Jobs that share limits in the snapshot would share the lowered ones too: it must be
 * one that was parsed, or a copy of such. */
void memory_lower_limits(struct snapshot *snapshot);

/* Has no usable node so many bytes in all? *ret_largest: what the largest has. */
bool memory_never_fits(const struct rm_snapshot *snapshot, int64_t bytes, int64_t *ret_largest);

#endif
