#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "common/text.h"
#include "common/timer.h"
#include "common/util.h"
#include "daemon/job/launch.h"
#include "daemon/move/moves_internal.h"
#include "daemon/state/commands.h"
#include "daemon/transfer/images.h"

#define RETRY_USEC 500000

/* ---- the table ---- */

struct move *move_find(struct moves *moves, uint64_t id, enum move_role role) {
        struct move *m;

        LIST_FOREACH (m, &moves->list, entry)
                if (m->id == id && m->role == role)
                        return m;
        return NULL;
}

static void on_deadline(evutil_socket_t fd, short what, void *arg) {
        struct move *move = arg;

        if (move->role == MOVE_SOURCE && move->state >= MOVE_TRANSFER)
                move_fail(move, "the group was frozen for %.0f s, the limit of [sched] move_timeout (%s)",
                          (double) (now_usec() - capture_frozen_usec(move->capture)) / 1e6, machine_state_name(move->state));
        else if (move->waits == CAPTURE_AWAITS_START)
                move_fail(move, "mpirun has not started its ranks yet");
        else if (move->waits == CAPTURE_AWAITS_MEMORY)
                move_fail(move, "nothing was heard any more of the memory that has not yet arrived from its last move");
        else
                move_fail(move, "%s timed out", machine_state_name(move->state));
}

static void enter_state(struct move *move);

static void on_gate(evutil_socket_t fd, short what, void *arg) {
        enter_state(arg);
}

struct move *move_create(struct moves *moves, const Rm__Move *record, enum move_role role) {
        struct move *move = xcalloc(1, sizeof(*move));

        move->moves = moves;
        move->id = record->id;
        move->role = role;
        move->job = record->job;
        move->index = record->capsule;
        move->other = xstrdup(role == MOVE_SOURCE ? record->to : record->from);
        move->dir = xasprintf("%s/%" PRIu64 "-%s", moves->dir, record->id, machine_role_name(role));
        move->deadline = evtimer_new(moves->rmd->base, on_deadline, move);
        gate_init(&move->gate, moves->rmd->base, on_gate, move);
        move->begin_usec = now_usec();
        caller_init(&move->caller, &moves->calls, move);
        if (role == MOVE_SOURCE)
                source_create(move);
        else
                destination_create(move);
        rm__move__init(&move->figures);
        move->figures.id = record->id;
        LIST_INSERT_HEAD(&moves->list, move, entry);
        return move;
}

void move_stop_mover(struct move *move) {
        if (move->arrival)
                arrival_end_mover(move->arrival);
        else
                mover_stop(take_ptr(move->mover), move->moves->remover, move->dir);
}

bool move_is_needed(const struct move *move) {
        const Rm__State *state = cluster_state(move->moves->rmd->cluster);
        const Rm__Move *record = state_move(state, move->id);

        return record && move_needs_source(state, record);
}

static void move_free(struct move *move) {
        LIST_REMOVE(move, entry);
        move_stop_mover(move);
        capture_destroy(move->capture);
        arrival_destroy(move->arrival);
        caller_finish(&move->caller);
        event_free(move->deadline);
        gate_finish(&move->gate);
        free(move->other);
        free(move->dir);
        free(move);
}

struct resident *move_resident(struct move *move) {
        return runner_copy(move->moves->rmd->runner, move->job, move->index, move->incarnation);
}

int move_send(struct move *move, Rm__PeerMessage *message) {
        return cluster_send(move->moves->rmd->cluster, move->other, message);
}

/* ---- events ---- */

/* The log has decided, and a failure changes nothing. */
static bool is_decided(enum move_state state) {
        return state == MOVE_OPEN || state == MOVE_FILL || state == MOVE_RELEASE;
}

/* Passes the fault point of the state, then does the work of the state. */
static void enter_state(struct move *move) {
        bool breakable = move->state != MOVE_UNDO && move->state != MOVE_END;
        const char *role = machine_role_name(move->role);
        const char *state = machine_state_name(move->state);
        struct rm_error err = { 0 };
        cleanup_free char *point = xasprintf("move.%s.%s", role, state);
        int r = breakable ? gate_pass(&move->gate, point, &err) : 0;

        if (r == -EINPROGRESS)
                return;
        if (r < 0 && !is_decided(move->state)) {
                move_fail(move, "%s", error_text(&err));
                return;
        }
        if (move->role == MOVE_SOURCE)
                source_enter(move);
        else
                destination_enter(move);
}

