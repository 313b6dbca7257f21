#include "daemon/log/log_format.h"

#include <errno.h>
#include <stdlib.h>

#include "common/frame.h"

#define ENTRY_MAGIC 0x524d4532U
#define SNAPSHOT_MAGIC 0x524d5332U

/* The frame's header keeps the real size. */
static size_t padded(size_t size_bytes) {
        return (FRAME_HEADER_BYTES + size_bytes + 7) / 8 * 8;
}

/* The payload of a frame that is whole; NULL: it is not. */
static const uint8_t *payload(const struct raft_buffer *buf, uint32_t magic, uint32_t max_bytes, uint32_t *ret_bytes) {
        if (buf->len < FRAME_HEADER_BYTES || frame_header_read(buf->base, magic, max_bytes, ret_bytes) < 0 ||
            buf->len - FRAME_HEADER_BYTES < *ret_bytes)
                return NULL;
        return (const uint8_t *) buf->base + FRAME_HEADER_BYTES;
}

static uint8_t *frame_make(uint32_t magic, size_t size_bytes) {
        uint8_t *data = raft_calloc(1, padded(size_bytes));

        if (!data)
                abort();
        frame_header_write(data, magic, (uint32_t) size_bytes);
        return data;
}

size_t log_entry_bytes(const Rm__Command *command) {
        return padded(rm__command__get_packed_size(command));
}

int log_entry_pack(const Rm__Command *command, struct raft_buffer *ret) {
        size_t size_bytes = rm__command__get_packed_size(command);
        uint8_t *data;

        if (size_bytes > LOG_ENTRY_MAX_BYTES)
                return -EMSGSIZE;
        data = frame_make(ENTRY_MAGIC, size_bytes);
        (void) rm__command__pack(command, data + FRAME_HEADER_BYTES);
        *ret = (struct raft_buffer) { .base = data, .len = padded(size_bytes) };
        return 0;
}

Rm__Command *log_entry_unpack(const struct raft_buffer *buf) {
        uint32_t size_bytes = 0;
        const uint8_t *data = payload(buf, ENTRY_MAGIC, LOG_ENTRY_MAX_BYTES, &size_bytes);

        return data ? rm__command__unpack(NULL, size_bytes, data) : NULL;
}

void log_snapshot_pack(const Rm__State *state, struct raft_buffer **ret_bufs, unsigned *ret_n) {
        size_t size_bytes = rm__state__get_packed_size(state);
        uint8_t *data = frame_make(SNAPSHOT_MAGIC, size_bytes);
        struct raft_buffer *bufs = raft_malloc(sizeof(*bufs));

        if (!bufs)
                abort();
        (void) rm__state__pack(state, data + FRAME_HEADER_BYTES);
        bufs[0] = (struct raft_buffer) { .base = data, .len = padded(size_bytes) };
        *ret_bufs = bufs;
        *ret_n = 1;
}

Rm__State *log_snapshot_unpack(const struct raft_buffer *buf) {
        uint32_t size_bytes = 0;
        const uint8_t *data = payload(buf, SNAPSHOT_MAGIC, UINT32_MAX, &size_bytes);

        return data ? rm__state__unpack(NULL, size_bytes, data) : NULL;
}
