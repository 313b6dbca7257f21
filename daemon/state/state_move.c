#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/text.h"
#include "common/util.h"
#include "daemon/state/state_internal.h"

/* The oldest moves that have ended are forgotten; one that never ends, its source being lost, does
 * not keep the others. */
static void prune_moves(Rm__State *state) {
        for (size_t i = 0; state->n_moves > STATE_MOVES_KEPT && i < state->n_moves;) {
                Rm__Move *move = state->moves[i];

                if (move->state == RM__MOVE_STATE__MOVE_RUNNING || move->state == RM__MOVE_STATE__MOVE_COMMITTED) {
                        i++;
                        continue;
                }
                rm__move__free_unpacked(move, NULL);
                REPEATED_REMOVE(state->moves, state->n_moves, i);
        }
}

/* The move that this user asked for and that is under way; NULL: none. */
static const Rm__Move *asked_by(const struct state_index *index, uint32_t uid) {
        size_t n;
        Rm__Move *const *moves = state_open_moves(index, &n);

        for (size_t i = n; i > 0; i--)
                if (moves[i - 1]->cause == RM__MOVE_CAUSE__MOVE_CAUSE_ASKED && moves[i - 1]->asked_uid == uid)
                        return moves[i - 1];
        return NULL;
}

static int check_asked(struct apply *a, const Rm__CmdMoveStart *in) {
        const Rm__Move *open = in->one_at_a_time ? asked_by(a->index, in->asked_uid) : NULL;

        if (!open)
                return 0;
        return apply_refuse(a, -EBUSY,
                            "migrate: move %" PRIu64 " of job %" PRIu64
                            ", which you requested, is in progress; users may ask for one at a "
                            "time",
                            open->id, open->job);
}

/* A running group may go to a node with a warning, where no job starts: that is better than to
 * share cores, or to stay on a node that fails. */
static int check_condition(struct apply *a, const Rm__Node *to) {
        const Rm__NodeCondition *worst = node_worst(to);

        if (!worst || worst->condition < RM__CONDITION__CONDITION_FAILING)
                return 0;
        return apply_refuse(a, -EBUSY, "migrate: node '%s' is %s, says %s (reason: %s)", to->name, condition_name(worst->condition),
                            worst->source, worst->reason);
}

static int check_space(struct apply *a, const Rm__CmdMoveStart *in) {
        if (state_capsule_space(a->index, in->to, in->capsules_per_core) > 0)
                return 0;
        return apply_refuse(a, -EDQUOT,
                            "migrate: node '%s' has %u capsules for each core already, which is the limit ([job] "
                            "max_capsules_per_core)",
                            in->to, in->capsules_per_core);
}

/* Programs may use all instruction sets of the node where they run. */
static int check_processors(struct apply *a, const Rm__Node *from, const Rm__Node *to) {
        cleanup_free char *lacks = node_lacks(to, from);

        if (!lacks)
                return 0;
        return apply_refuse(a, -EXDEV,
                            "migrate: node '%s' lacks instruction sets that node '%s' has, and that programs there may use: %s",
                            to->name, from->name, lacks);
}

