#include "daemon/peers/transport.h"

#include "daemon/peers/peers.h"

static int transport_send(void *transport, const char *node, const Rm__PeerMessage *message) {
        return peers_send(transport, node, message);
}

static size_t transport_pending_bytes(void *transport, const char *node) {
        return peers_pending_bytes(transport, node);
}

static void transport_reset(void *transport, const char *node, const char *why) {
        peers_reset(transport, node, why);
}

static const Rm__Node *transport_self(void *transport) {
        return peers_self(transport);
}

static const Rm__Node *transport_node(void *transport, const char *node) {
        return peers_connected(transport, node) && !peers_forgotten(transport, node) ? peers_node(transport, node) : NULL;
}

static uint64_t transport_received_usec(void *transport, const char *node) {
        return peers_received_usec(transport, node);
}

static void transport_foreach(void *transport, void (*visit)(void *userdata, const char *node), void *userdata) {
        peers_foreach(transport, visit, userdata);
}

const struct transport_ops *transport_of_peers(void) {
        static const struct transport_ops ops = { .send = transport_send,
                                                  .pending_bytes = transport_pending_bytes,
                                                  .reset = transport_reset,
                                                  .self = transport_self,
                                                  .node = transport_node,
                                                  .received_usec = transport_received_usec,
                                                  .foreach = transport_foreach };

        return &ops;
}
