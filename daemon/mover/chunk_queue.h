/* Chunks of an image stream in memory, between a writer and a reader. */
#ifndef RM_MOVER_CHUNK_QUEUE_H
#define RM_MOVER_CHUNK_QUEUE_H

#include "daemon/image/reader.h"
#include "daemon/image/writer.h"

struct chunk_queue;

/* `added` is called after each chunk, and may read some. */
struct chunk_queue *chunk_queue_create(int (*added)(void *ctx, struct rm_error *err), void *ctx);
void chunk_queue_destroy(struct chunk_queue *q); /* NULL ok */

const struct image_sink *chunk_queue_sink(struct chunk_queue *q);
/* -ENODATA when it is empty. What was read is freed. */
const struct image_source *chunk_queue_source(struct chunk_queue *q);

/* Written, and not read yet. */
uint64_t chunk_queue_bytes(const struct chunk_queue *q);

#endif
