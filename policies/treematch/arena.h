/* Memory of one mapping: taken piece by piece, given back down to a mark, so that a recursion needs no frees. */
#ifndef RM_TREEMATCH_ARENA_H
#define RM_TREEMATCH_ARENA_H

#include <stddef.h>
#include <stdint.h>

struct arena_block;

struct arena {
        struct arena_block *top;
        struct arena_block *spare; /* given back, and kept for the next that is needed */
        uint64_t random; /* state of arena_random(); set it to have the same numbers again */
        uint64_t work;   /* row entries that were looked at: a clock that tells the same on every machine */
};

struct arena_mark {
        struct arena_block *block;
        size_t used_bytes;
};

void arena_init(struct arena *arena);
void arena_finish(struct arena *arena);

/* Not initialised; zeroed. Ends the process when memory is out: a policy's process is there to be lost, and what it was asked is
 * answered by another one. */
void *arena_alloc(struct arena *arena, size_t count, size_t size_bytes);
void *arena_zalloc(struct arena *arena, size_t count, size_t size_bytes);

/* All that was taken after the mark is gone with the release. */
struct arena_mark arena_mark(const struct arena *arena);
void arena_release(struct arena *arena, struct arena_mark mark);

/* Reproducible: 0 .. n-1, n at least 1. */
uint32_t arena_random(struct arena *arena, uint32_t n);

#endif
