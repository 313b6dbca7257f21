/* Commands about checkpoints. A job's checkpoints are kept with it; what they consist of lies in
 * the stores of nodes, which remove what no job names any more. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"
#include "daemon/state/state_internal.h"

/* ---- reading ---- */

Rm__Checkpoint *job_checkpoint(const Rm__Job *job, uint64_t id) {
        for (size_t i = 0; i < job->n_checkpoints; i++)
                if (job->checkpoints[i]->id == id)
                        return job->checkpoints[i];
        return NULL;
}

Rm__Checkpoint *job_checkpoint_under_way(const Rm__Job *job) {
        for (size_t i = job->n_checkpoints; i > 0; i--)
                if (job->checkpoints[i - 1]->state != RM__CHECKPOINT_STATE__CHECKPOINT_DONE)
                        return job->checkpoints[i - 1];
        return NULL;
}

bool checkpoint_is_drill(const Rm__Checkpoint *checkpoint) {
        return checkpoint->cause == RM__CHECKPOINT_CAUSE__CHECKPOINT_CAUSE_DRILL;
}

Rm__CheckpointPart *checkpoint_part(const Rm__Checkpoint *checkpoint, int32_t capsule) {
        size_t at = (size_t) capsule + 1; /* 0 of the head, which is -1 */

        /* The parts stand in the order of capsules, whose first is the head. */
        if (at < checkpoint->n_parts && checkpoint->parts[at]->capsule == capsule)
                return checkpoint->parts[at];
        for (size_t i = 0; i < checkpoint->n_parts; i++)
                if (checkpoint->parts[i]->capsule == capsule)
                        return checkpoint->parts[i];
        return NULL;
}

static bool is_up(const Rm__Node *node) {
        return node && node->health == RM__NODE_HEALTH__NODE_HEALTH_UP;
}

static const Rm__Node *first_up(const Rm__State *state) {
        for (size_t i = 0; i < state->n_nodes; i++)
                if (is_up(state->nodes[i]))
                        return state->nodes[i];
        return NULL;
}

const Rm__Node *checkpoint_part_holder(const Rm__State *state, const Rm__CheckpointPart *part, const char *prefer) {
        const Rm__Node *holder = NULL;

        for (size_t i = 0; i < part->n_stored; i++) {
                bool shared = strcmp(part->stored[i], STATE_STORED_SHARED) == 0;
                const Rm__Node *node = state_node(state, shared && prefer ? prefer : part->stored[i]);

                if (shared && !is_up(node))
                        node = first_up(state);
                if (!is_up(node))
                        continue;
                if (prefer && strcmp(node->name, prefer) == 0)
                        return node;
                if (!holder)
                        holder = node;
        }
        return holder;
}

/* `all`: also one that no node could send. */
static bool is_done(const Rm__Checkpoint *checkpoint, bool all) {
        return checkpoint->state == RM__CHECKPOINT_STATE__CHECKPOINT_DONE && (all || !checkpoint->unreadable);
}

static Rm__Checkpoint *newest_whole(const Rm__State *state, const Rm__Job *job, bool all) {
        for (size_t i = job->n_checkpoints; i > 0; i--) {
                Rm__Checkpoint *checkpoint = job->checkpoints[i - 1];
                bool whole = is_done(checkpoint, all);

                for (size_t k = 0; whole && k < checkpoint->n_parts; k++)
                        whole = checkpoint_part_holder(state, checkpoint->parts[k], NULL) != NULL;
                if (whole)
                        return checkpoint;
        }
        return NULL;
}

static bool has_unreadable(const Rm__Job *job) {
        for (size_t i = 0; i < job->n_checkpoints; i++)
                if (job->checkpoints[i]->unreadable)
                        return true;
        return false;
}

Rm__Checkpoint *job_newest_checkpoint(const Rm__State *state, const Rm__Job *job) {
        return job->own_state ? NULL : newest_whole(state, job, false);
}

/* False: all nodes that had it have left the cluster. `ret_node`: one that is away, if that is why
 * it cannot be had now. */
static bool may_come_back(const Rm__State *state, const Rm__CheckpointPart *part, const char **ret_node) {
        bool known = false;

        if (checkpoint_part_holder(state, part, NULL))
                return true;
        for (size_t i = 0; i < part->n_stored; i++)
                if (state_node(state, part->stored[i])) {
                        *ret_node = part->stored[i];
                        known = true;
                }
        return known;
}

