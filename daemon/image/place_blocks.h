/* The receiving end of blocks sent ahead. Each moves to where it is used first, and is found there
 * when it is used again, so that contents are here once. */
#ifndef RM_IMAGE_PLACE_BLOCKS_H
#define RM_IMAGE_PLACE_BLOCKS_H

#include "daemon/image/format.h"

struct place_blocks;

struct place_blocks *place_blocks_create(void); /* never NULL */
void place_blocks_destroy(struct place_blocks *b); /* NULL ok */
/* Closes the files to which blocks have moved; no block is fetched any more. */
void place_blocks_release(struct place_blocks *b);

/* A file without a name in `directory` takes them; `ret_fd` is the caller's. -EBADMSG: there is
 * one. */
int place_blocks_open(struct place_blocks *b, const char *directory, int *ret_fd, struct rm_error *err);

/* The contents of `n` blocks. Negative errno. */
int place_blocks_fetch(const struct place_blocks *b, uint64_t number, size_t n, void *ret_blocks);

/* The blocks are by now also in the file `fd`, which can be read, at `offset`, a multiple of
 * IMAGE_BLOCK_BYTES. `file` is 0 at the first call for a file, and kept for the next ones. A change
 * of that file then changes the blocks: their checksum will tell. Returns how many are no longer
 * where they came. */
size_t place_blocks_used(struct place_blocks *b, uint64_t number, size_t n, int fd, uint32_t *file, uint64_t offset);

#endif
