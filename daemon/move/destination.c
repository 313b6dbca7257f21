/* The end of a move that the capsule comes to. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "common/text.h"
#include "common/timer.h"
#include "common/util.h"
#include "daemon/job/limits.h"
#include "daemon/job/pages_test.h"
#include "daemon/move/moves_internal.h"
#include "daemon/node/topology.h"
#include "daemon/peers/peer_message.h"
#include "daemon/state/commands.h"
#include "daemon/transfer/capacity.h"

#define PREPARE_USEC (20U * 1000000U)

static void report_prepared(struct move *move, uint32_t port, const char *error) {
        Rm__MovePrepared prepared = RM__MOVE_PREPARED__INIT;
        const char *why;

        prepared.move = move->id;
        prepared.port = port;
        prepared.pages = pages_test_passed(move->moves->rmd->pages_test, &why);
        prepared.postcopy = true;
        prepared.pages_only = move->pages_only;
        prepared.error = (char *) error;
        (void) move_send(move, &PEER_MESSAGE(&prepared));
}

static void report_failed(struct move *move) {
        Rm__MoveFailed failed = RM__MOVE_FAILED__INIT;

        failed.move = move->id;
        failed.error = move->error;
        failed.there = move->failure == RM__MOVE_FAILURE__MOVE_FAILURE_THERE;
        (void) move_send(move, &PEER_MESSAGE(&failed));
}

/* ---- the arrival ---- */

static const char *get_sender(void *owner) {
        return ((const struct move *) owner)->other;
}

static void on_listening(void *owner, uint16_t port) {
        struct move *move = owner;

        if (move->state != MOVE_PREPARE)
                return;
        report_prepared(move, port, "");
        move_event(move, MOVE_EV_READY);
}

static void on_received(void *owner) {
        struct move *move = owner;

        move->received_usec = now_usec();
        move->pages = arrival_has_pages(move->arrival);
        move->later_bytes = arrival_later_bytes(move->arrival);
        move_event(move, MOVE_EV_SENT);
}

static void on_restored(void *owner, const char *text) {
        struct move *move = owner;

        if (move->state != MOVE_RESTORE)
                return;
        move->restored_usec = now_usec();
        move_event(move, MOVE_EV_RESTORED);
}

static void report_opened(struct move *move) {
        Rm__MoveOpened opened = RM__MOVE_OPENED__INIT;

        opened.move = move->id;
        opened.restore_usec = move->restored_usec - move->received_usec;
        opened.commit_usec = move->committed_usec - move->restored_usec;
        (void) move_send(move, &PEER_MESSAGE(&opened));
}

static void on_opened(void *owner) {
        struct move *move = owner;

        move->opened_usec = now_usec();
        move->opened_reported = true;
        report_opened(move);
        move_event(move, MOVE_EV_OPENED);
}

static void on_not_opened(void *owner) {
        moves_retry(((struct move *) owner)->moves);
}

static void on_failed(void *owner, int code, bool bad, const char *text) {
        struct move *move = owner;

        if (code < 0) /* of the restore itself */
                move->failure = RM__MOVE_FAILURE__MOVE_FAILURE_THERE;
        move_fail(move, "%s", text);
}

static const struct arrival_ops arrival_ops = { .get_sender = get_sender,
                                                .on_listening = on_listening,
                                                .on_received = on_received,
                                                .on_restored = on_restored,
                                                .on_opened = on_opened,
                                                .on_not_opened = on_not_opened,
                                                .on_failed = on_failed };

void destination_create(struct move *move) {
        move->arrival =
                arrival_create(move->moves->rmd, &move->moves->arrivals, move->moves->remover, move->dir, &arrival_ops, move);
}

bool destination_is_complete(const struct move *move) {
        return move->opened_reported || arrival_is_complete(move->arrival);
}

void destination_on_image_sent(struct move *move, const Rm__MoveImageSent *sent) {
        arrival_saved_state(move->arrival, sent->saved_state.data, sent->saved_state.len);
}

/* The group may grow while it is moved, but what arrives counts for no group's limit. */
static uint64_t granted(const struct move *move, const struct resident *resident) {
        uint64_t reserve_bytes = limits_reserve(move->moves->rmd->topology->memory_bytes);
        struct capsule_limits limits;
        struct capacity_free free;

        capsule_get_limits(resident_capsule(resident), &limits);
        capacity_here(move->moves->dir, &free);
        return capacity_grant(&move->need, &free, limits.memory_bytes, reserve_bytes);
}

/* ---- prepare ---- */

static void refuse(struct moves *moves, const char *node, uint64_t move, const char *why) {
        Rm__MovePrepared prepared = RM__MOVE_PREPARED__INIT;

        prepared.move = move;
        prepared.error = (char *) why;
        (void) cluster_send(moves->rmd->cluster, node, &PEER_MESSAGE(&prepared));
}

