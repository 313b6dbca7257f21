/* The decoder of manifests against arbitrary bytes: all that it says of a checkpoint must be
 * usable. */
#include <stdlib.h>
#include <string.h>

#include "common/util.h"
#include "daemon/store/manifest.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes);

/* Half of all blocks are here, so that both outcomes are tried. */
static uint32_t some_find(void *ctx, const uint8_t *hash) {
        (void) ctx;
        return hash[0] % 2 ? hash[1] : INDEX_NONE;
}

/* Walks over the checkpoint as loading does. */
static void walk(struct checkpoint *c) {
        for (size_t i = 0; i < c->n_objects; i++) {
                struct blockmap_walk blocks;
                uint64_t place, start, end = 0, last = 0;
                uint32_t block;

                if (image_object_check(&c->objects[i]->o, NULL) < 0)
                        abort();
                if (!c->objects[i]->map)
                        continue;
                blockmap_begin(c->objects[i]->map, &blocks);
                while (blockmap_step(&blocks, &place, &block)) {
                        if (place < last || block > UINT8_MAX || place * IMAGE_BLOCK_BYTES >= IMAGE_OBJECT_MAX_BYTES)
                                abort();
                        last = place + 1;
                }
                while (c->objects[i]->present && pageset_next(c->objects[i]->present, end, UINT64_MAX, &start, &end))
                        if (start >= end)
                                abort();
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes) {
        struct checkpoint *c = NULL;
        struct rm_error err = { 0 };
        FILE *f;

        if (size_bytes == 0)
                return 0;
        f = fmemopen((void *) data, size_bytes, "r");
        if (!f)
                abort();
        if (manifest_read_head(f, size_bytes, &c, &err) == 0)
                checkpoint_destroy(take_ptr(c));
        if (fseek(f, 0, SEEK_SET) != 0)
                abort();
        if (manifest_read(f, size_bytes, some_find, NULL, &c, &err) == 0)
                walk(c);
        checkpoint_destroy(c);
        (void) fclose(f);
        return 0;
}
