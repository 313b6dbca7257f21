/* The end of a move that has the running capsule. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "common/log.h"
#include "common/text.h"
#include "common/timer.h"
#include "common/util.h"
#include "daemon/move/moves_internal.h"
#include "daemon/peers/peer_message.h"
#include "daemon/state/commands.h"
#include "daemon/state/leave_by.h"
#include "daemon/transfer/images.h"

#define PREPARE_USEC (15U * 1000000U)
/* A connection to the destination that has just failed is tried again for so long. */
#define CONNECT_USEC 3000000U
#define PRECOPY_USEC (15U * 1000000U) /* from one sign of progress to the next */
#define OPENED_USEC (5U * 1000000U)
#define MEMORY_SILENCE_USEC (60U * 1000000U) /* PID 1 tells every second how much memory is still missing */
#define WAITING_REPORT_USEC (3U * 1000000U)    /* most groups have all of theirs by then */
#define WAITING_AGAIN_USEC (10U * 1000000U)

_Static_assert((int) CONFIG_CODEC_LZ4 == (int) RM__MOVER_CODEC__MOVER_CODEC_LZ4 &&
                       (int) CONFIG_CODEC_ZSTD == (int) RM__MOVER_CODEC__MOVER_CODEC_ZSTD,
               "rm-mover gets the number of the configuration");

/* ---- mover ---- */

static void note_codec(struct move *move, const Rm__MoverFigures *figures) {
        move->figures.saved_bytes = figures->saved_bytes;
        if (figures->lz4_bytes + figures->zstd_bytes == 0)
                move->figures.codec = RM__MOVE_CODEC__MOVE_CODEC_NONE;
        else if (figures->zstd_bytes > figures->lz4_bytes)
                move->figures.codec = RM__MOVE_CODEC__MOVE_CODEC_ZSTD;
        else
                move->figures.codec = RM__MOVE_CODEC__MOVE_CODEC_LZ4;
}

static void note_figures(struct move *move, const Rm__MoverFigures *figures) {
        if (!figures)
                return;
        move->figures.image_bytes = figures->wire_bytes;
        move->figures.memory_bytes = figures->raw_bytes + (move->pages ? move->memory_bytes : 0);
        move->figures.ahead_bytes = figures->ahead_bytes;
        note_codec(move, figures);
        move->figures.ahead_rounds = (uint32_t) figures->ahead_rounds;
        move->figures.last_bytes = move->pages ? figures->last_bytes : 0;
        move->figures.slow_usec = figures->slow_usec;
        move->figures.expedite_usec = figures->expedite_usec;
}

/* rm-mover could track every process, or else says why not. */
static void note_way(struct move *move, const Rm__MoverFigures *figures) {
        struct resident *resident = move_resident(move);
        bool wished = move->pages;

        move->pages = wished && figures && figures->pages;
        if (wished && !move->pages)
                (void) text_format(move->untracked, sizeof(move->untracked), "%s",
                                   figures && figures->untracked[0] ? figures->untracked : "rm-mover gives no reason");
        if (resident)
                memory_report_tracked(resident, !wished || move->pages);
}

/* In numbers, why it is post-copied. */
static void log_postcopy(const struct move *move, const Rm__MoverFigures *figures) {
        if (!figures || figures->later_bytes == 0)
                return;
        if (figures->probe_bytes > 0 && figures->ahead_rounds == 0)
                log_info("move %" PRIu64
                         ": of %.0f MB the group wrote %.0f MB in %.2f s: they stay here and follow when it runs on %s",
                         move->id, (double) figures->later_bytes / 1e6, (double) figures->probe_bytes / 1e6,
                         (double) figures->probe_usec / 1e6, move->other);
        else
                log_info("move %" PRIu64 ": after %" PRIu64
                         " rounds the group still writes %.0f MB in each: these follow when it runs on %s",
                         move->id, figures->ahead_rounds, (double) figures->later_bytes / 1e6, move->other);
}