static int check_start(struct apply *a, const Rm__CmdMoveStart *in, Rm__Capsule **ret_capsule) {
        const Rm__Job *job = state_job(a->state, in->job);
        const Rm__Node *to = state_node(a->state, in->to);
        const Rm__Node *from;
        Rm__Capsule *capsule;
        char word[24];
        int r;

        if (in->cause == RM__MOVE_CAUSE__MOVE_CAUSE_NONE)
                return apply_refuse(a, -EINVAL, "migrate: no cause is given");
        if (!job)
                return apply_refuse(a, -ENOENT, "migrate: no job %" PRIu64, in->job);
        if (job->state != RM__JOB_STATE__JOB_RUNNING)
                return apply_refuse(a, -EBUSY, "migrate: job %" PRIu64 " does not run", in->job);
        capsule = job_capsule(job, in->capsule);
        if (!capsule)
                return apply_refuse(a, -ENOENT, "migrate: job %" PRIu64 " has groups 0 to %zu (and its head, -1), not %" PRId32,
                                    in->job, job->n_capsules - 2, in->capsule);
        if (!to) {
                cleanup_free char *known = state_known_nodes(a->state);

                return apply_refuse(a, -ENOENT, "migrate: no node '%s' (known: %s)", in->to, known);
        }
        if (to->health != RM__NODE_HEALTH__NODE_HEALTH_UP)
                return apply_refuse(a, -EHOSTDOWN, "migrate: node '%s' is not up", in->to);
        if (to->drain)
                return apply_refuse(a, -EBUSY, "migrate: node '%s' is drained by %s (reason: %s); resume-node brings it back",
                                    in->to, to->drain_by, to->drain_reason[0] ? to->drain_reason : "none");
        if ((r = check_condition(a, to)) < 0)
                return r;
        from = state_node(a->state, capsule->node);
        if (!from || from->health != RM__NODE_HEALTH__NODE_HEALTH_UP)
                return apply_refuse(a, -EHOSTDOWN, "migrate: node '%s', where %s of job %" PRIu64 " is, is not up", capsule->node,
                                    capsule_state_name(in->capsule, word), in->job);
        if (strcmp(capsule->node, in->to) == 0)
                return apply_refuse(a, -EALREADY, "migrate: %s of job %" PRIu64 " is on %s already",
                                    capsule_state_name(in->capsule, word), in->job, in->to);
        if (state_capsule_move(a->index, in->job, in->capsule))
                return apply_refuse(a, -EBUSY, "migrate: %s of job %" PRIu64 " is moving already; try again when it has arrived",
                                    capsule_state_name(in->capsule, word), in->job);
        *ret_capsule = capsule;
        r = check_processors(a, from, to);
        if (r == 0)
                r = check_space(a, in);
        return r < 0 ? r : check_asked(a, in);
}

/* Lets the move begin only if it may interrupt a checkpoint. While a job is being saved none of its
 * groups moves until all of it is captured, unless the move is needed: then the checkpoint is given
 * up. */
static int make_way(struct apply *a, const Rm__CmdMoveStart *in) {
        Rm__Job *job = state_job(a->state, in->job);
        const Rm__Checkpoint *checkpoint = job_checkpoint_under_way(job);

        if (!checkpoint || checkpoint->state != RM__CHECKPOINT_STATE__CHECKPOINT_CAPTURING)
                return 0;
        if (in->cause != RM__MOVE_CAUSE__MOVE_CAUSE_NEEDED || checkpoint->stop)
                return apply_refuse(a, -EBUSY,
                                    "migrate: checkpoint %" PRIu64 ".%" PRIu64 " is being captured; try again in a moment", job->id,
                                    checkpoint->id);
        if (apply_goes_on(a, true))
                job_checkpoints_interrupt(a, job, "a node of the job is to be left");
        return 0;
}

int apply_move_start(struct apply *a) {
        const Rm__CmdMoveStart *in = a->command->move_start;
        Rm__Capsule *capsule = NULL;
        Rm__Move *move;
        char word[24];
        int r = check_start(a, in, &capsule);

        if (r == 0)
                r = make_way(a, in);
        if (r < 0 || !apply_goes_on(a, true))
                return r;
        move = xcalloc(1, sizeof(*move));
        rm__move__init(move);
        move->id = a->state->next_move++;
        move->job = in->job;
        move->capsule = in->capsule;
        message_set_string(&move->from, capsule->node);
        message_set_string(&move->to, in->to);
        message_set_string(&move->reason, in->reason);
        move->start_usec = a->time_usec;
        move->stop = in->stop;
        move->cause = in->cause;
        move->incarnation = a->state->next_incarnation++;
        move->asked_uid = in->asked_uid;
        if (in->cause == RM__MOVE_CAUSE__MOVE_CAUSE_ASKED)
                refusal_begin_again(capsule);
        REPEATED_PUSH(a->state->moves, a->state->n_moves, move);
        state_index_move(a->index, move);
        prune_moves(a->state);
        a->result->created = move->id;
        apply_event(a, "move-started", move->from, move->job, move->id, move->capsule,
                    "job %" PRIu64 ": %s moves from %s to %s (%s)", move->job, capsule_state_name(move->capsule, word), move->from,
                    move->to, move->reason);
        return 0;
}

