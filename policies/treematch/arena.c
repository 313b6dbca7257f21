#include "policies/treematch/arena.h"

#include <stdlib.h>
#include <string.h>

enum { BLOCK_BYTES = 1 << 20, ALIGN_BYTES = 16 };

struct arena_block {
        struct arena_block *below;
        size_t used_bytes, size_bytes;
        _Alignas(ALIGN_BYTES) unsigned char data[];
};

void arena_init(struct arena *arena) {
        *arena = (struct arena) { .random = 1 };
}

static void free_blocks(struct arena_block *block) {
        while (block) {
                struct arena_block *below = block->below;

                free(block);
                block = below;
        }
}

void arena_finish(struct arena *arena) {
        free_blocks(arena->top);
        free_blocks(arena->spare);
}

static struct arena_block *take_spare(struct arena *arena, size_t need_bytes) {
        struct arena_block **at = &arena->spare, *block;

        while (*at && (*at)->size_bytes < need_bytes)
                at = &(*at)->below;
        block = *at;
        if (block)
                *at = block->below;
        return block;
}

static void add_block(struct arena *arena, size_t need_bytes) {
        struct arena_block *block = take_spare(arena, need_bytes);
        size_t size_bytes = need_bytes > BLOCK_BYTES ? need_bytes : BLOCK_BYTES;

        if (!block) {
                block = malloc(sizeof(*block) + size_bytes);
                if (!block)
                        abort();
                block->size_bytes = size_bytes;
        }
        block->below = arena->top;
        block->used_bytes = 0;
        arena->top = block;
}

void *arena_alloc(struct arena *arena, size_t count, size_t size_bytes) {
        size_t need_bytes = (count * size_bytes + ALIGN_BYTES - 1) / ALIGN_BYTES * ALIGN_BYTES;
        void *taken;

        if (size_bytes > 0 && count > (SIZE_MAX / 2) / size_bytes)
                abort();
        if (!arena->top || arena->top->size_bytes - arena->top->used_bytes < need_bytes)
                add_block(arena, need_bytes);
        taken = arena->top->data + arena->top->used_bytes;
        arena->top->used_bytes += need_bytes;
        return taken;
}

void *arena_zalloc(struct arena *arena, size_t count, size_t size_bytes) {
        return memset(arena_alloc(arena, count, size_bytes), 0, count * size_bytes);
}

struct arena_mark arena_mark(const struct arena *arena) {
        return (struct arena_mark) { arena->top, arena->top ? arena->top->used_bytes : 0 };
}

void arena_release(struct arena *arena, struct arena_mark mark) {
        while (arena->top != mark.block) {
                struct arena_block *block = arena->top;

                arena->top = block->below;
                block->below = arena->spare;
                arena->spare = block;
        }
        if (arena->top)
                arena->top->used_bytes = mark.used_bytes;
}

/* xorshift64* */
uint32_t arena_random(struct arena *arena, uint32_t n) {
        arena->random ^= arena->random >> 12;
        arena->random ^= arena->random << 25;
        arena->random ^= arena->random >> 27;
        return (uint32_t) (((arena->random * 0x2545f4914f6cdd1dULL >> 32) * n) >> 32);
}
