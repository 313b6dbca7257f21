/* The common definitions of the writer and the reader of a rank's file. */
#ifndef RM_RTLIB_CHECKPOINT_RANK_INTERNAL_H
#define RM_RTLIB_CHECKPOINT_RANK_INTERNAL_H

#include "rtlib/checkpoint/manifest.h"

#define RANK_FILE_MAGIC "RMRTCKPT"
#define RANK_FILE_MAGIC_BYTES 8U
#define RANK_FILE_TAIL_BYTES 8U
/* The checksum of a block as it is in the file, from its SHA-256: a flipped bit in the output of
 * zstd may give the same block. */
#define RANK_CHECK_BYTES 8U

/* The digest of the first bytes, the index and the last bytes. */
void rank_file_digest(const uint8_t *head, const uint8_t *frame, size_t frame_bytes, const uint8_t *tail,
                      uint8_t ret[static PORTABLE_DIGEST_BYTES]);

#endif