static void on_precopied(struct move *move, const Rm__MoverPrecopied *precopied) {
        note_way(move, precopied->figures);
        if (precopied->figures && precopied->figures->expedite_usec > 0)
                log_info("move %" PRIu64 ": no time for another round after %" PRIu64 ", %.1f s before the deadline of the drain",
                         move->id, precopied->figures->ahead_rounds, (double) precopied->figures->expedite_usec / 1e6);
        log_postcopy(move, precopied->figures);
        if (move->pages_only && !move->pages)
                move_fail(move, "%s has room for the group's memory only if it is tracked, which is not possible: %s", move->other,
                          move->untracked);
        else
                move_event(move, MOVE_EV_COPIED);
}

static void on_wants_slow(struct move *move, const Rm__MoverWantsSlow *wants) {
        const struct resident *resident = move_resident(move);
        const Rm__Job *job = state_job(cluster_state(move->moves->rmd->cluster), move->job);
        const Rm__Capsule *capsule = job ? job_capsule(job, move->index) : NULL;
        cleanup_free char *group = resident && resident_answers(resident) ? capsule_slow_begin(resident_capsule(resident)) : NULL;
        Rm__MoverSlow body = RM__MOVER_SLOW__INIT;

        move->slowed = group != NULL;
        log_info("move %" PRIu64 ": the group writes %.0f MB while these are sent, in %.2f s: %s", move->id,
                 (double) wants->bytes / 1e6, (double) wants->usec / 1e6,
                 group ? "it is slowed down" : "it is frozen for so long, as this host cannot slow it down");
        body.group_dir = group ? group : (char *) "";
        body.cores = capsule && capsule->ranks > 0 ? capsule->ranks : 1;
        if (mover_command(move->mover, &MOVER_COMMAND(&body)) < 0)
                move_fail(move, "cannot send to rm-mover");
}

static void slow_end(struct move *move) {
        const struct resident *resident = move_resident(move);

        if (move->slowed && resident && resident_capsule(resident))
                capsule_slow_end(resident_capsule(resident));
        move->slowed = false;
}

/* The other end has closed it, for a reason that comes another way. */
static bool is_lost_stream(int code) {
        return code == -ECONNRESET || code == -EPIPE;
}

static void on_mover_event(void *userdata, const Rm__MoverEvent *event) {
        struct move *move = userdata;

        if (capture_on_mover_event(move->capture, event))
                return;
        switch (event->body_case) {
        case RM__MOVER_EVENT__BODY_READY:
                move_event(move, MOVE_EV_READY);
                break;
        case RM__MOVER_EVENT__BODY_PRECOPIED:
                on_precopied(move, event->precopied);
                break;
        case RM__MOVER_EVENT__BODY_WANTS_SLOW:
                if (move->state == MOVE_PRECOPY)
                        on_wants_slow(move, event->wants_slow);
                break;
        case RM__MOVER_EVENT__BODY_SENT:
                move->end_mark_sent = true;
                note_figures(move, event->sent->figures);
                break;
        case RM__MOVER_EVENT__BODY_ACKNOWLEDGED:
                move->end_mark_sent = true;
                move->sent_usec = now_usec();
                note_figures(move, event->acknowledged->figures);
                move_event(move, MOVE_EV_SENT);
                break;
        case RM__MOVER_EVENT__BODY_FAILED:
                move->end_mark_sent |= event->failed->end_mark_sent;
                move->dump_done = false; /* that was its last word */
                move->stream_lost = is_lost_stream(event->failed->code);
                move_fail(move, "sending to %s: %s", move->other, event->failed->text);
                break;
        default:
                break;
        }
}

static void on_mover_gone(void *userdata) {
        struct move *move = userdata;

        move->end_mark_sent |= move->dump_done;
        slow_end(move);
        if (move->state < MOVE_RESTORE)
                move_fail(move, "rm-mover exited unexpectedly");
}

static const struct mover_ops mover_ops = { on_mover_event, on_mover_gone };