static Rm__Move *find_move(struct apply *a, const char *what, uint64_t id) {
        Rm__Move *move = state_move(a->state, id);

        if (!move)
                (void) apply_refuse(a, -ENOENT, "%s: no move %" PRIu64, what, id);
        return move;
}

void refusal_forget(Rm__Capsule *capsule) {
        if (capsule->refusal)
                rm__refusal__free_unpacked(capsule->refusal, NULL);
        capsule->refusal = NULL;
}

void refusal_begin_again(Rm__Capsule *capsule) {
        if (capsule->refusal)
                capsule->refusal->times = 0;
}

int apply_move_commit(struct apply *a) {
        Rm__Move *move = find_move(a, "move-commit", a->command->move_commit->move);
        Rm__Job *job = move ? state_job(a->state, move->job) : NULL;
        Rm__Capsule *capsule = job ? job_capsule(job, move->capsule) : NULL;
        char word[24];

        if (!move)
                return -ENOENT;
        if (move->state != RM__MOVE_STATE__MOVE_RUNNING || !capsule)
                return apply_refuse(a, -EALREADY, "move-commit: move %" PRIu64 " is over: %s", move->id,
                                    move->error[0] ? move->error : "committed already");
        move->state = RM__MOVE_STATE__MOVE_COMMITTED;
        message_set_string(&move->waiting, NULL);
        message_set_string(&capsule->node, move->to);
        free(capsule->cores); /* those were the other node's */
        capsule->cores = NULL;
        capsule->n_cores = 0;
        message_set_string(&capsule->blocker, NULL); /* it has moved */
        refusal_forget(capsule);
        capsule->incarnation = move->incarnation;
        capsule->moves++;
        job->moves++;
        move->later_bytes = a->command->move_commit->later_bytes;
        state_index_move(a->index, move);
        if (move->later_bytes > 0)
                apply_event(a, "move-postcopy", move->to, move->job, move->id, move->capsule,
                            "job %" PRIu64 ": %s goes on on %s while %.1f MB of its memory are still on %s", move->job,
                            capsule_state_name(move->capsule, word), move->to, (double) move->later_bytes / 1e6, move->from);
        return 0;
}

static void move_end_aborted(struct apply *a, Rm__Move *move, const char *error) {
        char word[24];

        move->state = RM__MOVE_STATE__MOVE_ABORTED;
        move->end_usec = a->time_usec;
        message_set_string(&move->error, error);
        message_set_string(&move->waiting, NULL);
        state_index_move(a->index, move);
        apply_event(a, "move-failed", move->from, move->job, move->id, move->capsule, "job %" PRIu64 ": %s stays on %s: %s",
                    move->job, capsule_state_name(move->capsule, word), move->from, error);
}

/* The next try is the later, the more there were in a row. */
static void refusal_note(struct apply *a, const Rm__Move *move, Rm__MoveFailure failure) {
        Rm__Job *job = state_job(a->state, move->job);
        Rm__Capsule *capsule = job ? job_capsule(job, move->capsule) : NULL;
        char text[STATE_BLOCKER_MAX + 1];

        if (!capsule || failure == RM__MOVE_FAILURE__MOVE_FAILURE_OTHER)
                return;
        if (!capsule->refusal) {
                capsule->refusal = xcalloc(1, sizeof(*capsule->refusal));
                rm__refusal__init(capsule->refusal);
        }
        (void) text_format(text, sizeof(text), "%s", move->error);
        message_set_string(&capsule->refusal->text, text);
        capsule->refusal->failure = failure;
        capsule->refusal->last_usec = a->time_usec;
        capsule->refusal->times++;
}