const Rm__Checkpoint *job_awaited_checkpoint(const Rm__State *state, const Rm__Job *job, const char **ret_node) {
        if (job->own_state || newest_whole(state, job, false))
                return NULL;
        for (size_t i = job->n_checkpoints; i > 0; i--) {
                const Rm__Checkpoint *checkpoint = job->checkpoints[i - 1];
                bool whole = is_done(checkpoint, false);

                for (size_t k = 0; whole && k < checkpoint->n_parts; k++)
                        whole = may_come_back(state, checkpoint->parts[k], ret_node);
                if (whole)
                        return checkpoint;
        }
        return NULL;
}

bool job_goes_on_by_itself(const Rm__State *state, const Rm__Job *job) {
        const char *node;

        return job_newest_checkpoint(state, job) || job_awaited_checkpoint(state, job, &node) || !has_unreadable(job);
}

const char *checkpoint_name(uint64_t job, uint64_t checkpoint, char *buf) {
        (void) snprintf(buf, 48, "%" PRIu64 ".%" PRIu64, job, checkpoint);
        return buf;
}

bool *checkpoint_addresses(const Rm__State *state, const Rm__Job *but) {
        bool *held = xcalloc(STATE_CAPSULES_MAX + 1, sizeof(*held));

        for (size_t j = 0; j < state->n_jobs; j++)
                for (size_t i = 0; state->jobs[j] != but && i < state->jobs[j]->n_checkpoints; i++) {
                        const Rm__Checkpoint *checkpoint = state->jobs[j]->checkpoints[i];

                        for (size_t k = 0; k < checkpoint->n_parts; k++) {
                                uint32_t address = checkpoint->parts[k]->address;

                                if (address <= STATE_CAPSULES_MAX)
                                        held[address] = true;
                        }
                }
        return held;
}

/* ---- their end ---- */

static void remove_at(Rm__Job *job, size_t i) {
        rm__checkpoint__free_unpacked(job->checkpoints[i], NULL);
        REPEATED_REMOVE(job->checkpoints, job->n_checkpoints, i);
}

/* Takes the drill out of the job's checkpoints, so that nodes remove their parts of it, and keeps
 * its result until the next drill. `why` NULL: the drill came to its end. */
static void keep_drill(Rm__Job *job, const Rm__Checkpoint *drill, uint64_t time_usec, const char *why) {
        for (size_t i = 0; i < job->n_checkpoints; i++) {
                if (job->checkpoints[i] != drill)
                        continue;
                if (job->drill)
                        rm__checkpoint__free_unpacked(job->drill, NULL);
                job->drill = job->checkpoints[i];
                REPEATED_REMOVE(job->checkpoints, job->n_checkpoints, i);
        }
        job->drill->end_usec = time_usec;
        message_set_string(&job->drill->error, why);
        for (size_t i = 0; i < job->drill->n_parts; i++) {
                Rm__CheckpointPart *part = job->drill->parts[i];

                names_clear(&part->stored, &part->n_stored);
                names_clear(&part->partners, &part->n_partners);
        }
}

void job_restores_forget(Rm__Job *job) {
        for (size_t i = 0; i < job->n_checkpoints; i++) {
                job->checkpoints[i]->restore_failures = 0;
                job->checkpoints[i]->other_files = false;
        }
}

void job_checkpoints_forget(Rm__Job *job) {
        while (job->n_checkpoints > 0)
                remove_at(job, job->n_checkpoints - 1);
}

static void fail(struct apply *a, Rm__Job *job, const Rm__Checkpoint *checkpoint, const char *why) {
        uint64_t id = checkpoint->id;
        char name[48];

        if (checkpoint_is_drill(checkpoint)) {
                apply_event(a, "drill-failed", NULL, job->id, 0, 0, "drill %s is given up: %s", checkpoint_name(job->id, id, name),
                            why);
                keep_drill(job, checkpoint, a->time_usec, why);
                return;
        }
        message_set_string(&job->checkpoint_error, why);
        job->checkpoint_try_usec = a->time_usec;
        apply_event(a, "checkpoint-failed", NULL, job->id, 0, 0, "checkpoint %s is given up: %s",
                    checkpoint_name(job->id, id, name), why);
        for (size_t i = 0; i < job->n_checkpoints; i++)
                if (job->checkpoints[i]->id == id) {
                        remove_at(job, i);
                        return;
                }
}

