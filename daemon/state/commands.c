#include "daemon/state/commands.h"

/* The command's body is the one of this kind, with its defaults. */
#define BEGIN(c, kind, KIND)                                                                                                       \
        do {                                                                                                                       \
                rm__command__init(&(c)->command);                                                                                  \
                rm__cmd_##kind##__init(&(c)->kind);                                                                                \
                (c)->command.body_case = RM__COMMAND__BODY_##KIND;                                                                 \
                (c)->command.kind = &(c)->kind;                                                                                    \
        } while (0)

/* Messages have their texts without const. */
static char *text_of(const char *text) {
        return (char *) (text ? text : protobuf_c_empty_string);
}

/* ---- nodes ---- */

Rm__Command *command_node_join(struct command *c, const Rm__Node *node) {
        BEGIN(c, node_join, NODE_JOIN);
        c->node_join.node = (Rm__Node *) node;
        return &c->command;
}

Rm__Command *command_node_health(struct command *c, const char *node, Rm__NodeHealth health, const char *why) {
        BEGIN(c, node_health, NODE_HEALTH);
        c->node_health.node = text_of(node);
        c->node_health.health = health;
        c->node_health.why = text_of(why);
        return &c->command;
}

Rm__Command *command_node_fence(struct command *c, const char *node, uint64_t down_since_usec, bool fenced, const char *text,
                                const char *by) {
        BEGIN(c, node_fence, NODE_FENCE);
        c->node_fence.node = text_of(node);
        c->node_fence.down_since_usec = down_since_usec;
        c->node_fence.fenced = fenced;
        c->node_fence.text = text_of(text);
        c->node_fence.by = text_of(by);
        return &c->command;
}

Rm__Command *command_node_drain(struct command *c, const char *node, const char *reason, const char *by, uint64_t deadline_usec,
                                bool update) {
        BEGIN(c, node_drain, NODE_DRAIN);
        c->node_drain.node = text_of(node);
        c->node_drain.reason = text_of(reason);
        c->node_drain.by = text_of(by);
        c->node_drain.drain_deadline_usec = deadline_usec;
        c->node_drain.update = update;
        return &c->command;
}

Rm__Command *command_node_overdue(struct command *c, const Rm__Node *node) {
        BEGIN(c, node_overdue, NODE_OVERDUE);
        c->node_overdue.node = text_of(node->name);
        c->node_overdue.drain_deadline_usec = node->drain_deadline_usec;
        return &c->command;
}

Rm__Command *command_node_condition(struct command *c, const char *node, const char *source, Rm__Condition condition,
                                    const char *reason, const char *by) {
        BEGIN(c, node_condition, NODE_CONDITION);
        c->node_condition.node = text_of(node);
        c->node_condition.source = text_of(source);
        c->node_condition.condition = condition;
        c->node_condition.reason = text_of(reason);
        c->node_condition.by = text_of(by);
        return &c->command;
}

Rm__Command *command_node_resume(struct command *c, const char *node, const char *by) {
        BEGIN(c, node_resume, NODE_RESUME);
        c->node_resume.node = text_of(node);
        c->node_resume.by = text_of(by);
        return &c->command;
}

Rm__CmdAvailability *command_availability(struct command *c) {
        BEGIN(c, availability, AVAILABILITY);
        return &c->availability;
}

Rm__CmdTopology *command_topology(struct command *c) {
        BEGIN(c, topology, TOPOLOGY);
        return &c->topology;
}

/* ---- jobs ---- */

Rm__CmdJobSubmit *command_job_submit(struct command *c, const Rm__JobSpec *spec) {
        BEGIN(c, job_submit, JOB_SUBMIT);
        c->job_submit.spec = (Rm__JobSpec *) spec;
        return &c->job_submit;
}

Rm__CmdJobAvailability *command_job_availability(struct command *c, uint64_t job) {
        BEGIN(c, job_availability, JOB_AVAILABILITY);
        c->job_availability.job = job;
        return &c->job_availability;
}

