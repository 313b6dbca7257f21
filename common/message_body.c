#include "common/message_body.h"

#include <stdlib.h>
#include <string.h>

void message_set_body(ProtobufCMessage *message, const ProtobufCMessage *body) {
        for (unsigned i = 0; i < message->descriptor->n_fields; i++) {
                const ProtobufCFieldDescriptor *field = &message->descriptor->fields[i];

                if (!(field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) || field->descriptor != body->descriptor)
                        continue;
                memcpy((char *) message + field->quantifier_offset, &field->id, sizeof(field->id));
                memcpy((char *) message + field->offset, &body, sizeof(ProtobufCMessage *));
                return;
        }
        abort();
}
