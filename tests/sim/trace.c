#include "tests/sim/trace.h"

#include <raft.h>

#include "daemon/log/raft_message.h"
#include "proto/peer.pb-c.h"
#include "tests/sim/raftcode.h"

static void trace_raft(const struct host *host, unsigned to, const Rm__RaftPart *part) {
        struct raft_message message;
        char text[128];

        if (part->data.len != part->total_bytes || raft_message_unpack(part->data.data, part->data.len, &message) < 0)
                return;
        message_describe(&message, text, sizeof(text));
        timeline_trace(host_timeline(host), host_name(host), "-> n%u: %s", to, text);
        raft_message_drop(&message);
}

void trace_message(const struct host *host, unsigned to, const ProtobufCMessage *message) {
        const Rm__PeerMessage *peer = (const Rm__PeerMessage *) message;

        if (timeline_traced(host_timeline(host)) && peer->body_case == RM__PEER_MESSAGE__BODY_RAFT_PART)
                trace_raft(host, to, peer->raft_part);
}
