/* Blocks that the receiver has already. */
#ifndef RM_IMAGE_DELTA_H
#define RM_IMAGE_DELTA_H

#include "daemon/image/format.h"

/* Knows what the other side already has: blocks that went ahead in this stream (known.h). NULL
 * functions: knows nothing. The stream checks a checksum over what `fetch` gave, so a delta that
 * remembers wrongly is found out. */
struct image_delta {
        void *ctx;
        /* Writer: does the receiver have exactly this block (whole, IMAGE_BLOCK_BYTES), and under
         * which number? */
        bool (*peer_has)(void *ctx, const void *block, uint64_t *ret_number);
        /* Reader: the contents of `n` blocks from `number` on into `ret_blocks`. Negative errno
         * when they are not known. */
        int (*fetch)(void *ctx, uint64_t number, size_t n, void *ret_blocks);
        /* Reader; NULL ok: these `n` blocks, fetched before, were given to the target as data of
         * `handle` at `offset`. */
        void (*used)(void *ctx, uint64_t number, size_t n, void *handle, uint64_t offset);
};

#endif
