/* The cost of the traffic under a plan, of whatever policy: for people, and to compare policies. */
#ifndef RM_PLACEMENT_MEASURE_H
#define RM_PLACEMENT_MEASURE_H

#include <stdbool.h>
#include <stdint.h>

#include "rm/policy.h"

struct measured {
        uint64_t hop_bytes;        /* bytes times hops in the tree of switches, nodes, packages and cores */
        uint64_t inter_node_bytes; /* that leave their node */
};

/* Measures the jobs that `plan` (valid for `snapshot`) places and whose traffic is known. Ranks of
 * jobs without cores count as if they had the first free ones, in order. False, and nothing
 * written, when nothing is known of the traffic of any of them. */
bool measure_plan(const struct rm_snapshot *snapshot, const struct rm_plan *plan, struct measured *ret_measured);

/* The same for the same jobs by slot: ranks in order, nodes in order. False also when they do not
 * fit like that. */
bool measure_by_slot(const struct rm_snapshot *snapshot, const struct rm_plan *plan, struct measured *ret_measured);

#endif