static void keep_pending_prepare(struct moves *moves, const char *node, const Rm__MovePrepare *prepare) {
        struct pending_prepare *pending = xcalloc(1, sizeof(*pending));

        pending->node = xstrdup(node);
        pending->prepare = (Rm__MovePrepare *) message_copy(&prepare->base);
        SLIST_INSERT_HEAD(&moves->pending_prepares, pending, entry);
}

void pending_prepare_free(struct pending_prepare *pending) {
        rm__move_prepare__free_unpacked(pending->prepare, NULL);
        free(pending->node);
        free(pending);
}

void destination_begin_pending(struct moves *moves) {
        struct pending_prepares list = moves->pending_prepares;

        SLIST_INIT(&moves->pending_prepares);
        while (!SLIST_EMPTY(&list)) {
                struct pending_prepare *pending = SLIST_FIRST(&list);

                SLIST_REMOVE_HEAD(&list, entry);
                destination_begin(moves, pending->node, pending->prepare);
                pending_prepare_free(pending);
        }
}

/* Whether its memory can be tracked is only known when that has begun, so there is to be room for
 * either way; with room for the one, the source gives up if it has to go the other. */
static int check_space(const struct moves *moves, const Rm__MovePrepare *prepare, bool ahead, struct capacity_need *ret_need,
                       struct rm_error *err) {
        struct capacity_need need = {
                .memory_bytes = prepare->memory_bytes,
                .files_bytes = prepare->files_bytes,
                .ahead = ahead,
        };
        struct capacity_free free;
        const char *why;
        int r;

        capacity_here(moves->dir, &free);
        r = capacity_check(&need, &free, err);
        if (r < 0 && prepare->pages && pages_test_passed(moves->rmd->pages_test, &why)) {
                error_clear(err);
                need.pages = true;
                r = capacity_check(&need, &free, err);
        }
        *ret_need = need;
        return r;
}

void destination_begin(struct moves *moves, const char *node, const Rm__MovePrepare *prepare) {
        const Rm__State *state = cluster_state(moves->rmd->cluster);
        const Rm__Move *record = state_move(state, prepare->move);
        const Rm__Job *job = record ? state_job(state, record->job) : NULL;
        struct rm_error err = { 0 };
        struct capacity_need need;
        struct move *move;

        if (prepare->token.len == ARRIVAL_TOKEN_BYTES && prepare->move >= state->next_move) {
                keep_pending_prepare(moves, node, prepare);
                return;
        }
        if (!job || record->state != RM__MOVE_STATE__MOVE_RUNNING || strcmp(record->from, node) != 0 ||
            strcmp(record->to, cluster_self(moves->rmd->cluster)) != 0 || prepare->token.len != ARRIVAL_TOKEN_BYTES ||
            move_find(moves, prepare->move, MOVE_DESTINATION)) {
                refuse(moves, node, prepare->move, "this node's copy of the state does not contain that move");
                return;
        }
        if (prepare->pages && pages_test_runs(moves->rmd->pages_test)) {
                keep_pending_prepare(moves, node, prepare);
                moves_retry(moves);
                return;
        }
        if (check_space(moves, prepare, !record->stop, &need, &err) < 0) {
                refuse(moves, node, prepare->move, error_text(&err));
                return;
        }
        move = move_create(moves, record, MOVE_DESTINATION);
        move->incarnation = record->incarnation;
        arrival_begin(move->arrival, move->job, move->index, move->incarnation);
        move->need = need;
        move->pages_only = need.pages;
        memcpy(move->token, prepare->token.data, ARRIVAL_TOKEN_BYTES);
        move->kept = (struct capsule_limits) { .memory_bytes = prepare->memory_max, .pids = prepare->pids_max };
        timer_set(move->deadline, PREPARE_USEC);
        move_event(move, MOVE_EV_START);
}

static void enter_prepare(struct move *move) {
        const Rm__State *state = cluster_state(move->moves->rmd->cluster);
        const Rm__Move *record = state_move(state, move->id);
        const Rm__Job *job = state_job(state, move->job);
        struct rm_error err = { 0 };
        struct resident *resident = NULL;

        if (!record || !job)
                move_fail(move, "this node's copy of the state does not contain that move any more");
        else if (runner_make_copy(move->moves->rmd->runner, job, record, &move->kept, &resident, &err) < 0)
                move_fail(move, "%s", error_text(&err));
}

void destination_capsule_ready(struct move *move) {
        const struct resident *resident = move_resident(move);
        struct arrival_image image = { .token = move->token };
        struct rm_error err = { 0 };

        if (!resident || move->state != MOVE_PREPARE)
                return;
        image.max_bytes = granted(move, resident);
        if (arrival_listen(move->arrival, &image, &err) < 0)
                move_fail(move, "%s", error_text(&err));
}

/* ---- commit and open ---- */

