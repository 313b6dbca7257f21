#include "launcher/client/wire.h"

#include <errno.h>

#include "common/frame.h"
#include "common/message_body.h"
#include "common/util.h"

void wire_put(struct buffer *out, uint32_t id, const ProtobufCMessage *body) {
        Rm__LocalRequest request = RM__LOCAL_REQUEST__INIT;
        cleanup_free uint8_t *frame = NULL;
        size_t size_bytes;

        request.id = id;
        message_set_body(&request.base, body);
        frame = frame_pack(FRAME_MAGIC_LOCAL, &request.base, &size_bytes);
        buffer_add(out, frame, size_bytes);
}

int wire_next(struct buffer *in, Rm__LocalReply **ret_reply) {
        uint32_t payload_bytes = 0;
        Rm__LocalReply *reply;
        int r;

        if (in->used < FRAME_HEADER_BYTES)
                return 0;
        r = frame_header_read(buffer_data(in), FRAME_MAGIC_LOCAL, FRAME_MAX_LOCAL_BYTES, &payload_bytes);
        if (r < 0)
                return r;
        if (in->used < FRAME_HEADER_BYTES + payload_bytes)
                return 0;
        reply = rm__local_reply__unpack(NULL, payload_bytes, buffer_data(in) + FRAME_HEADER_BYTES);
        buffer_drop(in, FRAME_HEADER_BYTES + payload_bytes);
        if (!reply)
                return -EBADMSG;
        *ret_reply = reply;
        return 1;
}