/* Whether private memory is to be tracked, and to travel apart from CRIU's images, if the
 * destination can, too; or why not. */
static void choose_way(struct move *move) {
        const Rm__Move *record = state_move(cluster_state(move->moves->rmd->cluster), move->id);

        if (!record || record->stop)
                (void) text_format(move->untracked, sizeof(move->untracked), "the move was asked for with --mode stop");
        else
                move->pages = capture_may_track(move->capture, move->untracked, sizeof(move->untracked));
}

void source_on_prepared(struct move *move, const Rm__MovePrepared *prepared) {
        const Rm__State *state = cluster_state(move->moves->rmd->cluster);
        const Rm__Node *to = state_node(state, move->other);
        const Rm__Move *record = state_move(state, move->id);
        const Rm__Job *job = record ? state_job(state, record->job) : NULL;
        Rm__MoverSend body = RM__MOVER_SEND__INIT;
        struct rm_error err = { 0 };

        if (move->state != MOVE_PREPARE || move->mover)
                return;
        if (prepared->error[0] || !to || !job) {
                move_fail(move, "%s: %s", move->other, prepared->error);
                return;
        }
        move->pages_only = prepared->pages_only;
        move->postcopy = prepared->postcopy;
        if (move->pages && !prepared->pages) {
                move->pages = false;
                (void) text_format(move->untracked, sizeof(move->untracked),
                                   "%s cannot receive it ('rmctl status' there may say why)", move->other);
        }
        body.host = to->address;
        body.port = prepared->port;
        body.token.data = move->token;
        body.token.len = sizeof(move->token);
        body.key_file = move->moves->rmd->config->key_file;
        body.cluster = move->moves->rmd->config->cluster_name;
        body.images_dir = move->dir;
        body.criu_uid = job->spec->uid;
        body.codec = (Rm__MoverCodec) move->moves->rmd->config->move_codec;
        if (images_directory(move->moves->remover, move->dir, &err) < 0 ||
            mover_start(move->moves->rmd, "send", &MOVER_COMMAND(&body), &mover_ops, move, &move->mover, &err) < 0)
                move_fail(move, "%s", error_text(&err));
}

/* ---- the states ---- */

static void measure_need(struct move *move, const struct resident *resident, Rm__MovePrepare *prepare) {
        struct memory_report_use use;
        struct capsule_limits limits;

        capture_measure(move->capture, MEMORY_REPORT_PROCESSES_MAX, &use);
        prepare->memory_bytes = use.memory_bytes;
        prepare->files_bytes = use.files_bytes;
        capsule_get_limits(resident_capsule(resident), &limits);
        prepare->memory_max = limits.memory_bytes;
        prepare->pids_max = limits.pids;
}

static void report_waiting(struct move *move, const char *text) {
        struct command c;

        cluster_propose(move->moves->rmd->cluster, command_move_waiting(&c, move->id, text), NULL, NULL);
}

/* The group came by a move a moment ago. PID 1 says every second how much memory is still missing,
 * and then this is called. */
static void await_memory(struct move *move, const struct resident *resident) {
        uint64_t now = now_usec();
        cleanup_free char *text = NULL;
        struct capsule_status status;

        timer_set(move->deadline, MEMORY_SILENCE_USEC);
        if (now - move->begin_usec < WAITING_REPORT_USEC ||
            (move->waiting_reported_usec > 0 && now - move->waiting_reported_usec < WAITING_AGAIN_USEC))
                return;
        capsule_get_status(resident_capsule(resident), &status);
        text = xasprintf("%.0f MB of its memory have not yet arrived from its last move", (double) status.fill_bytes / 1e6);
        move->waiting_reported_usec = now;
        report_waiting(move, text);
}

/* Without an answer of the test the group would be frozen for as long as all of its memory takes,
 * only because rmd was started a moment ago. */
