#include "daemon/store/contents.h"

#include <string.h>

#include "common/util.h"
#include "daemon/image/zero.h"

void contents_finish(struct contents *c) {
        free(c->partial);
        c->partial = NULL;
}

static int block_put(struct contents *c, uint64_t place, const void *data, size_t size_bytes, struct rm_error *err) {
        uint32_t block = BLOCKMAP_NONE;
        bool is_new = false;
        int r = 0;

        if (!image_block_is_zero(data, size_bytes)) {
                r = packs_put(c->packs, data, size_bytes, &block, &is_new, err);
                c->figures->blocks++;
                c->figures->new_blocks += is_new ? 1 : 0;
        }
        if (r == 0)
                blockmap_put(c->map, place, block);
        return r;
}

static int partial_flush(struct contents *c, struct rm_error *err) {
        if (!c->has_partial)
                return 0;
        c->has_partial = false;
        return block_put(c, c->place, c->partial, c->partial_bytes, err);
}

/* The block as it is now; what is behind its end is zero. */
static int partial_begin(struct contents *c, uint64_t place, struct rm_error *err) {
        uint32_t block;
        int r;

        if (c->has_partial && c->place == place)
                return 0;
        r = partial_flush(c, err);
        if (r < 0)
                return r;
        if (!c->partial)
                c->partial = xrealloc(NULL, IMAGE_BLOCK_BYTES);
        memset(c->partial, 0, IMAGE_BLOCK_BYTES);
        c->partial_bytes = 0;
        block = blockmap_get(c->map, place);
        if (block != BLOCKMAP_NONE) {
                c->partial_bytes = c->packs->index.blocks[block].size_bytes;
                r = packs_read(c->packs, block, c->partial, err);
        }
        c->place = place;
        c->has_partial = r == 0;
        return r;
}

static int partial_write(struct contents *c, uint64_t place, size_t at, const void *data, size_t size_bytes, struct rm_error *err) {
        int r = partial_begin(c, place, err);

        if (r < 0)
                return r;
        memcpy(c->partial + at, data, size_bytes);
        if (c->partial_bytes < at + size_bytes)
                c->partial_bytes = at + size_bytes;
        return 0;
}

int contents_write(struct contents *c, uint64_t offset, const void *data, size_t size_bytes, struct rm_error *err) {
        const uint8_t *from = data;
        int r = 0;

        while (r == 0 && size_bytes > 0) {
                uint64_t place = offset / IMAGE_BLOCK_BYTES;
                size_t at = (size_t) (offset % IMAGE_BLOCK_BYTES);
                size_t n = IMAGE_BLOCK_BYTES - at < size_bytes ? IMAGE_BLOCK_BYTES - at : size_bytes;

                if (n == IMAGE_BLOCK_BYTES) {
                        if (c->place == place)
                                c->has_partial = false;
                        r = block_put(c, place, from, n, err);
                } else {
                        r = partial_write(c, place, at, from, n, err);
                }
                from += n;
                offset += n;
                size_bytes -= n;
        }
        return r;
}

/* Writes zeros within one block. */
static int zero_in_block(struct contents *c, uint64_t offset, size_t size_bytes, struct rm_error *err) {
        static const uint8_t zeros[IMAGE_BLOCK_BYTES];

        return size_bytes > 0 ? contents_write(c, offset, zeros, size_bytes, err) : 0;
}

int contents_zero(struct contents *c, uint64_t offset, uint64_t size_bytes, struct rm_error *err) {
        uint64_t end = offset + size_bytes;
        uint64_t first = (offset + IMAGE_BLOCK_BYTES - 1) / IMAGE_BLOCK_BYTES, last = end / IMAGE_BLOCK_BYTES;
        int r;

        if (first > last)
                return zero_in_block(c, offset, (size_t) size_bytes, err);
        r = zero_in_block(c, offset, (size_t) (first * IMAGE_BLOCK_BYTES - offset), err);
        if (c->place >= first && c->place < last)
                c->has_partial = false;
        blockmap_cut(c->map, first, last);
        return r == 0 ? zero_in_block(c, last * IMAGE_BLOCK_BYTES, (size_t) (end % IMAGE_BLOCK_BYTES), err) : r;
}

int contents_end(struct contents *c, uint64_t size_bytes, struct rm_error *err) {
        uint64_t place = size_bytes / IMAGE_BLOCK_BYTES;
        size_t left_bytes = (size_t) (size_bytes % IMAGE_BLOCK_BYTES);
        int r = partial_flush(c, err);

        blockmap_cut(c->map, place + (left_bytes > 0 ? 1 : 0), UINT64_MAX);
        if (r < 0 || left_bytes == 0 || blockmap_get(c->map, place) == BLOCKMAP_NONE)
                return r;
        r = partial_begin(c, place, err);
        if (r < 0)
                return r;
        if (c->partial_bytes <= left_bytes) {
                c->has_partial = false;
                return 0;
        }
        c->partial_bytes = left_bytes;
        return partial_flush(c, err);
}
