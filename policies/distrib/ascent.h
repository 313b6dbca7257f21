/* Raises the bound of a dual where sweeps are stuck: steps along subgradients. */
#ifndef RM_POLICIES_DISTRIB_ASCENT_H
#define RM_POLICIES_DISTRIB_ASCENT_H

#include "policies/distrib/deadline.h"
#include "policies/distrib/dual.h"

struct ascent; /* what is remembered between runs on one problem */

struct ascent *ascent_create(const struct problem *problem); /* NULL: no memory */
void ascent_destroy(struct ascent *ascent);                  /* NULL ok */

/* At most `steps`, ends early when it is over or nothing is gained any more. The dual has the best
 * costs found, and never a lower bound than before. -ENOMEM. */
int ascent_run(struct ascent *ascent, struct dual *dual, struct dual_work *work, const struct deadline *deadline, uint32_t steps);

/* On how many nodes the job was in the last choices seen, those of the nodes and its own: where
 * they differ there is something to decide. */
void ascent_degrees(const struct ascent *ascent, uint32_t job, uint32_t *ret_by_nodes, uint32_t *ret_by_job);

/* The values of a cell in the last choices seen, of its node and of its job. */
void ascent_values(const struct ascent *ascent, size_t cell, uint32_t *ret_by_node, uint32_t *ret_by_job);

#endif