void job_checkpoints_interrupt(struct apply *a, Rm__Job *job, const char *why) {
        const Rm__Checkpoint *checkpoint;

        while ((checkpoint = job_checkpoint_under_way(job)))
                fail(a, job, checkpoint, why);
}

void job_checkpoints_drop(Rm__Job *job) {
        for (size_t i = job->n_checkpoints; i > 0; i--) {
                const Rm__Checkpoint *checkpoint = job->checkpoints[i - 1];

                if (checkpoint_is_drill(checkpoint))
                        keep_drill(job, checkpoint, checkpoint->start_usec, "the job has ended, or starts again");
                else if (checkpoint->state != RM__CHECKPOINT_STATE__CHECKPOINT_DONE)
                        remove_at(job, i - 1);
        }
}

/* ---- commands ---- */

static Rm__Job *find(struct apply *a, const char *what, uint64_t id, uint64_t number, Rm__Checkpoint **ret) {
        Rm__Job *job = state_job(a->state, id);

        *ret = job ? job_checkpoint(job, number) : NULL;
        if (*ret)
                return job;
        (void) apply_refuse(a, -ENOENT, "%s: there is no checkpoint %" PRIu64 ".%" PRIu64, what, id, number);
        return NULL;
}

/* NULL: there is no such checkpoint, or no such part; `result` says so. */
static Rm__CheckpointPart *find_part(struct apply *a, const char *what, uint64_t id, uint64_t number, int32_t capsule,
                                     Rm__Job **ret_job, Rm__Checkpoint **ret) {
        Rm__CheckpointPart *part;

        *ret_job = find(a, what, id, number, ret);
        part = *ret_job ? checkpoint_part(*ret, capsule) : NULL;
        if (*ret_job && !part)
                (void) apply_refuse(a, -ESRCH, "%s: checkpoint %" PRIu64 ".%" PRIu64 " has no part of capsule %" PRId32, what, id,
                                    number, capsule);
        return part;
}

static const Rm__Move *move_of(const struct apply *a, uint64_t job) {
        size_t n;
        Rm__Move *const *moves = state_open_moves(a->index, &n);

        for (size_t i = 0; i < n; i++)
                if (moves[i]->job == job)
                        return moves[i];
        return NULL;
}

/* The copies that a drill makes of the job. */
static int admit_drill(struct apply *a, const Rm__CmdCheckpointStart *in, const Rm__Job *job) {
        const struct limits_demand more = { .ranks = job->spec->ranks };

        return in->cause == RM__CHECKPOINT_CAUSE__CHECKPOINT_CAUSE_DRILL ? limits_admit(a, "drill: ", in->limits, job->spec, &more)
                                                                         : 0;
}

static int check_start(struct apply *a, const Rm__CmdCheckpointStart *in, const Rm__Job *job) {
        const char *what = in->cause == RM__CHECKPOINT_CAUSE__CHECKPOINT_CAUSE_DRILL ? "drill" : "checkpoint";
        const Rm__Checkpoint *other = job ? job_checkpoint_under_way(job) : NULL;
        const Rm__Move *move;

        if (!job)
                return apply_refuse(a, -ENOENT, "%s: no job %" PRIu64, what, in->job);
        if (in->cause == RM__CHECKPOINT_CAUSE__CHECKPOINT_CAUSE_NONE || in->n_capsule_nodes != in->n_partners)
                return apply_refuse(a, -EINVAL, "%s: no cause is given, or nodes and partners do not match", what);
        if (job->state != RM__JOB_STATE__JOB_RUNNING || job->cancel)
                return apply_refuse(a, -EBUSY, "%s: job %" PRIu64 " does not run", what, job->id);
        if (job->resize && job->resize->begun)
                return apply_refuse(a, -EAGAIN, "%s: the program of job %" PRIu64 " changes to %u ranks; try again in a moment",
                                    what, job->id, job->resize->requested);
        if (job->own_state && !in->force)
                return apply_refuse(a, -EPERM,
                                    "%s: job %" PRIu64
                                    " keeps its own state, says its program (rmrt_own_state), and goes on from no checkpoint%s",
                                    what, job->id,
                                    in->cause == RM__CHECKPOINT_CAUSE__CHECKPOINT_CAUSE_DRILL ? ""
                                                                                              : "; --force saves it all the same");
        if (other)
                return apply_refuse(a, -EALREADY, "%s: a %s of job %" PRIu64 " is being made already", what,
                                    checkpoint_is_drill(other) ? "drill" : "checkpoint", job->id);
        if (job->n_checkpoints >= STATE_CHECKPOINTS_MAX)
                return apply_refuse(a, -EDQUOT, "%s: job %" PRIu64 " has %u checkpoints; remove one", what, job->id,
                                    STATE_CHECKPOINTS_MAX);
        move = move_of(a, job->id);
        if (move)
                return apply_refuse(a, -EAGAIN, "%s: move %" PRIu64 " of job %" PRIu64 " is in progress", what, move->id, job->id);
        for (size_t i = 0; i < job->n_capsules; i++)
                if (!is_up(state_node(a->state, job->capsules[i]->node)))
                        return apply_refuse(a, -EHOSTDOWN, "%s: node '%s', where job %" PRIu64 " runs, is not up", what,
                                            job->capsules[i]->node, job->id);
        return admit_drill(a, in, job);
}

