/* Kernighan and Lin on two leaves: exchanging their vertices, best first, also uphill, and going
 * back to the best. */
#ifndef RM_TREEMATCH_PAIR_H
#define RM_TREEMATCH_PAIR_H

#include <stdint.h>

#include "policies/treematch/layout.h"

/* Over all pairs of leaves whose vertices talk, as long as that gains, at most `rounds` times, or
 * until the pool's work has come to `until`. Returns what was gained. */
int64_t pair_refine(struct pool *pool, struct layout *layout, uint32_t rounds, uint64_t until);

#endif
