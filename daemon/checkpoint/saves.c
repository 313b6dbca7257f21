/* Captures capsules of this node. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "common/text.h"
#include "common/timer.h"
#include "common/util.h"
#include "daemon/checkpoint/checkpoints_internal.h"
#include "daemon/node/memory_use.h"
#include "daemon/peers/peer_message.h"
#include "daemon/state/commands.h"
#include "daemon/state/leave_by.h"
#include "daemon/transfer/images.h"

#define PREPARE_USEC (30U * UINT64_C(1000000))
#define PRECOPY_USEC (60U * UINT64_C(1000000)) /* from one report of rm-mover to the next */
#define OTHERS_USEC (600U * UINT64_C(1000000)) /* for the capsules of the job that send the most ahead */
#define BUFFER_MIN_BYTES (UINT64_C(64) << 20)

static void save_enter(struct save *save);

static struct resident *resident_of(const struct save *save) {
        return runner_copy(save->c->rmd->runner, save->job, save->index, save->incarnation);
}

/* ---- the table ---- */

static struct save *find_capsule(const struct checkpoints *c, uint64_t job, int32_t index, uint64_t incarnation) {
        struct save *save;

        LIST_FOREACH (save, &c->saves, entry)
                if (save->job == job && save->index == index && save->incarnation == incarnation)
                        return save;
        return NULL;
}

const struct save *saves_find(const struct checkpoints *c, uint64_t job, int32_t index, uint64_t checkpoint) {
        const struct save *save;

        LIST_FOREACH (save, &c->saves, entry)
                if (save->job == job && save->index == index && save->checkpoint == checkpoint)
                        return save;
        return NULL;
}

const struct save *saves_last(const struct checkpoints *c, uint64_t job, int32_t index, uint64_t checkpoint) {
        const struct save *save;

        LIST_FOREACH (save, &c->saves, entry)
                if (save->job == job && save->index == index && save->mover_last == checkpoint)
                        return save;
        return NULL;
}

bool saves_use(const struct checkpoints *c, uint64_t job, int32_t index) {
        const struct save *save;

        LIST_FOREACH (save, &c->saves, entry)
                if (save->job == job && save->index == index && save->mover)
                        return true;
        return false;
}

bool saves_busy(const struct checkpoints *c, uint64_t job, int32_t index) {
        const struct save *save;

        LIST_FOREACH (save, &c->saves, entry)
                if (save->job == job && save->index == index && save->state != SAVE_IDLE)
                        return true;
        return false;
}

static void stop_mover(struct save *save) {
        mover_stop(take_ptr(save->mover), save->c->remover, save->dir);
        save->mover_ready = save->released = false;
        save->mover_last = 0;
}

static void save_event(struct save *save, enum save_event event) {
        enum save_state next;

        if (!save_next(save->state, event, &next)) {
                log_debug("checkpoint %" PRIu64 ".%" PRIu64 ", capsule %" PRId32 ": %s in state %s is ignored", save->job,
                          save->checkpoint, save->index, save_event_name(event), save_state_name(save->state));
                return;
        }
        log_debug("checkpoint %" PRIu64 ".%" PRIu64 ", capsule %" PRId32 ": %s -> %s", save->job, save->checkpoint, save->index,
                  save_state_name(save->state), save_state_name(next));
        save->state = next;
        gate_leave(&save->gate);
        save_enter(save);
}

