/* The limits of each capsule on this node, and those that this node cannot enforce. */
#ifndef RM_JOB_LIMITS_H
#define RM_JOB_LIMITS_H

#include <stdint.h>

#include "daemon/capsule/capsule.h"
#include "daemon/config/config.h"
#include "daemon/context.h"

/* The memory and the cores of a node, or those that it says that it has. */
struct limits_node {
        uint64_t memory_bytes;
        uint32_t cores;
};

/* Pure. What the configuration says, or the share of so many cores; 0 ranks (a head) count as one,
 * since mpirun keeps what is on its way to slow readers. No capsule gets more than `node` has. */
void limits_share(const struct config *config, const struct limits_node *node, uint32_t ranks, struct capsule_limits *ret);
/* Pure. How much of a node's memory all capsules together leave to the rest of it. */
uint64_t limits_reserve(uint64_t node_memory_bytes);

/* Pure. The memory of a node that has `total_bytes`, as it is configured to offer it. */
uint64_t limits_node_memory(const struct config *config, uint64_t total_bytes);
/* Pure. What the job has asked for is the limit of its memory, instead of a share; but no more than
 * the configuration's, and no less than what a group needs to start. */
void limits_promised(const struct config *config, uint64_t promised_bytes, struct capsule_limits *limits);

/* This node's share for a group of so many ranks, or what the job has asked for (0: it has not), at
 * least `kept` (NULL ok): a group that moves keeps what it had, so that what fitted fits. */
void limits_here(const struct rmd *rmd, uint32_t ranks, uint64_t promised_bytes, const struct capsule_limits *kept,
                 struct capsule_limits *ret);
/* Must be called once, when capsules and cluster are there: sets the reserve, and tells rmd's log
 * which limits cannot be enforced. */
void limits_begin(const struct rmd *rmd);
/* Names the limits that this node cannot enforce, in one line; malloc'ed. NULL: it can enforce
 * all. */
char *limits_missing(const struct rmd *rmd);

#endif
