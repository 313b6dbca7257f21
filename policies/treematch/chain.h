/* Local search by chains: a vertex takes a place where it is better off, what it displaces goes to
 * where that is best off, and so on, until one takes the place that became free. Follows the
 * traffic, so it costs little where many leaves talk to many. */
#ifndef RM_TREEMATCH_CHAIN_H
#define RM_TREEMATCH_CHAIN_H

#include <stdint.h>

#include "policies/treematch/layout.h"

/* Until no chain gains, or the pool's work has come to `until`. Returns what was gained. */
int64_t chain_refine(struct pool *pool, struct layout *layout, uint64_t until);

#endif