/* Makes partners of those words of `text` that are nodes of the cluster, but not of the node that
 * captures the part. */
static void set_partners(struct apply *a, Rm__CheckpointPart *part, const char *text) {
        cleanup_free char *copy = xstrdup(text);
        char *save = NULL;

        for (char *name = strtok_r(copy, " ", &save); name; name = strtok_r(NULL, " ", &save))
                if (state_node(a->state, name) && strcmp(name, part->node) != 0 && part->n_partners < STATE_PARTNERS_MAX)
                        REPEATED_PUSH(part->partners, part->n_partners, xstrdup(name));
}

static Rm__CheckpointPart *make_part(struct apply *a, const Rm__CmdCheckpointStart *in, const Rm__Capsule *capsule) {
        Rm__CheckpointPart *part = xcalloc(1, sizeof(*part));

        rm__checkpoint_part__init(part);
        part->capsule = capsule->index;
        part->ranks = capsule->ranks;
        part->address = capsule->address;
        part->incarnation = capsule->incarnation;
        message_set_string(&part->node, capsule->node);
        for (size_t i = 0; i < in->n_capsule_nodes; i++)
                if (strcmp(in->capsule_nodes[i], capsule->node) == 0)
                        set_partners(a, part, in->partners[i]);
        return part;
}

int apply_checkpoint_start(struct apply *a) {
        const Rm__CmdCheckpointStart *in = a->command->checkpoint_start;
        Rm__Job *job = state_job(a->state, in->job);
        Rm__Checkpoint *checkpoint;
        char name[48];
        int r = check_start(a, in, job);

        if (r < 0 || !apply_goes_on(a, true))
                return r;
        checkpoint = xcalloc(1, sizeof(*checkpoint));
        rm__checkpoint__init(checkpoint);
        checkpoint->id = ++job->last_checkpoint;
        checkpoint->attempt = job->attempt;
        checkpoint->state = RM__CHECKPOINT_STATE__CHECKPOINT_CAPTURING;
        checkpoint->cause = in->cause;
        checkpoint->start_usec = a->time_usec;
        checkpoint->group_size = job->group_size;
        checkpoint->stop = in->stop;
        checkpoint->keep = in->keep;
        if (job->resize)
                checkpoint->resize = (Rm__Resize *) message_copy(&job->resize->base);
        if (job->rank_losses)
                checkpoint->rank_losses = (Rm__RankLosses *) message_copy(&job->rank_losses->base);
        message_set_string(&checkpoint->by, in->by);
        REPEATED_RESERVE(checkpoint->parts, checkpoint->n_parts, job->n_capsules);
        for (size_t i = 0; i < job->n_capsules; i++)
                REPEATED_ADD(checkpoint->parts, checkpoint->n_parts, make_part(a, in, job->capsules[i]));
        REPEATED_PUSH(job->checkpoints, job->n_checkpoints, checkpoint);
        a->result->created = checkpoint->id;
        (void) checkpoint_name(job->id, checkpoint->id, name);
        if (checkpoint_is_drill(checkpoint)) {
                apply_event(a, "drill-started", job->capsules[0]->node, job->id, 0, 0, "drill %s begins", name);
                return 0;
        }
        job->checkpoint_try_usec = a->time_usec;
        apply_event(a, "checkpoint-started", job->capsules[0]->node, job->id, 0, 0, "checkpoint %s begins", name);
        return 0;
}

