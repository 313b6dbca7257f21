#include "daemon/mover/sink.h"

#include "common/util.h"

/* Small chunks wait for company up to here. */
#define FLUSH_BYTES (256U << 10)

struct sink {
        struct image_sink image;
        struct link *link;
        size_t sent_bytes; /* of what is used */
        size_t used_bytes;
        size_t space_bytes;
        uint8_t *buffer;
};

int sink_flush(struct sink *s, struct rm_error *err) {
        const uint8_t *data = s->buffer + s->sent_bytes;
        size_t n = s->used_bytes - s->sent_bytes;

        s->sent_bytes = s->used_bytes;
        return n > 0 ? link_write(s->link, data, n, err) : 0;
}

static uint8_t *sink_reserve(void *ctx, size_t size_bytes, struct rm_error *err) {
        struct sink *s = ctx;

        if (size_bytes > s->space_bytes - s->used_bytes && sink_flush(s, err) < 0)
                return NULL;
        if (s->sent_bytes == s->used_bytes)
                s->sent_bytes = s->used_bytes = 0;
        return s->buffer + s->used_bytes;
}

static int sink_commit(void *ctx, size_t size_bytes, struct rm_error *err) {
        struct sink *s = ctx;

        s->used_bytes += size_bytes;
        return s->used_bytes - s->sent_bytes >= FLUSH_BYTES ? sink_flush(s, err) : 0;
}

struct sink *sink_create(struct link *link) {
        struct sink *s = xcalloc(1, sizeof(*s));

        s->image = (struct image_sink) { .ctx = s, .reserve = sink_reserve, .commit = sink_commit };
        s->link = link;
        s->space_bytes = IMAGE_CHUNK_MAX_BYTES + FLUSH_BYTES;
        s->buffer = xcalloc(1, s->space_bytes);
        return s;
}

void sink_destroy(struct sink *s) {
        if (!s)
                return;
        free(s->buffer);
        free(s);
}

const struct image_sink *sink_image(struct sink *s) {
        return &s->image;
}