void move_event(struct move *move, enum move_event event) {
        enum move_state next;

        if (!machine_next(move->role, move->state, event, &next)) {
                log_debug("move %" PRIu64 " (%s): %s in state %s is ignored", move->id, machine_role_name(move->role),
                          machine_event_name(event), machine_state_name(move->state));
                return;
        }
        log_debug("move %" PRIu64 " (%s): %s -> %s", move->id, machine_role_name(move->role), machine_state_name(move->state),
                  machine_state_name(next));
        move->state = next;
        gate_leave(&move->gate);
        enter_state(move);
}

void move_fail(struct move *move, const char *fmt, ...) {
        va_list ap;

        if (!move->error[0]) {
                va_start(ap, fmt);
                (void) text_format_va(move->error, sizeof(move->error), fmt, ap);
                va_end(ap);
                log_warn("move %" PRIu64 " (%s, %s): %s", move->id, machine_role_name(move->role), machine_state_name(move->state),
                         move->error);
        }
        if (move->state == MOVE_COMMIT || move->state == MOVE_OPEN || move->state == MOVE_RELEASE)
                moves_retry(move->moves); /* what the log decides is carried out, sooner or later */
        else
                move_event(move, MOVE_EV_FAILED);
}

static void on_proposed(void *userdata, int code, const char *text, uint64_t index, uint64_t created) {
        struct move *move = call_done(userdata, code);

        if (!move)
                return;
        move->proposing = false;
        /* Refused: the log had something else first, and the state says what. No answer: it may
         * hold or not; asked again. */
        if (code < 0 && code != -EALREADY)
                moves_retry(move->moves);
}

void move_propose(struct move *move, const Rm__Command *command) {
        if (move->proposing)
                return;
        move->proposing = true;
        cluster_propose(move->moves->rmd->cluster, command, on_proposed, call_create(&move->caller));
}

void move_propose_abort(struct move *move) {
        struct command c;
        bool understood = cluster_state(move->moves->rmd->cluster)->level >= STATE_LEVEL_REFUSED;

        move_propose(move, command_move_abort(&c, move->id, move->error,
                                              understood ? move->failure : RM__MOVE_FAILURE__MOVE_FAILURE_OTHER));
}

/* ---- what the state says ---- */

/* False: there is no such capsule. */
static bool begin(struct moves *moves, const Rm__Move *record) {
        const Rm__Job *job = state_job(cluster_state(moves->rmd->cluster), record->job);
        const Rm__Capsule *capsule = job ? job_capsule(job, record->capsule) : NULL;
        struct move *move;

        if (!capsule)
                return false;
        move = move_create(moves, record, MOVE_SOURCE);
        move->incarnation = capsule->incarnation;
        source_begin(move);
        return true;
}

/* While this node catches up, a move may be over already: reconcile() sees whether it is. */
void moves_started(struct moves *moves, uint64_t id) {
        const Rm__Move *record = state_move(cluster_state(moves->rmd->cluster), id);

        if (!record || strcmp(record->from, cluster_self(moves->rmd->cluster)) != 0)
                return;
        if (!cluster_synced(moves->rmd->cluster))
                return;
        if (moves->first_unheard <= id)
                moves->first_unheard = id + 1;
        (void) begin(moves, record);
}

static void propose_leftover(struct moves *moves, const Rm__Move *record, bool done) {
        struct command c;

        if (done)
                (void) command_move_done(&c, record);
        else
                (void) command_move_abort(&c, record->id, "rmd at the source was restarted, or did not hear of it",
                                          RM__MOVE_FAILURE__MOVE_FAILURE_OTHER);
        cluster_propose(moves->rmd->cluster, &c.command, NULL, NULL);
        moves_retry(moves);
}

static bool is_down(const struct moves *moves, const char *name) {
        const Rm__Node *node = state_node(cluster_state(moves->rmd->cluster), name);

        return !node || node->health == RM__NODE_HEALTH__NODE_HEALTH_DOWN;
}