static bool has_to_wait(struct move *move, const struct resident *resident) {
        const Rm__Move *record = state_move(cluster_state(move->moves->rmd->cluster), move->id);

        move->waits = capture_waits(move->capture, record && !record->stop);
        if (move->waits == CAPTURE_AWAITS_TEST) {
                timer_set(move->deadline, PREPARE_USEC);
                moves_retry(move->moves);
        } else if (move->waits == CAPTURE_AWAITS_MEMORY) {
                await_memory(move, resident);
        } else if (move->waits == CAPTURE_AWAITS_START) {
                moves_retry(move->moves); /* until the deadline of source_begin() */
        }
        return move->waits != CAPTURE_READY;
}

/* A node that has come back a moment ago is known to the leader first. */
static void await_connection(struct move *move) {
        move->reconnects = now_usec() - move->begin_usec < CONNECT_USEC;
        if (move->reconnects)
                moves_retry(move->moves);
        else
                move_fail(move, "%s cannot be reached", move->other);
}

static void enter_prepare(struct move *move) {
        const struct resident *resident = capture_running(move->capture);
        Rm__MovePrepare prepare = RM__MOVE_PREPARE__INIT;

        if (!resident) {
                move_fail(move, "the capsule does not run here");
                return;
        }
        if (has_to_wait(move, resident))
                return;
        timer_set(move->deadline, PREPARE_USEC);
        if (getrandom(move->token, sizeof(move->token), 0) != (ssize_t) sizeof(move->token)) {
                move_fail(move, "cannot get random bytes");
                return;
        }
        prepare.move = move->id;
        prepare.token.data = move->token;
        prepare.token.len = sizeof(move->token);
        measure_need(move, resident, &prepare);
        choose_way(move);
        prepare.pages = move->pages;
        move->memory_bytes = prepare.memory_bytes;
        if (move_send(move, &PEER_MESSAGE(&prepare)) < 0) {
                await_connection(move);
                return;
        }
        move->reconnects = false;
        capture_preload(move->capture);
}

void source_begin(struct move *move) {
        capture_begin(move->capture, move->job, move->index, move->incarnation);
        timer_set(move->deadline, PREPARE_USEC);
        move_event(move, MOVE_EV_START);
}

void source_retry(struct move *move) {
        if (move->state == MOVE_PREPARE &&
            (move->waits == CAPTURE_AWAITS_TEST || move->waits == CAPTURE_AWAITS_START || move->reconnects))
                enter_prepare(move);
}

void source_capsule_filling(struct move *move) {
        if (move->state != MOVE_PREPARE || move->waits != CAPTURE_AWAITS_MEMORY)
                return;
        enter_prepare(move);
        if (move->waits != CAPTURE_AWAITS_MEMORY && move->waiting_reported_usec > 0)
                report_waiting(move, "");
}

/* The loss of either node ends the group then: only if its job may start again. The head cannot be
 * lost without the job. */
static bool may_postcopy(const struct move *move) {
        const Rm__Job *job = state_job(cluster_state(move->moves->rmd->cluster), move->job);

        return move->moves->rmd->config->move_last == CONFIG_LAST_POSTCOPY && move->pages && move->postcopy &&
               move->index != STATE_HEAD && job && job_may_restart(job);
}

/* Notes until when this node is to be empty, if it is: once it is critical, since then. The time
 * that is left, as rm-mover gets it: at least 1; 0: it may take as long as it does. */
static uint64_t take_deadline(struct move *move) {
        const struct cluster *cluster = move->moves->rmd->cluster;
        const Rm__Node *self = state_node(cluster_state(cluster), cluster_self(cluster));
        uint64_t now = cluster_log_usec(cluster);
        uint64_t critical_usec = self ? node_critical_usec(self) : 0;

        move->leave_by_usec = critical_usec > 0 ? critical_usec : self ? self->drain_deadline_usec : 0;
        if (move->leave_by_usec == 0)
                return 0;
        return move->leave_by_usec > now ? move->leave_by_usec - now : 1;
}

