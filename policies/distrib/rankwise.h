/* A plan of all jobs of a relaxation as the node of each rank of each demand, one demand after another. Single ranks, not groups. */
#ifndef RM_POLICIES_DISTRIB_RANKWISE_H
#define RM_POLICIES_DISTRIB_RANKWISE_H

#include "placement/relaxation.h"

/* How many there are. */
uint32_t rankwise_ranks(const struct relaxation *classes);

void rankwise_read(const struct relaxation *classes, const struct rm_plan *plan, int32_t *ret_nodes);
void rankwise_write(const struct relaxation *classes, const int32_t *nodes, struct rm_plan *plan);

/* Of one demand: those on a node follow each other. */
void rankwise_sort(int32_t *nodes, uint32_t ranks);

/* How many are on the node of the first one; `ranks` are sorted, and at least 1. */
uint32_t rankwise_piece(const int32_t *nodes, uint32_t ranks);

#endif
