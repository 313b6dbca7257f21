/* Adaptive incremental checkpoints (Agarwal et al. 2004, section 5.1): blocks that change are split, blocks that do not are merged, in a table of a fixed size. Pure.
 *
 * Here to be measured (blocks_bench), and in no program. */
#ifndef RM_BENCH_RTLIB_ADAPTIVE_H
#define RM_BENCH_RTLIB_ADAPTIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ADAPTIVE_HASH_BYTES 32U
/* The text's header of a section: a smaller block would cost more than it saves. */
#define ADAPTIVE_BLOCK_MIN_BYTES 32U

/* A hash of `bytes` of memory. */
typedef void (*adaptive_hash)(const void *data, size_t bytes, uint8_t ret[static ADAPTIVE_HASH_BYTES]);

/* What the table has of a block; blocks follow each other, from the first byte on. */
struct adaptive_block {
        uint64_t bytes;
        uint32_t age; /* checkpoints since it changed */
        bool dirty; /* at this checkpoint */
        bool stale; /* its boundaries are new, and its hash is not */
        uint8_t hash[ADAPTIVE_HASH_BYTES];
};

struct adaptive {
        struct adaptive_block *blocks;
        size_t n, n_max;
};

/* `n_max` blocks of equal sizes, none of which is known. */
void adaptive_init(struct adaptive *a, uint64_t bytes, size_t n_max);
void adaptive_finish(struct adaptive *a);
/* One checkpoint: what has changed since the last one, in sections of neighbouring blocks, and how many there are. */
uint64_t adaptive_checkpoint(struct adaptive *a, const uint8_t *memory, adaptive_hash hash, size_t *ret_sections);

#endif
