/* Exchanges drawn by lot, for the worse too while it is hot (Kirkpatrick et al. 1983): of those
 * that were sent away from their homes, with each other and with those that stayed. It finds out of
 * beginnings that exchanges which all gain do not. */
#ifndef RM_TREEMATCH_ANNEAL_H
#define RM_TREEMATCH_ANNEAL_H

#include <stdint.h>

#include "placement/topology/limits.h"
#include "policies/treematch/layout.h"

/* For a layout with strict ties, until the pool's work has come to `until`. Each leaf sends as many
 * as before. The layout may cost more afterwards than before; when the time is over early, likely
 * so. */
void anneal(struct pool *pool, struct layout *layout, const struct limits *limits, uint64_t until);

#endif
