/* The options of a program's checkpoints, which its user sets in the environment of rank 0. */
#ifndef RM_RTLIB_CHECKPOINT_OPTIONS_H
#define RM_RTLIB_CHECKPOINT_OPTIONS_H

#include <stdint.h>

#include "common/error.h"

#define OPTIONS_PATH_BYTES 4096

enum options_blocks {
        OPTIONS_BLOCKS_AUTO, /* of one size at first, and then those that were measured to cost less */
        OPTIONS_BLOCKS_FIXED,
        OPTIONS_BLOCKS_ADAPTIVE, /* of sizes of their own, by what changes */
};

struct options {
        char directory[OPTIONS_PATH_BYTES]; /* absolute */
        uint32_t keep;
        uint32_t full_every; /* 1: no increments */
        int32_t zstd_level;  /* 0: none */
        enum options_blocks blocks;
        uint32_t block_bytes; /* of those of one size */
};

/* `directory` NULL: RMRT_DIR, or rmrt-checkpoints in the working directory. -EINVAL,
 * -ENAMETOOLONG. */
int options_read(const char *directory, struct options *ret, struct rm_error *err);

#endif
