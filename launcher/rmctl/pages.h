/* Lists that rmd answers page by page. */
#ifndef RM_LAUNCHER_RMCTL_PAGES_H
#define RM_LAUNCHER_RMCTL_PAGES_H

#include "launcher/rmctl/verb.h"

/* As call_request(), for a ListNodes, ListJobs or ListMoves, which is made a paged one: asks until
 * it has all, and puts it into one reply. */
int call_request_pages(struct call *call, ProtobufCMessage *body, Rm__LocalReply__BodyCase kind, Rm__LocalReply **ret_reply);
/* Jobs; n_jobs 0: all. `all`: also those that have ended. */
int call_fetch_jobs(struct call *call, const uint64_t *jobs, size_t n_jobs, bool all, Rm__LocalReply **ret_reply);

#endif
