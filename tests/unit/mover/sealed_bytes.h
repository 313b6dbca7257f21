/* A sealed file in memory. */
#ifndef RM_TESTS_MOVER_SEALED_BYTES_H
#define RM_TESTS_MOVER_SEALED_BYTES_H

#include <string.h>

#include "common/util.h"
#include "daemon/mover/seal.h"

struct bytes {
        uint8_t *data;
        size_t used;
        size_t at; /* where the next read begins */
};

/* Both for struct seal_io. */
static inline int bytes_write(void *ctx, const void *data, size_t size_bytes, struct rm_error *err) {
        struct bytes *b = ctx;

        (void) err;
        b->data = xrealloc(b->data, b->used + size_bytes);
        memcpy(b->data + b->used, data, size_bytes);
        b->used += size_bytes;
        return 0;
}

static inline int bytes_read(void *ctx, void *data, size_t size_bytes, size_t *ret_bytes, struct rm_error *err) {
        struct bytes *b = ctx;
        size_t n = b->used - b->at < size_bytes ? b->used - b->at : size_bytes;

        (void) err;
        memcpy(data, b->data + b->at, n);
        b->at += n;
        *ret_bytes = n;
        return 0;
}

#endif
