#include "daemon/state/state.h"

#include <stdlib.h>
#include <string.h>

#include "common/text.h"
#include "common/unknown.h"
#include "common/util.h"
#include "daemon/state/state_internal.h"

void message_set_string(char **field, const char *value) {
        if (*field && *field != protobuf_c_empty_string)
                free(*field);
        *field = value && *value ? xstrdup(value) : (char *) protobuf_c_empty_string;
}

ProtobufCMessage *message_copy(const ProtobufCMessage *message) {
        size_t size_bytes = protobuf_c_message_get_packed_size(message);
        cleanup_free uint8_t *data = xcalloc(1, size_bytes);
        ProtobufCMessage *copy;

        (void) protobuf_c_message_pack(message, data);
        copy = protobuf_c_message_unpack(message->descriptor, NULL, size_bytes, data);
        if (!copy)
                abort();
        return copy;
}

Rm__State *state_create(const char *cluster) {
        Rm__State *state = xcalloc(1, sizeof(*state));

        rm__state__init(state);
        message_set_string(&state->cluster, cluster);
        state->next_job = 1;
        state->next_move = 1;
        state->next_incarnation = 1;
        state->next_address = 1;
        state->availability = xcalloc(1, sizeof(*state->availability));
        rm__availability_status__init(state->availability);
        return state;
}

void apply_event(struct apply *a, const char *kind, const char *node, uint64_t job, uint64_t move, int32_t capsule, const char *fmt,
                 ...) {
        Rm__Event *event = xcalloc(1, sizeof(*event));
        char raw[512], text[2 * sizeof(raw)];
        va_list ap;

        va_start(ap, fmt);
        (void) text_format_va(raw, sizeof(raw), fmt, ap);
        va_end(ap);
        (void) text_escape(raw, text, sizeof(text));
        rm__event__init(event);
        event->index = a->state->index;
        event->time_usec = a->time_usec;
        message_set_string(&event->kind, kind);
        message_set_string(&event->node, node);
        message_set_string(&event->text, text);
        event->job = job;
        event->move = move;
        event->capsule = capsule;
        REPEATED_PUSH(a->result->events, a->result->n_events, event);
}

int apply_refuse(struct apply *a, int code, const char *fmt, ...) {
        va_list ap;

        a->result->error.code = code;
        va_start(ap, fmt);
        (void) text_format_va(a->result->error.text, sizeof(a->result->error.text), fmt, ap);
        va_end(ap);
        return code;
}

static int apply_note(struct apply *a) {
        apply_event(a, "note", NULL, 0, 0, 0, "%s", a->command->note->text);
        return 0;
}

static int apply_scheduling(struct apply *a) {
        const char *warning = a->command->scheduling->warning;

        if (strcmp(a->state->scheduling_warning, warning) == 0)
                return 0;
        message_set_string(&a->state->scheduling_warning, warning);
        if (warning[0])
                apply_event(a, "policy-error", NULL, 0, 0, 0, "scheduling: %s", warning);
        return 0;
}

/* Such a node may be gone for good. If it comes back, its rmd ends at the first entry that it does
 * not understand, or is sent a state that it does not. A voter's rmd would as well, and others may
 * need its vote. */
static bool may_be_left_behind(const Rm__State *state, const Rm__Node *node) {
        return node->health == RM__NODE_HEALTH__NODE_HEALTH_DOWN && !state_is_voter(state, node->name);
}

uint32_t state_known_level(const Rm__State *state, uint64_t down_usec) {
        uint32_t level = state->n_nodes > 0 ? UINT32_MAX : 0;

        for (size_t i = 0; i < state->n_nodes; i++) {
                const Rm__Node *node = state->nodes[i];
                bool counts = !may_be_left_behind(state, node) || node->health_since_usec >= down_usec;

                if (counts && node->level < level)
                        level = node->level;
        }
        return level;
}

static int apply_level(struct apply *a) {
        uint32_t level = a->command->level->level;

        if (level <= a->state->level)
                return apply_refuse(a, -EALREADY, "level: the log is at feature level %u already", a->state->level);
        for (size_t i = 0; i < a->state->n_nodes; i++) {
                const Rm__Node *node = a->state->nodes[i];

                if (node->level < level && !may_be_left_behind(a->state, node))
                        return apply_refuse(a, -EBUSY, "level: node '%s' knows feature level %u, not %u", node->name, node->level,
                                            level);
        }
        a->state->level = level;
        return 0;
}

struct handler {
        Rm__Command__BodyCase body;
        int (*apply)(struct apply *a);
        bool asked_for; /* it calls apply_goes_on() before it changes anything */
};

