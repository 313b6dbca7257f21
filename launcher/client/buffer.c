#include "launcher/client/buffer.h"

#include <stdarg.h>
#include <string.h>

#include "common/util.h"

/* A buffer that once held a burst gives the memory back when it runs empty. */
#define BUFFER_KEEP_BYTES (64U << 10)

void buffer_add(struct buffer *b, const void *data, size_t size_bytes) {
        if (size_bytes == 0)
                return;
        if (b->start + b->used + size_bytes > b->space && b->start > 0) {
                memmove(b->data, b->data + b->start, b->used);
                b->start = 0;
        }
        if (b->used + size_bytes > b->space) {
                size_t space = b->space ? b->space : 1024;

                while (space < b->used + size_bytes)
                        space *= 2;
                b->data = xrealloc(b->data, space);
                b->space = space;
        }
        memcpy(b->data + b->start + b->used, data, size_bytes);
        b->used += size_bytes;
}

void buffer_drop(struct buffer *b, size_t size_bytes) {
        b->start += size_bytes;
        b->used -= size_bytes;
        if (b->used > 0)
                return;
        b->start = 0;
        if (b->space > BUFFER_KEEP_BYTES)
                buffer_finish(b);
}

void buffer_printf(struct buffer *b, const char *fmt, ...) {
        cleanup_free char *text = NULL;
        va_list ap;

        va_start(ap, fmt);
        text = xvasprintf(fmt, ap);
        va_end(ap);
        buffer_add(b, text, strlen(text));
}

char *buffer_take_text(struct buffer *b) {
        char *text;

        buffer_add(b, "", 1);
        text = xstrdup((const char *) buffer_data(b));
        buffer_finish(b);
        return text;
}

void buffer_finish(struct buffer *b) {
        free(b->data);
        *b = (struct buffer) { 0 };
}
