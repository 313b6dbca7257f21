/* The exchangeable stages: delta and codec. */
#ifndef RM_IMAGE_STAGE_H
#define RM_IMAGE_STAGE_H

#include "daemon/image/format.h"

/* Knows what the other side already has (an earlier pass of a live move, an earlier checkpoint). NULL functions: knows
 * nothing. The stream checks a checksum over what `fetch` gave, so a delta that remembers wrongly is found out. */
struct image_delta {
        void *ctx;
        /* Writer: does the receiver have exactly this block (whole, IMAGE_BLOCK_BYTES) at this offset of this object? */
        bool (*peer_has)(void *ctx, const struct image_object *object, uint64_t offset, const void *block);
        /* Reader: the block's contents into `ret_block`. Negative errno when it is not known. */
        int (*fetch)(void *ctx, const struct image_object *object, uint64_t offset, void *ret_block);
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
