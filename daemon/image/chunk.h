/* The layout of one chunk, for the writer and the reader only. */
#ifndef RM_IMAGE_CHUNK_H
#define RM_IMAGE_CHUNK_H

#include "daemon/image/format.h"

/* Frame header and header message into `out`, which has room for both
 * (image_chunk_head_bytes()). */
size_t image_chunk_head_bytes(const Rm__ImageChunk *chunk);
void image_chunk_head_write(const Rm__ImageChunk *chunk, uint8_t *out);

/* The checksum over the `size_bytes` of a chunk before its checksum, written behind / compared with
 * what is there. */
void image_chunk_seal(uint8_t *chunk, size_t size_bytes, uint64_t number);
bool image_chunk_sealed(const uint8_t *chunk, size_t size_bytes, uint64_t number);

#endif
