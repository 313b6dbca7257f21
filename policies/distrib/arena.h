/* Memory that is given back all at once. A failure is kept: callers allocate all they need and ask
 * once. */
#ifndef RM_POLICIES_DISTRIB_ARENA_H
#define RM_POLICIES_DISTRIB_ARENA_H

#include <stdbool.h>
#include <stddef.h>

struct arena_block;

struct arena {
        struct arena_block *blocks;
        bool failed; /* one allocation at least has given NULL */
};

/* `n` elements of `size_bytes`, zeroed, aligned for anything; lives until arena_finish(). NULL when
 * there is no memory. */
void *arena_alloc(struct arena *arena, size_t n, size_t size_bytes);
void arena_finish(struct arena *arena);

#endif
