/* Commands for the log, made in one line: room for a command and its body, and a function for each
 * kind that fills it in.
 *
 *   struct command c;
 *   cluster_propose(cluster, command_job_running(&c, job), NULL, NULL);
 *
 * Nothing is copied: what a function is given must last as long as the command is used, which is
 * until cluster_propose() returns. Texts that may be NULL say so. Kinds with many fields return
 * their body, with its defaults, to be filled in; the command is `&c.command`. */
#ifndef RM_STATE_COMMANDS_H
#define RM_STATE_COMMANDS_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/state.pb-c.h"

struct command {
        Rm__Command command;
        union {
                Rm__CmdNodeJoin node_join;
                Rm__CmdNodeHealth node_health;
                Rm__CmdNodeDrain node_drain;
                Rm__CmdNodeResume node_resume;
                Rm__CmdNodeFence node_fence;
                Rm__CmdNodeOverdue node_overdue;
                Rm__CmdNodeCondition node_condition;
                Rm__CmdAvailability availability;
                Rm__CmdJobSubmit job_submit;
                Rm__CmdJobAvailability job_availability;
                Rm__CmdJobWait job_wait;
                Rm__CmdJobPlace job_place;
                Rm__CmdJobSpares job_spares;
                Rm__CmdJobCores job_cores;
                Rm__CmdCapsuleReady capsule_ready;
                Rm__CmdCapsuleGone capsule_gone;
                Rm__CmdCapsuleBlocker capsule_blocker;
                Rm__CmdGroupEnd group_end;
                Rm__CmdJobRunning job_running;
                Rm__CmdJobCancel job_cancel;
                Rm__CmdJobExit job_exit;
                Rm__CmdJobRestart job_restart;
                Rm__CmdJobForget job_forget;
                Rm__CmdJobOutputDone job_output_done;
                Rm__CmdMoveStart move_start;
                Rm__CmdMoveCommit move_commit;
                Rm__CmdMoveAbort move_abort;
                Rm__CmdMoveDone move_done;
                Rm__CmdMoveWaiting move_waiting;
                Rm__CmdMoveFilled move_filled;
                Rm__CmdCheckpointStart checkpoint_start;
                Rm__CmdCheckpointRemove checkpoint_remove;
                Rm__CmdJobRelease job_release;
                Rm__CmdTopology topology;
                Rm__CmdScheduling scheduling;
                Rm__CmdNote note;
                Rm__CmdLevel level;
                Rm__CmdVoters voters;
                Rm__CmdNodeRemove node_remove;
                Rm__CmdLease lease;
                Rm__CmdCheckpointCaptured checkpoint_captured;
                Rm__CmdCheckpointStored checkpoint_stored;
                Rm__CmdCheckpointUncopied checkpoint_uncopied;
                Rm__CmdCheckpointCopyLost checkpoint_copy_lost;
                Rm__CmdCheckpointCopyRequested checkpoint_copy_requested;
                Rm__CmdCheckpointImport checkpoint_import;
                Rm__CmdCheckpointAbort checkpoint_abort;
                Rm__CmdCheckpointDrilled checkpoint_drilled;
                Rm__CmdCheckpointUnrestored checkpoint_unrestored;
                Rm__CmdJobResize job_resize;
                Rm__CmdJobResizeReported job_resize_reported;
                Rm__CmdJobRanksReported job_ranks_reported;
                Rm__CmdJobOwnState job_own_state;
                Rm__CmdJobRates job_rates;
                Rm__CmdJobRequeue job_requeue;
        };
};

/* ---- nodes ---- */
Rm__Command *command_node_join(struct command *c, const Rm__Node *node);
Rm__Command *command_node_health(struct command *c, const char *node, Rm__NodeHealth health, const char *why);
/* `deadline_usec`: by the log's clock; 0: none. `update`: a node that is drained already gets the
 * new reason and deadline; else that is refused. */
Rm__Command *command_node_drain(struct command *c, const char *node, const char *reason, const char *by, uint64_t deadline_usec,
                                bool update);
Rm__Command *command_node_overdue(struct command *c, const Rm__Node *node);
/* `reason`: not empty unless `condition` is OK. */
Rm__Command *command_node_condition(struct command *c, const char *node, const char *source, Rm__Condition condition,
                                    const char *reason, const char *by);
Rm__Command *command_node_resume(struct command *c, const char *node, const char *by);
/* `again`: by the leader, when nothing may be on it any more. */
Rm__Command *command_node_remove(struct command *c, const char *node, const char *by, bool again);
Rm__Command *command_voters(struct command *c, const char *const *nodes, size_t n);
Rm__Command *command_lease(struct command *c, uint64_t usec);
/* `text`: how far it is, or "" from an administrator, whom `by` names then (NULL: none). */
Rm__Command *command_node_fence(struct command *c, const char *node, uint64_t down_since_usec, bool fenced, const char *text,
                                const char *by);
Rm__CmdAvailability *command_availability(struct command *c);
Rm__CmdTopology *command_topology(struct command *c);

