/* Any message of the local protocol as JSON: what rmctl prints with --json, and what rmd itself
 * shows of the cluster. */
#ifndef RM_PROTO_JSON_H
#define RM_PROTO_JSON_H

#include <jansson.h>
#include <protobuf-c/protobuf-c.h>

/* Fields keep their names and order. Times become ISO 8601 in UTC and lose their "_usec" (0: null),
 * durations keep it; enumerations are words without their prefix; IPv4 addresses are dotted; absent
 * messages are null. The field in which a view wraps the state's own message ("node" of a NodeView)
 * is merged into it. The caller owns the result. */
json_t *json_from_message(const ProtobufCMessage *message);

#endif
