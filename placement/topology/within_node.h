/* The last step: which rank gets which core of its node. */
#ifndef RM_PLACEMENT_WITHIN_NODE_H
#define RM_PLACEMENT_WITHIN_NODE_H

#include <stdint.h>

#include "placement/topology/map_context.h"

struct node_rank {
        uint32_t job, rank;
};

/* The ranks that the plan puts on each node, job after job. */
struct within_node {
        struct map_context *context;
        uint64_t *first;         /* each node: where its ranks begin */
        struct node_rank *ranks; /* node after node */
        uint32_t **number;       /* each job, each rank: its index among those of its node */
};

/* Chooses leaves for the `n` ranks of `node`: `leaf` has an entry for each, counted from the node's
 * first leaf, and comes filled in the order of ranks. No leaf may get more ranks than it has
 * room. */
typedef void (*within_node_choose)(const struct within_node *within, uint32_t node, uint32_t n, uint32_t *leaf);

/* Fill rank_core of all jobs that the plan places. `choose` NULL: cores are given in the order of
 * ranks. On nodes with more ranks than cores (pinned ones) no rank gets a core. */
void within_node_assign(struct map_context *context, within_node_choose choose);

#endif
