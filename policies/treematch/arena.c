#include "policies/treematch/arena.h"

#include <stdlib.h>
#include <string.h>

enum { BLOCK_BYTES = 1 << 20, ALIGN_BYTES = 16 };

struct arena_block {
        struct arena_block *below, *spare; /* `spare`: one kept back for the next that is needed */
        size_t used_bytes, size_bytes;
        _Alignas(ALIGN_BYTES) unsigned char data[];
};

void arena_init(struct arena *arena) {
        *arena = (struct arena) { .random = 1 };
}

static void free_block(struct arena_block *block) {
        free(block->spare);
        free(block);
}

void arena_finish(struct arena *arena) {
        while (arena->top) {
                struct arena_block *below = arena->top->below;

                free_block(arena->top);
                arena->top = below;
        }
}

static void add_block(struct arena *arena, size_t need_bytes) {
        struct arena_block *spare = arena->top ? arena->top->spare : NULL;
        size_t size_bytes = need_bytes > BLOCK_BYTES ? need_bytes : BLOCK_BYTES;

        if (spare && spare->size_bytes >= need_bytes)
                arena->top->spare = NULL;
        else {
                spare = malloc(sizeof(*spare) + size_bytes);
                if (!spare)
                        abort();
                spare->size_bytes = size_bytes;
        }
        spare->below = arena->top;
        spare->spare = NULL;
        spare->used_bytes = 0;
        arena->top = spare;
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
                if (arena->top && (!arena->top->spare || arena->top->spare->size_bytes < block->size_bytes)) {
                        free(arena->top->spare);
                        arena->top->spare = block;
                        free(block->spare);
                        block->spare = NULL;
                } else
                        free_block(block);
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
