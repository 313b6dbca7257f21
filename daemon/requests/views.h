/* Jobs as a client may see them. */
#ifndef RM_REQUESTS_VIEWS_H
#define RM_REQUESTS_VIEWS_H

#include "daemon/client/client.h"
#include "daemon/state/state_index.h"

/* A page of a list is full with so much, and has one entry more than that at most. */
#define PAGE_BYTES (64U << 10)
/* One job in a list, and in an answer about this job alone. A JobSpec has at most 1 MiB. */
#define VIEW_LISTED_BYTES (32U << 10)
#define VIEW_WHOLE_BYTES (2U << 20)

/* A copy without what is not this client's to see, and of about `max_bytes` at most: first the command line is cut, then the list of
 * capsules. Free with rm__job_view__free_unpacked(view, NULL). */
Rm__JobView *job_view(const struct client *client, const struct state_index *index, const Rm__Job *job, size_t max_bytes);

/* How much a list may take in one reply to a request that is `paged` or not. */
size_t page_bytes(bool paged);
/* A request that is not paged has an answer that does not fit: the client is told. */
void page_refuse(struct client *client, uint32_t request_id, const char *verb);

#endif
