#include "daemon/peers/parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"

void parts_reset(struct parts *parts) {
        free(parts->data);
        memset(parts, 0, sizeof(*parts));
}

static int refuse(struct parts *parts, int code) {
        parts_reset(parts);
        return code;
}

static void reserve(struct parts *parts, size_t needed_bytes) {
        size_t space_bytes = 2 * parts->space_bytes;

        if (needed_bytes <= parts->space_bytes)
                return;
        if (space_bytes < needed_bytes)
                space_bytes = needed_bytes;
        if (space_bytes > parts->total_bytes)
                space_bytes = parts->total_bytes;
        parts->data = xrealloc(parts->data, space_bytes);
        parts->space_bytes = space_bytes;
}

int parts_add(struct parts *parts, uint64_t total_bytes, uint64_t offset, const void *data, size_t size_bytes, size_t max_bytes) {
        if (offset == 0) {
                parts_reset(parts);
                if (total_bytes > max_bytes)
                        return -EMSGSIZE;
                parts->total_bytes = (size_t) total_bytes;
        }
        if (total_bytes != parts->total_bytes || offset != parts->received_bytes || size_bytes == 0 ||
            size_bytes > parts->total_bytes - parts->received_bytes)
                return refuse(parts, -EPROTO);
        reserve(parts, parts->received_bytes + size_bytes);
        memcpy(parts->data + parts->received_bytes, data, size_bytes);
        parts->received_bytes += size_bytes;
        return parts->received_bytes == parts->total_bytes;
}
