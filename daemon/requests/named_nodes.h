/* The nodes that a request names. */
#ifndef RM_REQUESTS_NAMED_NODES_H
#define RM_REQUESTS_NAMED_NODES_H

#include "daemon/client/client.h"

/* True: one of them is not in the cluster, or there are far more names than nodes, and the client
 * was told so as to a request of that name. */
bool named_nodes_refuse_unknown(struct client *client, uint32_t request_id, const char *verb, char **names, size_t n);
/* The same of a request that does something with the nodes, so that it must name some. */
bool named_nodes_refuse(struct client *client, uint32_t request_id, const char *verb, char **names, size_t n);

#endif
