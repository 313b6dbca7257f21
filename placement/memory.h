/* Memory as a second capacity, beside cores: groups that come to a node take of what it has free
 * (rm/policy.h). Pure. */
#ifndef RM_PLACEMENT_MEMORY_H
#define RM_PLACEMENT_MEMORY_H

#include <stdint.h>

#include "rm/policy.h"

/* Sums of memory end below RM_NO_MEMORY_LIMIT, so that they are more than any node has, but not
 * without a limit. */
static inline int64_t memory_sum(int64_t a, int64_t b) {
        return a >= RM_NO_MEMORY_LIMIT - 1 - b ? RM_NO_MEMORY_LIMIT - 1 : a + b;
}

/* How many groups that take `each`, at most `most`, so many bytes are enough for. */
static inline uint32_t memory_groups(int64_t each, int64_t bytes, uint32_t most) {
        int64_t groups;

        if (each == 0 || bytes == RM_NO_MEMORY_LIMIT)
                return most;
        groups = bytes > 0 ? bytes / each : 0;
        return groups < most ? (uint32_t) groups : most;
}

/* The memory that a group takes of `node`, when it is to be there. */
static inline int64_t memory_taken(const struct rm_job *job, uint32_t group, int32_t node) {
        return job->groups[group].node == node ? 0 : job->groups[group].memory;
}

/* The memory of the largest group. */
int64_t memory_largest(const struct rm_job *job);

/* *ret_node: a node on which the groups that `plan` brings there take more than its memory_free;
 * RM_NO_NODE: there is none. -ENOMEM. */
int memory_find_over(const struct rm_snapshot *snapshot, const struct rm_plan *plan, int32_t *ret_node);

#endif
