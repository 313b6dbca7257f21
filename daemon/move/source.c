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
#include "daemon/job/memory_report.h"
#include "daemon/job/pages_test.h"
#include "daemon/move/moves_internal.h"
#include "daemon/move/precopy_time.h"
#include "daemon/peers/peer_message.h"
#include "daemon/state/commands.h"
#include "daemon/state/leave_by.h"

#define PREPARE_USEC (15U * 1000000U)
#define PRECOPY_USEC (15U * 1000000U) /* from one sign of life to the next */
#define OPENED_USEC (5U * 1000000U)
#define MEMORY_SILENCE_USEC (60U * 1000000U) /* PID 1 tells every second how much memory is still missing */
#define WAITING_TELL_USEC (3U * 1000000U)    /* most groups have all of theirs by then */
#define WAITING_AGAIN_USEC (10U * 1000000U)

_Static_assert((int) CONFIG_CODEC_LZ4 == (int) RM__MOVER_CODEC__MOVER_CODEC_LZ4 &&
                       (int) CONFIG_CODEC_ZSTD == (int) RM__MOVER_CODEC__MOVER_CODEC_ZSTD,
               "rm-mover gets the number of the configuration");

/* ---- mover ---- */

/* An older rmd would not understand these in the log. */
static void note_codec(struct move *move, const Rm__MoverFigures *figures) {
        if (cluster_state(move->moves->rmd->cluster)->level < STATE_LEVEL_CODEC)
                return;
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
        if (!move_pages_in_log(move))
                return;
        move->figures.ahead_rounds = (uint32_t) figures->ahead_rounds;
        move->figures.last_bytes = move->pages ? figures->last_bytes : 0;
        if (cluster_state(move->moves->rmd->cluster)->level >= STATE_LEVEL_SLOW)
                move->figures.slow_usec = figures->slow_usec;
        if (cluster_state(move->moves->rmd->cluster)->level >= STATE_LEVEL_DEADLINE)
                move->figures.hurry_usec = figures->hurry_usec;
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
                resident->untracked = wished && !move->pages;
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
        if (precopied->figures && precopied->figures->hurry_usec > 0)
                log_info("move %" PRIu64 ": no time for another round after %" PRIu64 ", %.1f s before the deadline of the drain",
                         move->id, precopied->figures->ahead_rounds, (double) precopied->figures->hurry_usec / 1e6);
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
        cleanup_free char *group = resident && resident->ready ? capsule_slow_begin(resident->capsule) : NULL;
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

        if (move->slowed && resident && resident->capsule)
                capsule_slow_end(resident->capsule);
        move->slowed = false;
}

static void maybe_ready(struct move *move) {
        if (move->mover_ready && move->state == MOVE_PREPARE)
                move_event(move, MOVE_EV_READY);
}

/* The other end has closed it, for a reason that comes another way. */
static bool is_lost_stream(int code) {
        return code == -ECONNRESET || code == -EPIPE;
}

/* 0: nobody is waited for. */
static uint64_t callback_wait(const struct move *move) {
        const struct rmd *rmd = move->moves->rmd;
        const Rm__Node *self = state_node(cluster_state(rmd->cluster), cluster_self(rmd->cluster));

        return leave_by_wait_usec(node_leave_by_usec(self), cluster_log_usec(rmd->cluster), rmd->config->callback_wait_usec);
}

/* Ranks want to know before the group stands still. */
static bool is_awaited(const struct move *move, const struct resident *resident) {
        struct capsule_status status;

        capsule_get_status(resident->capsule, &status);
        return status.progress.listening > 0 && callback_wait(move) > 0;
}

/* They have done what they wanted to do before, or their time is over: rm-mover sends what is to go ahead last, or there is none at work. */
static void on_announced(struct capsule *capsule, int error, const char *text, void *arg) {
        struct move *move = move_op_done(arg, error);
        Rm__MoverGoOn body = RM__MOVER_GO_ON__INIT;

        if (!move || move->state != MOVE_PRECOPY)
                return;
        if (!move->ahead) {
                move_event(move, MOVE_EV_COPIED);
                return;
        }
        if (mover_command(move->mover, &MOVER_COMMAND(&body)) < 0)
                move_fail(move, "cannot send to rm-mover");
}

