/* Makes what the frame fuzzers start from: for every protocol, one frame for every message it may
 * carry, all fields filled in.
 * usage: make_frame_seeds DIR    writes DIR/frame_PROTOCOL/TYPE-CASE */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"
#include "protocols.h"

#define DEPTH_MAX 3

static void *member(ProtobufCMessage *message, unsigned offset) {
        return (char *) message + offset;
}

static ProtobufCMessage *message_new(const ProtobufCMessageDescriptor *type) {
        ProtobufCMessage *message = xcalloc(1, type->sizeof_message);

        protobuf_c_message_init(type, message);
        return message;
}

static void fill(ProtobufCMessage *message, int depth, int only);

/* A value of the field's type at `place`, that of a scalar, a pointer or a ProtobufCBinaryData. */
static void fill_value(const ProtobufCFieldDescriptor *field, void *place, int depth) {
        switch (field->type) {
        case PROTOBUF_C_TYPE_STRING:
                *(char **) place = xstrdup("n1");
                break;
        case PROTOBUF_C_TYPE_BYTES:
                *(ProtobufCBinaryData *) place = (ProtobufCBinaryData) { .len = 3, .data = (uint8_t *) xstrdup("abc") };
                break;
        case PROTOBUF_C_TYPE_MESSAGE:
                *(ProtobufCMessage **) place = message_new(field->descriptor);
                fill(*(ProtobufCMessage **) place, depth + 1, -1);
                break;
        case PROTOBUF_C_TYPE_INT64:
        case PROTOBUF_C_TYPE_SINT64:
        case PROTOBUF_C_TYPE_UINT64:
        case PROTOBUF_C_TYPE_FIXED64:
        case PROTOBUF_C_TYPE_SFIXED64:
                *(uint64_t *) place = 300;
                break;
        case PROTOBUF_C_TYPE_DOUBLE:
                *(double *) place = 1.5;
                break;
        case PROTOBUF_C_TYPE_FLOAT:
                *(float *) place = 1.5F;
                break;
        default:
                *(uint32_t *) place = 1;
                break;
        }
}

static size_t value_bytes(const ProtobufCFieldDescriptor *field) {
        switch (field->type) {
        case PROTOBUF_C_TYPE_BYTES:
                return sizeof(ProtobufCBinaryData);
        case PROTOBUF_C_TYPE_INT32:
        case PROTOBUF_C_TYPE_SINT32:
        case PROTOBUF_C_TYPE_SFIXED32:
        case PROTOBUF_C_TYPE_UINT32:
        case PROTOBUF_C_TYPE_FIXED32:
        case PROTOBUF_C_TYPE_FLOAT:
        case PROTOBUF_C_TYPE_ENUM:
                return 4;
        case PROTOBUF_C_TYPE_BOOL:
                return sizeof(protobuf_c_boolean);
        default:
                return 8;
        }
}

/* All fields; of a oneof the first, or field `only` and no other of any oneof. */
static void fill(ProtobufCMessage *message, int depth, int only) {
        const ProtobufCMessageDescriptor *type = message->descriptor;

        for (unsigned i = 0; i < type->n_fields; i++) {
                const ProtobufCFieldDescriptor *field = &type->fields[i];
                bool oneof = field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF;

                if (field->type == PROTOBUF_C_TYPE_MESSAGE && depth >= DEPTH_MAX && field->label != PROTOBUF_C_LABEL_REQUIRED)
                        continue;
                if (oneof && (only >= 0 ? (int) i != only : *(uint32_t *) member(message, field->quantifier_offset) != 0))
                        continue;
                if (field->label == PROTOBUF_C_LABEL_REPEATED) {
                        void *array = xcalloc(2, value_bytes(field));

                        fill_value(field, array, depth);
                        fill_value(field, (char *) array + value_bytes(field), depth);
                        *(size_t *) member(message, field->quantifier_offset) = 2;
                        *(void **) member(message, field->offset) = array;
                        continue;
                }
                fill_value(field, member(message, field->offset), depth);
                if (oneof)
                        *(uint32_t *) member(message, field->quantifier_offset) = field->id;
                else if (field->quantifier_offset)
                        *(protobuf_c_boolean *) member(message, field->quantifier_offset) = 1;
        }
}

static void write_seed(const char *dir, const char *name, unsigned selector, const uint8_t *frame, size_t size_bytes) {
        cleanup_free char *path = xasprintf("%s/%s", dir, name);
        cleanup_free uint8_t *data = xcalloc(1, size_bytes + 1);

        data[0] = (uint8_t) selector;
        memcpy(data + 1, frame, size_bytes);
        if (write_file_atomic(path, data, size_bytes + 1, 0644, false) < 0)
                abort();
}

static void make_seed(const struct protocol *protocol, const char *dir, unsigned t, int only, const char *name) {
        ProtobufCMessage *message = message_new(protocol->types[t]);
        cleanup_free uint8_t *frame = NULL;
        size_t size_bytes = 0;

        fill(message, 0, only);
        frame = frame_pack(protocol->magic, message, &size_bytes);
        write_seed(dir, name, t << 1 | (only & 1), frame, size_bytes);
        protobuf_c_message_free_unpacked(message, NULL);
}

int main(int argc, char **argv) {
        if (argc != 2) {
                (void) fprintf(stderr, "usage: make_frame_seeds DIR\n");
                return 2;
        }
        for (size_t p = 0; p < ARRAY_SIZE(protocols); p++) {
                cleanup_free char *dir = xasprintf("%s/frame_%s", argv[1], protocols[p].name);

                if (mkdir_p(dir, 0755) < 0)
                        abort();
                for (unsigned t = 0; t < protocol_types(&protocols[p]); t++)
                        for (unsigned i = 0; i < protocols[p].types[t]->n_fields; i++) {
                                cleanup_free char *name = xasprintf("%s-%s", protocols[p].types[t]->short_name,
                                                                    protocols[p].types[t]->fields[i].name);

                                make_seed(&protocols[p], dir, t, (int) i, name);
                        }
        }
        return 0;
}
