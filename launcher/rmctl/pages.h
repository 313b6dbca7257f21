/* Lists that rmd answers page by page. */
#ifndef RM_LAUNCHER_RMCTL_PAGES_H
#define RM_LAUNCHER_RMCTL_PAGES_H

#include "launcher/rmctl/verb.h"

/* As call_request(), for one of list_nodes, list_jobs, list_moves, which is made a paged one: asks
 * until it has all, and puts it into one reply. */
int call_request_pages(struct call *call, Rm__LocalRequest *request, Rm__LocalReply__BodyCase body, Rm__LocalReply **ret_reply);

#endif
