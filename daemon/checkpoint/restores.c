/* Capsules that come back here from a checkpoint. The runner makes them as it makes any, but cut
 * off; here they get what was captured, and stay frozen, cut off, until all of the job are so far:
 * then the job runs by the state, and each node opens its own. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "common/text.h"
#include "common/timer.h"
#include "common/util.h"
#include "daemon/checkpoint/checkpoints_internal.h"
#include "daemon/peers/peer_message.h"
#include "daemon/state/commands.h"

#define PREPARE_USEC (30U * UINT64_C(1000000))
#define SILENCE_USEC (60U * UINT64_C(1000000))
#define REPORT_AGAIN_USEC (15U * UINT64_C(1000000)) /* longer than a proposal waits for a leader */

static void restore_enter(struct restore *restore);

static struct restore *find(const struct checkpoints *c, uint64_t job, int32_t index, uint64_t incarnation) {
        struct restore *restore;

        LIST_FOREACH (restore, &c->restores, entry)
                if (restore->job == job && restore->index == index && restore->incarnation == incarnation)
                        return restore;
        return NULL;
}

static struct resident *resident_of(const struct restore *restore) {
        return runner_copy(restore->c->rmd->runner, restore->job, restore->index, restore->incarnation);
}

static void restore_free(struct restore *restore) {
        LIST_REMOVE(restore, entry);
        arrival_destroy(restore->arrival);
        event_free(restore->deadline);
        gate_finish(&restore->gate);
        free(restore->dir);
        free(restore->from);
        free(restore->tried);
        free(restore);
}

/* The name of the operation, as in fault points. */
static const char *what_of(const struct restore *restore) {
        return restore->drill ? "drill" : "restart";
}

static bool restore_event(struct restore *restore, enum restore_event event) {
        enum restore_state next;

        if (!restore_next(restore->state, event, &next))
                return false;
        log_debug("%s of job %" PRIu64 ", capsule %" PRId32 ": %s -> %s", what_of(restore), restore->job, restore->index,
                  restore_state_name(restore->state), restore_state_name(next));
        restore->state = next;
        gate_leave(&restore->gate);
        restore_enter(restore);
        return true;
}

/* ---- who sends it ---- */

static bool was_tried(const struct restore *restore, const char *node) {
        cleanup_free char *spaced = xasprintf(" %s ", restore->tried), *requested = xasprintf(" %s ", node);

        return strstr(spaced, requested) != NULL;
}

/* This node if it has the part, else one that is up; NULL: all that are have been tried. */
static const Rm__Node *choose_holder(const struct restore *restore) {
        const Rm__State *state = checkpoints_state(restore->c);
        const Rm__Checkpoint *checkpoint = checkpoints_record(restore->c, restore->job, restore->checkpoint);
        const Rm__CheckpointPart *part = checkpoint ? checkpoint_part(checkpoint, restore->index) : NULL;
        const Rm__Node *node = part ? checkpoint_part_holder(state, part, checkpoints_self(restore->c)) : NULL;

        if (!node || !was_tried(restore, node->name))
                return node;
        for (size_t i = 0; i < part->n_stored; i++) {
                node = state_node(state, part->stored[i]);
                if (node && node->health == RM__NODE_HEALTH__NODE_HEALTH_UP && !was_tried(restore, node->name))
                        return node;
        }
        return NULL;
}

