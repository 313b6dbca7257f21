/*
 * The job that loses much against the best prices gets the nodes that it would rather have, and those who have them are put anew
 * (ejection chains: Glover 1996; neighbourhoods by reduced costs). Where jobs are larger than nodes, that is worth far more than jobs
 * drawn at random: few of them can gain anything together.
 */
#ifndef RM_POLICIES_DISTRIB_OUST_H
#define RM_POLICIES_DISTRIB_OUST_H

#include "policies/distrib/filling.h"
#include "policies/distrib/wishes.h"

struct oust;

/* The wishes must be of all jobs of the fitting; what cores are worth there, by the same prices. All are borrowed. NULL: no memory. */
struct oust *oust_create(struct filling *filling, const struct wishes *wishes);
void oust_destroy(struct oust *oust); /* NULL ok */

/* Draw a job and try; the plan is never dearer after it. 0, even if nothing came of it; -ENOMEM. */
int oust_try(struct oust *oust);

#endif
