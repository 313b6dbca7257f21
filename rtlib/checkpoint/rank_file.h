/* The file that one rank saves: "RMRTCKPT", the blocks of all arrays, an index (a frame with a
 * Portable__Index) and where it begins (8 bytes, big endian).
 *
 * The blocks of each array begin at its first byte. The hash of each is in the index, and if blocks
 * are compressed, a part of that of what was made of each; the digest of the file, which is in the
 * manifest, is that of all but the blocks. So no byte of it is believed unseen. */
#ifndef RM_RTLIB_CHECKPOINT_RANK_FILE_H
#define RM_RTLIB_CHECKPOINT_RANK_FILE_H

#include "rtlib/checkpoint/manifest.h"

/* ---- writing ---- */

struct rank_writer;

/* Creates the writer of a file that is new and empty, which it takes over. `block_bytes`: of each
 * block but the last of an array; 0: each has a size of its own. `zstd_level` 0: blocks are not
 * compressed. Never NULL. */
struct rank_writer *rank_writer_create(int fd, size_t n_arrays, uint32_t block_bytes, int zstd_level);
void rank_writer_destroy(struct rank_writer *w); /* NULL ok */
/* Arrays and blocks in their order, by their first byte; some may be left out. */
int rank_writer_put(struct rank_writer *w, size_t array, uint64_t from, const void *data, uint32_t size_bytes,
                    const uint8_t hash[static PORTABLE_DIGEST_BYTES], struct rm_error *err);
/* The file is finished, and all of it is on the disk. */
int rank_writer_end(struct rank_writer *w, uint64_t *ret_size_bytes, uint8_t ret_digest[static PORTABLE_DIGEST_BYTES],
                    struct rm_error *err);

/* ---- reading ---- */

struct rank_block {
        uint64_t from, offset; /* its first byte, in the array and in the file */
        uint32_t bytes, stored_bytes;
        const uint8_t *hash, *check; /* of it in memory, and in the file; `check` NULL: is not known */
};

struct rank_reader;

/* The file of `rank`, as the manifest says it is. It takes over `fd`, which is read by position.
 * -EBADMSG. `m` must outlive it. */
int rank_reader_create(int fd, const Portable__Manifest *m, size_t rank, struct rank_reader **ret, struct rm_error *err);
void rank_reader_destroy(struct rank_reader *reader); /* NULL ok */
/* The blocks of an array of the manifest, in order. */
const struct rank_block *rank_reader_blocks(const struct rank_reader *reader, size_t array, size_t *ret_n);
/* The block with this byte of the array; NULL: the file does not have it. `*ret_end`: from there on
 * another block has it, or that is where none begins any more. */
const struct rank_block *rank_reader_find(const struct rank_reader *reader, size_t array, uint64_t at, uint64_t *ret_end);
/* Into `ret`, of manifest's block_bytes, as it was saved. -EBADMSG: it is damaged. */
int rank_reader_get(struct rank_reader *reader, size_t array, const struct rank_block *block, void *ret, struct rm_error *err);
#endif