void source_expedite(struct move *move) {
        uint64_t reported_usec = move->leave_by_usec, left_usec = take_deadline(move);
        Rm__MoverExpedite body = RM__MOVER_EXPEDITE__INIT;

        if (move->leave_by_usec == reported_usec)
                return;
        body.deadline_usec = left_usec;
        if (mover_command(move->mover, &MOVER_COMMAND(&body)) < 0)
                move_fail(move, "cannot send to rm-mover");
}

/* ---- the capture ---- */

static struct mover *get_mover(void *owner) {
        return ((struct move *) owner)->mover;
}

static uint64_t get_leave_by_usec(void *owner) {
        const struct cluster *cluster = ((struct move *) owner)->moves->rmd->cluster;

        return node_leave_by_usec(state_node(cluster_state(cluster), cluster_self(cluster)));
}

static void set_deadline(void *owner, uint64_t usec) {
        timer_set(((struct move *) owner)->deadline, usec);
}

static void fill_precopy(void *owner, Rm__MoverPrecopy *body) {
        struct move *move = owner;
        const struct config *config = move->moves->rmd->config;

        body->bytes_per_sec = config->move_rate_bytes_per_sec;
        body->pages = move->pages;
        body->postcopy = may_postcopy(move);
        body->deadline_usec = take_deadline(move);
        if (!body->postcopy && config->move_last != CONFIG_LAST_FREEZE)
                body->slow_usec = config->move_slow_usec;
}

static int get_saved_state(void *owner, struct capsule *capsule, capsule_saved_state_fn done, void *arg) {
        return capsule_get_saved_state(capsule, done, arg);
}

static void on_saved_state(void *owner, const void *saved_state, size_t size_bytes) {
        struct move *move = owner;
        Rm__MoveImageSent sent = RM__MOVE_IMAGE_SENT__INIT;

        sent.move = move->id;
        sent.saved_state.data = (uint8_t *) saved_state;
        sent.saved_state.len = size_bytes;
        if (move_send(move, &PEER_MESSAGE(&sent)) < 0)
                move_fail(move, "%s cannot be reached", move->other);
}

static void fill_dump_done(void *owner, Rm__MoverDumpDone *body, struct transfer_trees *trees) {
        struct move *move = owner;

        move->dumped_usec = now_usec();
        move->dump_done = true;
}

static void on_done(void *owner, enum capture_step step) {
        static const enum move_event events[] = {
                [CAPTURE_PRECOPY] = MOVE_EV_COPIED, [CAPTURE_FREEZE] = MOVE_EV_FROZEN, [CAPTURE_CUT] = MOVE_EV_CUT
        };

        if (step != CAPTURE_DUMP) /* rm-mover tells when the destination has it */
                move_event(owner, events[step]);
}

static void on_failed(void *owner, enum capture_failure failure, const char *text) {
        static const Rm__MoveFailure failures[] = { [CAPTURE_FAILURE_OTHER] = RM__MOVE_FAILURE__MOVE_FAILURE_OTHER,
                                                    [CAPTURE_FAILURE_GROUP] = RM__MOVE_FAILURE__MOVE_FAILURE_GROUP,
                                                    [CAPTURE_FAILURE_PASSING] = RM__MOVE_FAILURE__MOVE_FAILURE_PASSING };
        struct move *move = owner;

        if (!move->error[0])
                move->failure = failures[failure];
        move_fail(move, "%s", text);
}

