/* The manifest of a portable checkpoint: a frame (common/frame.h, PORTABLE_MAGIC) with a
 * Portable__Manifest, and the SHA-256 of that frame, which is its digest. It is written when all
 * ranks have written their files: without it there is no checkpoint. Decoding believes nothing. */
#ifndef RM_RTLIB_CHECKPOINT_MANIFEST_H
#define RM_RTLIB_CHECKPOINT_MANIFEST_H

#include <stdbool.h>

#include "common/error.h"
#include "proto/portable.pb-c.h"
#include "rtlib/checkpoint/types.h"

#define PORTABLE_MAGIC 0x524d4f31U /* "RMO1", of frames in these files */
#define PORTABLE_VERSION 1U
#define PORTABLE_VERSION_SIZES 2U /* each block has a size of its own */
#define PORTABLE_DIGEST_BYTES 32U
/* If the user says nothing; bench/rtlib has what others give. */
#define PORTABLE_BLOCK_BYTES (16U << 10)
#define PORTABLE_BLOCK_MIN_BYTES 512U
#define PORTABLE_BLOCK_MAX_BYTES (16U << 20)
#define PORTABLE_NAME_MAX_BYTES 200U
#define PORTABLE_ARRAYS_MAX 4096U
#define PORTABLE_RANKS_MAX (1U << 20)
/* The size of a manifest, and of an index. */
#define PORTABLE_RECORD_MAX_BYTES (1U << 30)
/* The size of an array on one rank, and on all. */
#define PORTABLE_PIECE_MAX_BYTES (UINT64_C(1) << 56)

/* SHA-256. */
void portable_digest(const void *data, size_t size_bytes, uint8_t ret[static PORTABLE_DIGEST_BYTES]);

/* Printable and not too long? */
bool portable_name_valid(const char *name);

/* Frame and digest, malloc'ed. `ret_digest` NULL ok. -EFBIG. */
int manifest_pack(const Portable__Manifest *m, uint8_t **ret, size_t *ret_size, uint8_t *ret_digest, struct rm_error *err);
/* The other way, checked in all that it says. -EBADMSG. The caller frees with
 * portable__manifest__free_unpacked(). `ret_digest` NULL ok. */
int manifest_unpack(const uint8_t *data, size_t size_bytes, Portable__Manifest **ret, uint8_t *ret_digest, struct rm_error *err);

/* The type of an array in a manifest that was checked. */
struct rmrt_type manifest_type(const Portable__Array *array);
/* The bytes of the array in the file of `rank`: of a replicated array only that of rank 0 has
 * any. */
uint64_t manifest_piece_bytes(const Portable__Array *array, size_t rank);
/* Do blocks have sizes of their own? */
bool manifest_has_sizes(const Portable__Manifest *m);
uint64_t manifest_total_count(const Portable__Array *array);

#endif