static const struct handler handlers[] = {
        { RM__COMMAND__BODY_NODE_JOIN, apply_node_join },
        { RM__COMMAND__BODY_NODE_HEALTH, apply_node_health },
        { RM__COMMAND__BODY_NODE_DRAIN, apply_node_drain, true },
        { RM__COMMAND__BODY_NODE_RESUME, apply_node_resume, true },
        { RM__COMMAND__BODY_NODE_OVERDUE, apply_node_overdue },
        { RM__COMMAND__BODY_NODE_CONDITION, apply_node_condition, true },
        { RM__COMMAND__BODY_AVAILABILITY, apply_availability },
        { RM__COMMAND__BODY_JOB_SUBMIT, apply_job_submit, true },
        { RM__COMMAND__BODY_JOB_AVAILABILITY, apply_job_availability },
        { RM__COMMAND__BODY_JOB_WAIT, apply_job_wait },
        { RM__COMMAND__BODY_JOB_SPARES, apply_job_spares },
        { RM__COMMAND__BODY_JOB_PLACE, apply_job_place },
        { RM__COMMAND__BODY_CAPSULE_READY, apply_capsule_ready },
        { RM__COMMAND__BODY_CAPSULE_GONE, apply_capsule_gone },
        { RM__COMMAND__BODY_JOB_RUNNING, apply_job_running },
        { RM__COMMAND__BODY_JOB_CANCEL, apply_job_cancel, true },
        { RM__COMMAND__BODY_JOB_EXIT, apply_job_exit },
        { RM__COMMAND__BODY_JOB_FORGET, apply_job_forget },
        { RM__COMMAND__BODY_JOB_OUTPUT_DONE, apply_job_output_done, true },
        { RM__COMMAND__BODY_MOVE_START, apply_move_start, true },
        { RM__COMMAND__BODY_MOVE_COMMIT, apply_move_commit },
        { RM__COMMAND__BODY_MOVE_ABORT, apply_move_abort },
        { RM__COMMAND__BODY_MOVE_DONE, apply_move_done },
        { RM__COMMAND__BODY_MOVE_WAITING, apply_move_waiting },
        { RM__COMMAND__BODY_MOVE_FILLED, apply_move_filled },
        { RM__COMMAND__BODY_NOTE, apply_note },
        { RM__COMMAND__BODY_SCHEDULING, apply_scheduling },
        { RM__COMMAND__BODY_TOPOLOGY, apply_topology },
        { RM__COMMAND__BODY_JOB_CORES, apply_job_cores },
        { RM__COMMAND__BODY_CAPSULE_BLOCKER, apply_capsule_blocker },
        { RM__COMMAND__BODY_GROUP_END, apply_group_end },
        { RM__COMMAND__BODY_JOB_RESTART, apply_job_restart },
        { RM__COMMAND__BODY_NODE_FENCE, apply_node_fence, true },
        { RM__COMMAND__BODY_LEVEL, apply_level },
        { RM__COMMAND__BODY_VOTERS, apply_voters },
        { RM__COMMAND__BODY_NODE_REMOVE, apply_node_remove, true },
        { RM__COMMAND__BODY_LEASE, apply_lease },
        { RM__COMMAND__BODY_CHECKPOINT_START, apply_checkpoint_start, true },
        { RM__COMMAND__BODY_CHECKPOINT_CAPTURED, apply_checkpoint_captured },
        { RM__COMMAND__BODY_CHECKPOINT_STORED, apply_checkpoint_stored },
        { RM__COMMAND__BODY_CHECKPOINT_UNCOPIED, apply_checkpoint_uncopied },
        { RM__COMMAND__BODY_CHECKPOINT_COPY_LOST, apply_checkpoint_copy_lost },
        { RM__COMMAND__BODY_CHECKPOINT_COPY_REQUESTED, apply_checkpoint_copy_requested },
        { RM__COMMAND__BODY_CHECKPOINT_IMPORT, apply_checkpoint_import, true },
        { RM__COMMAND__BODY_CHECKPOINT_ABORT, apply_checkpoint_abort },
        { RM__COMMAND__BODY_CHECKPOINT_UNRESTORED, apply_checkpoint_unrestored },
        { RM__COMMAND__BODY_CHECKPOINT_DRILLED, apply_checkpoint_drilled },
        { RM__COMMAND__BODY_CHECKPOINT_REMOVE, apply_checkpoint_remove, true },
        { RM__COMMAND__BODY_JOB_RELEASE, apply_job_release, true },
        { RM__COMMAND__BODY_JOB_RESIZE, apply_job_resize, true },
        { RM__COMMAND__BODY_JOB_RESIZE_REPORTED, apply_job_resize_reported },
        { RM__COMMAND__BODY_JOB_RANKS_REPORTED, apply_job_ranks_reported },
        { RM__COMMAND__BODY_JOB_OWN_STATE, apply_job_own_state },
        { RM__COMMAND__BODY_JOB_RATES, apply_job_rates },
        { RM__COMMAND__BODY_JOB_REQUEUE, apply_job_requeue },
};