int apply_move_abort(struct apply *a) {
        Rm__Move *move = find_move(a, "move-abort", a->command->move_abort->move);

        if (!move)
                return -ENOENT;
        if (move->state != RM__MOVE_STATE__MOVE_RUNNING)
                return apply_refuse(a, -EALREADY, "move-abort: move %" PRIu64 " is not running", move->id);
        move_end_aborted(a, move, a->command->move_abort->error);
        refusal_note(a, move, a->command->move_abort->failure);
        node_emptied(a, move->to);
        return 0;
}

void job_moves_end(struct apply *a, uint64_t job, const char *why) {
        size_t n, i = 0;
        Rm__Move *const *moves = state_open_moves(a->index, &n);

        while (i < n) {
                Rm__Move *move = moves[i];

                if (move->job != job || move->state != RM__MOVE_STATE__MOVE_RUNNING) {
                        i++;
                        continue;
                }
                move_end_aborted(a, move, why); /* and so it is no longer in the list */
                moves = state_open_moves(a->index, &n);
                node_emptied(a, move->to);
        }
}

void job_moves_forget(struct apply *a, uint64_t job, const char *why) {
        size_t n, i = 0;
        Rm__Move *const *moves;

        job_moves_end(a, job, why);
        moves = state_open_moves(a->index, &n);
        while (i < n) {
                Rm__Move *move = moves[i];

                if (move->job != job) {
                        i++;
                        continue;
                }
                move->state = RM__MOVE_STATE__MOVE_DONE;
                move->end_usec = a->time_usec;
                state_index_move(a->index, move); /* and so it is no longer in the list */
                moves = state_open_moves(a->index, &n);
                node_emptied(a, move->from);
        }
}

/* Tells why the rounds of pre-copy ended early. Bytes that they did not send were sent in the
 * freeze. */
static void report_expedite(struct apply *a, const Rm__Move *move) {
        const Rm__Node *from = state_node(a->state, move->from);
        uint64_t other_bytes = move->ahead_bytes + move->later_bytes;
        uint64_t bytes = move->image_bytes > other_bytes ? move->image_bytes - other_bytes : 0;
        cleanup_free char *why = NULL;
        char word[24];

        if (move->expedite_usec == 0)
                return;
        if (from && node_critical_usec(from) > 0)
                why = xasprintf("since %s is critical", move->from);
        else if (move->expedite_usec > 1)
                why = xasprintf("%.1f s before the deadline for %s to be empty", (double) move->expedite_usec / 1e6, move->from);
        else
                why = xasprintf("after the deadline for %s to be empty", move->from);
        apply_event(a, "move-hurried", move->from, move->job, move->id, move->capsule,
                    "job %" PRIu64 ": sending the memory of %s ahead ended %s, and %.1f MB were sent in the freeze", move->job,
                    capsule_state_name(move->capsule, word), why, (double) bytes / 1e6);
}

