#include "daemon/wire/unknown.h"

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
