/* Which block lies where in an object: numbers of the index by place (offset / IMAGE_BLOCK_BYTES).
 * Sparse. */
#ifndef RM_STORE_BLOCKMAP_H
#define RM_STORE_BLOCKMAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BLOCKMAP_NONE UINT32_MAX /* nothing there: zeros */

struct blockmap;

struct blockmap *blockmap_create(void); /* never NULL */
struct blockmap *blockmap_copy(const struct blockmap *m);
void blockmap_destroy(struct blockmap *m); /* NULL ok */

/* BLOCKMAP_NONE ok. */
void blockmap_put(struct blockmap *m, uint64_t place, uint32_t number);
uint32_t blockmap_get(struct blockmap *m, uint64_t place);
/* Nothing is in [from, to) any more. */
void blockmap_cut(struct blockmap *m, uint64_t from, uint64_t to);

/* A walk over the blocks in the order of their places. The map must not be changed meanwhile. */
struct blockmap_walk {
        const void *extent;
        size_t at;
};
void blockmap_begin(struct blockmap *m, struct blockmap_walk *ret);
/* False: no more. */
bool blockmap_step(struct blockmap_walk *walk, uint64_t *ret_place, uint32_t *ret_number);

#endif
