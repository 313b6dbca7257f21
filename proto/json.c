#include "proto/json.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "common/text.h"
#include "common/util.h"

/* Fields that hold a point in time; all other "_usec" are durations. */
static bool is_time(const char *name) {
        static const char *const names[] = {
                "health_since_usec",   "drain_since_usec",   "submit_usec",         "start_usec", "end_usec",    "changed_usec",
                "time_usec",           "fold_since_usec",    "drain_deadline_usec", "since_usec", "unwell_usec", "captured_usec",
                "checkpoint_try_usec", "pending_since_usec", "expected_start_usec", "left_usec"
        };

        for (size_t i = 0; i < ARRAY_SIZE(names); i++)
                if (strcmp(names[i], name) == 0)
                        return true;
        return false;
}

static bool is_merged(const ProtobufCMessageDescriptor *type, const char *field) {
        return (strcmp(type->short_name, "NodeView") == 0 && strcmp(field, "node") == 0) ||
               (strcmp(type->short_name, "JobView") == 0 && strcmp(field, "job") == 0);
}

static json_t *json_text(const char *text) {
        json_t *s = json_string(text);

        if (!s) {
                /* The text is not UTF-8, as file names may be: better a question mark than no
                 * answer. */
                cleanup_free char *copy = xstrdup(text);

                for (char *p = copy; *p; p++)
                        if ((unsigned char) *p >= 0x80)
                                *p = '?';
                s = json_string(copy);
        }
        return s;
}

static json_t *json_time(uint64_t usec) {
        cleanup_free char *text = usec ? text_iso_time(usec) : NULL;

        return text ? json_string(text) : json_null();
}

static json_t *json_address(uint32_t a) {
        return json_sprintf("%u.%u.%u.%u", a >> 24, a >> 16 & 255, a >> 8 & 255, a & 255);
}

/* "JOB_STATE" of "JOB_RUNNING": the words that all values share, up to a '_'. */
static size_t enum_prefix(const ProtobufCEnumDescriptor *type) {
        const char *first = type->values[0].name;
        size_t n = strlen(first);

        for (unsigned i = 1; i < type->n_values; i++) {
                size_t same = 0;

                while (same < n && first[same] == type->values[i].name[same])
                        same++;
                n = same;
        }
        while (n > 0 && first[n - 1] != '_')
                n--;
        return n;
}

static json_t *json_enum(const ProtobufCEnumDescriptor *type, int value) {
        const ProtobufCEnumValue *v = protobuf_c_enum_descriptor_get_value(type, value);

        return v ? json_string(v->name + enum_prefix(type)) : json_integer(value);
}

static json_t *json_value(const ProtobufCFieldDescriptor *field, const void *at) {
        switch (field->type) {
        case PROTOBUF_C_TYPE_UINT32:
        case PROTOBUF_C_TYPE_FIXED32:
                if (strcmp(field->name, "address") == 0)
                        return json_address(*(const uint32_t *) at);
                return json_integer(*(const uint32_t *) at);
        case PROTOBUF_C_TYPE_INT32:
        case PROTOBUF_C_TYPE_SINT32:
        case PROTOBUF_C_TYPE_SFIXED32:
                return json_integer(*(const int32_t *) at);
        case PROTOBUF_C_TYPE_UINT64:
        case PROTOBUF_C_TYPE_FIXED64:
                if (is_time(field->name))
                        return json_time(*(const uint64_t *) at);
                return json_integer((json_int_t) * (const uint64_t *) at);
        case PROTOBUF_C_TYPE_INT64:
        case PROTOBUF_C_TYPE_SINT64:
        case PROTOBUF_C_TYPE_SFIXED64:
                return json_integer((json_int_t) * (const int64_t *) at);
        case PROTOBUF_C_TYPE_FLOAT:
                return json_real((double) *(const float *) at);
        case PROTOBUF_C_TYPE_DOUBLE:
                return json_real(*(const double *) at);
        case PROTOBUF_C_TYPE_BOOL:
                return json_boolean(*(const protobuf_c_boolean *) at);
        case PROTOBUF_C_TYPE_ENUM:
                return json_enum(field->descriptor, *(const int *) at);
        case PROTOBUF_C_TYPE_STRING:
                return *(char *const *) at ? json_text(*(char *const *) at) : json_null();
        case PROTOBUF_C_TYPE_MESSAGE:
                return *(ProtobufCMessage *const *) at ? json_from_message(*(ProtobufCMessage *const *) at) : json_null();
        case PROTOBUF_C_TYPE_BYTES:
        default:
                return json_null();
        }
}

static size_t value_size(const ProtobufCFieldDescriptor *field) {
        switch (field->type) {
        case PROTOBUF_C_TYPE_UINT64:
        case PROTOBUF_C_TYPE_FIXED64:
        case PROTOBUF_C_TYPE_INT64:
        case PROTOBUF_C_TYPE_SINT64:
        case PROTOBUF_C_TYPE_SFIXED64:
        case PROTOBUF_C_TYPE_DOUBLE:
                return 8;
        case PROTOBUF_C_TYPE_BOOL:
                return sizeof(protobuf_c_boolean);
        case PROTOBUF_C_TYPE_STRING:
        case PROTOBUF_C_TYPE_MESSAGE:
                return sizeof(void *);
        case PROTOBUF_C_TYPE_BYTES:
                return sizeof(ProtobufCBinaryData);
        default:
                return 4;
        }
}

static json_t *json_field(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field) {
        const char *base = (const char *) message;
        const void *at = base + field->offset;
        const char *items;
        json_t *array;
        size_t n;

        if (field->label != PROTOBUF_C_LABEL_REPEATED)
                return json_value(field, at);
        n = *(const size_t *) (const void *) (base + field->quantifier_offset);
        items = *(char *const *) at;
        array = json_array();
        for (size_t i = 0; i < n; i++)
                (void) json_array_append_new(array, json_value(field, items + i * value_size(field)));
        return array;
}

static void set_field(json_t *object, const ProtobufCFieldDescriptor *field, json_t *value) {
        static const char ending[] = "_usec";
        size_t n = strlen(field->name);
        cleanup_free char *name = xstrdup(field->name);

        if (is_time(field->name) && n > strlen(ending))
                name[n - strlen(ending)] = 0;
        (void) json_object_set_new(object, name, value);
}

json_t *json_from_message(const ProtobufCMessage *message) {
        const ProtobufCMessageDescriptor *type = message->descriptor;
        json_t *object = json_object();
        json_t *outer = json_object();

        for (unsigned i = 0; i < type->n_fields; i++) {
                const ProtobufCFieldDescriptor *field = &type->fields[i];
                json_t *value = json_field(message, field);

                if (is_merged(type, field->name) && json_is_object(value)) {
                        (void) json_object_update(object, value);
                        json_decref(value);
                } else {
                        set_field(outer, field, value);
                }
        }
        /* The fields of the view replace those of the message that it wraps: its "state" is the one
         * for people. */
        (void) json_object_update(object, outer);
        json_decref(outer);
        return object;
}
