#include "daemon/mover/export_stream.h"

#include "common/frame.h"
#include "common/util.h"

int export_write_message(struct seal *s, const ProtobufCMessage *message, struct rm_error *err) {
        size_t n = 0;
        cleanup_free uint8_t *frame = frame_pack(FRAME_MAGIC_EXPORT, message, &n);

        if (n > FRAME_HEADER_BYTES + EXPORT_MESSAGE_MAX_BYTES)
                return error_set(err, -EFBIG, "the job is too large: what is said of it has %zu bytes", n);
        return seal_write(s, frame, n, err);
}

int export_read_message(struct seal *s, const ProtobufCMessageDescriptor *type, ProtobufCMessage **ret, struct rm_error *err) {
        uint8_t header[FRAME_HEADER_BYTES];
        cleanup_free uint8_t *payload = NULL;
        uint32_t n = 0;
        int r = seal_read(s, header, sizeof(header), err);

        if (r < 0)
                return r;
        if (frame_header_read(header, FRAME_MAGIC_EXPORT, EXPORT_MESSAGE_MAX_BYTES, &n) < 0)
                return error_set(err, -EBADMSG, "the file is damaged");
        payload = xrealloc(NULL, n + 1);
        r = seal_read(s, payload, n, err);
        if (r < 0)
                return r;
        *ret = protobuf_c_message_unpack(type, NULL, n, payload);
        return *ret ? 0 : error_set(err, -EBADMSG, "the file is damaged");
}

bool export_head_valid(const Rm__ExportHead *head) {
        const Rm__Job *job = head ? head->job : NULL;

        return job && job->spec && job->n_checkpoints == 1 && job->checkpoints[0]->n_parts > 0;
}
