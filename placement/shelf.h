/* Nodes by what they cost and how much of them is free, so that the best of ten thousand is found
 * without looking at each. */
#ifndef RM_PLACEMENT_SHELF_H
#define RM_PLACEMENT_SHELF_H

#include <stdbool.h>
#include <stdint.h>

#include "rm/policy.h"

/* Nodes of one penalty with the same number of free cores are a class. Fields are the interface, to
 * be read only. */
struct shelf {
        uint32_t n_penalties;
        int64_t *penalties; /* ascending */
        uint32_t stride;    /* most cores of a node + 1 */
        int32_t *first;     /* each class (penalty x free cores): a node of it, RM_NO_NODE when there is none */
        uint32_t *count;    /* each class: how many */
        uint32_t *top;      /* each penalty: the most free cores of a node of it */
        int32_t *next, *previous; /* each node, in its class */
        uint32_t *penalty_of;     /* each node: index into penalties */
        uint32_t *free_of;        /* each node */
};

/* `free_cores`: each node, at most its cores; what is below 0 counts as 0. -ENOMEM; -EFBIG when
 * there would be more classes than is worth it. shelf_finish() is fine after a failure. */
int shelf_init(struct shelf *shelf, const struct rm_snapshot *snapshot, const int64_t *free_cores);
void shelf_finish(struct shelf *shelf);

/* The node has `free_cores` now, at most its cores. */
void shelf_set(struct shelf *shelf, uint32_t node, int64_t free_cores);

/* The smallest class of a penalty with at least `free_cores` free, as free cores; 0: there is
 * none. */
uint32_t shelf_at_least(const struct shelf *shelf, uint32_t penalty, uint32_t free_cores);

static inline uint32_t shelf_classes(const struct shelf *shelf) {
        return shelf->n_penalties * shelf->stride;
}

#endif
