/* The decoder of image streams against arbitrary bytes: as they are, and again with every checksum put right, since without that
 * nothing would get behind the first one. */
#include <stdlib.h>
#include <string.h>

#include "common/util.h"
#include "daemon/image/chunk.h"
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

static int fill_decode(void *ctx, const void *in, size_t size_bytes, void *out, size_t out_bytes) {
        (void) ctx;
        if (size_bytes == 0)
                return -EBADMSG;
        memset(out, ((const uint8_t *) in)[size_bytes - 1], out_bytes);
        return 0;
}

static void try_reading(struct memory *m, const struct image_codec *codec) {
        static const struct image_delta delta = { .fetch = some_fetch };
        struct image_reader *reader = NULL;
        struct rm_error err = { 0 };

        m->at = 0;
        if (image_reader_create(&m->source, memory_nowhere(), &delta, codec, &reader, &err) == 0)
                (void) image_reader_run(reader, &err);
        image_reader_destroy(reader);
}

/* Every chunk that can be told from its header gets its right checksum. */
static void reseal(struct memory *m) {
        size_t at = 0;

        for (uint64_t number = 0; m->size_bytes - at >= FRAME_HEADER_BYTES; number++) {
                uint32_t header_bytes = 0;
                Rm__ImageChunk *chunk;
                size_t n;

                if (frame_header_read(m->data + at, FRAME_MAGIC_IMAGE, IMAGE_HEADER_MAX_BYTES, &header_bytes) < 0 ||
                    header_bytes > m->size_bytes - at - FRAME_HEADER_BYTES)
                        return;
                chunk = rm__image_chunk__unpack(NULL, header_bytes, m->data + at + FRAME_HEADER_BYTES);
                if (!chunk)
                        return;
                n = FRAME_HEADER_BYTES + header_bytes + (size_t) chunk->payload_bytes;
                rm__image_chunk__free_unpacked(chunk, NULL);
                if (n + IMAGE_CHECKSUM_BYTES > m->size_bytes - at)
                        return;
                image_chunk_seal(m->data + at, n, number);
                at += n + IMAGE_CHECKSUM_BYTES;
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes) {
        static const struct image_codec codec = { .id = 1, .name = "fill", .decode = fill_decode };
        struct memory m;

        memory_init(&m);
        m.data = xcalloc(1, size_bytes);
        if (size_bytes > 0)
                memcpy(m.data, data, size_bytes);
        m.size_bytes = size_bytes;
        try_reading(&m, NULL);
        reseal(&m);
        try_reading(&m, NULL);
        try_reading(&m, &codec);
        memory_finish(&m);
        return 0;
}
