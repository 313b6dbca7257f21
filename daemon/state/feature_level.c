#include "daemon/state/feature_level.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/hostlist.h"
#include "common/util.h"
#include "daemon/state/state.h"

/* Every field that came after level 1, of what is in commands or in the state. tests/data/feature-levels is the list of all. */
static const struct {
        const ProtobufCMessageDescriptor *message;
        uint32_t number;
        uint32_t level;
} later[] = {
        { &rm__job_spec__descriptor, 60, STATE_LEVEL_RESTART }, /* restarts */
        { &rm__job_spec__descriptor, 110, STATE_LEVEL_MEMORY }, /* rank_memory_bytes */
        { &rm__job__descriptor, 60, STATE_LEVEL_RESTART }, /* restart_reason */
        { &rm__job__descriptor, 130, STATE_LEVEL_FOLD }, /* fold_since_usec */
        { &rm__cmd_capsule_gone__descriptor, 60, STATE_LEVEL_RESTART }, /* incarnation */
        { &rm__command__descriptor, 80, STATE_LEVEL_RESTART }, /* job_restart */
        { &rm__node__descriptor, 90, STATE_LEVEL_VOTERS }, /* leaving */
        { &rm__node__descriptor, 100, STATE_LEVEL_FENCE }, /* fenced */
        { &rm__node__descriptor, 101, STATE_LEVEL_FENCE }, /* fence */
        { &rm__node__descriptor, 160, STATE_LEVEL_DEADLINE }, /* drain_deadline_usec */
        { &rm__node__descriptor, 161, STATE_LEVEL_DEADLINE }, /* drain_overdue */
        { &rm__node__descriptor, 170, STATE_LEVEL_CONDITION }, /* conditions */
        { &rm__cmd_node_drain__descriptor, 160, STATE_LEVEL_DEADLINE }, /* drain_deadline_usec */
        { &rm__job__descriptor, 90, STATE_LEVEL_EPOCH }, /* epoch */
        { &rm__move__descriptor, 110, STATE_LEVEL_CODEC }, /* codec */
        { &rm__move__descriptor, 111, STATE_LEVEL_CODEC }, /* saved_bytes */
        { &rm__move__descriptor, 120, STATE_LEVEL_PAGES }, /* tracked */
        { &rm__move__descriptor, 121, STATE_LEVEL_PAGES }, /* untracked */
        { &rm__move__descriptor, 122, STATE_LEVEL_PAGES }, /* ahead_rounds */
        { &rm__move__descriptor, 123, STATE_LEVEL_PAGES }, /* last_bytes */
        { &rm__move__descriptor, 131, STATE_LEVEL_SLOW },  /* slow_usec */
        { &rm__move__descriptor, 124, STATE_LEVEL_PAGES }, /* fill_usec */
        { &rm__move__descriptor, 125, STATE_LEVEL_PAGES }, /* waiting */
        { &rm__move__descriptor, 150, STATE_LEVEL_POSTCOPY }, /* later_bytes */
        { &rm__move__descriptor, 151, STATE_LEVEL_POSTCOPY }, /* later_faults */
        { &rm__move__descriptor, 152, STATE_LEVEL_POSTCOPY }, /* later_p99_usec */
        { &rm__move__descriptor, 160, STATE_LEVEL_DEADLINE }, /* hurry_usec */
        { &rm__cmd_move_filled__descriptor, 150, STATE_LEVEL_POSTCOPY }, /* later_faults */
        { &rm__cmd_move_filled__descriptor, 151, STATE_LEVEL_POSTCOPY }, /* later_p99_usec */
        { &rm__cmd_move_commit__descriptor, 150, STATE_LEVEL_POSTCOPY }, /* later_bytes */
        { &rm__state__descriptor, 90, STATE_LEVEL_VOTERS }, /* voters */
        { &rm__state__descriptor, 91, STATE_LEVEL_VOTERS }, /* lease_usec */
        { &rm__state__descriptor, 92, STATE_LEVEL_SESSIONS }, /* sessions */
        { &rm__state__descriptor, 93, STATE_LEVEL_SESSIONS }, /* time_usec */
        { &rm__state__descriptor, 100, STATE_LEVEL_EPOCH }, /* last_epoch */
        { &rm__command__descriptor, 90, STATE_LEVEL_VOTERS }, /* voters */
        { &rm__command__descriptor, 91, STATE_LEVEL_VOTERS }, /* node_remove */
        { &rm__command__descriptor, 92, STATE_LEVEL_VOTERS }, /* lease */
        { &rm__command__descriptor, 93, STATE_LEVEL_SESSIONS }, /* origin */
        { &rm__command__descriptor, 100, STATE_LEVEL_FENCE }, /* node_fence */
        { &rm__command__descriptor, 120, STATE_LEVEL_PAGES }, /* move_waiting */
        { &rm__command__descriptor, 121, STATE_LEVEL_PAGES }, /* move_filled */
        { &rm__command__descriptor, 160, STATE_LEVEL_DEADLINE }, /* node_overdue */
        { &rm__command__descriptor, 170, STATE_LEVEL_CONDITION }, /* node_condition */
        { &rm__job_spec__descriptor, 180, STATE_LEVEL_CHECKPOINT }, /* checkpoint_usec */
        { &rm__job_spec__descriptor, 181, STATE_LEVEL_CHECKPOINT }, /* checkpoint_files */
        { &rm__job_spec__descriptor, 182, STATE_LEVEL_CHECKPOINT }, /* recover_wait_usec */
        { &rm__job_spec__descriptor, 183, STATE_LEVEL_CHECKPOINT }, /* checkpoint_at_limit */
        { &rm__job__descriptor, 180, STATE_LEVEL_CHECKPOINT }, /* checkpoints */
        { &rm__job__descriptor, 181, STATE_LEVEL_CHECKPOINT }, /* last_checkpoint */
        { &rm__job__descriptor, 182, STATE_LEVEL_CHECKPOINT }, /* restored_from */
        { &rm__job__descriptor, 183, STATE_LEVEL_CHECKPOINT }, /* held */
        { &rm__job__descriptor, 184, STATE_LEVEL_CHECKPOINT }, /* checkpoint_try_usec */
        { &rm__job__descriptor, 185, STATE_LEVEL_CHECKPOINT }, /* checkpoint_error */
        { &rm__job__descriptor, 186, STATE_LEVEL_CHECKPOINT }, /* free_attempts */
        { &rm__job__descriptor, 187, STATE_LEVEL_CHECKPOINT }, /* pending_since_usec */
        { &rm__cmd_job_place__descriptor, 180, STATE_LEVEL_CHECKPOINT }, /* checkpoint */
        { &rm__command__descriptor, 180, STATE_LEVEL_CHECKPOINT }, /* checkpoint_start */
        { &rm__command__descriptor, 181, STATE_LEVEL_CHECKPOINT }, /* checkpoint_captured */
        { &rm__command__descriptor, 182, STATE_LEVEL_CHECKPOINT }, /* checkpoint_stored */
        { &rm__command__descriptor, 183, STATE_LEVEL_CHECKPOINT }, /* checkpoint_uncopied */
        { &rm__command__descriptor, 184, STATE_LEVEL_CHECKPOINT }, /* checkpoint_abort */
        { &rm__command__descriptor, 185, STATE_LEVEL_CHECKPOINT }, /* checkpoint_remove */
        { &rm__command__descriptor, 186, STATE_LEVEL_CHECKPOINT }, /* job_release */
        { &rm__command__descriptor, 187, STATE_LEVEL_CHECKPOINT }, /* checkpoint_copy_lost */
        { &rm__command__descriptor, 188, STATE_LEVEL_CHECKPOINT }, /* checkpoint_copy_wanted */
        { &rm__command__descriptor, 189, STATE_LEVEL_IMPORT }, /* checkpoint_import */
        { &rm__checkpoint_part__descriptor, 210, STATE_LEVEL_DRILL }, /* drilled */
        { &rm__checkpoint_part__descriptor, 211, STATE_LEVEL_DRILL }, /* drill_usec */
        { &rm__checkpoint_part__descriptor, 212, STATE_LEVEL_DRILL }, /* drill_error */
        { &rm__checkpoint_part__descriptor, 213, STATE_LEVEL_DRILL }, /* drill_node */
        { &rm__checkpoint_part__descriptor, 214, STATE_LEVEL_DRILL }, /* pause_usec */
        { &rm__checkpoint__descriptor, 210, STATE_LEVEL_DRILL }, /* error */
        { &rm__job__descriptor, 210, STATE_LEVEL_DRILL }, /* drill */
        { &rm__command__descriptor, 210, STATE_LEVEL_DRILL }, /* checkpoint_drilled */
        { &rm__job_spec__descriptor, 220, STATE_LEVEL_RESIZE }, /* active_ranks */
        { &rm__job_spec__descriptor, 221, STATE_LEVEL_RESIZE }, /* min_ranks */
        { &rm__job__descriptor, 220, STATE_LEVEL_RESIZE }, /* resize */
        { &rm__checkpoint__descriptor, 220, STATE_LEVEL_RESIZE }, /* resize */
        { &rm__command__descriptor, 220, STATE_LEVEL_RESIZE }, /* job_resize */
        { &rm__command__descriptor, 221, STATE_LEVEL_RESIZE }, /* job_resize_told */
        { &rm__job_spec__descriptor, 230, STATE_LEVEL_RANK_LOSS }, /* on_rank_loss */
        { &rm__job_spec__descriptor, 231, STATE_LEVEL_RANK_LOSS }, /* critical_ranks */
        { &rm__job_spec__descriptor, 232, STATE_LEVEL_RANK_LOSS }, /* spare_ranks */
        { &rm__job__descriptor, 230, STATE_LEVEL_RANK_LOSS }, /* rank_losses */
        { &rm__checkpoint__descriptor, 230, STATE_LEVEL_RANK_LOSS }, /* rank_losses */
        { &rm__command__descriptor, 230, STATE_LEVEL_RANK_LOSS }, /* job_ranks_told */
        { &rm__cmd_group_end__descriptor, 230, STATE_LEVEL_RANK_LOSS }, /* killed */
        { &rm__job__descriptor, 240, STATE_LEVEL_OWN_STATE }, /* own_state */
        { &rm__cmd_checkpoint_start__descriptor, 240, STATE_LEVEL_OWN_STATE }, /* force */
        { &rm__command__descriptor, 240, STATE_LEVEL_OWN_STATE }, /* job_own_state */
        { &rm__command__descriptor, 241, STATE_LEVEL_OWN_STATE }, /* job_requeue */
        { &rm__cmd_job_place__descriptor, 250, STATE_LEVEL_LIMITS }, /* capsules_per_core */
        { &rm__cmd_move_start__descriptor, 250, STATE_LEVEL_LIMITS }, /* capsules_per_core */
        { &rm__cmd_checkpoint_start__descriptor, 250, STATE_LEVEL_LIMITS }, /* limits */
        { &rm__cmd_checkpoint_import__descriptor, 250, STATE_LEVEL_LIMITS }, /* limits */
        { &rm__cmd_job_release__descriptor, 250, STATE_LEVEL_LIMITS }, /* limits */
        { &rm__checkpoint__descriptor, 250, STATE_LEVEL_UNRESTORED }, /* restore_failures */
        { &rm__checkpoint__descriptor, 251, STATE_LEVEL_UNRESTORED }, /* unreadable */
        { &rm__checkpoint__descriptor, 252, STATE_LEVEL_UNRESTORED }, /* other_files */
        { &rm__cmd_job_release__descriptor, 251, STATE_LEVEL_UNRESTORED }, /* other_files */
        { &rm__command__descriptor, 250, STATE_LEVEL_UNRESTORED }, /* checkpoint_unrestored */
        { &rm__node__descriptor, 200, STATE_LEVEL_CHECKPOINT }, /* unwell_usec */
        { &rm__state__descriptor, 200, STATE_LEVEL_CHECKPOINT }, /* failures */
};

