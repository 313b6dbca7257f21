#include "common/frame.h"

#include <errno.h>
#include <stdlib.h>

#include "common/util.h"

static void put_u32(uint8_t *out, uint32_t v) {
        out[0] = (uint8_t) (v >> 24);
        out[1] = (uint8_t) (v >> 16);
        out[2] = (uint8_t) (v >> 8);
        out[3] = (uint8_t) v;
}

static uint32_t get_u32(const uint8_t *in) {
        return (uint32_t) in[0] << 24 | (uint32_t) in[1] << 16 | (uint32_t) in[2] << 8 | in[3];
}

void frame_header_write(uint8_t out[static FRAME_HEADER_BYTES], uint32_t magic, uint32_t payload_bytes) {
        put_u32(out, magic);
        put_u32(out + 4, payload_bytes);
}

int frame_header_read(const uint8_t in[static FRAME_HEADER_BYTES], uint32_t magic, uint32_t max_bytes,
                      uint32_t *ret_payload_bytes) {
        uint32_t size_bytes = get_u32(in + 4);

        if (get_u32(in) != magic)
                return -EPROTO;
        if (size_bytes > max_bytes)
                return -EMSGSIZE;
        *ret_payload_bytes = size_bytes;
        return 0;
}

uint8_t *frame_pack(uint32_t magic, const ProtobufCMessage *message, size_t *ret_size_bytes) {
        size_t payload_bytes = protobuf_c_message_get_packed_size(message);
        uint8_t *data = xcalloc(1, FRAME_HEADER_BYTES + payload_bytes);

        frame_header_write(data, magic, (uint32_t) payload_bytes);
        (void) protobuf_c_message_pack(message, data + FRAME_HEADER_BYTES);
        *ret_size_bytes = FRAME_HEADER_BYTES + payload_bytes;
        return data;
}

int frame_send(int fd, uint32_t magic, const ProtobufCMessage *message) {
        size_t size_bytes;
        cleanup_free uint8_t *data = frame_pack(magic, message, &size_bytes);

        return write_all(fd, data, size_bytes);
}

int frame_receive(int fd, uint32_t magic, uint32_t max_bytes, const ProtobufCMessageDescriptor *type,
                  ProtobufCMessage **ret_message) {
        uint8_t header[FRAME_HEADER_BYTES];
        cleanup_free uint8_t *payload = NULL;
        uint32_t payload_bytes = 0;
        ProtobufCMessage *message;
        int r;

        r = read_all(fd, header, sizeof(header));
        if (r < 0)
                return r;
        r = frame_header_read(header, magic, max_bytes, &payload_bytes);
        if (r < 0)
                return r;
        payload = xcalloc(1, payload_bytes);
        r = read_all(fd, payload, payload_bytes);
        if (r < 0)
                return r == -ENODATA ? -EPIPE : r;
        message = protobuf_c_message_unpack(type, NULL, payload_bytes, payload);
        if (!message)
                return -EBADMSG;
        *ret_message = message;
        return 0;
}
