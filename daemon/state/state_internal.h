/* Shared between the files that make up state_apply(); no other file includes this. */
#ifndef RM_STATE_STATE_INTERNAL_H
#define RM_STATE_STATE_INTERNAL_H

#include <stdlib.h>
#include <string.h>

#include "common/util.h"
#include "daemon/state/state_index.h"

/* A command that is being applied. */
struct apply {
        Rm__State *state;
        struct state_index *index;
        const Rm__Command *command;
        uint64_t time_usec;
        struct state_result *result;
        bool only_asked; /* what the command would do: nothing is changed (state_effect()) */
        bool changes;    /* it would change something */
};

/* Called by commands that users ask for, after all that may refuse them, and before anything is
 * changed. False: it was only asked what the command would do; `changes`: would the state then be
 * another one than before, apart from notes about who asked? */
static inline bool apply_goes_on(struct apply *a, bool changes) {
        a->changes = changes;
        return !a->only_asked;
}

/* Append an event; text is for people, one line: control characters in it are escaped. `node` NULL
 * ok. */
void apply_event(struct apply *a, const char *kind, const char *node, uint64_t job, uint64_t move, int32_t capsule, const char *fmt,
                 ...) __attribute__((format(printf, 7, 8)));
/* Refuses the command, which must not have changed anything. Returns `code`, a negative errno. */
int apply_refuse(struct apply *a, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* Grow a repeated field by one. */
#define REPEATED_PUSH(array, count, item)                                                                                          \
        do {                                                                                                                       \
                (array) = xrealloc((array), ((count) + 1) * sizeof((array)[0]));                                                   \
                (array)[(count)++] = (item);                                                                                       \
        } while (0)
/* Grow a repeated field once, for so many that REPEATED_ADD() adds then: with tens of thousands,
 * one by one, most of the time would go into copying the field. */
#define REPEATED_RESERVE(array, count, more)                                                                                       \
        do {                                                                                                                       \
                if ((more) > 0)                                                                                                    \
                        (array) = xrealloc((array), ((count) + (more)) * sizeof((array)[0]));                                      \
        } while (0)
#define REPEATED_ADD(array, count, item) ((array)[(count)++] = (item))
/* The same in front of item `at`. */
#define REPEATED_INSERT(array, count, at, item)                                                                                    \
        do {                                                                                                                       \
                REPEATED_PUSH(array, count, item);                                                                                 \
                memmove((array) + (at) + 1, (array) + (at), ((count) - 1 - (at)) * sizeof((array)[0]));                            \
                (array)[at] = (item);                                                                                              \
        } while (0)
/* Takes out item `at`, which is not freed. */
#define REPEATED_REMOVE(array, count, at)                                                                                          \
        do {                                                                                                                       \
                (count)--;                                                                                                         \
                memmove((array) + (at), (array) + (at) + 1, ((count) - (at)) * sizeof((array)[0]));                                \
        } while (0)
/* Makes it copies of `n` other messages. */
#define REPEATED_SET(array, count, from, n)                                                                                        \
        do {                                                                                                                       \
                while ((count) > 0)                                                                                                \
                        protobuf_c_message_free_unpacked(&(array)[--(count)]->base, NULL);                                         \
                free(take_ptr(array));                                                                                             \
                for (size_t i_ = 0; i_ < (n); i_++)                                                                                \
                        REPEATED_PUSH(array, count, (void *) message_copy(&(from)[i_]->base));                                     \
        } while (0)

/* Each function applies the command of its name: 0, or the code of apply_refuse(). */
int apply_node_join(struct apply *a);
int apply_node_health(struct apply *a);
int apply_node_drain(struct apply *a);
int apply_node_overdue(struct apply *a);
int apply_node_condition(struct apply *a);
int apply_node_resume(struct apply *a);
int apply_node_fence(struct apply *a);
int apply_availability(struct apply *a);
int apply_topology(struct apply *a);
int apply_voters(struct apply *a);
int apply_lease(struct apply *a);
int apply_node_remove(struct apply *a);

int apply_job_submit(struct apply *a);
int apply_job_availability(struct apply *a);
int apply_job_wait(struct apply *a);
int apply_job_spares(struct apply *a);
int apply_job_cores(struct apply *a);
int apply_job_place(struct apply *a);
int apply_capsule_ready(struct apply *a);
int apply_capsule_gone(struct apply *a);
int apply_capsule_blocker(struct apply *a);
/* The capsule has moved, or nothing keeps it from that any more. */
void refusal_forget(Rm__Capsule *capsule);
/* The capsule is to be tried again soon; what was told of it stays. */
void refusal_begin_again(Rm__Capsule *capsule);
int apply_job_running(struct apply *a);
int apply_job_cancel(struct apply *a);
int apply_job_exit(struct apply *a);
int apply_group_end(struct apply *a);
int apply_job_restart(struct apply *a);
int apply_job_forget(struct apply *a);
int apply_job_output_done(struct apply *a);

int apply_move_start(struct apply *a);
int apply_move_commit(struct apply *a);
int apply_move_abort(struct apply *a);
int apply_move_done(struct apply *a);
int apply_move_waiting(struct apply *a);
int apply_move_filled(struct apply *a);

int apply_checkpoint_start(struct apply *a);
int apply_checkpoint_captured(struct apply *a);
int apply_checkpoint_stored(struct apply *a);
int apply_checkpoint_uncopied(struct apply *a);
int apply_checkpoint_copy_lost(struct apply *a);
int apply_checkpoint_copy_requested(struct apply *a);
int apply_checkpoint_import(struct apply *a);
int apply_checkpoint_abort(struct apply *a);
int apply_checkpoint_drilled(struct apply *a);
int apply_checkpoint_unrestored(struct apply *a);
int apply_checkpoint_remove(struct apply *a);
int apply_job_release(struct apply *a);
int apply_job_resize(struct apply *a);
int apply_job_resize_reported(struct apply *a);
int apply_job_ranks_reported(struct apply *a);
int apply_job_own_state(struct apply *a);
int apply_job_rates(struct apply *a);
int apply_job_requeue(struct apply *a);
/* The job is being placed, to go on from the checkpoint (NULL: from its beginning). */
void job_resize_begin(const Rm__State *state, Rm__Job *job, const Rm__Checkpoint *checkpoint);
/* The same of the ranks that it has lost. */
void job_rank_losses_begin(const Rm__State *state, Rm__Job *job, const Rm__Checkpoint *checkpoint);
/* The job ends: a successful end of mpirun does not suffice when ranks were lost. */
void job_rank_losses_judge(Rm__Job *job);
/* Before it changes which nodes there are or are UP, and once the level allows it: count the time
 * until now. */
void failures_advance(struct apply *a);
/* To be called before the node's health changes: the node is lost now, because it is DOWN or was
 * restarted. */
void failures_lose(struct apply *a, const Rm__Node *node);

/* Is the command, which has an origin, to be applied now? Otherwise the result is set. */
bool session_admits(struct apply *a);
/* Keeps the result of the command, which was applied or refused. */
void session_record(struct apply *a);

/* ---- what a user may have (state_limits.c, whose head lists the callers) ---- */
/* The increase that a command asks for, beyond what the user has already. */
struct limits_demand {
        uint32_t jobs; /* that have not ended */
        uint32_t ranks; /* of these, or of a copy */
        size_t groups; /* of the job; 0: not known yet */
};
/* -EDQUOT: with that its owner would have more than `limits` allow (NULL: no limits); `what` begins
 * the text ("submit: "), which names the limit. */
int limits_admit(struct apply *a, const char *what, const Rm__UserLimits *limits, const Rm__JobSpec *spec,
                 const struct limits_demand *more);
/* How many ended jobs of this user, and `more` to come, are too many; `limits` NULL: none. */
size_t limits_ended_over(const Rm__State *state, const Rm__UserLimits *limits, uint32_t uid, size_t more);
/* So many are forgotten, those that ended first. */
void limits_forget_ended(struct apply *a, const Rm__UserLimits *limits, uint32_t uid, size_t more);
/* Job `but` has ended, or got a checkpoint. Of others of its owner that have ended, the first ones
 * lose their checkpoints, while those of all of them hold more than STATE_USER_HELD_MAX
 * addresses. */
void limits_forget_checkpoints(struct apply *a, const Rm__Job *but);
/* Forget the job, which has ended. */
void job_remove(struct apply *a, const Rm__Job *job);

/* Jobs in COMPLETING whose capsules are all gone reach their final state: all such jobs, or this
 * one. */
void jobs_finish(struct apply *a);
/* Checkpoints of the job that are not done will not be. */
void job_checkpoints_interrupt(struct apply *a, Rm__Job *job, const char *why);
/* The same without a word, since the job has ended. */
void job_checkpoints_drop(Rm__Job *job);
/* Restores that have failed do not count any more, nor does what was said for them. */
void job_restores_forget(Rm__Job *job);
/* Forgets all checkpoints of the job, since the job will not go on from any of them. */
void job_checkpoints_forget(Rm__Job *job);
/* Forgets the capsules of the job and its size of groups; not while an index points at them. */
void job_drop_capsules(Rm__Job *job);
/* The next attempt of the job begins, which counts for JobSpec.restarts; only if
 * job_may_restart(). */
void job_restart(struct apply *a, Rm__Job *job, const char *reason);
/* The running job cannot go on: it has FAILED. */
void job_fail(struct apply *a, Rm__Job *job, const char *reason);
/* The job leaves its nodes, and is PENDING, to go on from its newest checkpoint; `held`: only when
 * a user releases it. */
void job_requeue(struct apply *a, Rm__Job *job, bool held, const char *reason);
/* A job that waits goes on from a checkpoint, now or when a node is back, or begins again without
 * losing one that no node could send. */
bool job_goes_on_by_itself(const Rm__State *state, const Rm__Job *job);
/* The job's capsules are placed to go on from a checkpoint, and nothing runs in them yet. */
bool job_is_restored(const Rm__Job *job);
struct unrestored {
        const char *text;
        bool passing; /* it may succeed another time */
        bool unread; /* no node could send the checkpoint */
};
/* A job of which job_is_restored() holds leaves its nodes, and none of its checkpoints goes. The
 * same checkpoint is tried STATE_RESTORES_MAX times where that may help, then the one before if
 * this one cannot be read; else the job is held. */
void job_unrestored(struct apply *a, Rm__Job *job, const struct unrestored *why);
/* For each address, whether a checkpoint of some job needs it: an array of STATE_CAPSULES_MAX + 1,
 * malloc'ed. `but`: those of this job do not count; NULL ok. */
bool *checkpoint_addresses(const Rm__State *state, const Rm__Job *but);
/* The job comes to its final state. */
void job_end(struct apply *a, Rm__Job *job, Rm__JobState final_state);
/* These nodes are kept free for it, and no others. */
void job_set_spares(Rm__Job *job, char *const *nodes, size_t n);
/* The job is RECOVERING: it waits for its next attempt once all its capsules are gone. */
void job_recover(struct apply *a, Rm__Job *job);
/* Notes that nothing of the job's attempt is left on any node. */
void job_left(const struct apply *a, Rm__Job *job);
/* The node was started again, so that nothing of before runs on it: what that means for jobs whose
 * mpirun has ended meanwhile. */
void jobs_lose_boot(struct apply *a, const char *node);
/* How this group ended can no longer be told: mpirun's exit code 0 does not say that it ended
 * well. */
void job_fail_unheard(Rm__Job *job, const Rm__Capsule *capsule);
/* All moves of a job that are not committed end. */
void job_moves_end(struct apply *a, uint64_t job, const char *why);
/* The others too: what they have left behind is of an attempt that is lost. */
void job_moves_forget(struct apply *a, uint64_t job, const char *why);
/* Tell of a drained or failing node that has just become empty. */
void node_emptied(struct apply *a, const char *name);

#endif
