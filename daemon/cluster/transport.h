/* What raft would speak to other voters over. With one voter nothing is ever connected; see transport.c for what more need. */
#ifndef RM_CLUSTER_TRANSPORT_H
#define RM_CLUSTER_TRANSPORT_H

#include <raft/uv.h>

/* Plain storage of the caller's; nothing to free. */
void transport_init(struct raft_uv_transport *transport);

#endif