int apply_checkpoint_captured(struct apply *a) {
        const Rm__CmdCheckpointCaptured *in = a->command->checkpoint_captured;
        Rm__Checkpoint *checkpoint;
        Rm__Job *job = find(a, "checkpoint-captured", in->job, in->checkpoint, &checkpoint);
        char name[48];

        if (!job)
                return -ENOENT;
        if (checkpoint->state != RM__CHECKPOINT_STATE__CHECKPOINT_CAPTURING)
                return apply_refuse(a, -EALREADY, "checkpoint-captured: it is captured already");
        checkpoint->state = RM__CHECKPOINT_STATE__CHECKPOINT_STORING;
        checkpoint->captured_usec = a->time_usec;
        checkpoint->pause_usec = in->pause_usec;
        /* A drill is never gone back to, so a front end must not count with its output. */
        for (size_t i = 0; i < in->n_output_end && i < 2 && !checkpoint_is_drill(checkpoint); i++)
                REPEATED_PUSH(checkpoint->output_end, checkpoint->n_output_end, in->output_end[i]);
        apply_event(a, "checkpoint-captured", NULL, job->id, 0, 0,
                    "checkpoint %s: the job runs again after %.3f s, what was saved is being stored",
                    checkpoint_name(job->id, checkpoint->id, name), (double) in->pause_usec / 1e6);
        return 0;
}

/* Removes it. False: it is not there. */
static bool take_name(char **names, size_t *n, const char *name) {
        for (size_t i = 0; i < *n; i++)
                if (strcmp(names[i], name) == 0) {
                        free(names[i]);
                        REPEATED_REMOVE(names, *n, i);
                        return true;
                }
        return false;
}

/* The part is stored by its own node and by all that are to have a copy. */
static bool part_is_stored(const Rm__CheckpointPart *part) {
        if (names_have(part->stored, part->n_stored, STATE_STORED_SHARED))
                return true;
        if (!names_have(part->stored, part->n_stored, part->node))
                return false;
        for (size_t i = 0; i < part->n_partners; i++)
                if (!names_have(part->stored, part->n_stored, part->partners[i]))
                        return false;
        return true;
}

/* Older ones beyond those that are kept go. */
static void prune(Rm__Job *job, uint32_t keep) {
        size_t done = 0;

        for (size_t i = job->n_checkpoints; keep > 0 && i > 0; i--) {
                const Rm__Checkpoint *checkpoint = job->checkpoints[i - 1];

                if (checkpoint->state == RM__CHECKPOINT_STATE__CHECKPOINT_DONE && done >= keep)
                        remove_at(job, i - 1);
                else
                        done += is_done(checkpoint, false);
        }
}

static void finish(struct apply *a, Rm__Job *job, Rm__Checkpoint *checkpoint) {
        cleanup_free char *reason = NULL;
        uint64_t raw_bytes = 0, stored_bytes = 0;
        bool held = checkpoint->cause == RM__CHECKPOINT_CAUSE__CHECKPOINT_CAUSE_ASKED;
        char name[48];

        if (checkpoint->state != RM__CHECKPOINT_STATE__CHECKPOINT_STORING)
                return;
        for (size_t i = 0; i < checkpoint->n_parts; i++) {
                if (!part_is_stored(checkpoint->parts[i]))
                        return;
                raw_bytes += checkpoint->parts[i]->raw_bytes;
                stored_bytes += checkpoint->parts[i]->stored_bytes;
        }
        if (checkpoint_is_drill(checkpoint)) {
                checkpoint->state = RM__CHECKPOINT_STATE__CHECKPOINT_DRILLING;
                return;
        }
        checkpoint->state = RM__CHECKPOINT_STATE__CHECKPOINT_DONE;
        checkpoint->end_usec = a->time_usec;
        message_set_string(&job->checkpoint_error, NULL);
        (void) checkpoint_name(job->id, checkpoint->id, name);
        apply_event(a, "checkpoint-done", NULL, job->id, 0, 0, "checkpoint %s is done: %.1f MB, of which %.1f MB were new", name,
                    (double) raw_bytes / 1e6, (double) stored_bytes / 1e6);
        if (checkpoint->stop && !job->cancel) { /* else it is about to end */
                reason = held ? xasprintf("stopped at checkpoint %s by %s; 'rmctl restart-job %" PRIu64 "' lets it go on", name,
                                          checkpoint->by, job->id)
                              : xasprintf("saved as checkpoint %s", name);
                prune(job, checkpoint->keep);
                job_requeue(a, job, held, reason);
                return;
        }
        prune(job, checkpoint->keep);
}

