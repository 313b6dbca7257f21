#include "daemon/store/index.h"

#include <assert.h>
#include <string.h>

#include <xxhash.h>

#include "common/util.h"

#define SLOTS_MIN 1024U
/* The numbers of blocks and frames are 32 bits wide. */
#define BLOCKS_MAX (UINT32_MAX - 1)

void index_init(struct index *ix, uint64_t seed) {
        *ix = (struct index) { .seed = seed, .free_block = INDEX_NONE };
}

void index_finish(struct index *ix) {
        for (uint32_t i = 0; i < ix->n_frames; i++)
                free(ix->frames[i].blocks);
        free(ix->frames);
        free(ix->blocks);
        free(ix->slots);
        *ix = (struct index) { 0 };
}

/* The slot that has this hash, or the empty one where it belongs. */
static size_t slot_find(const struct index *ix, const uint8_t *hash) {
        size_t at = (size_t) XXH3_64bits_withSeed(hash, INDEX_HASH_BYTES, ix->seed) & (ix->n_slots - 1);

        while (ix->slots[at] != INDEX_NONE && memcmp(ix->blocks[ix->slots[at]].hash, hash, INDEX_HASH_BYTES) != 0)
                at = (at + 1) & (ix->n_slots - 1);
        return at;
}

/* uthash would take three times the memory of all the rest. */
static void slots_make(struct index *ix, size_t n) {
        free(ix->slots);
        ix->slots = xrealloc(NULL, n * sizeof(*ix->slots));
        memset(ix->slots, 0xff, n * sizeof(*ix->slots));
        ix->n_slots = n;
        ix->used_slots = 0;
        for (uint32_t i = 0; i < ix->n_blocks; i++)
                if (ix->blocks[i].frame != INDEX_NONE) {
                        ix->slots[slot_find(ix, ix->blocks[i].hash)] = i;
                        ix->used_slots++;
                }
}

uint32_t index_find(const struct index *ix, const uint8_t hash[static INDEX_HASH_BYTES]) {
        return ix->n_slots > 0 ? ix->slots[slot_find(ix, hash)] : INDEX_NONE;
}

uint32_t index_frame_add(struct index *ix, struct pack *pack) {
        uint32_t number = ix->n_frames;

        if (ix->n_frames == BLOCKS_MAX)
                return INDEX_NONE;
        if ((number & (number - 1)) == 0)
                ix->frames = xrealloc(ix->frames, (number > 0 ? 2 * (size_t) number : 1) * sizeof(*ix->frames));
        ix->frames[number] = (struct index_frame) { .pack = pack };
        ix->n_frames++;
        return number;
}

static uint32_t block_make(struct index *ix, const uint8_t *hash, uint16_t size_bytes) {
        uint32_t number = ix->free_block;

        if (number != INDEX_NONE) {
                memcpy(&ix->free_block, ix->blocks[number].hash, sizeof(ix->free_block));
        } else {
                number = ix->n_blocks;
                if (number == BLOCKS_MAX)
                        return INDEX_NONE;
                if ((number & (number - 1)) == 0)
                        ix->blocks = xrealloc(ix->blocks, (number > 0 ? 2 * (size_t) number : 1) * sizeof(*ix->blocks));
                ix->n_blocks++;
        }
        ix->blocks[number] = (struct index_block) { .frame = INDEX_NONE, .size_bytes = size_bytes };
        memcpy(ix->blocks[number].hash, hash, INDEX_HASH_BYTES);
        return number;
}

uint32_t index_block_add(struct index *ix, uint32_t frame, const uint8_t hash[static INDEX_HASH_BYTES], uint16_t size_bytes) {
        struct index_frame *f = &ix->frames[frame];
        uint32_t number = index_find(ix, hash);

        assert(frame < ix->n_frames && f->n < UINT8_MAX);
        if (number == INDEX_NONE) {
                if (ix->used_slots >= ix->n_slots / 2)
                        slots_make(ix, ix->n_slots > 0 ? 2 * ix->n_slots : SLOTS_MIN);
                number = block_make(ix, hash, size_bytes);
                if (number == INDEX_NONE)
                        return INDEX_NONE;
                ix->slots[slot_find(ix, hash)] = number;
                ix->used_slots++;
        }
        if ((f->n & (f->n - 1)) == 0)
                f->blocks = xrealloc(f->blocks, (f->n > 0 ? 2 * (size_t) f->n : 1) * sizeof(*f->blocks));
        ix->blocks[number].frame = frame;
        ix->blocks[number].place = f->n;
        f->blocks[f->n++] = number;
        f->raw_bytes += size_bytes;
        return number;
}

/* Blocks that lost the frame that counted, but lie in another one as well. */
static void blocks_find_again(struct index *ix) {
        for (uint32_t i = ix->n_frames; i-- > 0;)
                for (uint8_t k = 0; k < ix->frames[i].n; k++) {
                        struct index_block *b = &ix->blocks[ix->frames[i].blocks[k]];

                        if (b->frame != INDEX_NONE)
                                continue;
                        b->frame = i;
                        b->place = k;
                }
}

static void blocks_free(struct index *ix) {
        ix->free_block = INDEX_NONE;
        for (uint32_t i = ix->n_blocks; i-- > 0;)
                if (ix->blocks[i].frame == INDEX_NONE) {
                        memcpy(ix->blocks[i].hash, &ix->free_block, sizeof(ix->free_block));
                        ix->free_block = i;
                }
}

/* Frames stay in the order of the packs, so that those of a later one count. */
static void frames_close_up(struct index *ix) {
        uint32_t *moved = xcalloc((size_t) ix->n_frames + 1, sizeof(*moved));
        uint32_t n = 0;

        for (uint32_t i = 0; i < ix->n_frames; i++) {
                moved[i] = n;
                if (ix->frames[i].pack)
                        ix->frames[n++] = ix->frames[i];
        }
        for (uint32_t i = 0; i < ix->n_blocks; i++)
                if (ix->blocks[i].frame != INDEX_NONE)
                        ix->blocks[i].frame = moved[ix->blocks[i].frame];
        free(moved);
        /* The list has the size that index_frame_add() would have left. */
        ix->n_frames = n;
        while ((n & (n - 1)) != 0)
                n++;
        ix->frames = xrealloc(ix->frames, (n > 0 ? (size_t) n : 1) * sizeof(*ix->frames));
}

void index_drop_pack(struct index *ix, const struct pack *pack) {
        for (uint32_t i = 0; i < ix->n_frames; i++) {
                struct index_frame *f = &ix->frames[i];

                if (f->pack != pack)
                        continue;
                for (uint8_t k = 0; k < f->n; k++)
                        if (ix->blocks[f->blocks[k]].frame == i)
                                ix->blocks[f->blocks[k]].frame = INDEX_NONE;
                free(f->blocks);
                *f = (struct index_frame) { 0 };
        }
        blocks_find_again(ix);
        frames_close_up(ix);
        blocks_free(ix);
        if (ix->n_slots > 0)
                slots_make(ix, ix->n_slots);
}

uint32_t index_block_offset(const struct index *ix, uint32_t frame, uint8_t place) {
        const struct index_frame *f = &ix->frames[frame];
        uint32_t sum = 0;

        for (uint8_t k = 0; k < place; k++)
                sum += ix->blocks[f->blocks[k]].size_bytes;
        return sum;
}
