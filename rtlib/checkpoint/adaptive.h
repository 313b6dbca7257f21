/* Adaptive incremental checkpoints (Agarwal et al. 2004, section 5.1): blocks that change are
 * split, blocks that do not are merged, in a table of a fixed size. Pure.
 *
 * Unlike in the text, merged blocks have a largest size: where what changes moves on from place to
 * place, it would find all that it had left alone so far in one block, and all of that would be
 * written. */
#ifndef RM_RTLIB_CHECKPOINT_ADAPTIVE_H
#define RM_RTLIB_CHECKPOINT_ADAPTIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ADAPTIVE_HASH_BYTES 32U

/* A hash of `bytes` of memory. */
typedef void (*adaptive_hash)(const void *data, size_t bytes, uint8_t ret[static ADAPTIVE_HASH_BYTES]);

/* The table's entry of a block; blocks follow each other, from the first byte on. */
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
        uint64_t least_bytes; /* what is smaller than twice that is not split; the header of a block costs more than that saves */
        uint64_t most_bytes; /* no block is larger */
};

/* `n_max` blocks of equal sizes, or more if these would be too large, none of which is known. */
void adaptive_init(struct adaptive *a, uint64_t bytes, size_t n_max, uint64_t least_bytes, uint64_t most_bytes);
void adaptive_finish(struct adaptive *a);
/* The same table once more. */
void adaptive_copy(const struct adaptive *a, struct adaptive *ret);

/* A checkpoint is these two: which blocks have changed since the last one, and, when those were
 * written, blocks for the next one. */
void adaptive_scan(struct adaptive *a, const uint8_t *memory, adaptive_hash hash);
void adaptive_adapt(struct adaptive *a, const uint8_t *memory, adaptive_hash hash);

/* The bytes that have changed, in sections of neighbouring blocks, and how many of both there
 * are. */
uint64_t adaptive_dirty(const struct adaptive *a, size_t *ret_sections, size_t *ret_blocks);

#endif