int apply_checkpoint_stored(struct apply *a) {
        const Rm__CmdCheckpointStored *in = a->command->checkpoint_stored;
        Rm__Checkpoint *checkpoint;
        Rm__Job *job;
        Rm__CheckpointPart *part = find_part(a, "checkpoint-stored", in->job, in->checkpoint, in->capsule, &job, &checkpoint);

        if (!part)
                return a->result->error.code;
        if (!names_have(part->stored, part->n_stored, in->node))
                REPEATED_PUSH(part->stored, part->n_stored, xstrdup(in->node));
        if (in->raw_bytes > 0) {
                part->raw_bytes = in->raw_bytes;
                part->stored_bytes = in->stored_bytes;
                part->store_usec = in->store_usec;
        }
        finish(a, job, checkpoint);
        return 0;
}

int apply_checkpoint_uncopied(struct apply *a) {
        const Rm__CmdCheckpointUncopied *in = a->command->checkpoint_uncopied;
        Rm__Checkpoint *checkpoint;
        Rm__Job *job;
        Rm__CheckpointPart *part = find_part(a, "checkpoint-uncopied", in->job, in->checkpoint, in->capsule, &job, &checkpoint);
        char name[48];

        if (!part)
                return a->result->error.code;
        /* The sender of the copies may have missed that a partner told the log of its copy. */
        if (names_have(part->stored, part->n_stored, in->node))
                return apply_refuse(a, -EALREADY, "checkpoint-uncopied: '%s' has its copy", in->node);
        if (!take_name(part->partners, &part->n_partners, in->node))
                return apply_refuse(a, -ESRCH, "checkpoint-uncopied: '%s' is to have no copy", in->node);
        checkpoint->copy_error_usec = a->time_usec;
        apply_event(a, "checkpoint-uncopied", in->node, job->id, 0, in->capsule, "checkpoint %s: no copy on %s: %s",
                    checkpoint_name(job->id, checkpoint->id, name), in->node, in->error);
        finish(a, job, checkpoint);
        return 0;
}

/* Holds a job whose checkpoints no node could send. If the job began again by itself, those
 * checkpoints would be lost. */
static void hold_if_unreadable(struct apply *a, Rm__Job *job) {
        cleanup_free char *reason = NULL;

        if (job->state != RM__JOB_STATE__JOB_PENDING || job->held || job->own_state || job_goes_on_by_itself(a->state, job))
                return;
        job->held = true;
        reason = xasprintf("no node could send its checkpoints; 'rmctl restart-job %" PRIu64 "' tries again", job->id);
        message_set_string(&job->reason, reason);
}

int apply_checkpoint_copy_lost(struct apply *a) {
        const Rm__CmdCheckpointCopyLost *in = a->command->checkpoint_copy_lost;
        Rm__Checkpoint *checkpoint;
        Rm__Job *job;
        Rm__CheckpointPart *part = find_part(a, "checkpoint-copy-lost", in->job, in->checkpoint, in->capsule, &job, &checkpoint);
        char name[48];

        if (!part)
                return a->result->error.code;
        if (!take_name(part->stored, &part->n_stored, in->node))
                return apply_refuse(a, -ESRCH, "checkpoint-copy-lost: '%s' has no copy", in->node);
        (void) take_name(part->partners, &part->n_partners, in->node);
        apply_event(a, "checkpoint-copy-lost", in->node, job->id, 0, in->capsule, "checkpoint %s: the copy on %s is no good: %s",
                    checkpoint_name(job->id, checkpoint->id, name), in->node, in->error);
        if (part->n_stored == 0 ||
            (checkpoint->state != RM__CHECKPOINT_STATE__CHECKPOINT_DONE && strcmp(in->node, part->node) == 0))
                fail(a, job, checkpoint, "no good copy of one of its parts is left");
        hold_if_unreadable(a, job);
        return 0;
}

