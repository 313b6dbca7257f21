/* Capsules that come back here from a checkpoint. The runner makes them as it makes any, but cut off; here they get what was captured, and stand still, cut off, until
 * all of the job are so far: then the job runs by the state, and each node opens its own. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "common/fault.h"
#include "common/log.h"
#include "common/text.h"
#include "common/timer.h"
#include "common/util.h"
#include "daemon/checkpoint/checkpoints_internal.h"
#include "daemon/move/images.h"
#include "daemon/move/mover_setup.h"
#include "daemon/move/trees.h"
#include "daemon/peers/peer_message.h"
#include "daemon/state/commands.h"

#define PREPARE_USEC (30U * UINT64_C(1000000))
#define SILENCE_USEC (60U * UINT64_C(1000000))
#define TELL_AGAIN_USEC (15U * UINT64_C(1000000)) /* longer than a proposal waits for a leader */

/* An operation of a capsule under way; survives the restore. */
struct restore_op {
        struct checkpoints *c;
        uint64_t job;
        int32_t index;
        uint64_t incarnation;
};

static void restore_enter(struct restore *restore);

static struct restore *find(const struct checkpoints *c, uint64_t job, int32_t index, uint64_t incarnation) {
        struct restore *restore;

        LIST_FOREACH (restore, &c->restores, entry)
                if (restore->job == job && restore->index == index && restore->incarnation == incarnation)
                        return restore;
        return NULL;
}

static struct restore_op *make_op(const struct restore *restore) {
        struct restore_op *op = xcalloc(1, sizeof(*op));

        *op = (struct restore_op) { restore->c, restore->job, restore->index, restore->incarnation };
        return op;
}

static struct restore *op_done(struct restore_op *op, int error) {
        struct restore *restore = error == -ECANCELED ? NULL : find(op->c, op->job, op->index, op->incarnation);

        free(op);
        return restore;
}

static struct resident *resident_of(const struct restore *restore) {
        return runner_copy(restore->c->rmd->runner, restore->job, restore->index, restore->incarnation);
}

static void set_deadline(struct restore *restore, uint64_t usec) {
        (void) evtimer_del(restore->deadline);
        if (usec > 0)
                timer_arm(restore->deadline, usec);
}

static void stop_mover(struct restore *restore) {
        mover_stop(take_ptr(restore->mover), restore->c->remover, restore->dir);
}

static void restore_free(struct restore *restore) {
        LIST_REMOVE(restore, entry);
        stop_mover(restore);
        event_free(restore->deadline);
        free(restore->dir);
        free(restore->from);
        free(restore->tried);
        free(restore);
}

/* As in fault points. */
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
        restore_enter(restore);
        return true;
}

/* ---- who sends it ---- */

static bool was_tried(const struct restore *restore, const char *node) {
        cleanup_free char *spaced = xasprintf(" %s ", restore->tried), *wanted = xasprintf(" %s ", node);

        return strstr(spaced, wanted) != NULL;
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

/* What came is no good. Another node may have a better copy; else the restart fails. */
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
        body.token.data = restore->token;
        body.token.len = sizeof(restore->token);
        set_deadline(restore, SILENCE_USEC);
        if (!holder)
                restore_fail(restore, "no node that is up has it");
        else if (checkpoints_send(restore->c, holder->name, &PEER_MESSAGE(&body)) < 0)
                restore_fail(restore, "%s cannot be reached", holder->name);
}

/* ---- what comes ---- */

static void maybe_received(struct restore *restore) {
        if (restore->image_complete && restore->filtered)
                (void) restore_event(restore, RESTORE_EV_RECEIVED);
}

static void on_filtered(struct capsule *capsule, int error, const char *text, void *arg) {
        struct restore *restore = op_done(arg, error);

        if (!restore)
                return;
        if (error < 0) {
                restore_fail(restore, "preparing the link: %s", text);
                return;
        }
        restore->filtered = true;
        maybe_received(restore);
}