/* Moves in the state that this rmd does not carry out: this daemon was restarted meanwhile, or out
 * of reach when they began. Those that started since it had all of the log last begin now. */
static void wake_leftover(struct moves *moves, const Rm__Move *record) {
        const char *self = cluster_self(moves->rmd->cluster);
        bool running = record->state == RM__MOVE_STATE__MOVE_RUNNING;

        if (move_needs_source(cluster_state(moves->rmd->cluster), record))
                return;
        if (strcmp(record->from, self) == 0 && !move_find(moves, record->id, MOVE_SOURCE)) {
                if (!running || record->id < moves->first_unheard || !begin(moves, record))
                        propose_leftover(moves, record, !running);
        } else if (!running && strcmp(record->to, self) == 0 && !move_find(moves, record->id, MOVE_DESTINATION) &&
                   is_down(moves, record->from)) {
                /* The source cannot say so: its copy goes when it is back, the move is over now. */
                propose_leftover(moves, record, true);
        }
}

/* The capsule came by a move to an rmd before this one, and has not got all of its memory yet. */
static void adopt_filling(struct moves *moves, const struct resident *resident) {
        const Rm__State *state = cluster_state(moves->rmd->cluster);
        struct capsule_status status;

        capsule_get_status(resident_capsule(resident), &status);
        for (size_t i = status.filling ? state->n_moves : 0; i > 0; i--) {
                const Rm__Move *record = state->moves[i - 1];

                if (record->job != resident_job(resident) || record->incarnation != resident_incarnation(resident))
                        continue;
                if (!move_find(moves, record->id, MOVE_DESTINATION))
                        destination_adopt(moves, record);
                return;
        }
}

/* A copy that runs here, or is about to, may have come by a move of which only the state knows. */
static void adopt_copy(struct moves *moves, const struct state_placed *placed) {
        const struct resident *resident = runner_current(moves->rmd->runner, placed->job->id, placed->capsule->index);
        const Rm__Move *active = state_capsule_move(cluster_index(moves->rmd->cluster), placed->job->id, placed->capsule->index);

        if (!resident || !resident_answers(resident) || resident_holder(resident) == RESIDENT_CAPTURED ||
            (active && active->state == RM__MOVE_STATE__MOVE_RUNNING))
                return;
        if (active && move_find(moves, active->id, MOVE_DESTINATION))
                return;
        adopt_filling(moves, resident);
        if (active && move_needs_source(cluster_state(moves->rmd->cluster), active) &&
            !move_find(moves, active->id, MOVE_DESTINATION))
                destination_adopt(moves, active);
}

static void adopt_copies(struct moves *moves) {
        size_t n;
        cleanup_free struct state_placed *placed =
                state_placed_on(cluster_index(moves->rmd->cluster), cluster_self(moves->rmd->cluster), &n);

        for (size_t i = 0; i < n; i++)
                if (job_running(placed[i].job))
                        adopt_copy(moves, &placed[i]);
}

/* The work of this state is not begun yet, so there is nothing to try again. */
static bool is_held(const struct move *move, const Rm__Move *record) {
        return gate_holds(&move->gate) &&
               (is_decided(move->state) || (move->state == MOVE_COMMIT && record->state == RM__MOVE_STATE__MOVE_RUNNING));
}

static void apply_record(struct move *move, const Rm__Move *record) {
        if (!record) {
                move_free(move);
                return;
        }
        if (is_held(move, record))
                return;
        switch (record->state) {
        case RM__MOVE_STATE__MOVE_RUNNING:
                if (move->state == MOVE_UNDO)
                        move_propose_abort(move);
                else if (move->state == MOVE_COMMIT)
                        destination_retry(move);
                else if (move->role == MOVE_SOURCE && move->state == MOVE_PREPARE)
                        source_retry(move);
                else if (move->role == MOVE_SOURCE && move->state == MOVE_PRECOPY)
                        source_expedite(move);
                break;
        case RM__MOVE_STATE__MOVE_COMMITTED:
                if (!move->committed_usec)
                        move->committed_usec = now_usec();
                if (move->state == MOVE_RELEASE)
                        source_release(move);
                else if (move->state == MOVE_OPEN || move->state == MOVE_FILL)
                        destination_retry(move);
                else if (move->state != MOVE_END)
                        move_event(move, MOVE_EV_COMMITTED);
                break;
        case RM__MOVE_STATE__MOVE_ABORTED:
                move_event(move, MOVE_EV_ABORTED);
                break;
        /* DONE: a destination without a lease may still have to open its copy, unless that has
         * moved on; or memory is missing. */
        default:
                if (move->role == MOVE_DESTINATION && (move->state == MOVE_OPEN || move->state == MOVE_FILL) && move_resident(move))
                        destination_retry(move);
                else
                        move_free(move);
        }
}

