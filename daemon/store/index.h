/* The index tells where each block lies: by its hash, a number; by that, the frame of a pack. In
 * memory only, from the heads of all frames. Pure.
 *
 * A block may lie in several frames; the one that was told last counts. It goes with the last of
 * them, and its number may be another's then. */
#ifndef RM_STORE_INDEX_H
#define RM_STORE_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/store/store.h"

#define INDEX_HASH_BYTES 32U
#define INDEX_NONE UINT32_MAX

struct pack;

struct index_block {
        uint8_t hash[INDEX_HASH_BYTES];
        uint32_t frame; /* INDEX_NONE: the number is free */
        uint16_t size_bytes;
        uint8_t place; /* in the frame */
};

struct index_frame {
        struct pack *pack;    /* NULL: the number is free */
        uint64_t offset;      /* of its payload in the pack */
        uint64_t checksum;    /* of the payload */
        uint32_t payload_bytes; /* 0: it is being made */
        uint32_t raw_bytes;
        uint8_t codec;
        uint8_t n;
        uint32_t *blocks; /* their numbers */
};

struct index {
        struct index_block *blocks;
        uint32_t n_blocks;
        uint32_t free_block; /* the first free number, whose place of the hash has the next; INDEX_NONE */
        uint32_t *slots;     /* numbers, by hash; INDEX_NONE: empty */
        size_t n_slots;
        size_t used_slots;
        uint64_t seed; /* of the slots: contents come from users */
        struct index_frame *frames;
        uint32_t n_frames;
};

void index_init(struct index *ix, uint64_t seed);
void index_finish(struct index *ix);

/* INDEX_NONE: it is not here. */
uint32_t index_find(const struct index *ix, const uint8_t hash[static INDEX_HASH_BYTES]);

/* A frame without blocks, up to STORE_FRAME_BLOCKS of which follow. INDEX_NONE: there are as many
 * as can be. */
uint32_t index_frame_add(struct index *ix, struct pack *pack);
/* Adds a block to the frame; of equal blocks this one counts from now on. Returns its number;
 * INDEX_NONE: there are as many as can be. */
uint32_t index_block_add(struct index *ix, uint32_t frame, const uint8_t hash[static INDEX_HASH_BYTES], uint16_t size_bytes);

/* All frames of a pack go. */
void index_drop_pack(struct index *ix, const struct pack *pack);

/* Where the block begins in its frame, decompressed. */
uint32_t index_block_offset(const struct index *ix, uint32_t frame, uint8_t place);

#endif