static void propose_commit(struct move *move) {
        struct command c;

        move_propose(move, command_move_commit(&c, move->id, move->later_bytes));
}

static void open_copy(struct move *move) {
        if (!move->opened_reported)
                arrival_open(move->arrival);
}

/* ---- the rest of the memory, which PID 1 gives to the group ---- */

/* True when the log need not know it any more, or has it. */
static bool propose_filled(struct move *move, const struct capsule_status *status) {
        struct command c;
        uint64_t usec;

        if (!move->filled_usec)
                move->filled_usec = now_usec();
        usec = move->filled_usec - move->opened_usec;
        (void) command_move_filled(&c, move->id, usec > 0 ? usec : 1);
        if (move_is_needed(move)) {
                c.move_filled.later_faults = status->later_faults;
                c.move_filled.later_p99_usec = status->later_p99_usec;
                move_propose(move, &c.command);
                return false;
        }
        if (move->pages && !move->later_bytes)
                cluster_propose(move->moves->rmd->cluster, &c.command, NULL, NULL);
        return true;
}

/* If the group has ended, or PID 1 has killed it, that is what the runner tells. */
static void see_filled(struct move *move) {
        struct resident *resident = move_resident(move);
        struct capsule_status status;

        if (!resident || resident_is_lost(resident) || resident_phase(resident) == RESIDENT_EXITED) {
                move_event(move, MOVE_EV_FAILED);
                return;
        }
        capsule_get_status(resident_capsule(resident), &status);
        if (!resident_answers(resident) || status.filling || status.killed[0])
                return;
        if (propose_filled(move, &status))
                move_event(move, MOVE_EV_FILLED);
        else
                moves_retry(move->moves);
}

static void enter_fill(struct move *move) {
        if (!move->later_bytes)
                move_stop_mover(move); /* and the images go: their memory may be needed */
        see_filled(move);
}

/* Until the log has the commit there is still the source's copy. */
static void propose_abort_of_killed(struct move *move) {
        struct resident *resident = move_resident(move);
        struct capsule_status status = { 0 };
        struct command c;

        if (resident && resident_answers(resident))
                capsule_get_status(resident_capsule(resident), &status);
        if (!status.killed[0])
                return;
        (void) text_format(move->error, sizeof(move->error), "the restored group was killed: %s", status.killed);
        cluster_propose(move->moves->rmd->cluster,
                        command_move_abort(&c, move->id, move->error, RM__MOVE_FAILURE__MOVE_FAILURE_OTHER), NULL, NULL);
}

void destination_capsule_filling(struct move *move) {
        if (move->state == MOVE_FILL && !gate_holds(&move->gate))
                see_filled(move);
        else if (move->state == MOVE_COMMIT)
                propose_abort_of_killed(move);
}

void destination_adopt(struct moves *moves, const Rm__Move *record) {
        uint64_t real = now_real_usec();
        uint64_t ran_usec = record->end_usec > 0 && record->end_usec < real ? real - record->end_usec : 0;
        struct move *move = move_create(moves, record, MOVE_DESTINATION);

        move->incarnation = record->incarnation;
        move->pages = move->opened_reported = true;
        move->later_bytes = record->later_bytes;
        move->opened_usec = now_usec() > ran_usec ? now_usec() - ran_usec : 0;
        log_info("move %" PRIu64 " (destination): the group runs here, and gets the rest of its memory", move->id);
        move_event(move, MOVE_EV_OPENED);
}

void destination_retry(struct move *move) {
        if (move->state == MOVE_COMMIT)
                propose_commit(move);
        else if (move->state == MOVE_OPEN)
                open_copy(move);
        else if (move->state == MOVE_FILL)
                see_filled(move);
}

static void undo(struct move *move) {
        struct resident *resident = move_resident(move);

        move_stop_mover(move);
        if (resident)
                runner_drop(move->moves->rmd->runner, resident, true);
        report_failed(move);
        move_propose_abort(move);
}

void destination_enter(struct move *move) {
        struct resident *resident = move_resident(move);

        if (move->state != MOVE_PREPARE)
                timer_set(move->deadline, 0);
        switch (move->state) {
        case MOVE_PREPARE:
                enter_prepare(move);
                break;
        case MOVE_TRANSFER:
                break; /* rm-mover watches over the stream */
        case MOVE_RESTORE:
                timer_set(move->deadline, move->moves->rmd->config->move_timeout_usec);
                arrival_restore(move->arrival, NULL);
                break;
        case MOVE_COMMIT:
                propose_commit(move);
                break;
        case MOVE_OPEN:
                open_copy(move);
                break;
        case MOVE_FILL:
                enter_fill(move);
                break;
        case MOVE_UNDO:
                undo(move);
                break;
        default: /* END: filled, or aborted */
                move_stop_mover(move);
                if (!move->opened_reported && resident)
                        runner_drop(move->moves->rmd->runner, resident, true);
                moves_retry(move->moves);
        }
}