/* A move may end, and with it others, while the list is walked: from the start until nothing
 * ends. */
static void free_ended(struct moves *moves) {
        struct move *m = LIST_FIRST(&moves->list);

        while (m)
                if (m->state == MOVE_END) { /* its last word was said */
                        move_free(m);
                        m = LIST_FIRST(&moves->list);
                } else {
                        m = LIST_NEXT(m, entry);
                }
}

static void reconcile(struct moves *moves) {
        const Rm__State *state = cluster_state(moves->rmd->cluster);
        Rm__Move *const *open_moves;
        size_t n;

        destination_begin_pending(moves);
        for (struct move *m = LIST_FIRST(&moves->list), *next; m; m = next) {
                next = LIST_NEXT(m, entry);
                apply_record(m, state_move(state, m->id));
        }
        free_ended(moves);
        if (!cluster_synced(moves->rmd->cluster))
                return;
        open_moves = state_open_moves(cluster_index(moves->rmd->cluster), &n);
        for (size_t i = 0; i < n; i++)
                wake_leftover(moves, open_moves[i]);
        moves->first_unheard = cluster_state(moves->rmd->cluster)->next_move;
        adopt_copies(moves);
}

static void on_wake(evutil_socket_t fd, short what, void *arg) {
        reconcile(arg);
}

void moves_wake(struct moves *moves) {
        event_active(moves->wake, EV_TIMEOUT, 0);
}

static void on_retry(evutil_socket_t fd, short what, void *arg) {
        struct moves *moves = arg;

        moves->retry_requested = false;
        reconcile(moves);
}

void moves_retry(struct moves *moves) {
        if (moves->retry_requested)
                return;
        moves->retry_requested = true;
        timer_arm(moves->retry, RETRY_USEC);
}

/* ---- from outside ---- */

void moves_capsule_ready(struct moves *moves, struct resident *resident, int error, const char *text) {
        struct move *m;

        if (!moves)
                return;
        LIST_FOREACH (m, &moves->list, entry) {
                if (m->job != resident_job(resident) || m->index != resident_index(resident) ||
                    m->incarnation != resident_incarnation(resident))
                        continue;
                if (error < 0)
                        move_fail(m, "the capsule: %s", text);
                else if (m->role == MOVE_DESTINATION)
                        destination_capsule_ready(m);
                return;
        }
        if (error == 0)
                moves_retry(moves); /* adopted: it may have to be opened */
}

void moves_capsule_filling(struct moves *moves, const struct resident *resident) {
        struct move *m;

        if (!moves)
                return;
        LIST_FOREACH (m, &moves->list, entry)
                if (m->job == resident_job(resident) && m->index == resident_index(resident) &&
                    m->incarnation == resident_incarnation(resident)) {
                        if (m->role == MOVE_SOURCE)
                                source_capsule_filling(m);
                        else
                                destination_capsule_filling(m);
                }
}

/* The log decides: a move may go on here, for a moment, that has ended in the log, with the capsule
 * running elsewhere by now. */
bool moves_own(struct moves *moves, const struct resident *resident) {
        const Rm__Move *active =
                state_capsule_move(cluster_index(moves->rmd->cluster), resident_job(resident), resident_index(resident));
        const struct move *m;

        if (!active)
                return false;
        LIST_FOREACH (m, &moves->list, entry)
                if (m->id == active->id && m->incarnation == resident_incarnation(resident) && m->state != MOVE_FILL &&
                    m->state != MOVE_END)
                        return true;
        if (move_needs_source(cluster_state(moves->rmd->cluster), active) &&
            strcmp(active->from, cluster_self(moves->rmd->cluster)) == 0)
                return true;
        return active->state == RM__MOVE_STATE__MOVE_RUNNING && active->incarnation == resident_incarnation(resident);
}

