#include "common/unknown.h"

#include <stdint.h>
#include <stdlib.h>

static void *member(ProtobufCMessage *message, unsigned offset) {
        return (char *) message + offset;
}

static void drop_in_field(ProtobufCMessage *message, const ProtobufCFieldDescriptor *field) {
        ProtobufCMessage **place = member(message, field->offset);

        if (field->label == PROTOBUF_C_LABEL_REPEATED) {
                ProtobufCMessage **array = *(ProtobufCMessage ***) member(message, field->offset);
                size_t n = *(size_t *) member(message, field->quantifier_offset);

                for (size_t i = 0; i < n; i++)
                        unknown_drop(array[i]);
                return;
        }
        if ((field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) && *(uint32_t *) member(message, field->quantifier_offset) != field->id)
                return;
        if (*place)
                unknown_drop(*place);
}

void unknown_drop(ProtobufCMessage *message) {
        for (unsigned i = 0; i < message->n_unknown_fields; i++)
                free(message->unknown_fields[i].data);
        free(message->unknown_fields);
        message->unknown_fields = NULL;
        message->n_unknown_fields = 0;
        for (unsigned i = 0; i < message->descriptor->n_fields; i++)
                if (message->descriptor->fields[i].type == PROTOBUF_C_TYPE_MESSAGE)
                        drop_in_field(message, &message->descriptor->fields[i]);
}

static const void *const_member(const ProtobufCMessage *message, unsigned offset) {
        return (const char *) message + offset;
}

static bool value_known(const ProtobufCFieldDescriptor *field, const void *value) {
        if (field->type == PROTOBUF_C_TYPE_ENUM)
                return protobuf_c_enum_descriptor_get_value(field->descriptor, *(const int *) value) != NULL;
        if (field->type == PROTOBUF_C_TYPE_MESSAGE) {
                const ProtobufCMessage *inner = *(const ProtobufCMessage *const *) value;

                return !inner || message_known(inner);
        }
        return true;
}

static bool repeated_known(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field) {
        const char *array = *(const char *const *) const_member(message, field->offset);
        size_t n = *(const size_t *) const_member(message, field->quantifier_offset);
        size_t width = field->type == PROTOBUF_C_TYPE_ENUM ? sizeof(int) : sizeof(void *);

        for (size_t i = 0; i < n; i++)
                if (!value_known(field, array + i * width))
                        return false;
        return true;
}

static bool field_known(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field) {
        if (field->type != PROTOBUF_C_TYPE_ENUM && field->type != PROTOBUF_C_TYPE_MESSAGE)
                return true;
        if (field->label == PROTOBUF_C_LABEL_REPEATED)
                return repeated_known(message, field);
        if ((field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) &&
            *(const uint32_t *) const_member(message, field->quantifier_offset) != field->id)
                return true;
        return value_known(field, const_member(message, field->offset));
}

bool message_known(const ProtobufCMessage *message) {
        if (message->n_unknown_fields > 0)
                return false;
        for (unsigned i = 0; i < message->descriptor->n_fields; i++)
                if (!field_known(message, &message->descriptor->fields[i]))
                        return false;
        return true;
}