void restores_on_carry(struct checkpoints *c, const char *node, const Rm__RestoreCarry *carry) {
        struct restore *restore = find(c, carry->job, carry->capsule, carry->incarnation);
        struct resident *resident = restore ? resident_of(restore) : NULL;

        if (!restore || restore->state != RESTORE_TRANSFER || !restore->from || strcmp(restore->from, node) != 0)
                return;
        if (carry->error[0]) {
                restore->said = true;
                restore_fail(restore, "%s: %s", node, carry->error);
                return;
        }
        if (restore->carried || !resident || !resident->ready)
                return;
        restore->carried = true;
        if (capsule_restore_prepare(resident->capsule, carry->carry.data, carry->carry.len, on_filtered, make_op(restore)) < 0)
                restore_fail(restore, "cannot prepare the link");
}

static void on_mover_event(void *userdata, const Rm__MoverEvent *event) {
        struct restore *restore = userdata;

        switch (event->body_case) {
        case RM__MOVER_EVENT__BODY_LISTENING:
                restore->port = event->listening->port;
                (void) restore_event(restore, RESTORE_EV_LISTENING);
                break;
        case RM__MOVER_EVENT__BODY_PROGRESS:
                if (restore->state == RESTORE_TRANSFER)
                        set_deadline(restore, SILENCE_USEC);
                break;
        case RM__MOVER_EVENT__BODY_RECEIVED:
                restore->image_complete = true;
                restore->pages = event->received->figures && event->received->figures->pages;
                maybe_received(restore);
                break;
        case RM__MOVER_EVENT__BODY_FAILED:
                restore->said = event->failed->by_peer || event->failed->code == -EBADMSG;
                restore_fail(restore, "%s", event->failed->text);
                break;
        default:
                break;
        }
}

static void on_mover_gone(void *userdata) {
        struct restore *restore = userdata;

        if (!restore->image_complete)
                restore_fail(restore, "rm-mover exited unexpectedly");
}

static const struct mover_ops mover_ops = { on_mover_event, on_mover_gone };

static int make_copies_dir(const struct restore *restore, struct rm_error *err) {
        cleanup_free char *dir = xasprintf("%s/" CAPSULE_FILES_DIR, restore->dir);

        return images_directory(restore->c->remover, dir, err);
}

static int start_mover(struct restore *restore, struct resident *resident, struct rm_error *err) {
        const struct config *config = restore->c->rmd->config;
        const Rm__Job *job = state_job(checkpoints_state(restore->c), restore->job);
        bool copies = job && job->spec->checkpoint_files;
        Rm__MoverReceive body;
        struct move_trees trees;
        int r;

        if (getrandom(restore->token, sizeof(restore->token), 0) != (ssize_t) sizeof(restore->token))
                return error_set(err, -EIO, "cannot get random bytes");
        r = images_directory(restore->c->remover, restore->dir, err);
        if (r == 0 && copies)
                r = make_copies_dir(restore, err);
        if (r < 0)
                return r;
        r = mover_start(restore->c->rmd, "receive", &mover_ops, restore, &restore->mover, err);
        if (r < 0)
                return r;
        mover_receive_init(&body, config, restore->token, sizeof(restore->token));
        body.images_dir = restore->dir;
        move_trees_init(&trees, config, resident);
        if (copies)
                move_trees_add_files(&trees, restore->dir);
        body.trees = trees.list;
        body.n_trees = trees.n;
        r = mover_command(restore->mover, &MOVER_COMMAND(&body));
        move_trees_finish(&trees);
        return r < 0 ? error_sys(err, r, "sending to rm-mover") : 0;
}

/* Without a copy nobody can tell what was in them then. */
static void tell_doubts(struct restore *restore, const char *files) {
        cleanup_free char *text = xasprintf("job %" PRIu64 ": written in place, and perhaps not as they were at checkpoint %" PRIu64
                                            ".%" PRIu64 ": %s",
                                            restore->job, restore->job, restore->checkpoint, files);
        struct command c;

        checkpoints_propose(restore->c, command_note(&c, text));
}

static void on_restored(struct capsule *capsule, int error, const char *text, void *arg) {
        struct restore *restore = op_done(arg, error);

        if (!restore || restore->state != RESTORE_RESTORE)
                return;
        if (error < 0) {
                restore->code = error;
                restore_fail(restore, "restoring: %s", text);
                return;
        }
        if (*text && !restore->drill)
                tell_doubts(restore, text);
        (void) restore_event(restore, RESTORE_EV_RESTORED);
}

/* ---- the states ---- */

/* Files and images are the same next time; only a node that lacks a file system may be another one then. */
static bool is_passing(int error) {
        return error != -EEXIST && error != -ENODATA && error != -EPERM && error != -ERANGE && error != -EBADMSG;
}

