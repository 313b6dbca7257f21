/* Requests and replies of proto/local.proto as frames in byte queues, for callers that do not
 * block. */
#ifndef RM_LAUNCHER_CLIENT_WIRE_H
#define RM_LAUNCHER_CLIENT_WIRE_H

#include "launcher/client/buffer.h"
#include "proto/local.pb-c.h"

/* Puts one request at the end of `out`. */
void wire_put(struct buffer *out, uint32_t id, const ProtobufCMessage *body);

/* Take one reply from the front of `in`: 1 and the reply (the caller frees it with
 * rm__local_reply__free_unpacked()), 0 when it is not whole yet, -EPROTO, -EMSGSIZE or -EBADMSG
 * when it is none of ours. */
int wire_next(struct buffer *in, Rm__LocalReply **ret_reply);

#endif
