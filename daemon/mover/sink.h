/* Collects chunks and gives them to the link in large writes. */
#ifndef RM_MOVER_SINK_H
#define RM_MOVER_SINK_H

#include "daemon/image/writer.h"
#include "daemon/mover/link.h"

struct sink;

struct sink *sink_create(struct link *link);
void sink_destroy(struct sink *s); /* NULL ok */

const struct image_sink *sink_image(struct sink *s);

/* Gives to the link what has been collected. Before waiting for anything, and at the end. Memory
 * that is lent stays lent. */
int sink_flush(struct sink *s, struct rm_error *err);

#endif
