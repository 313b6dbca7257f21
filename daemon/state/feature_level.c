#include "daemon/state/feature_level.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/hostlist.h"
#include "common/util.h"
#include "daemon/state/state.h"

const struct feature_field *feature_levels(void) {
        static const struct feature_field later[] = {
                { &rm__capsule__descriptor, 260, STATE_LEVEL_REFUSED }, /* refusal */
                { &rm__cmd_move_abort__descriptor, 260, STATE_LEVEL_REFUSED }, /* failure */
                { &rm__cmd_capsule_blocker__descriptor, 260, STATE_LEVEL_REFUSED }, /* changed */
                { &rm__job__descriptor, 260, STATE_LEVEL_RATES }, /* rates */
                { &rm__job__descriptor, 261, STATE_LEVEL_RATES }, /* rates_attempt */
                { &rm__job__descriptor, 262, STATE_LEVEL_RATES }, /* rates_next_move */
                { &rm__job__descriptor, 263, STATE_LEVEL_LEFT }, /* left_usec */
                { &rm__job__descriptor, 264, STATE_LEVEL_STAYS }, /* stays_on */
                { &rm__cmd_job_wait__descriptor, 260, STATE_LEVEL_STAYS }, /* stays_on */
                { &rm__command__descriptor, 260, STATE_LEVEL_RATES }, /* job_rates */
                { &rm__node__descriptor, 260, STATE_LEVEL_PROCESSORS }, /* instruction_sets */
                { &rm__job_spec__descriptor, 260, STATE_LEVEL_NICE }, /* nice */
                { &rm__job_spec__descriptor, 261, STATE_LEVEL_NICE }, /* io_priority */
                { &rm__job_spec__descriptor, 262, STATE_LEVEL_NICE }, /* scheduling */
                { &rm__rank_losses__descriptor, 4, STATE_LEVEL_SPARES }, /* with_cores */
                { &rm__resize__descriptor, 9, STATE_LEVEL_PARKED }, /* cores_by_rank */
                { NULL, 0, 0 },
        };

        return later;
}

uint32_t feature_level_of(const struct feature_field *later, const ProtobufCMessageDescriptor *message, uint32_t number) {
        for (; later->message; later++)
                if (later->message == message && later->number == number)
                        return later->level;
        return 1;
}

char *feature_level_behind(const Rm__State *state, uint32_t level) {
        struct hostlist list = { 0 };
        char *text = NULL;

        for (size_t i = 0; i < state->n_nodes; i++)
                if (state->nodes[i]->level < level)
                        hostlist_add(&list, state->nodes[i]->name);
        if (list.n_names > 0)
                text = hostlist_compress(list.names, list.n_names);
        hostlist_finish(&list);
        return text;
}

/* ---- what is set in a message ---- */

static const void *member(const ProtobufCMessage *message, unsigned offset) {
        return (const char *) message + offset;
}

static bool scalar_is_set(const ProtobufCFieldDescriptor *field, const void *value) {
        switch (field->type) {
        case PROTOBUF_C_TYPE_MESSAGE:
                return *(const void *const *) value != NULL;
        case PROTOBUF_C_TYPE_STRING:
                return *(const char *const *) value && (*(const char *const *) value)[0];
        case PROTOBUF_C_TYPE_BYTES:
                return ((const ProtobufCBinaryData *) value)->len > 0;
        case PROTOBUF_C_TYPE_BOOL:
                return *(const protobuf_c_boolean *) value != 0;
        case PROTOBUF_C_TYPE_INT64:
        case PROTOBUF_C_TYPE_SINT64:
        case PROTOBUF_C_TYPE_SFIXED64:
        case PROTOBUF_C_TYPE_UINT64:
        case PROTOBUF_C_TYPE_FIXED64:
        case PROTOBUF_C_TYPE_DOUBLE:
                return *(const uint64_t *) value != 0;
        default:
                return *(const uint32_t *) value != 0;
        }
}

/* Returns whether the field is sent. A field that is not set is not sent, so that an older version
 * cannot miss it. */
static bool is_set(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field) {
        const void *quantifier = member(message, field->quantifier_offset);

        if (field->label == PROTOBUF_C_LABEL_REPEATED)
                return *(const size_t *) quantifier > 0;
        if (field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF)
                return *(const uint32_t *) quantifier == field->id;
        return scalar_is_set(field, member(message, field->offset));
}

/* A search for a field that needs a level above `level`. */
struct search {
        const struct feature_field *later;
        uint32_t level;
        uint32_t found_level;
};

/* The first field of the message, or of what it holds, that is above the level; NULL: none is. */
static const ProtobufCFieldDescriptor *find_above(struct search *search, const ProtobufCMessage *message);

static const ProtobufCFieldDescriptor *find_above_in(struct search *search, const ProtobufCMessage *message,
                                                     const ProtobufCFieldDescriptor *field) {
        const void *place = member(message, field->offset);
        bool repeated = field->label == PROTOBUF_C_LABEL_REPEATED;
        const ProtobufCMessage *const *values = repeated ? *(const ProtobufCMessage *const *const *) place : place;
        size_t n = repeated ? *(const size_t *) member(message, field->quantifier_offset) : 1;
        const ProtobufCFieldDescriptor *found = NULL;

        for (size_t i = 0; i < n && !found; i++)
                found = values[i] ? find_above(search, values[i]) : NULL;
        return found;
}

static const ProtobufCFieldDescriptor *find_above(struct search *search, const ProtobufCMessage *message) {
        const ProtobufCFieldDescriptor *found = NULL;

        for (unsigned i = 0; i < message->descriptor->n_fields && !found; i++) {
                const ProtobufCFieldDescriptor *field = &message->descriptor->fields[i];

                if (!is_set(message, field))
                        continue;
                search->found_level = feature_level_of(search->later, message->descriptor, field->id);
                if (search->found_level > search->level)
                        return field;
                if (field->type == PROTOBUF_C_TYPE_MESSAGE)
                        found = find_above_in(search, message, field);
        }
        return found;
}

int feature_level_check(const struct feature_field *later, const Rm__State *state, const Rm__Command *command,
                        struct rm_error *err) {
        /* A new log is at level 0; the fields of level 1 were always there. */
        struct search search = { .later = later, .level = state->level > 0 ? state->level : 1 };
        const ProtobufCFieldDescriptor *field = find_above(&search, &command->base);
        cleanup_free char *behind = field ? feature_level_behind(state, search.found_level) : NULL;

        if (!field)
                return 0;
        return error_set(err, -EAGAIN, "'%s' needs feature level %u, and the cluster is at %u%s%s", field->name, search.found_level,
                         state->level, behind ? ": update rmd on " : "", behind ? behind : "");
}
