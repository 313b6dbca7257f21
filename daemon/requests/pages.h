/* Pages of lists: how much of one goes into one answer. */
#ifndef RM_REQUESTS_PAGES_H
#define RM_REQUESTS_PAGES_H

#include "daemon/client/client.h"

/* How much a list may take in one reply to a request that is `paged` or not. */
size_t page_bytes(bool paged);
/* A request that is not paged has an answer that does not fit: the client is told. */
void page_refuse(struct client *client, uint32_t request_id, const char *verb);

#endif