Rm__CmdJobWait *command_job_wait(struct command *c, uint64_t job, const char *reason) {
        BEGIN(c, job_wait, JOB_WAIT);
        c->job_wait.job = job;
        c->job_wait.reason = text_of(reason);
        return &c->job_wait;
}

Rm__CmdJobPlace *command_job_place(struct command *c, uint64_t job) {
        BEGIN(c, job_place, JOB_PLACE);
        c->job_place.job = job;
        return &c->job_place;
}

Rm__CmdJobSpares *command_job_spares(struct command *c, uint64_t job) {
        BEGIN(c, job_spares, JOB_SPARES);
        c->job_spares.job = job;
        return &c->job_spares;
}

Rm__CmdJobCores *command_job_cores(struct command *c, uint64_t job) {
        BEGIN(c, job_cores, JOB_CORES);
        c->job_cores.job = job;
        return &c->job_cores;
}

Rm__Command *command_job_running(struct command *c, uint64_t job) {
        BEGIN(c, job_running, JOB_RUNNING);
        c->job_running.job = job;
        return &c->command;
}

Rm__Command *command_job_resize(struct command *c, uint64_t job, uint32_t ranks, const char *by) {
        BEGIN(c, job_resize, JOB_RESIZE);
        c->job_resize.job = job;
        c->job_resize.ranks = ranks;
        c->job_resize.by = text_of(by);
        return &c->command;
}

Rm__Command *command_job_resize_auto(struct command *c, uint64_t job, uint32_t ranks, const char *reason) {
        Rm__Command *command = command_job_resize(c, job, ranks, "");

        c->job_resize.reason = text_of(reason);
        return command;
}

Rm__CmdJobRates *command_job_rates(struct command *c, uint64_t job, uint32_t attempt) {
        BEGIN(c, job_rates, JOB_RATES);
        c->job_rates.job = job;
        c->job_rates.attempt = attempt;
        return &c->job_rates;
}

Rm__Command *command_job_own_state(struct command *c, uint64_t job, uint32_t attempt, bool own_state) {
        BEGIN(c, job_own_state, JOB_OWN_STATE);
        c->job_own_state.job = job;
        c->job_own_state.attempt = attempt;
        c->job_own_state.own_state = own_state;
        return &c->command;
}

Rm__Command *command_job_requeue(struct command *c, uint64_t job, uint32_t attempt, const char *reason) {
        BEGIN(c, job_requeue, JOB_REQUEUE);
        c->job_requeue.job = job;
        c->job_requeue.attempt = attempt;
        c->job_requeue.reason = text_of(reason);
        return &c->command;
}

Rm__CmdJobResizeReported *command_job_resize_reported(struct command *c, uint64_t job, uint32_t attempt) {
        BEGIN(c, job_resize_reported, JOB_RESIZE_REPORTED);
        c->job_resize_reported.job = job;
        c->job_resize_reported.attempt = attempt;
        return &c->job_resize_reported;
}

Rm__CmdJobRanksReported *command_job_ranks_reported(struct command *c, uint64_t job, uint32_t attempt, int32_t group,
                                                    const char *node) {
        BEGIN(c, job_ranks_reported, JOB_RANKS_REPORTED);
        c->job_ranks_reported.job = job;
        c->job_ranks_reported.attempt = attempt;
        c->job_ranks_reported.group = group;
        c->job_ranks_reported.node = text_of(node);
        return &c->job_ranks_reported;
}

Rm__Command *command_job_cancel(struct command *c, uint64_t job, uint32_t signal, const char *by) {
        BEGIN(c, job_cancel, JOB_CANCEL);
        c->job_cancel.job = job;
        c->job_cancel.signal = signal;
        c->job_cancel.by = text_of(by);
        return &c->command;
}