int apply_checkpoint_copy_requested(struct apply *a) {
        const Rm__CmdCheckpointCopyRequested *in = a->command->checkpoint_copy_requested;
        Rm__Checkpoint *checkpoint;
        Rm__Job *job;
        Rm__CheckpointPart *part = find_part(a, "checkpoint-copy-wanted", in->job, in->checkpoint, in->capsule, &job, &checkpoint);
        char name[48];

        if (!part)
                return a->result->error.code;
        if (!state_node(a->state, in->node))
                return apply_refuse(a, -ESRCH, "checkpoint-copy-wanted: there is no node '%s'", in->node);
        if (checkpoint->state != RM__CHECKPOINT_STATE__CHECKPOINT_DONE || part->n_partners >= STATE_PARTNERS_MAX ||
            names_have(part->stored, part->n_stored, in->node) || names_have(part->partners, part->n_partners, in->node))
                return apply_refuse(a, -EALREADY, "checkpoint-copy-wanted: '%s' gets one, or cannot", in->node);
        REPEATED_PUSH(part->partners, part->n_partners, xstrdup(in->node));
        apply_event(a, "checkpoint-copied-again", in->node, job->id, 0, in->capsule, "checkpoint %s: another copy goes to %s",
                    checkpoint_name(job->id, checkpoint->id, name), in->node);
        return 0;
}

int apply_checkpoint_abort(struct apply *a) {
        const Rm__CmdCheckpointAbort *in = a->command->checkpoint_abort;
        Rm__Checkpoint *checkpoint;
        Rm__Job *job = find(a, "checkpoint-abort", in->job, in->checkpoint, &checkpoint);
        char name[48];

        if (!job)
                return -ENOENT;
        /* A node that was started again may not have known that its part was stored. */
        if (checkpoint->state == RM__CHECKPOINT_STATE__CHECKPOINT_DONE)
                return apply_refuse(a, -EALREADY, "checkpoint-abort: %s is done", checkpoint_name(job->id, checkpoint->id, name));
        fail(a, job, checkpoint, in->error);
        return 0;
}

static void finish_drill(struct apply *a, Rm__Job *job, const Rm__Checkpoint *checkpoint) {
        size_t bad = 0;
        char name[48];

        for (size_t i = 0; i < checkpoint->n_parts; i++) {
                if (!checkpoint->parts[i]->drilled)
                        return;
                bad += checkpoint->parts[i]->drill_error[0] != '\0';
        }
        (void) checkpoint_name(job->id, checkpoint->id, name);
        if (bad > 0)
                apply_event(a, "drill-done", NULL, job->id, 0, 0, "drill %s: %zu of %zu parts were not restored", name, bad,
                            checkpoint->n_parts);
        else
                apply_event(a, "drill-done", NULL, job->id, 0, 0, "drill %s: the job can be restored", name);
        keep_drill(job, checkpoint, a->time_usec, NULL);
}

int apply_checkpoint_drilled(struct apply *a) {
        const Rm__CmdCheckpointDrilled *in = a->command->checkpoint_drilled;
        Rm__Checkpoint *checkpoint;
        Rm__Job *job;
        Rm__CheckpointPart *part = find_part(a, "checkpoint-drilled", in->job, in->checkpoint, in->capsule, &job, &checkpoint);

        if (!part)
                return a->result->error.code;
        if (checkpoint->state != RM__CHECKPOINT_STATE__CHECKPOINT_DRILLING || part->drilled)
                return apply_refuse(a, -EALREADY, "checkpoint-drilled: it is known already, or not yet to be tried");
        if (strlen(in->error) > STATE_DRILL_ERROR_MAX)
                return apply_refuse(a, -EINVAL, "checkpoint-drilled: the text is too long");
        part->drilled = true;
        part->drill_usec = in->usec;
        part->pause_usec = in->pause_usec;
        message_set_string(&part->drill_node, in->node);
        message_set_string(&part->drill_error, in->error);
        finish_drill(a, job, checkpoint);
        return 0;
}

int apply_checkpoint_remove(struct apply *a) {
        const Rm__CmdCheckpointRemove *in = a->command->checkpoint_remove;
        Rm__Checkpoint *checkpoint;
        Rm__Job *job = find(a, "remove-checkpoint", in->job, in->checkpoint, &checkpoint);
        char name[48];

        if (!job)
                return -ENOENT;
        (void) checkpoint_name(job->id, checkpoint->id, name);
        if (checkpoint->state != RM__CHECKPOINT_STATE__CHECKPOINT_DONE)
                return apply_refuse(a, -EBUSY, "remove-checkpoint: %s is being made", name);
        if (job->restored_from == in->checkpoint && job->state == RM__JOB_STATE__JOB_STARTING)
                return apply_refuse(a, -EBUSY, "remove-checkpoint: job %" PRIu64 " is being restarted from it", job->id);
        if (job->held && job->n_checkpoints == 1)
                return apply_refuse(a, -EBUSY,
                                    "remove-checkpoint: job %" PRIu64 " is stopped there, and has no other; cancel the job instead",
                                    job->id);
        if (!apply_goes_on(a, true))
                return 0;
        for (size_t i = 0; i < job->n_checkpoints; i++)
                if (job->checkpoints[i]->id == in->checkpoint) {
                        remove_at(job, i);
                        break;
                }
        apply_event(a, "checkpoint-removed", NULL, job->id, 0, 0, "checkpoint %s is removed by %s", name, in->by);
        return 0;
}

