#include "placement/topology/pool.h"

#include <stdlib.h>
#include <string.h>

enum { BLOCK_BYTES = 1 << 20, ALIGN_BYTES = 16 };

struct pool_block {
        struct pool_block *below;
        size_t used_bytes, size_bytes;
        _Alignas(ALIGN_BYTES) unsigned char data[];
};

void pool_init(struct pool *pool) {
        *pool = (struct pool) { .random = 1 };
}

static void free_blocks(struct pool_block *block) {
        while (block) {
                struct pool_block *below = block->below;

                free(block);
                block = below;
        }
}

void pool_finish(struct pool *pool) {
        free_blocks(pool->top);
        free_blocks(pool->spare);
}

static struct pool_block *take_spare(struct pool *pool, size_t need_bytes) {
        struct pool_block **at = &pool->spare, *block;

        while (*at && (*at)->size_bytes < need_bytes)
                at = &(*at)->below;
        block = *at;
        if (block)
                *at = block->below;
        return block;
}

static void add_block(struct pool *pool, size_t need_bytes) {
        struct pool_block *block = take_spare(pool, need_bytes);
        size_t size_bytes = need_bytes > BLOCK_BYTES ? need_bytes : BLOCK_BYTES;

        if (!block) {
                block = malloc(sizeof(*block) + size_bytes);
                if (!block)
                        abort();
                block->size_bytes = size_bytes;
        }
        block->below = pool->top;
        block->used_bytes = 0;
        pool->top = block;
}

void *pool_alloc(struct pool *pool, size_t count, size_t size_bytes) {
        size_t need_bytes = (count * size_bytes + ALIGN_BYTES - 1) / ALIGN_BYTES * ALIGN_BYTES;
        void *taken;

        if (size_bytes > 0 && count > (SIZE_MAX / 2) / size_bytes)
                abort();
        if (!pool->top || pool->top->size_bytes - pool->top->used_bytes < need_bytes)
                add_block(pool, need_bytes);
        taken = pool->top->data + pool->top->used_bytes;
        pool->top->used_bytes += need_bytes;
        return taken;
}

void *pool_zalloc(struct pool *pool, size_t count, size_t size_bytes) {
        return memset(pool_alloc(pool, count, size_bytes), 0, count * size_bytes);
}

struct pool_mark pool_mark(const struct pool *pool) {
        return (struct pool_mark) { pool->top, pool->top ? pool->top->used_bytes : 0 };
}

void pool_release(struct pool *pool, struct pool_mark mark) {
        while (pool->top != mark.block) {
                struct pool_block *block = pool->top;

                pool->top = block->below;
                block->below = pool->spare;
                pool->spare = block;
        }
        if (pool->top)
                pool->top->used_bytes = mark.used_bytes;
}

/* xorshift64* */
uint32_t pool_random(struct pool *pool, uint32_t n) {
        pool->random ^= pool->random >> 12;
        pool->random ^= pool->random << 25;
        pool->random ^= pool->random >> 27;
        return (uint32_t) (((pool->random * 0x2545f4914f6cdd1dULL >> 32) * n) >> 32);
}
