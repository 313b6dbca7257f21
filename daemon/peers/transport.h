/* The transport is the interface by which the leader uses the connections to the other nodes.
 * peers.h implements it; tests have another. */
#ifndef RM_PEERS_TRANSPORT_H
#define RM_PEERS_TRANSPORT_H

#include <stddef.h>
#include <stdint.h>

#include "proto/peer.pb-c.h"

/* As the functions of peers.h of these names. */
struct transport_ops {
        int (*send)(void *transport, const char *node, const Rm__PeerMessage *message);
        size_t (*pending_bytes)(void *transport, const char *node);
        void (*reset)(void *transport, const char *node, const char *why);
        const Rm__Node *(*self)(void *transport);
        /* The description that a connected node has given of itself; NULL: it is not connected, or
         * has left the cluster. */
        const Rm__Node *(*node)(void *transport, const char *node);
        uint64_t (*received_usec)(void *transport, const char *node);
        void (*foreach)(void *transport, void (*visit)(void *userdata, const char *node), void *userdata);
};

/* The operations of a transport that is a struct peers. */
const struct transport_ops *transport_of_peers(void);

#endif
