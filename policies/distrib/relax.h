/* Prices of units for the dual to begin with: those of the linear relaxation, by GLPK. */
#ifndef RM_POLICIES_DISTRIB_RELAX_H
#define RM_POLICIES_DISTRIB_RELAX_H

#include "policies/distrib/problem.h"

/* Of a unit of each job, and (>= 0) of each node. Not exact: nothing may rest on them. 0, -ENOMEM or -EAGAIN when time was over. */
int relax_prices(const struct problem *problem, int64_t limit_usec, double *ret_job_price, double *ret_node_price);

#endif
