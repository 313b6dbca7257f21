/* Packs: files of frames, and the index of what is in them.
 *
 * A frame is a head, little endian,
 *
 *   magic       4 bytes    PACK_MAGIC
 *   n           1 byte     its blocks
 *   codec       1 byte     of the payload (daemon/image/codec.h)
 *   zero        2 bytes
 *   payload     4 bytes    size
 *   raw         4 bytes    size before the codec
 *   checksum    8 bytes    XXH3 over the payload
 *   checksum    8 bytes    XXH3, seeded with the frame's offset in the file, over the rest of the
 *               head, without this
 *   n times     34 bytes   SHA-256 of a block, and its size in 2 bytes, at most IMAGE_BLOCK_BYTES
 *
 * and its payload: the blocks, one after another. The checksums find what a disk has damaged before
 * it is decoded; the hashes, which a manifest authenticates, are what a block is believed by. */
#ifndef RM_STORE_PACK_H
#define RM_STORE_PACK_H

#include <openssl/evp.h>

#include "daemon/store/index.h"

#define PACK_MAGIC 0x524d4b31U /* "RMK1" */
#define PACK_HEAD_BYTES 32U
#define PACK_ENTRY_BYTES (INDEX_HASH_BYTES + 2U)
#define PACK_HEAD_MAX_BYTES (PACK_HEAD_BYTES + STORE_FRAME_BLOCKS * PACK_ENTRY_BYTES)
#define PACK_FRAME_MAX_BYTES (STORE_FRAME_BLOCKS * IMAGE_BLOCK_BYTES)
/* Contents of so many frames are kept decompressed: several objects and packs may be read in
 * turns. */
#define PACK_CACHE_FRAMES 32U

struct pack {
        uint64_t number;
        uint64_t size_bytes; /* of what is readable */
        uint64_t file_bytes; /* more than that: damaged behind it */
        bool is_damaged;     /* nothing new relies on it: what it should have is stored again when it comes */
        int fd;
        char name[32];
};

struct packs {
        struct index index;
        struct pack **list; /* ascending */
        size_t n;
        EVP_MD *sha;
        EVP_MD_CTX *hasher;
        struct image_coder *coder;
        struct pack_cached {
                uint32_t frame; /* INDEX_NONE: empty */
                uint64_t used;
                uint8_t *raw;
        } cache[PACK_CACHE_FRAMES];
        uint64_t cache_clock;
        struct pack_build *build; /* NULL: no pack is made */
};

/* 0; -ENOTSUP: OpenSSL has no SHA-256; or another negative errno, after which packs_finish() is
 * fine. */
int packs_init(struct packs *p, struct rm_error *err);
void packs_finish(struct packs *p);

void packs_hash(struct packs *p, const void *data, size_t size_bytes, uint8_t ret[static INDEX_HASH_BYTES]);
struct pack *packs_find(const struct packs *p, uint64_t number); /* or NULL */

/* Reads the heads of the frames in the open file into the index, unless one is damaged. Takes `fd`.
 * Numbers ascend. -EFBIG: too many blocks; or another negative errno, also when the file cannot be
 * read. A damaged pack is no error: see is_damaged. */
int packs_add(struct packs *p, uint64_t number, int fd, struct rm_error *err);
/* Forgets it, and what only it has. */
void packs_drop(struct packs *p, struct pack *pack);

/* Contents of a block into `ret`, of its size. Checked against its hash. -EBADMSG: damaged; names
 * the pack. */
int packs_read(struct packs *p, uint32_t block, uint8_t *ret, struct rm_error *err);

/* Is all of a frame as it was written? -EBADMSG. */
int packs_read_frame(struct packs *p, uint32_t frame, struct rm_error *err);

/* Makes the pack `number` in the open, empty file; takes `fd`. `level` as of store_save_begin(). */
void packs_build_begin(struct packs *p, uint64_t number, int fd, int level);
/* The number of a block with these contents: of one that is here, or of a new one in the pack that
 * is made. -EFBIG: too many blocks; -EDQUOT, -ENOSPC: see packs_limit(); or another negative
 * errno. */
int packs_put(struct packs *p, const void *data, size_t size_bytes, uint32_t *ret_block, bool *ret_is_new, struct rm_error *err);
/* Limits the size of the pack that is made: more is -EDQUOT, and what would take of the reserve of
 * the disk is -ENOSPC. 0: no limit, as it begins, and no reserve. */
void packs_limit(struct packs *p, uint64_t bytes);
/* A block that is here also goes into the pack that is made, and counts there from then on. Errors
 * as of packs_read() and packs_put(). */
int packs_take_over(struct packs *p, uint32_t block, struct rm_error *err);
/* Writes the rest of the pack, and forces it to the disk. Errors as of packs_put(), after which
 * packs_build_abort() is to be called. */
int packs_build_end(struct packs *p, struct rm_error *err);
/* Forgets it. The file is the caller's. */
void packs_build_abort(struct packs *p);
/* The pack that is being made; NULL: none is. */
struct pack *packs_built(const struct packs *p);

#endif