static void give_up(struct restore *restore) {
        const Rm__State *state = checkpoints_state(restore->c);
        const Rm__Job *job = state_job(state, restore->job);
        cleanup_free char *reason = xasprintf("it could not be restored on %s: %s", checkpoints_self(restore->c), restore->error);
        Rm__CmdCheckpointUnrestored *unrestored;
        struct command cmd;

        set_deadline(restore, 0);
        stop_mover(restore);
        if (restore->drill) {
                drills_tried(restore);
                return;
        }
        if (!job || job->restored_from != restore->checkpoint)
                return;
        restore->told_usec = now_usec();
        checkpoints_retry(restore->c); /* it may not reach the log, as without a leader */
        if (state->level >= STATE_LEVEL_UNRESTORED) {
                unrestored = command_checkpoint_unrestored(&cmd, job->id, restore->checkpoint, checkpoints_self(restore->c),
                                                           restore->error);
                unrestored->attempt = job->attempt;
                unrestored->passing = is_passing(restore->code);
                unrestored->unread = restore->unread;
                checkpoints_propose(restore->c, &cmd.command);
        } else if (job_may_restart(job)) {
                checkpoints_propose(restore->c, command_job_restart(&cmd, job->id, job->attempt + 1, checkpoints_self(restore->c),
                                                                    reason, false));
        } else {
                checkpoints_propose(restore->c, command_job_exit(&cmd, job->id, 255, reason, RM__JOB_STATE__JOB_NODE_FAIL));
        }
}

static void enter_done(struct restore *restore, struct resident *resident) {
        set_deadline(restore, 0);
        stop_mover(restore);
        if (restore->drill) {
                restore->took_usec = now_usec() - restore->begin_usec;
                drills_tried(restore);
                return;
        }
        resident->restored = resident->launching = true;
        log_info("job %" PRIu64 ": capsule %" PRId32 " is back from checkpoint %" PRIu64 ".%" PRIu64 " after %.3f s", restore->job,
                 restore->index, restore->job, restore->checkpoint, (double) (now_usec() - restore->begin_usec) / 1e6);
        runner_wake(restore->c->rmd->runner);
}

static void restore_enter(struct restore *restore) {
        uint64_t timeout_usec = restore->c->rmd->config->move_timeout_usec;
        const Rm__Checkpoint *checkpoint = checkpoints_record(restore->c, restore->job, restore->checkpoint);
        bool other_files = checkpoint && checkpoint->other_files;
        struct resident *resident = resident_of(restore);
        struct rm_error err = { 0 };
        cleanup_free char *point = xasprintf("move.%s.%s", what_of(restore), restore_state_name(restore->state));
        int r = restore->state < RESTORE_DONE ? fault_point(point, &err) : 0;

        restore->held = r == -EAGAIN;
        if (restore->held)
                checkpoints_retry(restore->c);
        if (r == -EINPROGRESS || r == -EAGAIN)
                return;
        if (restore->state < RESTORE_FAILED && r == 0 && (!resident || !resident->ready))
                r = error_set(&err, -ECHILD, "its capsule is gone");
        if (r < 0) {
                restore_fail(restore, "%s", error_text(&err));
                return;
        }
        switch (restore->state) {
        case RESTORE_PREPARE:
                stop_mover(restore);
                restore->carried = restore->filtered = restore->image_complete = false;
                set_deadline(restore, PREPARE_USEC);
                if (start_mover(restore, resident, &err) < 0)
                        restore_fail(restore, "%s", error_text(&err));
                break;
        case RESTORE_TRANSFER:
                ask(restore);
                break;
        case RESTORE_RESTORE:
                set_deadline(restore, timeout_usec);
                if (capsule_restore_back(resident->capsule, restore->dir, restore->pages, other_files, timeout_usec, on_restored,
                                         make_op(restore)) < 0)
                        restore_fail(restore, "cannot start the restore");
                break;
        case RESTORE_DONE:
                enter_done(restore, resident);
                break;
        default: /* FAILED */
                give_up(restore);
        }
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
        LIST_INSERT_HEAD(&c->restores, restore, entry);
        return restore;
}

struct restore *restores_begin_drill(struct checkpoints *c, uint64_t job, const Rm__Checkpoint *checkpoint, int32_t index) {
        struct restore *restore = restore_create(c, job, index, DRILL_INCARNATION | checkpoint->id, checkpoint->id);