/* A job that has not ended has counted against the limits all the time, so only an ended one is
 * checked. */
static int admit_release(struct apply *a, const Rm__CmdJobRelease *in, const Rm__Job *job) {
        const Rm__Checkpoint *checkpoint = in->checkpoint ? job_checkpoint(job, in->checkpoint) : newest_whole(a->state, job, true);
        const struct limits_demand more = { .jobs = 1, .ranks = job->spec->ranks, .groups = checkpoint->n_parts - 1 };

        struct rm_error err = { 0 };
        int r = job_ended(job) ? limits_admit(a, "restart-job: ", in->limits, job->spec, &more) : 0;

        /* An ended job needs its environment again, for an attempt from its beginning. */
        if (r == 0 && job_ended(job) && in->limits && state_check_body(a->state, job->spec, &err) < 0)
                r = apply_refuse(a, err.code, "restart-job: %s", err.text);
        return r;
}

static int check_release(struct apply *a, const Rm__CmdJobRelease *in, const Rm__Job *job) {
        if (!job)
                return apply_refuse(a, -ENOENT, "restart-job: no job %" PRIu64, in->job);
        if (job_ended(job) ? job->state == RM__JOB_STATE__JOB_COMPLETED && job->n_checkpoints == 0 : !job->held)
                return apply_refuse(a, -EBUSY, "restart-job: job %" PRIu64 " %s", job->id,
                                    job_ended(job) ? "has completed" : "has neither been stopped nor ended");
        if (in->checkpoint && !job_checkpoint(job, in->checkpoint))
                return apply_refuse(a, -ENOENT, "restart-job: job %" PRIu64 " has no checkpoint %" PRIu64, job->id, in->checkpoint);
        if (!newest_whole(a->state, job, true))
                return apply_refuse(a, -ENOENT, "restart-job: job %" PRIu64 " has no checkpoint on nodes that are up", job->id);
        return admit_release(a, in, job);
}

/* Newer ones are of a future that it does not go back to. */
static void remove_newer(Rm__Job *job, uint64_t checkpoint) {
        for (size_t i = job->n_checkpoints; checkpoint > 0 && i > 0; i--)
                if (job->checkpoints[i - 1]->id > checkpoint)
                        remove_at(job, i - 1);
}

/* Returns an ended job to the queue. Its capsules and its spool are gone; its output begins with
 * the part that the checkpoint had not delivered. */
static void revive(struct apply *a, Rm__Job *job) {
        state_index_forget(a->index, job->id);
        job_drop_capsules(job);
        job->attempt++;
        job->free_attempts++;
        job->state = RM__JOB_STATE__JOB_PENDING;
        job->final_state = RM__JOB_STATE__JOB_PENDING;
        job->cancel = job->output_done = false;
        job->cancel_signal = 0;
        job->exit_code = 0;
        job->start_usec = job->end_usec = job->group_end_usec = 0;
        job->pending_since_usec = a->time_usec;
        state_index_job(a->index, job->id);
}

int apply_job_release(struct apply *a) {
        const Rm__CmdJobRelease *in = a->command->job_release;
        Rm__Job *job = state_job(a->state, in->job);
        int r = check_release(a, in, job);

        if (r < 0 || !apply_goes_on(a, true))
                return r;
        remove_newer(job, in->checkpoint);
        job_restores_forget(job);
        for (size_t i = 0; i < job->n_checkpoints; i++) {
                job->checkpoints[i]->unreadable = false;
                job->checkpoints[i]->other_files = in->other_files;
        }
        if (job_ended(job))
                revive(a, job);
        job->held = job->own_state = false; /* what is saved there says so again */
        message_set_string(&job->restart_reason, "restarted by its owner or an administrator");
        message_set_string(&job->reason, "waits to be placed");
        apply_event(a, "job-released", NULL, job->id, 0, 0, "job %" PRIu64 " is to go on from a checkpoint, says %s", job->id,
                    in->by);
        return 0;
}
