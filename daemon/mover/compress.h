/* Makes the payloads of a stream smaller: by one codec, or by the one that choice.h takes for the
 * best, chunk by chunk. */
#ifndef RM_MOVER_COMPRESS_H
#define RM_MOVER_COMPRESS_H

#include "daemon/image/writer.h"
#include "daemon/mover/link.h"

struct compress;

/* Uses only what the link's peer can decode. `link` must outlive it. Never NULL. */
struct compress *compress_create(struct link *link, Rm__MoverCodec requested);
void compress_destroy(struct compress *c); /* NULL ok */

/* NULL: payloads are stored as they are. Lives as long as `c`. */
const struct image_encoder *compress_encoder(const struct compress *c);

/* Sending is limited to a rate; 0: not any more. */
void compress_limit(struct compress *c, uint64_t bytes_per_sec);

#endif
