/* The last step: which rank gets which core of its node. */
#ifndef RM_TREEMATCH_INSIDE_H
#define RM_TREEMATCH_INSIDE_H

#include <stdbool.h>

#include "policies/treematch/scene.h"

/* Fill rank_core of all jobs that the plan places. `by_traffic`: by the leaves that were chosen, and where they were not, by who talks to whom
 * on the node; else cores are given in the order of ranks. On nodes with more ranks than cores (pinned ones) nobody gets a core. */
void inside_assign(struct scene *scene, bool by_traffic);

#endif
