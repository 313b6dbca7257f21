/* The sender's memory of blocks sent ahead: which contents the receiver has, and under which
 * number. Pure. */
#ifndef RM_IMAGE_KNOWN_H
#define RM_IMAGE_KNOWN_H

#include "daemon/image/delta.h"

/* Blocks are told apart by 128 bits of XXH3; that two differ with the same is not to be expected,
 * and the checksum in the stream would show it. 24 bytes of memory for a block of 4096. */
struct image_known;

struct image_known *image_known_create(void); /* never NULL */
void image_known_destroy(struct image_known *k); /* NULL ok */

/* The block (IMAGE_BLOCK_BYTES) is about to be sent: true when it is new, and then has the number
 * image_known_count() was before. False when it was sent already, or when there are
 * IMAGE_BLOCKS_MAX. */
bool image_known_add(struct image_known *k, const void *block);
uint64_t image_known_count(const struct image_known *k);

/* The blocks as a delta for a writer; lives as long as `k`. */
const struct image_delta *image_known_delta(const struct image_known *k);

#endif