Rm__Command *command_job_timeout(struct command *c, uint64_t job, uint32_t signal) {
        BEGIN(c, job_cancel, JOB_CANCEL);
        c->job_cancel.job = job;
        c->job_cancel.signal = signal;
        c->job_cancel.timeout = true;
        return &c->command;
}

Rm__Command *command_job_exit(struct command *c, uint64_t job, int exit_code, const char *reason, Rm__JobState final_state) {
        BEGIN(c, job_exit, JOB_EXIT);
        c->job_exit.job = job;
        c->job_exit.exit_code = exit_code;
        c->job_exit.reason = text_of(reason);
        c->job_exit.final_state = final_state;
        return &c->command;
}

Rm__Command *command_job_restart(struct command *c, uint64_t job, uint32_t attempt, const char *node, const char *reason,
                                 bool down) {
        BEGIN(c, job_restart, JOB_RESTART);
        c->job_restart.job = job;
        c->job_restart.attempt = attempt;
        c->job_restart.node = text_of(node);
        c->job_restart.reason = text_of(reason);
        c->job_restart.down = down;
        return &c->command;
}

Rm__Command *command_job_forget(struct command *c, uint64_t job) {
        BEGIN(c, job_forget, JOB_FORGET);
        c->job_forget.job = job;
        return &c->command;
}

Rm__Command *command_job_output_done(struct command *c, uint64_t job) {
        BEGIN(c, job_output_done, JOB_OUTPUT_DONE);
        c->job_output_done.job = job;
        return &c->command;
}

/* ---- capsules ---- */

Rm__Command *command_capsule_ready(struct command *c, uint64_t job, int32_t capsule, const char *node) {
        BEGIN(c, capsule_ready, CAPSULE_READY);
        c->capsule_ready.job = job;
        c->capsule_ready.capsule = capsule;
        c->capsule_ready.node = text_of(node);
        return &c->command;
}

Rm__Command *command_capsule_gone(struct command *c, uint64_t job, int32_t capsule, uint64_t incarnation, const char *node) {
        BEGIN(c, capsule_gone, CAPSULE_GONE);
        c->capsule_gone.job = job;
        c->capsule_gone.capsule = capsule;
        c->capsule_gone.incarnation = incarnation;
        c->capsule_gone.node = text_of(node);
        return &c->command;
}

Rm__Command *command_capsule_blocker(struct command *c, uint64_t job, int32_t capsule, const char *node, const char *text,
                                     bool changed) {
        BEGIN(c, capsule_blocker, CAPSULE_BLOCKER);
        c->capsule_blocker.job = job;
        c->capsule_blocker.capsule = capsule;
        c->capsule_blocker.node = text_of(node);
        c->capsule_blocker.text = text_of(text);
        c->capsule_blocker.changed = changed;
        return &c->command;
}

Rm__CmdGroupEnd *command_group_end(struct command *c, uint64_t job, int32_t group, const char *node) {
        BEGIN(c, group_end, GROUP_END);
        c->group_end.job = job;
        c->group_end.group = group;
        c->group_end.node = text_of(node);
        return &c->group_end;
}

/* ---- moves ---- */

Rm__CmdMoveStart *command_move_start(struct command *c, uint64_t job, int32_t capsule, const char *to) {
        BEGIN(c, move_start, MOVE_START);
        c->move_start.job = job;
        c->move_start.capsule = capsule;
        c->move_start.to = text_of(to);
        return &c->move_start;
}

Rm__Command *command_move_commit(struct command *c, uint64_t move, uint64_t later_bytes) {
        BEGIN(c, move_commit, MOVE_COMMIT);
        c->move_commit.move = move;
        c->move_commit.later_bytes = later_bytes;
        return &c->command;
}

Rm__Command *command_move_abort(struct command *c, uint64_t move, const char *error, Rm__MoveFailure failure) {
        BEGIN(c, move_abort, MOVE_ABORT);
        c->move_abort.move = move;
        c->move_abort.error = text_of(error);
        c->move_abort.failure = failure;
        return &c->command;
}

