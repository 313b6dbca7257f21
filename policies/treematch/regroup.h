/* Taking back who was sent to two leaves, and sending as many others from the same homes, grown together anew: where exchanges of two do not
 * find out of a bad beginning. */
#ifndef RM_TREEMATCH_REGROUP_H
#define RM_TREEMATCH_REGROUP_H

#include <stdint.h>

#include "policies/treematch/layout.h"

/* For a layout with strict ties: up to `tries` times, or until the pool's work has come to `until`; what gains nothing is undone. Returns what was
 * gained. Moves become neither more nor fewer. */
int64_t regroup_refine(struct pool *pool, struct layout *layout, uint32_t tries, uint64_t until);

#endif
