#include "daemon/peers/mesh.h"

#include "daemon/peers/peers.h"

static int mesh_send(void *mesh, const char *node, const Rm__PeerMessage *message) {
        return peers_send(mesh, node, message);
}

static size_t mesh_pending_bytes(void *mesh, const char *node) {
        return peers_pending_bytes(mesh, node);
}

static void mesh_reset(void *mesh, const char *node, const char *why) {
        peers_reset(mesh, node, why);
}

static const Rm__Node *mesh_self(void *mesh) {
        return peers_self(mesh);
}

static const Rm__Node *mesh_node(void *mesh, const char *node) {
        return peers_connected(mesh, node) && !peers_forgotten(mesh, node) ? peers_node(mesh, node) : NULL;
}

static uint64_t mesh_heard_usec(void *mesh, const char *node) {
        return peers_heard_usec(mesh, node);
}

static void mesh_foreach(void *mesh, void (*visit)(void *userdata, const char *node), void *userdata) {
        peers_foreach(mesh, visit, userdata);
}

const struct mesh_ops *mesh_of_peers(void) {
        static const struct mesh_ops ops = { .send = mesh_send,
                                             .pending_bytes = mesh_pending_bytes,
                                             .reset = mesh_reset,
                                             .self = mesh_self,
                                             .node = mesh_node,
                                             .heard_usec = mesh_heard_usec,
                                             .foreach = mesh_foreach };

        return &ops;
}
