/* The figures that the cluster's log does not have: free memory, the share that folded jobs get of
 * their cores, the progress of programs. */
#ifndef RM_LAUNCHER_RMCTL_USE_H
#define RM_LAUNCHER_RMCTL_USE_H

#include "launcher/rmctl/verb.h"

/* Filled into the views, as far as the leader answers within a second. */
void use_fill_nodes(struct call *call, const Rm__NodeList *nodes);
void use_fill_job(struct call *call, Rm__JobView *view);
void use_fill_jobs(struct call *call, const Rm__JobList *jobs); /* only how far they are */

#endif