static void save_fail(struct save *save, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void save_fail(struct save *save, const char *fmt, ...) {
        enum save_state next;
        va_list ap;

        if (!save_next(save->state, SAVE_EV_FAILED, &next))
                return;
        va_start(ap, fmt);
        (void) text_format_va(save->error, sizeof(save->error), fmt, ap);
        va_end(ap);
        log_warn("checkpoint %" PRIu64 ".%" PRIu64 ", capsule %" PRId32 " (%s): %s", save->job, save->checkpoint, save->index,
                 save_state_name(save->state), save->error);
        save_event(save, SAVE_EV_FAILED);
}

static void on_deadline(evutil_socket_t fd, short what, void *arg) {
        struct save *save = arg;

        if (save->waits == CAPTURE_AWAITS_START)
                save_fail(save, "mpirun has not started its ranks yet");
        else
                save_fail(save, "%s timed out", save_state_name(save->state));
}

/* ---- what the others hear ---- */

static uint32_t places_of(const struct save *save) {
        const struct resident *resident = resident_of(save);
        struct capsule_status status = { 0 };

        if (resident && resident_is_live(resident))
                capsule_get_status(resident_capsule(resident), &status);
        return status.progress.placing;
}

static int report_round(const struct save *save, Rm__CheckpointPhase phase, uint32_t round) {
        const Rm__Job *job = state_job(checkpoints_state(save->c), save->job);
        const Rm__Capsule *head = job ? job_capsule(job, STATE_HEAD) : NULL;
        Rm__CheckpointAt at = RM__CHECKPOINT_AT__INIT;

        at.job = save->job;
        at.checkpoint = save->checkpoint;
        at.capsule = save->index;
        at.phase = phase;
        at.error = (char *) save->error;
        at.pause_usec = save->pause_usec;
        at.output_end = (uint64_t *) save->output_end;
        at.places = phase == RM__CHECKPOINT_PHASE__CHECKPOINT_PHASE_COPIED ? places_of(save) : 0;
        at.round = round;
        at.n_output_end = save->index == STATE_HEAD ? ARRAY_SIZE(save->output_end) : 0;
        return head ? checkpoints_send(save->c, head->node, &PEER_MESSAGE(&at)) : -ENOENT;
}

static int report(const struct save *save, Rm__CheckpointPhase phase) {
        return report_round(save, phase, 0);
}

/* If the node of mpirun is not told, it waits indefinitely, and so do the moves and changes of the
 * job. */
static void report_or_fail(struct save *save, Rm__CheckpointPhase phase) {
        if (report(save, phase) < 0)
                save_fail(save, "the node of mpirun cannot be reached");
}

/* Ranks that are asked to come to their places, which is done round by round. */
struct place_call {
        struct call *call;
        uint32_t round;
};

/* The ranks of the capsule wait at their places; or they do no longer, and then the head's time is
 * over as well. */
static void on_in_place(struct capsule *capsule, int error, const char *text, void *arg) {
        struct place_call asked = *(struct place_call *) arg;
        const struct save *save = call_done(asked.call, error);

        free(arg);
        if (save && save->state == SAVE_COPIED) /* if it is not heard, the head waits for its whole time */
                (void) report_round(save, RM__CHECKPOINT_PHASE__CHECKPOINT_PHASE_PLACE, asked.round);
}

/* A capsule that has ended by now comes to nothing as it is frozen. */
static void seek_places(struct save *save, const Rm__CheckpointGo *go) {
        const struct resident *resident = resident_of(save);
        uint64_t wait_usec = go->wait_usec < CONFIG_PLACE_WAIT_MAX_USEC ? go->wait_usec : CONFIG_PLACE_WAIT_MAX_USEC;
        struct place_call *asked;

        if (save->state != SAVE_COPIED || places_of(save) == 0)
                return;
        asked = xcalloc(1, sizeof(*asked));
        *asked = (struct place_call) { call_create(&save->caller), go->round };
        capture_announced(save->capture);
        if (!call_begun(asked->call, capsule_announce(resident_capsule(resident), CAPSULE_PLACE, wait_usec, on_in_place, asked)))
                free(asked);
}

void saves_on_go(struct checkpoints *c, const Rm__CheckpointGo *go) {
        struct save *save, *next;

        for (save = LIST_FIRST(&c->saves); save; save = next) {
                next = LIST_NEXT(save, entry);
                if (save->job != go->job || save->checkpoint != go->checkpoint)
                        continue;
                if (go->phase == RM__CHECKPOINT_PHASE__CHECKPOINT_PHASE_PLACE)
                        seek_places(save, go);
                else if (go->phase == RM__CHECKPOINT_PHASE__CHECKPOINT_PHASE_COPIED)
                        save_event(save, SAVE_EV_ALL_COPIED);
                else if (go->phase == RM__CHECKPOINT_PHASE__CHECKPOINT_PHASE_CUT)
                        save_event(save, SAVE_EV_ALL_CUT);
                else if (save->state < SAVE_STORE)
                        save_fail(save, "%s", go->error);
        }
}

/* ---- rm-mover ---- */

static void on_stored(struct save *save, const Rm__MoverStored *stored) {
        save->raw_bytes = stored->raw_bytes > 0 ? stored->raw_bytes : 1;
        save->mover_last = stored->checkpoint;
        save->stored_bytes = stored->stored_bytes;
        save->store_usec = stored->store_usec;
        save_event(save, SAVE_EV_STORED);
}

/* A drill is not worth any checkpoint that there is. */
static void make_space(const struct save *save) {
        const Rm__Checkpoint *checkpoint = checkpoints_record(save->c, save->job, save->checkpoint);

        if (checkpoint && !checkpoint_is_drill(checkpoint))
                space_make(save->c, save->job, save->checkpoint);
}

static void on_mover_event(void *userdata, const Rm__MoverEvent *event) {
        struct save *save = userdata;

        if (capture_on_mover_event(save->capture, event))
                return;
        switch (event->body_case) {
        case RM__MOVER_EVENT__BODY_READY:
                save->mover_ready = true;
                save_event(save, SAVE_EV_READY);
                break;
        case RM__MOVER_EVENT__BODY_PRECOPIED:
                save->pages = event->precopied->figures && event->precopied->figures->pages;
                save_event(save, SAVE_EV_COPIED);
                break;
        case RM__MOVER_EVENT__BODY_CAPTURED:
                save_event(save, SAVE_EV_CAPTURED);
                break;
        case RM__MOVER_EVENT__BODY_STORED:
                on_stored(save, event->stored);
                break;
        case RM__MOVER_EVENT__BODY_FAILED:
                if (event->failed->code == -EDQUOT || event->failed->code == -ENOSPC)
                        make_space(save);
                save_fail(save, "%s", event->failed->text);
                break;
        default:
                break;
        }
}

static void on_mover_gone(void *userdata) {
        struct save *save = userdata;

        stop_mover(save);
        save_fail(save, "rm-mover exited unexpectedly");
}

static const struct mover_ops mover_ops = { on_mover_event, on_mover_gone };

/* Counts the captures on this node, of all jobs, by checkpoints that are under way. */
static uint64_t captured_here(const struct checkpoints *c) {
        const Rm__State *state = checkpoints_state(c);
        uint64_t n = 0;

        for (size_t i = 0; i < state->n_jobs; i++) {
                const Rm__Checkpoint *checkpoint = job_checkpoint_under_way(state->jobs[i]);

                for (size_t k = 0; checkpoint && k < checkpoint->n_parts; k++)
                        n += strcmp(checkpoint->parts[k]->node, checkpoints_self(c)) == 0;
        }
        return n > 0 ? n : 1;
}

/* The size of the buffer in memory for pages that are written while the groups are frozen, and as
 * much for copies of their files: all together a quarter of the free memory each, so that no
 * process is pushed out. */
static uint64_t buffer_bytes(const struct checkpoints *c) {
        uint64_t share = memory_use_available() / 4 / captured_here(c);

        return share > BUFFER_MIN_BYTES ? share : BUFFER_MIN_BYTES;
}

static int start_mover(struct save *save, const Rm__Job *job, struct rm_error *err) {
        const struct config *config = save->c->rmd->config;
        cleanup_free char *dir = stores_dir(save->c, save->job, save->index);
        Rm__MoverSave body = RM__MOVER_SAVE__INIT;
        Rm__MoverStore store;
        int r = stores_describe(save->c, save->job, save->index, dir, &store, err);

        if (r == 0)
                r = stores_make(save->c, save->job, err);
        if (r < 0)
                return r;
        r = images_directory(save->c->remover, save->dir, err);
        if (r < 0)
                return r;
        body.store = &store;
        body.images_dir = save->dir;
        body.criu_uid = job->spec->uid;
        body.bytes_per_sec = config->checkpoint_rate_bytes_per_sec;
        body.codec = (Rm__MoverCodec) config->checkpoint_codec;
        return mover_start(save->c->rmd, "save", &MOVER_COMMAND(&body), &mover_ops, save, &save->mover, err);
}

/* ---- the states ---- */

static bool has_stored(const struct checkpoints *c, const Rm__CheckpointPart *part) {
        return names_have(part->stored, part->n_stored, checkpoints_self(c)) ||
               names_have(part->stored, part->n_stored, STATE_STORED_SHARED);
}

/* The checkpoint that rm-mover would go on from is here no more: removed, or found damaged. Another
 * one begins with all of the memory. */
static bool has_lost_its_last(const struct save *save) {
        const Rm__Checkpoint *checkpoint = checkpoints_record(save->c, save->job, save->mover_last);
        const Rm__CheckpointPart *part = checkpoint ? checkpoint_part(checkpoint, save->index) : NULL;

        return save->mover && save->mover_last > 0 && (!part || !has_stored(save->c, part));
}

static void enter_prepare(struct save *save) {
        const Rm__Job *job = state_job(checkpoints_state(save->c), save->job);
        struct memory_report_use use;
        struct rm_error err = { 0 };
        enum capture_wait before = save->waits;

        save->waits = capture_waits(save->capture, true);
        if (save->waits != CAPTURE_AWAITS_START || before != CAPTURE_AWAITS_START) /* for ranks not longer than this */
                timer_set(save->deadline, PREPARE_USEC);
        if (save->waits != CAPTURE_READY) {
                checkpoints_retry(save->c);
                return;
        }
        capture_preload(save->capture);
        /* All capsules of the job that are here begin at once. */
        capture_measure(save->capture, MEMORY_REPORT_PROCESSES_MAX / captured_here(save->c) + 1, &use);
        if (has_lost_its_last(save))
                stop_mover(save);
        if (save->mover && save->mover_ready && !save->released)
                save_event(save, SAVE_EV_READY);
        else if (save->mover)
                save_fail(save, "what was captured before is still being stored");
        else if (!job || start_mover(save, job, &err) < 0)
                save_fail(save, "%s", error_text(&err));
}

/* The directory of the copies of files that are written in place. */
static char *copies_dir(const struct save *save) {
        return xasprintf("%s/" CAPSULE_FILES_DIR, save->dir);
}

/* ---- the capture ---- */

static struct mover *get_mover(void *owner) {
        return ((struct save *) owner)->mover;
}

static uint64_t get_leave_by_usec(void *owner) {
        const struct save *save = owner;
        const Rm__State *state = checkpoints_state(save->c);
        const Rm__Job *job = state_job(state, save->job);

        return job ? job_leave_by_usec(state, job) : 0;
}

static void set_deadline(void *owner, uint64_t usec) {
        timer_set(((struct save *) owner)->deadline, usec);
}

/* The checkpoints that the state has of the job; rm-mover removes others. */
static void list_kept(struct save *save, Rm__MoverPrecopy *body) {
        const Rm__Job *job = state_job(checkpoints_state(save->c), save->job);

        free(save->kept);
        save->kept = xcalloc((job ? job->n_checkpoints : 0) + 1u, sizeof(*save->kept));
        for (size_t i = 0; job && i < job->n_checkpoints; i++)
                save->kept[body->n_keep++] = job->checkpoints[i]->id;
        body->keep = save->kept;
}

static void fill_precopy(void *owner, Rm__MoverPrecopy *body) {
        struct save *save = owner;
        char why[256];

        list_kept(save, body);
        body->checkpoint = save->checkpoint;
        body->memory_bytes = buffer_bytes(save->c);
        body->space_bytes = space_left(save->c, save->job);
        body->bytes_per_sec = save->c->rmd->config->checkpoint_rate_bytes_per_sec;
        body->pages = capture_may_track(save->capture, why, sizeof(why));
}

/* Asks for what travels with the capsule, and how its files were; with copies of them if the job
 * wants that. */
static int get_saved_state(void *owner, struct capsule *capsule, capsule_saved_state_fn done, void *arg) {
        struct save *save = owner;
        const Rm__Job *job = state_job(checkpoints_state(save->c), save->job);
        cleanup_free char *dir = copies_dir(save);
        struct rm_error err = { 0 };
        int r;

        save->copies = job && job->spec->checkpoint_files;
        if (!save->copies)
                return capsule_get_saved_state_and_files(capsule, "", 0, done, arg);
        r = images_directory(save->c->remover, dir, &err);
        return r < 0 ? r : capsule_get_saved_state_and_files(capsule, dir, buffer_bytes(save->c), done, arg);
}

static void on_saved_state(void *owner, const void *saved_state, size_t size_bytes) {
        struct save *save = owner;

        free(save->saved_state);
        save->saved_state = xcalloc(1, size_bytes + 1);
        memcpy(save->saved_state, saved_state, size_bytes);
        save->saved_state_bytes = size_bytes;
}

static void fill_dump_done(void *owner, Rm__MoverDumpDone *body, struct transfer_trees *trees) {
        struct save *save = owner;

        if (save->copies)
                transfer_trees_add_files(trees, save->dir);
        body->saved_state.data = save->saved_state;
        body->saved_state.len = save->saved_state_bytes;
}

static void on_done(void *owner, enum capture_step step) {
        static const enum save_event events[] = {
                [CAPTURE_PRECOPY] = SAVE_EV_COPIED, [CAPTURE_FREEZE] = SAVE_EV_FROZEN, [CAPTURE_CUT] = SAVE_EV_CUT
        };

        if (step != CAPTURE_DUMP) /* rm-mover tells when it has all of it */
                save_event(owner, events[step]);
}

static void on_failed(void *owner, enum capture_failure failure, const char *text) {
        save_fail(owner, "%s", text);
}

static const struct capture_ops capture_ops = { .kind = CAPSULE_CHECKPOINT,
                                                .silence_usec = PRECOPY_USEC,
                                                .get_mover = get_mover,
                                                .get_leave_by_usec = get_leave_by_usec,
                                                .set_deadline = set_deadline,
                                                .fill_precopy = fill_precopy,
                                                .get_saved_state = get_saved_state,
                                                .on_saved_state = on_saved_state,
                                                .fill_dump_done = fill_dump_done,
                                                .on_done = on_done,
                                                .on_failed = on_failed };

/* All output of the capsule is in the spool, since it is frozen. */
static void note_output(struct save *save, const struct resident *resident) {
        struct capsule_status status;

        capsule_get_status(resident_capsule(resident), &status);
        save->output_end[0] = status.output_end[CAPSULE_STDOUT];
        save->output_end[1] = status.output_end[CAPSULE_STDERR];
}

static void enter_dump(struct save *save, struct resident *resident) {
        note_output(save, resident);
        capture_dump(save->capture, save->dir, save->pages);
}

static void enter_store(struct save *save) {
        save->pause_usec = now_usec() - capture_frozen_usec(save->capture);
        capture_open(save->capture);
        timer_set(save->deadline, 0); /* a slow disk is no error */
        report_or_fail(save, RM__CHECKPOINT_PHASE__CHECKPOINT_PHASE_CAPTURED);
}

static void drop_copies(struct save *save) {
        cleanup_free char *dir = copies_dir(save);

        if (save->copies)
                remover_add(save->c->remover, remover_set_aside(save->c->remover, dir));
}

static void propose_stored(struct save *save) {
        struct command c;
        Rm__CmdCheckpointStored *body =
                command_checkpoint_stored(&c, save->job, save->checkpoint, save->index,
                                          save->c->shared ? STATE_STORED_SHARED : checkpoints_self(save->c));

        body->raw_bytes = save->raw_bytes;
        body->stored_bytes = save->stored_bytes;
        body->store_usec = save->store_usec;
        checkpoints_propose(save->c, &c.command);
        checkpoints_retry(save->c); /* until the state shows it */
}

static void enter_undo(struct save *save) {
        timer_set(save->deadline, 0);
        capture_open(save->capture);
        stop_mover(save);
        if (save->error[0]) {
                (void) report(save, RM__CHECKPOINT_PHASE__CHECKPOINT_PHASE_FAILED);
                save->given_up = save->checkpoint; /* give_up_leftover() */
        }
        save_event(save, SAVE_EV_OVER);
}

static bool is_breakable(enum save_state state) {
        return state != SAVE_IDLE && state != SAVE_UNDO && state != SAVE_COPY;
}

static bool needs_capsule(enum save_state state) {
        return state >= SAVE_PREPARE && state <= SAVE_DUMP;
}

static void save_enter(struct save *save) {
        struct resident *resident = resident_of(save);
        struct rm_error err = { 0 };
        cleanup_free char *point = xasprintf("move.checkpoint.%s", save_state_name(save->state));
        int r = is_breakable(save->state) ? gate_pass(&save->gate, point, &err) : 0;

        if (r == -EINPROGRESS)
                return;
        if (r < 0) {
                save_fail(save, "%s", error_text(&err));
                return;
        }
        if (needs_capsule(save->state) && (!resident || !resident_is_live(resident))) {
                save_fail(save, "the capsule has ended");
                return;
        }
        switch (save->state) {
        case SAVE_PREPARE:
                enter_prepare(save);
                break;
        case SAVE_PRECOPY:
                capture_precopy(save->capture, true);
                break;
        case SAVE_COPIED:
                timer_set(save->deadline, OTHERS_USEC);
                report_or_fail(save, RM__CHECKPOINT_PHASE__CHECKPOINT_PHASE_COPIED);
                break;
        case SAVE_FREEZE:
                capture_freeze(save->capture, PREPARE_USEC);
                break;
        case SAVE_CUT:
                capture_cut(save->capture);
                break;
        case SAVE_HELD:
                capture_limit_freeze(save->capture);
                report_or_fail(save, RM__CHECKPOINT_PHASE__CHECKPOINT_PHASE_CUT);
                break;
        case SAVE_DUMP:
                enter_dump(save, resident);
                break;
        case SAVE_STORE:
                enter_store(save);
                break;
        case SAVE_COPY:
                drop_copies(save);
                propose_stored(save);
                break;
        case SAVE_UNDO:
                enter_undo(save);
                break;
        default: /* IDLE */
                timer_set(save->deadline, 0);
                save->checkpoint = 0;
                checkpoints_wake(save->c);
        }
}

static void on_gate(evutil_socket_t fd, short what, void *arg) {
        save_enter(arg);
}

/* ---- what the state says ---- */

static struct save *save_create(struct checkpoints *c, const Rm__Job *job, const Rm__CheckpointPart *part) {
        struct save *save = xcalloc(1, sizeof(*save));

        *save = (struct save) { .c = c, .job = job->id, .index = part->capsule, .incarnation = part->incarnation };
        save->dir = xasprintf("%s/save-%" PRIu64 "-%" PRId32 "-%" PRIu64, c->dir, job->id, part->capsule, part->incarnation);
        save->deadline = evtimer_new(c->rmd->base, on_deadline, save);
        gate_init(&save->gate, c->rmd->base, on_gate, save);
        caller_init(&save->caller, &c->saves_calls, save);
        save->capture = capture_create(c->rmd, &c->captures, &capture_ops, save);
        LIST_INSERT_HEAD(&c->saves, save, entry);
        return save;
}

static void save_free(struct save *save) {
        LIST_REMOVE(save, entry);
        stop_mover(save);
        capture_destroy(save->capture);
        caller_finish(&save->caller);
        event_free(save->deadline);
        gate_finish(&save->gate);
        free(save->kept);
        free(save->saved_state);
        free(save->dir);
        free(save);
}

static bool is_here(const struct checkpoints *c, const Rm__CheckpointPart *part) {
        return strcmp(part->node, checkpoints_self(c)) == 0;
}

static void begin(struct checkpoints *c, const Rm__Job *job, const Rm__Checkpoint *checkpoint, const Rm__CheckpointPart *part) {
        struct save *save = find_capsule(c, job->id, part->capsule, part->incarnation);

        if (!save && !runner_copy(c->rmd->runner, job->id, part->capsule, part->incarnation))
                return; /* it has ended, or its node was lost: give_up_leftover() */
        if (!save)
                save = save_create(c, job, part);
        if (save->checkpoint == checkpoint->id || save->given_up == checkpoint->id || save->state != SAVE_IDLE)
                return;
        save->checkpoint = checkpoint->id;
        caller_renew(&save->caller);
        capture_begin(save->capture, save->job, save->index, save->incarnation);
        save->pause_usec = save->raw_bytes = 0;
        save->waits = CAPTURE_READY;
        save->error[0] = '\0';
        free(take_ptr(save->saved_state));
        save_event(save, SAVE_EV_START);
}

/* The rmd before this one may have taken part in a checkpoint that started before this one had all
 * of the log: the other nodes can be further by now, and would not come to the barrier again. */
static bool may_begin(const struct checkpoints *c, const Rm__Checkpoint *checkpoint, const Rm__CheckpointPart *part) {
        return checkpoint->state == RM__CHECKPOINT_STATE__CHECKPOINT_CAPTURING && !has_stored(c, part) &&
               checkpoint->start_usec > c->since_usec;
}

/* Gives up a part that a previous rmd had begun, that has failed here, or whose capsule is not
 * there any more. The abort is proposed again until the state shows it: there may be no leader
 * now. */
static void give_up_leftover(struct checkpoints *c, const Rm__Job *job, const Rm__Checkpoint *checkpoint,
                             const Rm__CheckpointPart *part) {
        const struct save *save = find_capsule(c, job->id, part->capsule, part->incarnation);
        bool failed = save && save->given_up == checkpoint->id;

        if (has_stored(c, part) || saves_find(c, job->id, part->capsule, checkpoint->id))
                return;
        checkpoints_propose_abort(c, job->id, checkpoint->id,
                                  failed ? save->error
                                         : "rmd was restarted on a node of the job, or what it had of the job is gone");
        checkpoints_retry(c);
}

static void see_checkpoint(struct checkpoints *c, const Rm__Job *job, const Rm__Checkpoint *checkpoint) {
        for (size_t i = 0; i < checkpoint->n_parts; i++) {
                const Rm__CheckpointPart *part = checkpoint->parts[i];

                if (!is_here(c, part))
                        continue;
                if (may_begin(c, checkpoint, part))
                        begin(c, job, checkpoint, part);
                give_up_leftover(c, job, checkpoint, part);
                if (has_stored(c, part))
                        copies_offer(c, checkpoint, job->id, part->capsule);
        }
}

/* The capsule may be about to move, whose rm-mover tracks its memory itself; or it has left. */
static void see_capsule(struct save *save) {
        const Rm__Job *job = state_job(checkpoints_state(save->c), save->job);
        const Rm__Capsule *capsule = job && job_running(job) ? job_capsule(job, save->index) : NULL;
        bool gone = !capsule || capsule->incarnation != save->incarnation;
        bool moves = !gone && state_capsule_move(cluster_index(save->c->rmd->cluster), save->job, save->index);
        Rm__MoverRelease body = RM__MOVER_RELEASE__INIT;

        if (!gone && !moves)
                return;
        if (save->state == SAVE_IDLE) {
                save_free(save);
                return;
        }
        if (save->state < SAVE_STORE || save->released || !save->mover)
                return;
        save->released = true;
        (void) mover_command(save->mover, &MOVER_COMMAND(&body));
}

static void see_save(struct save *save) {
        const Rm__Checkpoint *checkpoint = save->checkpoint ? checkpoints_record(save->c, save->job, save->checkpoint) : NULL;
        const Rm__CheckpointPart *part = checkpoint ? checkpoint_part(checkpoint, save->index) : NULL;

        if (save->state == SAVE_IDLE && has_lost_its_last(save)) {
                stop_mover(save); /* as after a drill, which may be all that there was */
        } else if (save->checkpoint && !part) {
                save_event(save, SAVE_EV_OVER);
        } else if (save->state == SAVE_PREPARE && save->waits != CAPTURE_READY) {
                save_enter(save);
        } else if (save->state == SAVE_COPY) {
                if (!has_stored(save->c, part))
                        propose_stored(save);
                else
                        save_event(save, SAVE_EV_COPIED_OUT); /* copies go on by themselves */
        }
}

void saves_wake(struct checkpoints *c) {
        const Rm__State *state = checkpoints_state(c);
        struct save *save, *next;

        for (save = LIST_FIRST(&c->saves); save; save = next) {
                next = LIST_NEXT(save, entry);
                see_save(save);
                see_capsule(save);
        }
        for (size_t i = 0; i < state->n_jobs; i++) {
                const Rm__Checkpoint *checkpoint = job_checkpoint_under_way(state->jobs[i]);

                if (checkpoint)
                        see_checkpoint(c, state->jobs[i], checkpoint);
        }
}

/* The node of its head, if that is another one and is to say when it goes on; NULL: nothing is
 * awaited. */
static const char *awaited_node(const struct save *save) {
        const Rm__Job *job = state_job(checkpoints_state(save->c), save->job);
        const Rm__Capsule *head = job ? job_capsule(job, STATE_HEAD) : NULL;

        if (!head || !needs_capsule(save->state) || strcmp(head->node, checkpoints_self(save->c)) == 0)
                return NULL;
        return head->node;
}

void saves_on_lost(struct checkpoints *c, const char *node) {
        struct save *save, *next;

        for (save = LIST_FIRST(&c->saves); save; save = next) {
                const char *awaited = awaited_node(save);

                next = LIST_NEXT(save, entry);
                if (awaited && strcmp(awaited, node) == 0)
                        save_fail(save, "the connection to node %s, where mpirun is, was lost", node);
        }
}

void saves_keep(const struct checkpoints *c) {
        const struct save *save;

        LIST_FOREACH (save, &c->saves, entry) {
                const char *awaited = awaited_node(save);

                if (awaited)
                        cluster_keep(c->rmd->cluster, awaited);
        }
}

void saves_finish(struct checkpoints *c) {
        while (!LIST_EMPTY(&c->saves))
                save_free(LIST_FIRST(&c->saves));
}