static const struct capture_ops capture_ops = { .kind = CAPSULE_MOVE,
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

void source_create(struct move *move) {
        move->capture = capture_create(move->moves->rmd, &move->moves->captures, &capture_ops, move);
}

static void enter_precopy(struct move *move) {
        const Rm__State *state = cluster_state(move->moves->rmd->cluster);
        const Rm__Node *self = state_node(state, cluster_self(move->moves->rmd->cluster));
        const Rm__Move *record = state_move(state, move->id);

        if (!record || (self && node_critical_usec(self) > 0)) /* which it may have become since the move began */
                move_event(move, MOVE_EV_COPIED);
        else
                capture_precopy(move->capture, !record->stop);
}

static void enter_transfer(struct move *move) {
        move->dump_usec = now_usec();
        capture_dump(move->capture, move->dir, move->pages);
}

static void source_undo(struct move *move) {
        move_stop_mover(move);
        slow_end(move);
        timer_set(move->deadline, 0);
        /* rm-mover may have written the end mark, and what it says of that not have come yet. */
        move->end_mark_sent |= move->dump_done;
        /* While the other side cannot have a whole image there is nothing to wait for. */
        if (!move->end_mark_sent)
                capture_open(move->capture);
        if (move->stream_lost)
                moves_retry(move->moves); /* gives the destination the time to say why */
        else
                move_propose_abort(move);
}

void source_on_failed(struct move *move, const char *node, const Rm__MoveFailed *failed) {
        const char *text = failed->error;

        if (failed->there && (!move->error[0] || move->stream_lost))
                move->failure = RM__MOVE_FAILURE__MOVE_FAILURE_THERE;
        if (!move->stream_lost || move->state != MOVE_UNDO) {
                move_fail(move, "%s: %s", node, text);
                return;
        }
        move->stream_lost = false;
        (void) text_format(move->error, sizeof(move->error), "%s: %s", node, text);
        move_propose_abort(move);
}

static void propose_done(struct move *move) {
        const Rm__Move *record = state_move(cluster_state(move->moves->rmd->cluster), move->id);
        struct command c;

        if (record && !move->filled_usec) {
                move->figures.image_bytes += record->later_bytes;
                move->filled_usec = now_usec();
        }
        if (move->dump_usec && move->dumped_usec)
                move->figures.dump_usec = move->dumped_usec - move->dump_usec;
        if (move->sent_usec && move->dump_usec)
                move->figures.transfer_usec = move->sent_usec - move->dump_usec;
        if (move->opened_usec)
                move->figures.freeze_usec = move->opened_usec - capture_frozen_usec(move->capture);
        move->figures.tracked = move->pages;
        move->figures.untracked = move->pages ? (char *) "" : move->untracked;
        move_propose(move, command_move_done(&c, &move->figures));
}

void source_release(struct move *move) {
        struct resident *resident = move_resident(move);

        if (move_is_needed(move))
                return; /* until the state shows that it is not */
        if (resident)
                runner_drop(move->moves->rmd->runner, resident, true);
        /* The move is reported with its figures when the destination tells them; it has until the
         * deadline. */
        if (move->opened_reported || now_usec() - move->committed_usec > OPENED_USEC)
                propose_done(move);
        moves_retry(move->moves); /* until the state shows it */
}

void source_on_opened(struct move *move, const Rm__MoveOpened *opened) {
        move->opened_usec = now_usec();
        move->opened_reported = true;
        move->figures.restore_usec = opened->restore_usec;
        move->figures.commit_usec = opened->commit_usec;
        if (move->state == MOVE_RELEASE)
                source_release(move);
}

void source_enter(struct move *move) {
        if (move->state > MOVE_PREPARE && move->state < MOVE_RESTORE && !capture_running(move->capture)) {
                move_fail(move, "the capsule has ended");
                return;
        }
        switch (move->state) {
        case MOVE_PREPARE:
                enter_prepare(move);
                break;
        case MOVE_PRECOPY:
                enter_precopy(move);
                break;
        case MOVE_FREEZE:
                capture_freeze(move->capture, PREPARE_USEC);
                break;
        case MOVE_CUT:
                capture_cut(move->capture);
                break;
        case MOVE_TRANSFER:
                enter_transfer(move);
                break;
        case MOVE_RESTORE:
                break; /* the limit on the freeze goes on */
        case MOVE_RELEASE:
                timer_set(move->deadline, 0);
                source_release(move);
                break;
        case MOVE_UNDO:
                source_undo(move);
                break;
        default: /* END: undone */
                move_stop_mover(move);
                capture_open(move->capture);
                moves_retry(move->moves);
        }
}
