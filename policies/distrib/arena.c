#include "policies/distrib/arena.h"

#include <stdint.h>
#include <stdlib.h>

struct arena_block {
        struct arena_block *next;
        max_align_t data[];
};

void *arena_alloc(struct arena *arena, size_t n, size_t size_bytes) {
        struct arena_block *block = NULL;

        if (n < (SIZE_MAX / 2) / (size_bytes + 1))
                block = calloc(1, sizeof(*block) + (n + 1) * size_bytes);
        if (!block) {
                arena->failed = true;
                return NULL;
        }
        block->next = arena->blocks;
        arena->blocks = block;
        return block->data;
}

void arena_finish(struct arena *arena) {
        while (arena->blocks) {
                struct arena_block *next = arena->blocks->next;

                free(arena->blocks);
                arena->blocks = next;
        }
        arena->failed = false;
}