        restore->drill = true;
        set_deadline(restore, PREPARE_USEC); /* until its capsule answers */
        return restore;
}

void restores_end_drill(struct restore *restore) {
        struct resident *resident = resident_of(restore);
        struct runner *runner = restore->c->rmd->runner;

        restore_free(restore);
        if (resident)
                runner_drop(runner, resident, true);
}

/* It is to come back, and nothing is in it yet. */
static bool is_wanted(const struct checkpoints *c, const struct resident *resident, const Rm__Job **ret_job) {
        const Rm__Job *job = state_job(checkpoints_state(c), resident->job);
        const Rm__Capsule *capsule = job ? job_capsule(job, resident->index) : NULL;

        *ret_job = job;
        return capsule && job->restored_from && job->state == RM__JOB_STATE__JOB_STARTING &&
               capsule->incarnation == resident->incarnation && capsule->state == RM__CAPSULE_STATE__CAPSULE_PLACED &&
               !resident->restored;
}

void restores_capsule_ready(struct checkpoints *c, struct resident *resident, int error, const char *text) {
        struct restore *restore = find(c, resident->job, resident->index, resident->incarnation);
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
        if (restore || !is_wanted(c, resident, &job))
                return;
        if (capsule_phase(resident->capsule) == CAPSULE_RESTORED) { /* for an earlier life of this rmd */
                resident->restored = resident->launching = true;
                runner_wake(c->rmd->runner);
                return;
        }
        if (capsule_phase(resident->capsule) != CAPSULE_EMPTY)
                return;
        restore = restore_create(c, job->id, resident->index, resident->incarnation, job->restored_from);
        (void) restore_event(restore, RESTORE_EV_START);
}

void restores_on_lost(struct checkpoints *c, const char *node) {
        struct restore *restore, *next;

        for (restore = LIST_FIRST(&c->restores); restore; restore = next) {
                next = LIST_NEXT(restore, entry);
                if (restore->state == RESTORE_TRANSFER && restore->from && strcmp(restore->from, node) == 0 &&
                    !restore->image_complete)
                        restore_fail(restore, "%s was lost", node);
        }
}

void restores_keep(const struct checkpoints *c) {
        const struct restore *restore;

        LIST_FOREACH (restore, &c->restores, entry)
                if (restore->from && restore->state == RESTORE_TRANSFER)
                        cluster_keep(c->rmd->cluster, restore->from);
}

/* Those that answered before this rmd knew that they are to come back. */
static void see_placed(struct checkpoints *c) {
        size_t n;
        cleanup_free struct state_placed *placed = state_placed_on(cluster_index(c->rmd->cluster), checkpoints_self(c), &n);

        for (size_t i = 0; i < n; i++) {
                struct resident *resident = runner_current(c->rmd->runner, placed[i].job->id, placed[i].capsule->index);
                const Rm__Job *job;

                if (!resident || !resident->ready || !is_wanted(c, resident, &job))
                        continue;
                if (capsule_phase(resident->capsule) == CAPSULE_RESTORING)
                        checkpoints_retry(c);
                else
                        restores_capsule_ready(c, resident, 0, "");
        }
}

void restores_wake(struct checkpoints *c) {
        struct restore *restore, *next;

        for (restore = LIST_FIRST(&c->restores); restore; restore = next) {
                const Rm__Job *job = state_job(checkpoints_state(c), restore->job);
                const Rm__Capsule *capsule = job ? job_capsule(job, restore->index) : NULL;

                next = LIST_NEXT(restore, entry);
                if (restore->held)
                        restore_enter(restore);
                if (restore->drill)
                        continue; /* drills_wake() */
                if (!capsule || capsule->incarnation != restore->incarnation || job->state != RM__JOB_STATE__JOB_STARTING)
                        restore_free(restore);
                else if (restore->state == RESTORE_FAILED && now_usec() - restore->told_usec > TELL_AGAIN_USEC)
                        give_up(restore);
                else if (restore->state == RESTORE_FAILED)
                        checkpoints_retry(c);
        }
        see_placed(c);
}

void restores_finish(struct checkpoints *c) {
        while (!LIST_EMPTY(&c->restores))
                restore_free(LIST_FIRST(&c->restores));
}
