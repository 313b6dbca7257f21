/* The body of a message of which there are many kinds, such as a request of the local protocol. */
#ifndef RM_COMMON_MESSAGE_BODY_H
#define RM_COMMON_MESSAGE_BODY_H

#include <protobuf-c/protobuf-c.h>

/* Makes `body`, which is borrowed, the body of `message`: in that field of its oneof that has
 * messages of this type. Aborts if there is none. */
void message_set_body(ProtobufCMessage *message, const ProtobufCMessage *body);

#endif
