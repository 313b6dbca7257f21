/* Fields that this version does not know. */
#ifndef RM_COMMON_UNKNOWN_H
#define RM_COMMON_UNKNOWN_H

#include <stdbool.h>

#include <protobuf-c/protobuf-c.h>

/* Remove them from an unpacked message and all that it holds. protobuf-c keeps them as the bytes
 * they came in and packs them again unseen, some of them so that no version can unpack the result:
 * what a user sent must not reach another node or the log that way. */
void unknown_drop(ProtobufCMessage *message);

/* Does this version know all fields of the message and of all that it holds, and all values of
 * enums there? */
bool message_known(const ProtobufCMessage *message);

#endif
