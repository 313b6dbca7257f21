/* Jobs as a client may see them. */
#ifndef RM_REQUESTS_VIEWS_H
#define RM_REQUESTS_VIEWS_H

#include "daemon/client/client.h"
#include "daemon/cluster/state.h"

/* A copy without what is not this client's to see; free with rm__job_view__free_unpacked(view, NULL). */
Rm__JobView *job_view(const struct client *client, const Rm__State *state, const Rm__Job *job);

#endif
