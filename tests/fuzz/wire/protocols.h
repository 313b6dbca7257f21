/* The types of framed messages, by protocol: FUZZ_PROTOCOL is one of local, peer, capsule,
 * mover. */
#ifndef RM_FUZZ_PROTOCOLS_H
#define RM_FUZZ_PROTOCOLS_H

#include "common/frame.h"
#include "proto/capsule.pb-c.h"
#include "proto/local.pb-c.h"
#include "proto/mover.pb-c.h"
#include "proto/peer.pb-c.h"

struct protocol {
        const char *name;
        uint32_t magic;
        uint32_t max_bytes;
        const ProtobufCMessageDescriptor *types[4]; /* to the last that is not NULL */
};

static const struct protocol protocols[] = {
        { "local", FRAME_MAGIC_LOCAL, FRAME_MAX_LOCAL_BYTES, { &rm__local_request__descriptor, &rm__local_reply__descriptor } },
        { "peer", FRAME_MAGIC_PEER, FRAME_MAX_PEER_BYTES, { &rm__peer_message__descriptor } },
        { "capsule",
          FRAME_MAGIC_CAPSULE,
          FRAME_MAX_CAPSULE_BYTES,
          { &capsule__request__descriptor, &capsule__event__descriptor, &capsule__reply__descriptor } },
        { "mover",
          FRAME_MAGIC_MOVER,
          FRAME_MAX_MOVER_BYTES,
          { &rm__mover_command__descriptor, &rm__mover_event__descriptor, &rm__mover_peer_message__descriptor } },
};

static inline size_t protocol_types(const struct protocol *protocol) {
        size_t n = 0;

        while (n < sizeof(protocol->types) / sizeof(protocol->types[0]) && protocol->types[n])
                n++;
        return n;
}

#endif