/* The data that came is of no use. Another node may have a better copy; else the restart fails. */
static void restore_fail(struct restore *restore, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void restore_fail(struct restore *restore, const char *fmt, ...) {
        bool sending = restore->state == RESTORE_TRANSFER || restore->state == RESTORE_PREPARE;
        char *tried;
        va_list ap;

        va_start(ap, fmt);
        (void) text_format_va(restore->error, sizeof(restore->error), fmt, ap);
        va_end(ap);
        log_warn("%s of job %" PRIu64 " from checkpoint %" PRIu64 ", capsule %" PRId32 " (%s): %s", what_of(restore), restore->job,
                 restore->checkpoint, restore->index, restore_state_name(restore->state), restore->error);
        if (sending && restore->from) {
                tried = xasprintf("%s %s", restore->tried, restore->from);
                free(restore->tried);
                restore->tried = tried;
        }
        restore->unread = sending && restore->said;
        restore->said = false;
        (void) restore_event(restore, sending && restore->from && choose_holder(restore) ? RESTORE_EV_RETRY : RESTORE_EV_FAILED);
}

static void on_deadline(evutil_socket_t fd, short what, void *arg) {
        struct restore *restore = arg;

        restore_fail(restore, "%s timed out", restore_state_name(restore->state));
}

static void ask(struct restore *restore) {
        const Rm__Node *holder = choose_holder(restore);
        Rm__RestoreAsk body = RM__RESTORE_ASK__INIT;

        free(restore->from);
        restore->from = holder ? xstrdup(holder->name) : NULL;
        body.job = restore->job;
        body.checkpoint = restore->checkpoint;
        body.capsule = restore->index;
        body.incarnation = restore->incarnation;
        body.port = restore->port;
        body.token.data = (uint8_t *) arrival_token(restore->arrival);
        body.token.len = ARRIVAL_TOKEN_BYTES;
        timer_set(restore->deadline, SILENCE_USEC);
        if (!holder)
                restore_fail(restore, "no node that is up has it");
        else if (checkpoints_send(restore->c, holder->name, &PEER_MESSAGE(&body)) < 0)
                restore_fail(restore, "%s cannot be reached", holder->name);
}

/* ---- what comes ---- */

void restores_on_saved_state(struct checkpoints *c, const char *node, const Rm__RestoreSavedState *saved_state) {
        struct restore *restore = find(c, saved_state->job, saved_state->capsule, saved_state->incarnation);

        if (!restore || restore->state != RESTORE_TRANSFER || !restore->from || strcmp(restore->from, node) != 0)
                return;
        if (saved_state->error[0]) {
                restore->said = true;
                restore_fail(restore, "%s: %s", node, saved_state->error);
                return;
        }
        arrival_saved_state(restore->arrival, saved_state->saved_state.data, saved_state->saved_state.len);
}

/* Without a copy their contents of then are lost. */
static void report_mismatches(struct restore *restore, const char *files) {
        cleanup_free char *text = xasprintf("job %" PRIu64 ": written in place, or by others too, and perhaps not as they were at "
                                            "checkpoint %" PRIu64 ".%" PRIu64 " (FILE.cut-* has what was cut off a FILE): %s",
                                            restore->job, restore->job, restore->checkpoint, files);
        struct command c;

        checkpoints_propose(restore->c, command_note(&c, text));
}

static const char *get_sender(void *owner) {
        const struct restore *restore = owner;

        return restore->from ? restore->from : "the node that has it";
}

static void on_listening(void *owner, uint16_t port) {
        struct restore *restore = owner;

        restore->port = port;
        (void) restore_event(restore, RESTORE_EV_LISTENING);
}

static void on_progress(void *owner) {
        struct restore *restore = owner;

        if (restore->state == RESTORE_TRANSFER)
                timer_set(restore->deadline, SILENCE_USEC);
}

static void on_received(void *owner) {
        (void) restore_event(owner, RESTORE_EV_RECEIVED);
}

static void on_restored(void *owner, const char *text) {
        struct restore *restore = owner;

        if (restore->state != RESTORE_RESTORE)
                return;
        if (*text && !restore->drill)
                report_mismatches(restore, text);
        (void) restore_event(restore, RESTORE_EV_RESTORED);
}

static void on_opened(void *owner) {
        struct resident *resident = resident_of(owner);

        if (resident)
                resident_release(resident, RESIDENT_RESTORED);
        (void) restore_event(owner, RESTORE_EV_OPENED);
}

static void on_not_opened(void *owner) {
        checkpoints_retry(((struct restore *) owner)->c);
}

static void on_failed(void *owner, int code, bool bad, const char *text) {
        struct restore *restore = owner;

        if (code < 0)
                restore->code = code;
        restore->said = bad;
        restore_fail(restore, "%s", text);
}

static const struct arrival_ops arrival_ops = { .get_sender = get_sender,
                                                .on_listening = on_listening,
                                                .on_progress = on_progress,
                                                .on_received = on_received,
                                                .on_restored = on_restored,
                                                .on_opened = on_opened,
                                                .on_not_opened = on_not_opened,
                                                .on_failed = on_failed };

/* ---- the states ---- */

/* Files and images are the same next time; only a node that lacks a file system may be another one
 * then. */
static bool is_passing(int error) {
        return error != -EEXIST && error != -ENODATA && error != -EPERM && error != -ERANGE && error != -EBADMSG;
}

static void give_up(struct restore *restore) {
        const Rm__Job *job = state_job(checkpoints_state(restore->c), restore->job);
        Rm__CmdCheckpointUnrestored *unrestored;
        struct command cmd;

        timer_set(restore->deadline, 0);
        arrival_end_mover(restore->arrival);
        if (restore->drill) {
                drills_tried(restore);
                return;
        }
        if (!job || job->restored_from != restore->checkpoint)
                return;
        restore->reported_usec = now_usec();
        checkpoints_retry(restore->c); /* it may not reach the log, as without a leader */
        unrestored =
                command_checkpoint_unrestored(&cmd, job->id, restore->checkpoint, checkpoints_self(restore->c), restore->error);
        unrestored->attempt = job->attempt;
        unrestored->passing = is_passing(restore->code);
        unrestored->unread = restore->unread;
        checkpoints_propose(restore->c, &cmd.command);
}

static void enter_done(struct restore *restore, struct resident *resident) {
        timer_set(restore->deadline, 0);
        arrival_end_mover(restore->arrival);
        if (restore->drill) {
                restore->took_usec = now_usec() - restore->begin_usec;
                drills_tried(restore);
                return;
        }
        resident_hold(resident, RESIDENT_RESTORED);
        /* The saved state has replaced what the capsule's PID 1 was told of the ranks until now. */
        runner_order_again(resident);
        if (arrival_is_complete(restore->arrival)) /* else an rmd before this one has restored it */
                log_info("job %" PRIu64 ": capsule %" PRId32 " is back from checkpoint %" PRIu64 ".%" PRIu64 " after %.3f s",
                         restore->job, restore->index, restore->job, restore->checkpoint,
                         (double) (now_usec() - restore->begin_usec) / 1e6);
        runner_wake(restore->c->rmd->runner);
}

static void enter_prepare(struct restore *restore) {
        const Rm__Job *job = state_job(checkpoints_state(restore->c), restore->job);
        struct arrival_image image = { .files = job && job->spec->checkpoint_files };
        struct rm_error err = { 0 };

        timer_set(restore->deadline, PREPARE_USEC);
        if (arrival_listen(restore->arrival, &image, &err) < 0)
                restore_fail(restore, "%s", error_text(&err));
}

/* Once the log has decided, nothing fails any more. */
static bool is_breakable(const struct restore *restore) {
        return restore->state < RESTORE_DONE;
}

/* How long ago the job's last process had ended, by the log's clock. Where that is not known, as of
 * a job that was imported, whatever came after the checkpoint may be somebody else's; and all of it
 * where the clock of another cluster was ahead. */
static uint64_t left_ago_usec(const struct restore *restore, const Rm__Job *job, const Rm__Checkpoint *checkpoint) {
        uint64_t now = cluster_log_usec(restore->c->rmd->cluster), left = job ? job->left_usec : 0;

        if (left == 0 && checkpoint)
                left = checkpoint->captured_usec;
        return left < now ? now - left : now;
}

static void enter_restore(struct restore *restore) {
        const Rm__Job *job = state_job(cluster_state(restore->c->rmd->cluster), restore->job);
        const Rm__Checkpoint *checkpoint = checkpoints_record(restore->c, restore->job, restore->checkpoint);
        const struct capsule_rollback back = { .other_files = checkpoint && checkpoint->other_files,
                                               .left_ago_usec = left_ago_usec(restore, job, checkpoint) };

        timer_set(restore->deadline, restore->c->rmd->config->move_timeout_usec);
        arrival_restore(restore->arrival, &back);
}

static void restore_enter(struct restore *restore) {
        struct resident *resident = resident_of(restore);
        struct rm_error err = { 0 };
        cleanup_free char *point = xasprintf("move.%s.%s", what_of(restore), restore_state_name(restore->state));
        int r = is_breakable(restore) || restore->state == RESTORE_OPEN ? gate_pass(&restore->gate, point, &err) : 0;

        if (r == -EINPROGRESS)
                return;
        if (restore->state <= RESTORE_DONE && r == 0 && (!resident || !resident_answers(resident)))
                r = error_set(&err, -ECHILD, "its capsule is gone");
        if (r < 0 && restore->state <= RESTORE_DONE) {
                restore_fail(restore, "%s", error_text(&err));
                return;
        }
        switch (restore->state) {
        case RESTORE_PREPARE:
                enter_prepare(restore);
                break;
        case RESTORE_TRANSFER:
                ask(restore);
                break;
        case RESTORE_RESTORE:
                enter_restore(restore);
                break;
        case RESTORE_DONE:
                enter_done(restore, resident);
                break;
        case RESTORE_OPEN:
                arrival_open(restore->arrival);
                break;
        case RESTORE_END:
                checkpoints_wake(restore->c);
                break;
        default: /* FAILED */
                give_up(restore);
        }
}

static void on_gate(evutil_socket_t fd, short what, void *arg) {
        restore_enter(arg);
}

/* ---- from outside ---- */

static struct restore *restore_create(struct checkpoints *c, uint64_t job, int32_t index, uint64_t incarnation,
                                      uint64_t checkpoint) {
        struct restore *restore = xcalloc(1, sizeof(*restore));

        *restore = (struct restore) { .c = c, .job = job, .index = index, .incarnation = incarnation, .checkpoint = checkpoint };
        restore->tried = xstrdup("");
        restore->begin_usec = now_usec();
        restore->dir = xasprintf("%s/restore-%" PRIu64 "-%" PRId32 "-%" PRIu64, c->dir, job, index, incarnation);
        restore->deadline = evtimer_new(c->rmd->base, on_deadline, restore);
        gate_init(&restore->gate, c->rmd->base, on_gate, restore);
        restore->arrival = arrival_create(c->rmd, &c->arrivals, c->remover, restore->dir, &arrival_ops, restore);
        arrival_begin(restore->arrival, job, index, incarnation);
        LIST_INSERT_HEAD(&c->restores, restore, entry);
        return restore;
}

struct restore *restores_begin_drill(struct checkpoints *c, uint64_t job, const Rm__Checkpoint *checkpoint, int32_t index) {
        struct restore *restore = restore_create(c, job, index, DRILL_INCARNATION | checkpoint->id, checkpoint->id);

        restore->drill = true;
        timer_set(restore->deadline, PREPARE_USEC); /* until its capsule answers */
        return restore;
}

void restores_end_drill(struct restore *restore) {
        struct resident *resident = resident_of(restore);
        struct runner *runner = restore->c->rmd->runner;

        restore_free(restore);
        if (resident)
                runner_drop(runner, resident, true);
}

/* The capsule is to be restored, and nothing is in it yet. */
static bool is_requested(const struct checkpoints *c, const struct resident *resident, const Rm__Job **ret_job) {
        const Rm__Job *job = state_job(checkpoints_state(c), resident_job(resident));
        const Rm__Capsule *capsule = job ? job_capsule(job, resident_index(resident)) : NULL;

        *ret_job = job;
        return capsule && job->restored_from && job->state == RM__JOB_STATE__JOB_STARTING &&
               capsule->incarnation == resident_incarnation(resident) && capsule->state == RM__CAPSULE_STATE__CAPSULE_PLACED &&
               resident_holder(resident) != RESIDENT_RESTORED;
}

void restores_capsule_ready(struct checkpoints *c, struct resident *resident, int error, const char *text) {
        struct restore *restore = find(c, resident_job(resident), resident_index(resident), resident_incarnation(resident));
        const Rm__Job *job;

        if (error < 0) {
                if (restore && restore->state < RESTORE_DONE)
                        restore_fail(restore, "%s", text);
                return;
        }
        if (restore && restore->drill && restore->state == RESTORE_NEW) {
                restore->begin_usec = now_usec();
                (void) restore_event(restore, RESTORE_EV_START);
        }
        if (restore || !is_requested(c, resident, &job))
                return;
        if (capsule_phase(resident_capsule(resident)) != CAPSULE_EMPTY &&
            capsule_phase(resident_capsule(resident)) != CAPSULE_RESTORED)
                return;
        restore = restore_create(c, job->id, resident_index(resident), resident_incarnation(resident), job->restored_from);
        (void) restore_event(restore,
                             capsule_phase(resident_capsule(resident)) == CAPSULE_EMPTY ? RESTORE_EV_START : RESTORE_EV_ADOPTED);
}

void restores_on_lost(struct checkpoints *c, const char *node) {
        struct restore *restore, *next;

        for (restore = LIST_FIRST(&c->restores); restore; restore = next) {
                next = LIST_NEXT(restore, entry);
                if (restore->state == RESTORE_TRANSFER && restore->from && strcmp(restore->from, node) == 0 &&
                    !arrival_is_complete(restore->arrival))
                        restore_fail(restore, "%s was lost", node);
        }
}

void restores_keep(const struct checkpoints *c) {
        const struct restore *restore;

        LIST_FOREACH (restore, &c->restores, entry)
                if (restore->from && restore->state == RESTORE_TRANSFER)
                        cluster_keep(c->rmd->cluster, restore->from);
}

/* Notices capsules that answered before this rmd knew that they are to be restored. */
static void see_placed(struct checkpoints *c) {
        size_t n;
        cleanup_free struct state_placed *placed = state_placed_on(cluster_index(c->rmd->cluster), checkpoints_self(c), &n);

        for (size_t i = 0; i < n; i++) {
                struct resident *resident = runner_current(c->rmd->runner, placed[i].job->id, placed[i].capsule->index);
                const Rm__Job *job;

                if (!resident || !resident_answers(resident) || !is_requested(c, resident, &job))
                        continue;
                if (capsule_phase(resident_capsule(resident)) == CAPSULE_RESTORING)
                        checkpoints_retry(c);
                else
                        restores_capsule_ready(c, resident, 0, "");
        }
}

/* The attempt that the restore is for goes on, or is still to begin. */
static bool is_needed(const struct restore *restore) {
        const Rm__Job *job = state_job(checkpoints_state(restore->c), restore->job);
        const Rm__Capsule *capsule = job ? job_capsule(job, restore->index) : NULL;
        bool starting = capsule && job->state == RM__JOB_STATE__JOB_STARTING;
        bool running =
                capsule && job_running(job) && !starting && (restore->state == RESTORE_DONE || restore->state == RESTORE_OPEN);

        return capsule && capsule->incarnation == restore->incarnation && (starting || running);
}

static void see_restore(struct restore *restore) {
        const Rm__Job *job = state_job(checkpoints_state(restore->c), restore->job);

        if (restore->state == RESTORE_OPEN && !gate_holds(&restore->gate))
                arrival_open(restore->arrival);
        else if (restore->state == RESTORE_DONE && job && job->state != RM__JOB_STATE__JOB_STARTING)
                (void) restore_event(restore, RESTORE_EV_RUNNING);
        else if (restore->state == RESTORE_FAILED && now_usec() - restore->reported_usec > REPORT_AGAIN_USEC)
                give_up(restore);
        else if (restore->state == RESTORE_FAILED)
                checkpoints_retry(restore->c);
}

void restores_wake(struct checkpoints *c) {
        struct restore *restore, *next;

        for (restore = LIST_FIRST(&c->restores); restore; restore = next) {
                next = LIST_NEXT(restore, entry);
                if (restore->drill)
                        continue; /* drills_wake() ends it */
                if (is_needed(restore))
                        see_restore(restore);
                else
                        restore_free(restore);
        }
        see_placed(c);
}

void restores_finish(struct checkpoints *c) {
        while (!LIST_EMPTY(&c->restores))
                restore_free(LIST_FIRST(&c->restores));
}
