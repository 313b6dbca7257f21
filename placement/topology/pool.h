/* Memory of one mapping: taken piece by piece, given back down to a mark, so that a recursion needs
 * no frees. */
#ifndef RM_PLACEMENT_POOL_H
#define RM_PLACEMENT_POOL_H

#include <stddef.h>
#include <stdint.h>

struct pool_block;

struct pool {
        struct pool_block *top;
        struct pool_block *spare; /* given back, and kept for the next that is needed */
        uint64_t random; /* state of pool_random(); set it to have the same numbers again */
        uint64_t work;   /* row entries that were looked at: a clock that tells the same on every machine */
};

struct pool_mark {
        struct pool_block *block;
        size_t used_bytes;
};

void pool_init(struct pool *pool);
void pool_finish(struct pool *pool);

/* Memory of the pool, which is not initialised, or zeroed. Ends the process when memory is out: a
 * policy's process may be lost, and another policy answers in its place. */
void *pool_alloc(struct pool *pool, size_t count, size_t size_bytes);
void *pool_zalloc(struct pool *pool, size_t count, size_t size_bytes);

/* The release frees all memory that was taken after the mark. */
struct pool_mark pool_mark(const struct pool *pool);
void pool_release(struct pool *pool, struct pool_mark mark);

/* Reproducible: 0 .. n-1, n at least 1. */
uint32_t pool_random(struct pool *pool, uint32_t n);

#endif