static void announce(struct move *move) {
        struct resident *resident = move_resident(move);

        move->announced = true;
        move_deadline(move, PRECOPY_USEC);
        if (!resident || !resident->ready || resident->exited)
                move_fail(move, "the capsule has ended");
        else if (capsule_announce(resident->capsule, CAPSULE_MOVE, callback_wait(move), on_announced, move_op(move)) < 0)
                move_fail(move, "the ranks cannot be told");
}

static void announce_over(struct move *move) {
        struct resident *resident = move_resident(move);

        if (move->announced && resident && resident->ready && !resident->exited)
                (void) capsule_announce_over(resident->capsule, CAPSULE_MOVE);
        move->announced = false;
}

/* It goes on, but not for ever. */
static void renew_precopy(struct move *move) {
        if (now_usec() < move->precopy_end_usec)
                move_deadline(move, PRECOPY_USEC);
        else
                move_fail(move, "its memory is still being sent ahead after %.0f s, the limit for a group of its size",
                          (double) move->precopy_usec / 1e6);
}

static void on_mover_event(void *userdata, const Rm__MoverEvent *event) {
        struct move *move = userdata;

        switch (event->body_case) {
        case RM__MOVER_EVENT__BODY_READY:
                move->mover_ready = true;
                maybe_ready(move);
                break;
        case RM__MOVER_EVENT__BODY_PROGRESS:
                if (move->state == MOVE_PRECOPY)
                        renew_precopy(move);
                break;
        case RM__MOVER_EVENT__BODY_NEARLY:
                if (move->state == MOVE_PRECOPY)
                        announce(move);
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

/* Whether private memory is to be tracked, and to travel apart from CRIU's images, if the destination can, too; or why not. */
static void choose_way(struct move *move) {
        const Rm__Move *record = state_move(cluster_state(move->moves->rmd->cluster), move->id);
        const char *self = cluster_self(move->moves->rmd->cluster);
        struct resident *resident = move_resident(move);
        struct capsule_status status = { 0 };
        char *text = move->untracked;
        size_t bytes = sizeof(move->untracked);
        const char *why = "";

        if (resident && resident->ready)
                capsule_get_status(resident->capsule, &status);
        if (!record || record->stop)
                (void) snprintf(text, bytes, "the move was asked for with --mode stop");
        else if (!move->moves->rmd->config->move_tracking)
                (void) snprintf(text, bytes, "[move] tracking = no on %s", self);
        else if (!pages_test_passed(move->moves->rmd->pages_test, &why))
                (void) text_format(text, bytes, "%s: %s", self, why);
        else if (!status.knows_pages)
                (void) snprintf(text, bytes, "its rm-capsule is older than rmd on %s; the next move can", self);
        else
                move->pages = true;
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
        if (move_make_dir(move, &err) < 0 || mover_start(move->moves->rmd, "send", &mover_ops, move, &move->mover, &err) < 0) {
                move_fail(move, "%s", error_text(&err));
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
        if (mover_command(move->mover, &MOVER_COMMAND(&body)) < 0)
                move_fail(move, "cannot send to rm-mover");
}

/* ---- the states ---- */

static char *procs_file_of(const struct resident *resident) {
        cleanup_free char *cgroup = capsule_payload_cgroup(resident->capsule);

        return xasprintf("%s/cgroup.procs", cgroup);
}

static void measure_need(const struct resident *resident, Rm__MovePrepare *prepare) {
        struct memory_report_use use;
        struct capsule_limits limits;

        memory_report_read(resident, MEMORY_REPORT_PROCESSES_MAX, &use);
        prepare->memory_bytes = use.memory_bytes;
        prepare->files_bytes = use.files_bytes;
        capsule_get_limits(resident->capsule, &limits);
        prepare->memory_max = limits.memory_bytes;
        prepare->pids_max = limits.pids;
}

/* That CRIU waits is good to have; that the group cannot be moved ends it here, before anything stands still. */
static void on_preloaded(struct capsule *capsule, int error, const char *text, void *arg) {
        struct move *move = move_op_done(arg, error);

        if (move && (error == -EOPNOTSUPP || error == -EBUSY) && move->state < MOVE_CUT)
                move_fail(move, "%s", text);
}

static void tell_waiting(struct move *move, const char *text) {
        struct command c;

        if (move_pages_in_log(move))
                cluster_propose(move->moves->rmd->cluster, command_move_waiting(&c, move->id, text), NULL, NULL);
}

/* It came by a move a moment ago, and cannot be dumped before it has all of its memory. */
static bool awaits_memory(struct move *move, const struct resident *resident) {
        uint64_t now = now_usec();
        cleanup_free char *text = NULL;
        struct capsule_status status;

        capsule_get_status(resident->capsule, &status);
        move->awaits_memory = status.filling;
        if (!status.filling)
                return false;
        move_deadline(move, MEMORY_SILENCE_USEC);
        if (now - move->begin_usec < WAITING_TELL_USEC ||
            (move->waiting_told_usec > 0 && now - move->waiting_told_usec < WAITING_AGAIN_USEC))
                return true;
        text = xasprintf("%.0f MB of its memory have not yet arrived from its last move", (double) status.fill_bytes / 1e6);
        move->waiting_told_usec = now;
        tell_waiting(move, text);
        return true;
}

/* Without an answer the group would stand still for as long as all of its memory takes, only because rmd was started a moment ago. */
static bool awaits_test(struct move *move) {
        const Rm__Move *record = state_move(cluster_state(move->moves->rmd->cluster), move->id);

        move->awaits_test = record && !record->stop && pages_test_runs(move->moves->rmd->pages_test);
        if (!move->awaits_test)
                return false;
        move_deadline(move, PREPARE_USEC);
        moves_retry(move->moves);
        return true;
}

static void enter_prepare(struct move *move) {
        struct resident *resident = move_resident(move);
        Rm__MovePrepare prepare = RM__MOVE_PREPARE__INIT;

        if (!resident || !resident->ready || resident->exited) {
                move_fail(move, "the capsule does not run here");
                return;
        }
        if (awaits_test(move) || awaits_memory(move, resident))
                return;
        move_deadline(move, PREPARE_USEC);
        if (getrandom(move->token, sizeof(move->token), 0) != (ssize_t) sizeof(move->token)) {
                move_fail(move, "cannot get random bytes");
                return;
        }
        (void) capsule_criu_preload(resident->capsule, on_preloaded, move_op(move));
        prepare.move = move->id;
        prepare.token.data = move->token;
        prepare.token.len = sizeof(move->token);
        measure_need(resident, &prepare);
        choose_way(move);
        prepare.pages = move->pages;
        move->memory_bytes = prepare.memory_bytes;
        move->precopy_usec =
                precopy_time_usec(prepare.memory_bytes + prepare.files_bytes, move->moves->rmd->config->move_rate_bytes_per_sec);
        if (move_send(move, &PEER_MESSAGE(&prepare)) < 0)
                move_fail(move, "%s cannot be reached", move->other);
}

void source_begin(struct move *move) {
        move_deadline(move, PREPARE_USEC);
        move_event(move, MOVE_EV_START);
}

void source_retry(struct move *move) {
        if (move->state == MOVE_PREPARE && move->awaits_test)
                enter_prepare(move);
}

void source_capsule_filling(struct move *move) {
        if (move->state != MOVE_PREPARE || !move->awaits_memory)
                return;
        enter_prepare(move);
        if (!move->awaits_memory && move->waiting_told_usec > 0)
                tell_waiting(move, "");
}

/* The loss of either node ends the group then: only if its job may start again. The head cannot be lost without the job. */
static bool may_postcopy(const struct move *move) {
        const Rm__State *state = cluster_state(move->moves->rmd->cluster);
        const Rm__Job *job = state_job(state, move->job);

        return move->moves->rmd->config->move_last == CONFIG_LAST_POSTCOPY && move->pages && move->postcopy &&
               state->level >= STATE_LEVEL_POSTCOPY && move->index != STATE_HEAD && job && job_may_restart(job);
}

/* Notes until when this node is to be empty, if it is: once it is critical, since then. The time that is left, as rm-mover gets it: at least 1; 0: it may take as long as it does. */
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

void source_hurry(struct move *move) {
        uint64_t told_usec = move->leave_by_usec, left_usec = take_deadline(move);
        Rm__MoverHurry body = RM__MOVER_HURRY__INIT;

        if (move->leave_by_usec == told_usec)
                return;
        body.deadline_usec = left_usec;
        if (mover_command(move->mover, &MOVER_COMMAND(&body)) < 0)
                move_fail(move, "cannot send to rm-mover");
}

static void send_ahead(struct move *move, struct resident *resident) {
        Rm__MoverPrecopy body = RM__MOVER_PRECOPY__INIT;
        cleanup_free char *procs_file = procs_file_of(resident);
        cleanup_free char *look_dir = capsule_init_cgroup(resident->capsule);
        struct move_trees trees;

        move->ahead = true;
        body.procs_file = procs_file;
        body.look_dir = look_dir;
        body.announce = is_awaited(move, resident);
        body.bytes_per_sec = move->moves->rmd->config->move_rate_bytes_per_sec;
        body.pages = move->pages;
        body.postcopy = may_postcopy(move);
        body.deadline_usec = take_deadline(move);
        if (!body.postcopy && move->moves->rmd->config->move_last != CONFIG_LAST_FREEZE)
                body.slow_usec = move->moves->rmd->config->move_slow_usec;
        move_deadline(move, PRECOPY_USEC);
        move->precopy_end_usec = now_usec() + move->precopy_usec;
        move_trees_init(&trees, move->moves->rmd->config, resident);
        body.trees = trees.list;
        body.n_trees = MOVE_TREES_AHEAD;
        if (mover_command(move->mover, &MOVER_COMMAND(&body)) < 0)
                move_fail(move, "cannot send to rm-mover");
        move_trees_finish(&trees);
}

/* What need not be carried is gone, where its ranks came by in time. */
static void on_dropped(struct capsule *capsule, int error, const char *text, void *arg) {
        struct move *move = move_op_done(arg, error);
        struct resident *resident = move ? move_resident(move) : NULL;

        if (!move || move->state != MOVE_PRECOPY)
                return;
        if (resident && resident->ready && !resident->exited)
                send_ahead(move, resident);
        else
                move_fail(move, "the capsule has ended");
}

static void enter_precopy(struct move *move, struct resident *resident) {
        const Rm__State *state = cluster_state(move->moves->rmd->cluster);
        const Rm__Node *self = state_node(state, cluster_self(move->moves->rmd->cluster));
        const Rm__Move *record = state_move(state, move->id);
        uint64_t wait_usec = callback_wait(move);
        struct capsule_status status;

        if (!record || (self && node_critical_usec(self) > 0)) { /* which it may have become since the move began */
                move_event(move, MOVE_EV_COPIED);
                return;
        }
        capsule_get_status(resident->capsule, &status);
        move_deadline(move, PRECOPY_USEC);
        if (record->stop && is_awaited(move, resident))
                announce(move);
        else if (record->stop)
                move_event(move, MOVE_EV_COPIED);
        else if (status.progress.excluding == 0 || wait_usec == 0 ||
                 capsule_announce(resident->capsule, CAPSULE_DROP, wait_usec, on_dropped, move_op(move)) < 0)
                send_ahead(move, resident);
}

/* Lets the capsule run for a moment, and begins the freeze again. */
static void reopen_briefly(struct move *move, struct capsule *capsule, unsigned usec);

static void on_frozen(struct capsule *capsule, int error, const char *text, void *arg) {
        struct move *move = move_op_done(arg, error);

        if (!move)
                return;
        if (error < 0)
                move_fail(move, "freezing: %s", text);
        else
                move_event(move, MOVE_EV_FROZEN);
}

static void on_cut(struct capsule *capsule, int error, const char *text, void *arg) {
        struct move *move = move_op_done(arg, error);
        unsigned usec;

        if (!move)
                return;
        if (standstill_again(&move->standstill, error, capsule_init_pid(capsule), &usec))
                reopen_briefly(move, capsule, usec);
        else if (error == -EAGAIN || error == -EOPNOTSUPP)
                move_fail(move, "%s", text); /* what it holds that cannot be carried */
        else if (error < 0)
                move_fail(move, "cutting the link: %s", text);
        else
                move_event(move, MOVE_EV_CUT);
}

static void on_reopen_over(evutil_socket_t fd, short what, void *arg) {
        struct move *move = arg;
        struct resident *resident = move_resident(move);

        if (move->state != MOVE_CUT)
                return;
        move->freeze_usec = now_usec();
        if (!resident || !resident->ready || resident->exited || capsule_freeze(resident->capsule, NULL, NULL) < 0 ||
            capsule_cut(resident->capsule, on_cut, move_op(move)) < 0)
                move_fail(move, "cannot freeze the capsule again");
}

static void reopen_briefly(struct move *move, struct capsule *capsule, unsigned usec) {
        if (!move->reopen)
                move->reopen = evtimer_new(move->moves->rmd->base, on_reopen_over, move);
        if (capsule_open(capsule, NULL, NULL) < 0)
                move_fail(move, "cannot reopen the capsule to drain its accept queue");
        else
                timer_arm(move->reopen, usec);
}

static void on_carry(struct capsule *capsule, int error, const char *text, const void *carry, size_t size, void *arg) {
        struct move *move = move_op_done(arg, error);
        Rm__MoveImageSent sent = RM__MOVE_IMAGE_SENT__INIT;

        if (!move)
                return;
        if (error < 0) {
                move_fail(move, "reading the capsule's counters: %s", text);
                return;
        }
        sent.move = move->id;
        sent.carry.data = (uint8_t *) carry;
        sent.carry.len = size;
        if (move_send(move, &PEER_MESSAGE(&sent)) < 0)
                move_fail(move, "%s cannot be reached", move->other);
}

/* CRIU is done: what it does not carry follows. */
static void send_trees(struct move *move, struct resident *resident) {
        struct move_trees trees;
        Rm__MoverDumpDone done = RM__MOVER_DUMP_DONE__INIT;

        move_trees_init(&trees, move->moves->rmd->config, resident);
        done.trees = trees.list;
        done.n_trees = trees.n;
        move->dump_done = true;
        if (mover_command(move->mover, &MOVER_COMMAND(&done)) < 0)
                move_fail(move, "cannot send to rm-mover");
        move_trees_finish(&trees);
}

static void on_dumped(struct capsule *capsule, int error, const char *text, void *arg) {
        struct move *move = move_op_done(arg, error);
        struct resident *resident = move ? move_resident(move) : NULL;

        if (!move || move->state != MOVE_TRANSFER)
                return;
        if (error < 0 || !resident) {
                move_fail(move, "criu dump: %s", text);
                return;
        }
        move->dumped_usec = now_usec();
        send_trees(move, resident);
}

/* Connections to the group last as long as move_timeout may be at most. */
_Static_assert(CONFIG_MOVE_TIMEOUT_MAX_USEC <= CAPSULE_SILENCE_MAX_USEC, "a group would stand still for longer than it survives");

/* One limit for all that is still to be done while the group stands still, RESTORE included. */
static void limit_freeze(struct move *move) {
        uint64_t limit = move->moves->rmd->config->move_timeout_usec;
        uint64_t stood = now_usec() - move->freeze_usec;

        move_deadline(move, stood < limit ? limit - stood : 1);
}

static void enter_transfer(struct move *move, struct resident *resident) {
        Rm__MoverStart start = RM__MOVER_START__INIT;

        limit_freeze(move);
        move->dump_usec = now_usec();
        if (mover_command(move->mover, &MOVER_COMMAND(&start)) < 0 ||
            capsule_get_carry(resident->capsule, on_carry, move_op(move)) < 0 ||
            capsule_dump(resident->capsule, move->dir, true, move->pages, move->moves->rmd->config->move_timeout_usec, on_dumped,
                         move_op(move)) < 0)
                move_fail(move, "cannot start the dump");
}

static void on_open_done(struct capsule *capsule, int error, const char *text, void *arg) {
        struct moves *moves = arg;

        /* Without a lease: when there is one again, since moves_wake() is called then. */
        if (error < 0 && error != -ECANCELED && error != -ETIME) {
                log_error("capsule %s cannot resume after an aborted move: %s", capsule_id(capsule), text);
                moves_retry(moves);
        }
}

/* As if nothing had been. */
static void reopen(struct move *move) {
        struct resident *resident = move_resident(move);

        if (resident && resident->capsule && resident->ready && !resident->exited && move->freeze_usec)
                (void) capsule_open(resident->capsule, on_open_done, move->moves);
        move->freeze_usec = 0;
        announce_over(move);
}

static void source_undo(struct move *move) {
        move_stop_mover(move);
        slow_end(move);
        move_deadline(move, 0);
        /* rm-mover may have written the end mark, and what it says of that not have come yet. */
        move->end_mark_sent |= move->dump_done;
        /* While the other side cannot have a whole image there is nobody to wait for. */
        if (!move->end_mark_sent)
                reopen(move);
        if (move->stream_lost)
                moves_retry(move->moves); /* gives the destination the time to say why */
        else
                move_propose_abort(move);
}

void source_on_failed(struct move *move, const char *node, const char *text) {
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
                move->figures.freeze_usec = move->opened_usec - move->freeze_usec;
        if (move_pages_in_log(move)) {
                move->figures.tracked = move->pages;
                move->figures.untracked = move->pages ? (char *) "" : move->untracked;
        }
        move_propose(move, command_move_done(&c, &move->figures));
}

void source_release(struct move *move) {
        struct resident *resident = move_resident(move);

        if (move_is_needed(move))
                return; /* until the state shows that it is not */
        if (resident)
                runner_drop(move->moves->rmd->runner, resident, true);
        /* With the figures when the destination tells them; it has until the deadline. */
        if (move->opened_told || now_usec() - move->committed_usec > OPENED_USEC)
                propose_done(move);
        moves_retry(move->moves); /* until the state shows it */
}

void source_on_opened(struct move *move, const Rm__MoveOpened *opened) {
        move->opened_usec = now_usec();
        move->opened_told = true;
        move->figures.restore_usec = opened->restore_usec;
        move->figures.commit_usec = opened->commit_usec;
        if (move->state == MOVE_RELEASE)
                source_release(move);
}

void source_enter(struct move *move) {
        struct resident *resident = move_resident(move);

        if (move->state > MOVE_PREPARE && move->state < MOVE_RESTORE && (!resident || !resident->ready || resident->exited)) {
                move_fail(move, "the capsule has ended");
                return;
        }
        switch (move->state) {
        case MOVE_PREPARE:
                enter_prepare(move);
                break;
        case MOVE_PRECOPY:
                enter_precopy(move, resident);
                break;
        case MOVE_FREEZE:
                move_deadline(move, PREPARE_USEC);
                move->freeze_usec = now_usec();
                if (capsule_freeze(resident->capsule, on_frozen, move_op(move)) < 0)
                        move_fail(move, "cannot freeze the capsule");
                break;
        case MOVE_CUT:
                if (capsule_cut(resident->capsule, on_cut, move_op(move)) < 0)
                        move_fail(move, "cannot cut the link");
                break;
        case MOVE_TRANSFER:
                enter_transfer(move, resident);
                break;
        case MOVE_RESTORE:
                break; /* the limit on the freeze goes on */
        case MOVE_RELEASE:
                move_deadline(move, 0);
                source_release(move);
                break;
        case MOVE_UNDO:
                source_undo(move);
                break;
        default: /* END: undone */
                move_stop_mover(move);
                reopen(move);
                moves_retry(move->moves);
        }
}
