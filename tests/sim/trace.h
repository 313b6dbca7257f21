/* The trace of messages between nodes. */
#ifndef RM_TESTS_SIM_TRACE_H
#define RM_TESTS_SIM_TRACE_H

#include <protobuf-c/protobuf-c.h>

#include "tests/sim/host.h"

/* A PeerMessage. */
void trace_message(const struct host *host, unsigned to, const ProtobufCMessage *message);

#endif
