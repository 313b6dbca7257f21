/* Once it is settled which jobs are on which nodes, and all groups are of one size, how many groups
 * go where is a transportation problem: solved exactly, without branching. */
#ifndef RM_POLICIES_DISTRIB_FLOW_H
#define RM_POLICIES_DISTRIB_FLOW_H

#include "policies/distrib/dual.h"

struct flow;

/* NULL with *ret_none: the problem has groups of several sizes, there never is anything to do; else
 * no memory. */
struct flow *flow_create(const struct problem *problem, bool *ret_none);
void flow_destroy(struct flow *flow); /* NULL ok */

/* Is every cell of the dual either empty for certain or used for certain, at prices that rise ever
 * faster? */
bool flow_applies(const struct flow *flow, const struct dual *dual);

/* The cheapest plan where each cell has between its least and its most value: ret_values (n_jobs x
 * n_nodes). All plans left in the dual are among them. False: there is none. */
bool flow_solve(struct flow *flow, const struct dual *dual, uint32_t *ret_values);

#endif
