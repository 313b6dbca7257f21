/* The mesh is the interface by which the leader uses the connections to the other nodes. peers.h
 * implements it; tests have another. */
#ifndef RM_PEERS_MESH_H
#define RM_PEERS_MESH_H

#include <stddef.h>
#include <stdint.h>

#include "proto/peer.pb-c.h"

/* As the functions of peers.h of these names. */
struct mesh_ops {
        int (*send)(void *mesh, const char *node, const Rm__PeerMessage *message);
        size_t (*pending_bytes)(void *mesh, const char *node);
        void (*reset)(void *mesh, const char *node, const char *why);
        const Rm__Node *(*self)(void *mesh);
        /* The description that a connected node has given of itself; NULL: it is not connected, or
         * has left the cluster. */
        const Rm__Node *(*node)(void *mesh, const char *node);
        uint64_t (*heard_usec)(void *mesh, const char *node);
        void (*foreach)(void *mesh, void (*visit)(void *userdata, const char *node), void *userdata);
};

/* The operations of a mesh that is a struct peers. */
const struct mesh_ops *mesh_of_peers(void);

#endif