/* ---- jobs ---- */
Rm__CmdJobSubmit *command_job_submit(struct command *c, const Rm__JobSpec *spec);
Rm__CmdJobAvailability *command_job_availability(struct command *c, uint64_t job);
Rm__CmdJobWait *command_job_wait(struct command *c, uint64_t job, const char *reason);
Rm__CmdJobPlace *command_job_place(struct command *c, uint64_t job);
Rm__CmdJobSpares *command_job_spares(struct command *c, uint64_t job);
Rm__CmdJobCores *command_job_cores(struct command *c, uint64_t job);
Rm__Command *command_job_running(struct command *c, uint64_t job);
/* Asked for by this user. */
Rm__Command *command_job_resize(struct command *c, uint64_t job, uint32_t ranks, const char *by);
/* rmd itself wants the resize. */
Rm__Command *command_job_resize_auto(struct command *c, uint64_t job, uint32_t ranks, const char *reason);
Rm__CmdJobResizeReported *command_job_resize_reported(struct command *c, uint64_t job, uint32_t attempt);
Rm__CmdJobRanksReported *command_job_ranks_reported(struct command *c, uint64_t job, uint32_t attempt, int32_t group,
                                                    const char *node);
Rm__Command *command_job_own_state(struct command *c, uint64_t job, uint32_t attempt, bool own_state);
Rm__CmdJobRates *command_job_rates(struct command *c, uint64_t job, uint32_t attempt);
Rm__Command *command_job_requeue(struct command *c, uint64_t job, uint32_t attempt, const char *reason);
/* Asked for by this user. */
Rm__Command *command_job_cancel(struct command *c, uint64_t job, uint32_t signal, const char *by);
/* The time limit of the job is over. */
Rm__Command *command_job_timeout(struct command *c, uint64_t job, uint32_t signal);
/* `final_state` 0: by the exit code. `reason` NULL ok. */
Rm__Command *command_job_exit(struct command *c, uint64_t job, int exit_code, const char *reason, Rm__JobState final_state);
/* `attempt` follows, since the node is lost: `down`, or else started again without its capsules. */
Rm__Command *command_job_restart(struct command *c, uint64_t job, uint32_t attempt, const char *node, const char *reason,
                                 bool down);
Rm__Command *command_job_forget(struct command *c, uint64_t job);
Rm__Command *command_job_output_done(struct command *c, uint64_t job);

/* ---- capsules: what their node tells ---- */
Rm__Command *command_capsule_ready(struct command *c, uint64_t job, int32_t capsule, const char *node);
Rm__Command *command_capsule_gone(struct command *c, uint64_t job, int32_t capsule, uint64_t incarnation, const char *node);
Rm__Command *command_capsule_blocker(struct command *c, uint64_t job, int32_t capsule, const char *node, const char *text,
                                     bool changed);
Rm__CmdGroupEnd *command_group_end(struct command *c, uint64_t job, int32_t group, const char *node);

/* ---- moves ---- */
Rm__CmdMoveStart *command_move_start(struct command *c, uint64_t job, int32_t capsule, const char *to);
Rm__Command *command_move_commit(struct command *c, uint64_t move, uint64_t later_bytes);
Rm__Command *command_move_abort(struct command *c, uint64_t move, const char *error, Rm__MoveFailure failure);
/* The command takes the id and the measured figures from `figures`, and nothing else. */
Rm__Command *command_move_done(struct command *c, const Rm__Move *figures);
/* `text` "": it does not wait any more. */
Rm__Command *command_move_waiting(struct command *c, uint64_t move, const char *text);
Rm__Command *command_move_filled(struct command *c, uint64_t move, uint64_t fill_usec);

/* ---- checkpoints ---- */
/* The pause and the output's ends are filled in by the caller. */
Rm__CmdCheckpointCaptured *command_checkpoint_captured(struct command *c, uint64_t job, uint64_t checkpoint);
/* `node`, or STATE_STORED_SHARED. What was measured is filled in by the node that captured it. */
Rm__CmdCheckpointStored *command_checkpoint_stored(struct command *c, uint64_t job, uint64_t checkpoint, int32_t capsule,
                                                   const char *node);
Rm__Command *command_checkpoint_uncopied(struct command *c, uint64_t job, uint64_t checkpoint, int32_t capsule, const char *node,
                                         const char *error);
Rm__Command *command_checkpoint_copy_lost(struct command *c, uint64_t job, uint64_t checkpoint, int32_t capsule, const char *node,
                                          const char *error);
Rm__Command *command_checkpoint_copy_requested(struct command *c, uint64_t job, uint64_t checkpoint, int32_t capsule,
                                               const char *node);
/* `job` is borrowed. `node`: that has all of it, or STATE_STORED_SHARED. */
Rm__Command *command_checkpoint_import(struct command *c, const Rm__Job *job, const char *node, const char *by,
                                       const Rm__UserLimits *limits);
Rm__Command *command_checkpoint_abort(struct command *c, uint64_t job, uint64_t checkpoint, const char *error);
Rm__CmdCheckpointDrilled *command_checkpoint_drilled(struct command *c, uint64_t job, uint64_t checkpoint, int32_t capsule,
                                                     const char *node);
Rm__CmdCheckpointUnrestored *command_checkpoint_unrestored(struct command *c, uint64_t job, uint64_t checkpoint, const char *node,
                                                           const char *error);
Rm__CmdCheckpointStart *command_checkpoint_start(struct command *c, uint64_t job, Rm__CheckpointCause cause);
Rm__Command *command_checkpoint_remove(struct command *c, uint64_t job, uint64_t checkpoint, const char *by);
/* `checkpoint` 0: the newest. */
Rm__Command *command_job_release(struct command *c, uint64_t job, uint64_t checkpoint, const char *by,
                                 const Rm__UserLimits *limits);

/* ---- the log ---- */
/* Entries after this one may be of this feature level. */
Rm__Command *command_level(struct command *c, uint32_t level);

/* ---- texts ---- */
/* `warning`: the fault of the policy in the last round; "": none. */
Rm__Command *command_scheduling(struct command *c, const char *warning);
/* An event that changes nothing. */
Rm__Command *command_note(struct command *c, const char *text);

#endif
