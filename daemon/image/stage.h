/* The exchangeable stages: delta and codec. */
#ifndef RM_IMAGE_STAGE_H
#define RM_IMAGE_STAGE_H

#include "daemon/image/format.h"

/* Knows what the other side already has: blocks that went ahead in this stream (known.h). NULL functions: knows nothing. The stream
 * checks a checksum over what `fetch` gave, so a delta that remembers wrongly is found out. */
struct image_delta {
        void *ctx;
        /* Writer: does the receiver have exactly this block (whole, IMAGE_BLOCK_BYTES), and under which number? */
        bool (*peer_has)(void *ctx, const void *block, uint64_t *ret_number);
        /* Reader: the contents of `n` blocks from `number` on into `ret_blocks`. Negative errno when they are not known. */
        int (*fetch)(void *ctx, uint64_t number, size_t n, void *ret_blocks);
};

/* Makes payloads smaller. `id` goes into the stream; 0 is no codec (NULL). */
struct image_codec {
        uint32_t id;
        const char *name;
        void *ctx;
        /* 0, or -ENOSPC when the output would be longer than `room_bytes`: the chunk is then stored as it is. */
        int (*encode)(void *ctx, const void *in, size_t size_bytes, void *out, size_t room_bytes, size_t *ret_size_bytes);
        /* Exactly `out_bytes` into `out`, or negative errno. `in` comes from outside. */
        int (*decode)(void *ctx, const void *in, size_t size_bytes, void *out, size_t out_bytes);
};

#endif
