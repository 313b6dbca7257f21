/* A queue of bytes: added at the end, dropped at the front. */
#ifndef RM_LAUNCHER_CLIENT_BUFFER_H
#define RM_LAUNCHER_CLIENT_BUFFER_H

#include <stddef.h>
#include <stdint.h>

/* Initialise with `= {0}`. The bytes are data[start .. start + used). */
struct buffer {
        uint8_t *data;
        size_t start;
        size_t used;
        size_t space;
};

void buffer_add(struct buffer *b, const void *data, size_t size_bytes);
/* `size_bytes` at most b->used. */
void buffer_drop(struct buffer *b, size_t size_bytes);
void buffer_printf(struct buffer *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Returns all its bytes as a text, malloc'ed; the buffer is empty and usable again. */
char *buffer_take_text(struct buffer *b);
/* Frees; the buffer is empty and usable again. */
void buffer_finish(struct buffer *b);

static inline const uint8_t *buffer_data(const struct buffer *b) {
        return b->data + b->start;
}

#endif
