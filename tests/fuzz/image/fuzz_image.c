/* The decoder of image streams against arbitrary bytes: as they are, and again with every checksum
 * put right, since without that nothing would get behind the first one. */
#include <stdlib.h>
#include <string.h>

#include "common/util.h"
#include "tests/unit/image/memory.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes);

/* Half of all blocks are here, so that both outcomes are tried. */
static int some_fetch(void *ctx, uint64_t number, size_t n, void *ret_blocks) {
        (void) ctx;
        if (number % 2)
                return -ENOENT;
        memset(ret_blocks, 0x5a, n * IMAGE_BLOCK_BYTES);
        return 0;
}

static void try_reading(struct memory *m) {
        static const struct image_delta delta = { .fetch = some_fetch };
        struct image_reader *reader = NULL;
        struct rm_error err = { 0 };

        m->at = 0;
        if (image_reader_create(&m->source, memory_nowhere(), &delta, &reader, &err) == 0)
                (void) image_reader_run(reader, &err);
        image_reader_destroy(reader);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes) {
        struct memory m;

        memory_init_of(&m, data, size_bytes);
        try_reading(&m);
        memory_reseal(&m);
        try_reading(&m);
        memory_finish(&m);
        return 0;
}