bool moves_hold(struct moves *moves, const struct resident *resident) {
        const Rm__Move *active =
                state_capsule_move(cluster_index(moves->rmd->cluster), resident_job(resident), resident_index(resident));
        const struct move *arriving = active ? move_find(moves, active->id, MOVE_DESTINATION) : NULL;

        return active && (active->state == RM__MOVE_STATE__MOVE_RUNNING || (arriving && arriving->state != MOVE_FILL));
}

bool moves_on_message(struct moves *moves, const char *node, const Rm__PeerMessage *message) {
        struct move *move;

        switch (message->body_case) {
        case RM__PEER_MESSAGE__BODY_MOVE_PREPARE:
                destination_begin(moves, node, message->move_prepare);
                return true;
        case RM__PEER_MESSAGE__BODY_MOVE_PREPARED:
                move = move_find(moves, message->move_prepared->move, MOVE_SOURCE);
                if (move)
                        source_on_prepared(move, message->move_prepared);
                return true;
        case RM__PEER_MESSAGE__BODY_MOVE_IMAGE_SENT:
                move = move_find(moves, message->move_image_sent->move, MOVE_DESTINATION);
                if (move)
                        destination_on_image_sent(move, message->move_image_sent);
                return true;
        case RM__PEER_MESSAGE__BODY_MOVE_FAILED:
                move = move_find(moves, message->move_failed->move, MOVE_SOURCE);
                if (move)
                        source_on_failed(move, node, message->move_failed);
                return true;
        case RM__PEER_MESSAGE__BODY_MOVE_OPENED:
                move = move_find(moves, message->move_opened->move, MOVE_SOURCE);
                if (move)
                        source_on_opened(move, message->move_opened);
                return true;
        default:
                return false;
        }
}

void moves_keep(const struct moves *moves) {
        const struct move *m;

        LIST_FOREACH (m, &moves->list, entry)
                if (m->state != MOVE_FILL)
                        cluster_keep(moves->rmd->cluster, m->other);
}

void moves_on_peer(struct moves *moves, const char *node, bool connected) {
        if (connected) {
                moves_retry(moves);
                return;
        }
        for (struct move *m = LIST_FIRST(&moves->list), *next; m; m = next) {
                next = LIST_NEXT(m, entry);
                /* A destination that has all of the image goes on alone. */
                if (strcmp(m->other, node) == 0 && (m->role == MOVE_SOURCE || !destination_is_complete(m)))
                        move_fail(m, "%s was lost", node);
        }
}

int moves_create(struct rmd *rmd, struct moves **ret, struct rm_error *err) {
        struct moves *moves = xcalloc(1, sizeof(*moves));
        int r;

        moves->rmd = rmd;
        moves->first_unheard = UINT64_MAX;
        moves->dir = xasprintf("%s/moves", rmd->config->runtime_dir);
        r = images_mount(moves->dir, err);
        if (r < 0) {
                free(moves->dir);
                free(moves);
                return r;
        }
        moves->remover = remover_create(rmd->base, MOVER_PROGRAM);
        moves->retry = evtimer_new(rmd->base, on_retry, moves);
        moves->wake = event_new(rmd->base, -1, 0, on_wake, moves);
        *ret = moves;
        return 0;
}

/* Leaves the rm-mover that serves memory without which the group cannot go on. */
static void leave_mover(struct move *move) {
        if (move->arrival)
                arrival_leave_mover(move->arrival);
        else
                mover_leave(take_ptr(move->mover));
}

void moves_destroy(struct moves *moves) {
        if (!moves)
                return;
        while (!LIST_EMPTY(&moves->list)) {
                struct move *move = LIST_FIRST(&moves->list);

                if (move_is_needed(move))
                        leave_mover(move);
                move_free(move);
        }
        while (!SLIST_EMPTY(&moves->pending_prepares)) {
                struct pending_prepare *pending = SLIST_FIRST(&moves->pending_prepares);

                SLIST_REMOVE_HEAD(&moves->pending_prepares, entry);
                pending_prepare_free(pending);
        }
        remover_destroy(moves->remover);
        images_unmount(moves->dir);
        event_free(moves->retry);
        event_free(moves->wake);
        free(moves->dir);
        free(moves);
}
