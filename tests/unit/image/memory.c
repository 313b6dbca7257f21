#include "memory.h"

#include <string.h>

#include "common/util.h"
#include "daemon/image/chunk.h"

static uint8_t *memory_reserve(void *ctx, size_t size_bytes, struct rm_error *err) {
        struct memory *m = ctx;

        (void) err;
        if (m->size_bytes + size_bytes > m->space_bytes) {
                m->space_bytes = (m->size_bytes + size_bytes) * 2;
                m->data = xrealloc(m->data, m->space_bytes);
        }
        return m->data + m->size_bytes;
}

static int memory_commit(void *ctx, size_t size_bytes, struct rm_error *err) {
        struct memory *m = ctx;

        (void) err;
        m->size_bytes += size_bytes;
        return 0;
}

static int memory_read(void *ctx, void *ret_data, size_t size_bytes, struct rm_error *err) {
        struct memory *m = ctx;

        if (size_bytes > 0 && m->at == m->size_bytes)
                return error_set(err, -ENODATA, "the end");
        if (size_bytes > m->size_bytes - m->at)
                return error_set(err, -EPIPE, "the end");
        if (size_bytes > 0)
                memcpy(ret_data, m->data + m->at, size_bytes);
        m->at += size_bytes;
        return 0;
}

void memory_init(struct memory *m) {
        *m = (struct memory) {
                .sink = { .ctx = m, .reserve = memory_reserve, .commit = memory_commit },
                .source = { .ctx = m, .read = memory_read },
        };
}

void memory_init_of(struct memory *m, const void *data, size_t size_bytes) {
        memory_init(m);
        m->data = xcalloc(1, size_bytes);
        if (size_bytes > 0)
                memcpy(m->data, data, size_bytes);
        m->size_bytes = m->space_bytes = size_bytes;
}

void memory_finish(struct memory *m) {
        free(m->data);
}

static int nowhere_open(void *ctx, const struct image_object *object, void **ret_handle, struct rm_error *err) {
        (void) ctx;
        (void) object;
        (void) err;
        *ret_handle = NULL;
        return 0;
}

static int nowhere_data(void *ctx, void *handle, uint64_t offset, const void *data, size_t size_bytes, struct rm_error *err) {
        volatile uint8_t last;

        (void) ctx;
        (void) handle;
        (void) offset;
        (void) err;
        /* A sanitizer sees whether what is handed out is there. */
        last = ((const uint8_t *) data)[0];
        last = ((const uint8_t *) data)[size_bytes - 1];
        (void) last;
        return 0;
}

static int nowhere_close(void *ctx, void *handle, uint64_t size_bytes, struct rm_error *err) {
        (void) ctx;
        (void) handle;
        (void) size_bytes;
        (void) err;
        return 0;
}

static void nowhere_drop(void *ctx, void *handle) {
        (void) ctx;
        (void) handle;
}

const struct image_target *memory_nowhere(void) {
        static const struct image_target target = {
                .open = nowhere_open,
                .data = nowhere_data,
                .close = nowhere_close,
                .drop = nowhere_drop,
        };

        return &target;
}

int memory_read_nowhere(struct memory *m, struct rm_error *err) {
        struct image_reader *reader = NULL;
        int r;

        m->at = 0;
        r = image_reader_create(&m->source, memory_nowhere(), NULL, &reader, err);
        if (r == 0)
                r = image_reader_run(reader, err);
        image_reader_destroy(reader);
        return r;
}

void memory_reseal(struct memory *m) {
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
