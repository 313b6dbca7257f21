/* What the cluster's log does not have: memory that is free, what folded jobs get of their cores. */
#ifndef RM_LAUNCHER_RMCTL_USE_H
#define RM_LAUNCHER_RMCTL_USE_H

#include "launcher/rmctl/verb.h"

/* Filled into the views, as far as the leader answers within a second. */
void use_fill_nodes(struct call *call, const Rm__NodeList *nodes);
void use_fill_job(struct call *call, Rm__JobView *view);

#endif