static const struct handler *find_handler(const Rm__Command *command) {
        for (size_t i = 0; i < ARRAY_SIZE(handlers); i++)
                if (handlers[i].body == command->body_case)
                        return &handlers[i];
        return NULL;
}

int state_understands(const Rm__Command *command, struct rm_error *err) {
        if (!find_handler(command))
                return error_set(err, -ENOTSUP, "this version of rmd does not know the command; update rmd on this node");
        if (!message_known(&command->base))
                return error_set(err, -ENOTSUP,
                                 "this version of rmd does not know all that is in the command; update rmd on this node");
        if (command->body_case == RM__COMMAND__BODY_LEVEL && command->level->level > STATE_LEVEL)
                return error_set(
                        err, -ENOTSUP,
                        "the cluster is raised to feature level %u, and this version of rmd knows %u; update rmd on this node",
                        command->level->level, STATE_LEVEL);
        return 0;
}

int state_understands_state(const Rm__State *state, struct rm_error *err) {
        if (state->level > STATE_LEVEL)
                return error_set(err, -ENOTSUP,
                                 "the cluster is at feature level %u, and this version of rmd knows %u; update rmd on this node",
                                 state->level, STATE_LEVEL);
        if (!message_known(&state->base))
                return error_set(err, -ENOTSUP, "this version of rmd does not know all that is in it; update rmd on this node");
        return 0;
}

/* Leaders take care that a command is not stamped with an earlier time than the one before it; here
 * it is made sure of. */
static uint64_t advance_time(Rm__State *state, uint64_t time_usec) {
        if (time_usec > state->time_usec)
                state->time_usec = time_usec;
        return state->time_usec;
}

/* Tells of ranks that share cores since the command. Its kind does not matter: the events of its
 * consequences tell why they share them. */
static void note_folds(struct apply *a) {
        size_t n;
        cleanup_free Rm__Job **jobs = state_index_take_changed(a->index, &n);

        for (size_t i = 0; i < n; i++) {
                uint32_t ranks;

                if (!state_job_fold(a->index, jobs[i], &ranks))
                        jobs[i]->fold_since_usec = 0;
                else if (jobs[i]->fold_since_usec == 0)
                        jobs[i]->fold_since_usec = a->time_usec;
        }
}

void state_apply(Rm__State *state, struct state_index *index, uint64_t entry, const Rm__Command *command,
                 struct state_result *ret_result) {
        struct apply a = { .state = state, .index = index, .command = command, .result = ret_result };

        assert(entry > state->index); /* each entry is applied once, and none before an earlier one */
        memset(ret_result, 0, sizeof(*ret_result));
        if (state_understands(command, &ret_result->error) < 0) {
                ret_result->unknown = true;
                return;
        }
        state->index = entry;
        a.time_usec = advance_time(state, command->time_usec);
        if (command->origin && !session_admits(&a))
                return;
        (void) find_handler(command)->apply(&a);
        assert(ret_result->error.code >= 0 || ret_result->n_events == 0); /* a refused command has no effect */
        note_folds(&a);
        if (command->origin)
                session_record(&a);
}

enum state_effect state_effect(const Rm__State *state, const struct state_index *index, const Rm__Command *command,
                               uint64_t time_usec, struct state_result *ret_result) {
        /* With `only_asked` nothing is changed in the state or the index. */
        struct apply a = { .state = (Rm__State *) state,
                           .index = (struct state_index *) index,
                           .command = command,
                           .time_usec = time_usec,
                           .result = ret_result,
                           .only_asked = true };
        const struct handler *handler = find_handler(command);

        memset(ret_result, 0, sizeof(*ret_result));
        if (!handler || !handler->asked_for)
                return STATE_EFFECT_CHANGE;
        if (handler->apply(&a) < 0)
                return STATE_EFFECT_REFUSED;
        return a.changes ? STATE_EFFECT_CHANGE : STATE_EFFECT_NONE;
}

void state_result_finish(struct state_result *result) {
        for (size_t i = 0; i < result->n_events; i++)
                rm__event__free_unpacked(result->events[i], NULL);
        free(result->events);
        result->events = NULL;
        result->n_events = 0;
}
