/* raft_uv wants, for every pair of voters, a uv_stream_t each way. With more voters than one, connect() is to ask for a TLS
 * connection of the peers' kind with a first message that names it as raft's, to put one end of a socketpair between that
 * and raft (uv_pipe_open), and the other side's listener is to call `accept` with its end; nothing else in here changes. */
#include "daemon/cluster/transport.h"

#include <stdio.h>
#include <string.h>

static int stub_init(struct raft_uv_transport *transport, raft_id id, const char *address) {
        (void) transport;
        (void) id;
        (void) address;
        return 0;
}

static int stub_listen(struct raft_uv_transport *transport, raft_uv_accept_cb accept) {
        transport->impl = (void *) accept;
        return 0;
}

static int stub_connect(struct raft_uv_transport *transport, struct raft_uv_connect *request, raft_id id, const char *address,
                        raft_uv_connect_cb done) {
        (void) request;
        (void) id;
        (void) done;
        (void) snprintf(transport->errmsg, sizeof(transport->errmsg), "no way to voter %s yet", address);
        return RAFT_NOCONNECTION;
}

static void stub_close(struct raft_uv_transport *transport, raft_uv_transport_close_cb done) {
        done(transport);
}

void transport_init(struct raft_uv_transport *transport) {
        memset(transport, 0, sizeof(*transport));
        transport->version = 1;
        transport->init = stub_init;
        transport->listen = stub_listen;
        transport->connect = stub_connect;
        transport->close = stub_close;
}
