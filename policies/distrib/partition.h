/* The cheapest partition of all jobs and nodes into components (set partitioning), by search: what a component costs above the
 * dual says how far to look. */
#ifndef RM_POLICIES_DISTRIB_PARTITION_H
#define RM_POLICIES_DISTRIB_PARTITION_H

#include <stdint.h>

#include "policies/distrib/component.h"

struct partition_task {
        const struct problem *problem;
        const struct deadline *deadline;
        struct component *components; /* sorted anew */
        size_t n;
        int64_t target; /* partitions that cost this or less are looked for */
        int64_t gap; /* their components are above by this at most, together */
        uint64_t max_steps;
};

struct partition_result {
        uint32_t chosen[COMPONENT_MAX_SIDE], n; /* indices of components; n 0: there is no partition */
        uint64_t steps;
};

/* The cheapest one. 1: done; 0: not within `max_steps` or the time there is; -ENOMEM. */
int partition_find(const struct partition_task *task, struct partition_result *ret_result);

#endif