int apply_move_done(struct apply *a) {
        const Rm__Move *in = a->command->move_done->figures;
        Rm__Move *move = in ? find_move(a, "move-done", in->id) : NULL;
        Rm__Job *job = move ? state_job(a->state, move->job) : NULL;
        Rm__Capsule *capsule = job ? job_capsule(job, move->capsule) : NULL;
        cleanup_free char *slow = NULL, *later = NULL;
        char word[24];

        if (!move)
                return -ENOENT;
        if (move->state != RM__MOVE_STATE__MOVE_COMMITTED)
                return apply_refuse(a, -EALREADY, "move-done: move %" PRIu64 " is not committed", move->id);
        move->state = RM__MOVE_STATE__MOVE_DONE;
        move->end_usec = a->time_usec;
        move->freeze_usec = in->freeze_usec;
        move->image_bytes = in->image_bytes;
        move->ahead_bytes = in->ahead_bytes;
        move->memory_bytes = in->memory_bytes;
        move->dump_usec = in->dump_usec;
        move->transfer_usec = in->transfer_usec;
        move->restore_usec = in->restore_usec;
        move->commit_usec = in->commit_usec;
        move->codec = in->codec;
        move->saved_bytes = in->saved_bytes;
        move->tracked = in->tracked;
        message_set_string(&move->untracked, in->untracked);
        move->ahead_rounds = in->ahead_rounds;
        move->last_bytes = in->last_bytes;
        move->slow_usec = in->slow_usec;
        move->expedite_usec = in->expedite_usec;
        state_index_move(a->index, move);
        report_expedite(a, move);
        if (capsule) {
                capsule->image_bytes = in->memory_bytes;
                capsule->freeze_usec = in->freeze_usec;
        }
        slow = move->slow_usec ? xasprintf("slowed down for %.1f s, ", (double) move->slow_usec / 1e6) : NULL;
        later = move->later_bytes ? xasprintf(", %.1f of them post-copied", (double) move->later_bytes / 1e6) : xstrdup("");
        apply_event(a, "move-done", move->to, move->job, move->id, move->capsule,
                    "job %" PRIu64 ": %s moved from %s to %s, %sfrozen for %.3f s, %.1f MB%s", move->job,
                    capsule_state_name(move->capsule, word), move->from, move->to, slow ? slow : "",
                    (double) move->freeze_usec / 1e6, (double) move->memory_bytes / 1e6, later);
        node_emptied(a, move->from);
        return 0;
}

int apply_move_waiting(struct apply *a) {
        const Rm__CmdMoveWaiting *in = a->command->move_waiting;
        Rm__Move *move = find_move(a, "move-waiting", in->move);
        char word[24];

        if (!move)
                return -ENOENT;
        if (move->state != RM__MOVE_STATE__MOVE_RUNNING)
                return apply_refuse(a, -EALREADY, "move-waiting: move %" PRIu64 " is not running", move->id);
        message_set_string(&move->waiting, in->text);
        if (in->text[0])
                apply_event(a, "move-waiting", move->from, move->job, move->id, move->capsule,
                            "job %" PRIu64 ": %s waits on %s: %s", move->job, capsule_state_name(move->capsule, word), move->from,
                            in->text);
        return 0;
}

/* The source's word that the move is done may come before this one or after it. */
int apply_move_filled(struct apply *a) {
        const Rm__CmdMoveFilled *in = a->command->move_filled;
        Rm__Move *move = find_move(a, "move-filled", in->move);
        cleanup_free char *waits = NULL;
        char word[24];

        if (!move)
                return -ENOENT;
        if (move->state != RM__MOVE_STATE__MOVE_COMMITTED && move->state != RM__MOVE_STATE__MOVE_DONE)
                return apply_refuse(a, -EALREADY, "move-filled: move %" PRIu64 " is not committed", move->id);
        if (move->fill_usec > 0)
                return apply_refuse(a, -EALREADY, "move-filled: move %" PRIu64 " is known to be filled", move->id);
        move->fill_usec = in->fill_usec;
        move->later_faults = in->later_faults;
        move->later_p99_usec = in->later_p99_usec;
        if (move->later_faults > 0)
                waits = xasprintf(", and waited %" PRIu64 " times for some of it, 99 of 100 times for at most %.1f ms",
                                  move->later_faults, (double) move->later_p99_usec / 1e3);
        apply_event(a, "move-filled", move->to, move->job, move->id, move->capsule,
                    "job %" PRIu64 ": %s has all of its memory on %s, after %.3f s%s", move->job,
                    capsule_state_name(move->capsule, word), move->to, (double) move->fill_usec / 1e6, waits ? waits : "");
        return 0;
}