uint32_t feature_level_of(const ProtobufCMessageDescriptor *message, uint32_t number) {
        for (size_t i = 0; i < ARRAY_SIZE(later); i++)
                if (later[i].message == message && later[i].number == number)
                        return later[i].level;
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

int feature_level_need(const Rm__State *state, uint32_t level, const char *what, struct rm_error *err) {
        cleanup_free char *behind = state->level < level ? feature_level_behind(state, level) : NULL;

        if (state->level >= level)
                return 0;
        return error_set(err, -EAGAIN, "%s needs feature level %u, and the cluster is at %u%s%s", what, level, state->level,
                         behind ? ", since rmd is older on " : "", behind ? behind : "");
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

/* What is not set is not sent either: an older version does not see that the field is there. */
static bool is_set(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field) {
        const void *quantifier = member(message, field->quantifier_offset);

        if (field->label == PROTOBUF_C_LABEL_REPEATED)
                return *(const size_t *) quantifier > 0;
        if (field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF)
                return *(const uint32_t *) quantifier == field->id;
        return scalar_is_set(field, member(message, field->offset));
}

/* The first field of the message, or of what it holds, that is above the level; NULL: none is. */
static const ProtobufCFieldDescriptor *find_above(const ProtobufCMessage *message, uint32_t level, uint32_t *ret_level);

static const ProtobufCFieldDescriptor *find_above_in(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field,
                                                     uint32_t level, uint32_t *ret_level) {
        const void *place = member(message, field->offset);
        bool repeated = field->label == PROTOBUF_C_LABEL_REPEATED;
        const ProtobufCMessage *const *values = repeated ? *(const ProtobufCMessage *const *const *) place : place;
        size_t n = repeated ? *(const size_t *) member(message, field->quantifier_offset) : 1;
        const ProtobufCFieldDescriptor *found = NULL;

        for (size_t i = 0; i < n && !found; i++)
                found = values[i] ? find_above(values[i], level, ret_level) : NULL;
        return found;
}

static const ProtobufCFieldDescriptor *find_above(const ProtobufCMessage *message, uint32_t level, uint32_t *ret_level) {
        const ProtobufCFieldDescriptor *found = NULL;

        for (unsigned i = 0; i < message->descriptor->n_fields && !found; i++) {
                const ProtobufCFieldDescriptor *field = &message->descriptor->fields[i];

                if (!is_set(message, field))
                        continue;
                *ret_level = feature_level_of(message->descriptor, field->id);
                if (*ret_level > level)
                        return field;
                if (field->type == PROTOBUF_C_TYPE_MESSAGE)
                        found = find_above_in(message, field, level, ret_level);
        }
        return found;
}

int feature_level_check(const Rm__State *state, const Rm__Command *command, struct rm_error *err) {
        /* A new log is at level 0; those of level 1 were always there. */
        uint32_t have = state->level > 0 ? state->level : 1;
        uint32_t level = 0;
        const ProtobufCFieldDescriptor *field = find_above(&command->base, have, &level);
        cleanup_free char *behind = field ? feature_level_behind(state, level) : NULL;

        if (!field)
                return 0;
        return error_set(err, -EAGAIN, "'%s' needs feature level %u, and the cluster is at %u%s%s", field->name, level,
                         state->level, behind ? ": update rmd on " : "", behind ? behind : "");
}