Rm__Command *command_move_done(struct command *c, const Rm__Move *figures) {
        BEGIN(c, move_done, MOVE_DONE);
        c->move_done.figures = (Rm__Move *) figures;
        return &c->command;
}

Rm__Command *command_move_waiting(struct command *c, uint64_t move, const char *text) {
        BEGIN(c, move_waiting, MOVE_WAITING);
        c->move_waiting.move = move;
        c->move_waiting.text = text_of(text);
        return &c->command;
}

Rm__Command *command_move_filled(struct command *c, uint64_t move, uint64_t fill_usec) {
        BEGIN(c, move_filled, MOVE_FILLED);
        c->move_filled.move = move;
        c->move_filled.fill_usec = fill_usec;
        return &c->command;
}

/* ---- checkpoints ---- */

Rm__CmdCheckpointCaptured *command_checkpoint_captured(struct command *c, uint64_t job, uint64_t checkpoint) {
        BEGIN(c, checkpoint_captured, CHECKPOINT_CAPTURED);
        c->checkpoint_captured.job = job;
        c->checkpoint_captured.checkpoint = checkpoint;
        return &c->checkpoint_captured;
}

Rm__CmdCheckpointStored *command_checkpoint_stored(struct command *c, uint64_t job, uint64_t checkpoint, int32_t capsule,
                                                   const char *node) {
        BEGIN(c, checkpoint_stored, CHECKPOINT_STORED);
        c->checkpoint_stored.job = job;
        c->checkpoint_stored.checkpoint = checkpoint;
        c->checkpoint_stored.capsule = capsule;
        c->checkpoint_stored.node = text_of(node);
        return &c->checkpoint_stored;
}

Rm__Command *command_checkpoint_uncopied(struct command *c, uint64_t job, uint64_t checkpoint, int32_t capsule, const char *node,
                                         const char *error) {
        BEGIN(c, checkpoint_uncopied, CHECKPOINT_UNCOPIED);
        c->checkpoint_uncopied.job = job;
        c->checkpoint_uncopied.checkpoint = checkpoint;
        c->checkpoint_uncopied.capsule = capsule;
        c->checkpoint_uncopied.node = text_of(node);
        c->checkpoint_uncopied.error = text_of(error);
        return &c->command;
}

Rm__Command *command_checkpoint_copy_lost(struct command *c, uint64_t job, uint64_t checkpoint, int32_t capsule, const char *node,
                                          const char *error) {
        BEGIN(c, checkpoint_copy_lost, CHECKPOINT_COPY_LOST);
        c->checkpoint_copy_lost.job = job;
        c->checkpoint_copy_lost.checkpoint = checkpoint;
        c->checkpoint_copy_lost.capsule = capsule;
        c->checkpoint_copy_lost.node = text_of(node);
        c->checkpoint_copy_lost.error = text_of(error);
        return &c->command;
}

Rm__Command *command_checkpoint_copy_requested(struct command *c, uint64_t job, uint64_t checkpoint, int32_t capsule,
                                               const char *node) {
        BEGIN(c, checkpoint_copy_requested, CHECKPOINT_COPY_REQUESTED);
        c->checkpoint_copy_requested.job = job;
        c->checkpoint_copy_requested.checkpoint = checkpoint;
        c->checkpoint_copy_requested.capsule = capsule;
        c->checkpoint_copy_requested.node = text_of(node);
        return &c->command;
}

Rm__Command *command_checkpoint_import(struct command *c, const Rm__Job *job, const char *node, const char *by,
                                       const Rm__UserLimits *limits) {
        BEGIN(c, checkpoint_import, CHECKPOINT_IMPORT);
        c->checkpoint_import.job = (Rm__Job *) job;
        c->checkpoint_import.node = text_of(node);
        c->checkpoint_import.by = text_of(by);
        c->checkpoint_import.limits = (Rm__UserLimits *) limits;
        return &c->command;
}

