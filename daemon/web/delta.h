/* A delta tells which entries of lists a viewer has not seen as they are now. The lists are made
 * anew and looked through in passes; an entry is known by a key, and compared by a digest of its
 * message. Pure. */
#ifndef RM_WEB_DELTA_H
#define RM_WEB_DELTA_H

#include <stdbool.h>
#include <stddef.h>

#include <protobuf-c/protobuf-c.h>

struct delta;

struct delta *delta_create(void);
void delta_destroy(struct delta *delta); /* NULL ok */

/* The entry is there in this pass. True: it was not in the last one, or was another. */
bool delta_is_new(struct delta *delta, const char *key, const ProtobufCMessage *message);
/* The pass has ended: entries that were not there are forgotten, and `gone` is called with the key
 * of each. */
void delta_end_pass(struct delta *delta, void (*gone)(void *userdata, const char *key), void *userdata);

#endif
