/* A plan of all jobs of a staircase as the node of each rank of each tread, one tread after another. Single ranks, not groups. */
#ifndef RM_POLICIES_DISTRIB_RANKWISE_H
#define RM_POLICIES_DISTRIB_RANKWISE_H

#include "policies/place/staircase.h"

/* How many there are. */
uint32_t rankwise_ranks(const struct staircase *stairs);

void rankwise_read(const struct staircase *stairs, const struct rm_plan *plan, int32_t *ret_nodes);
void rankwise_write(const struct staircase *stairs, const int32_t *nodes, struct rm_plan *plan);

/* Of one tread: those on a node follow each other. */
void rankwise_sort(int32_t *nodes, uint32_t ranks);

/* How many are on the node of the first one; `ranks` are sorted, and at least 1. */
uint32_t rankwise_piece(const int32_t *nodes, uint32_t ranks);

#endif