Rm__Command *command_checkpoint_abort(struct command *c, uint64_t job, uint64_t checkpoint, const char *error) {
        BEGIN(c, checkpoint_abort, CHECKPOINT_ABORT);
        c->checkpoint_abort.job = job;
        c->checkpoint_abort.checkpoint = checkpoint;
        c->checkpoint_abort.error = text_of(error);
        return &c->command;
}

Rm__CmdCheckpointUnrestored *command_checkpoint_unrestored(struct command *c, uint64_t job, uint64_t checkpoint, const char *node,
                                                           const char *error) {
        BEGIN(c, checkpoint_unrestored, CHECKPOINT_UNRESTORED);
        c->checkpoint_unrestored.job = job;
        c->checkpoint_unrestored.checkpoint = checkpoint;
        c->checkpoint_unrestored.node = text_of(node);
        c->checkpoint_unrestored.error = text_of(error);
        return &c->checkpoint_unrestored;
}

Rm__CmdCheckpointDrilled *command_checkpoint_drilled(struct command *c, uint64_t job, uint64_t checkpoint, int32_t capsule,
                                                     const char *node) {
        BEGIN(c, checkpoint_drilled, CHECKPOINT_DRILLED);
        c->checkpoint_drilled.job = job;
        c->checkpoint_drilled.checkpoint = checkpoint;
        c->checkpoint_drilled.capsule = capsule;
        c->checkpoint_drilled.node = text_of(node);
        return &c->checkpoint_drilled;
}

Rm__CmdCheckpointStart *command_checkpoint_start(struct command *c, uint64_t job, Rm__CheckpointCause cause) {
        BEGIN(c, checkpoint_start, CHECKPOINT_START);
        c->checkpoint_start.job = job;
        c->checkpoint_start.cause = cause;
        return &c->checkpoint_start;
}

Rm__Command *command_checkpoint_remove(struct command *c, uint64_t job, uint64_t checkpoint, const char *by) {
        BEGIN(c, checkpoint_remove, CHECKPOINT_REMOVE);
        c->checkpoint_remove.job = job;
        c->checkpoint_remove.checkpoint = checkpoint;
        c->checkpoint_remove.by = text_of(by);
        return &c->command;
}

Rm__Command *command_job_release(struct command *c, uint64_t job, uint64_t checkpoint, const char *by,
                                 const Rm__UserLimits *limits) {
        BEGIN(c, job_release, JOB_RELEASE);
        c->job_release.job = job;
        c->job_release.checkpoint = checkpoint;
        c->job_release.by = text_of(by);
        c->job_release.limits = (Rm__UserLimits *) limits;
        return &c->command;
}

/* ---- the log ---- */

Rm__Command *command_level(struct command *c, uint32_t level) {
        BEGIN(c, level, LEVEL);
        c->level.level = level;
        return &c->command;
}

Rm__Command *command_voters(struct command *c, const char *const *nodes, size_t n) {
        BEGIN(c, voters, VOTERS);
        c->voters.nodes = (char **) nodes;
        c->voters.n_nodes = n;
        return &c->command;
}

Rm__Command *command_lease(struct command *c, uint64_t usec) {
        BEGIN(c, lease, LEASE);
        c->lease.usec = usec;
        return &c->command;
}

Rm__Command *command_node_remove(struct command *c, const char *node, const char *by, bool again) {
        BEGIN(c, node_remove, NODE_REMOVE);
        c->node_remove.node = (char *) node;
        c->node_remove.by = (char *) by;
        c->node_remove.again = again;
        return &c->command;
}

/* ---- texts ---- */

Rm__Command *command_scheduling(struct command *c, const char *warning) {
        BEGIN(c, scheduling, SCHEDULING);
        c->scheduling.warning = text_of(warning);
        return &c->command;
}

Rm__Command *command_note(struct command *c, const char *text) {
        BEGIN(c, note, NOTE);
        c->note.text = text_of(text);
        return &c->command;
}
