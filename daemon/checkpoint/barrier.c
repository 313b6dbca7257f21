/* The barrier on the node of a job's head: all capsules of a checkpoint go from one phase to the
 * next together. It keeps nothing that must last: if this rmd is lost, the nodes' own limits end
 * the checkpoint, and nothing of it counts. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "common/timer.h"
#include "common/util.h"
#include "daemon/checkpoint/checkpoints_internal.h"
#include "daemon/peers/peer_message.h"
#include "daemon/state/commands.h"
#include "daemon/state/leave_by.h"

static struct barrier *find(struct checkpoints *c, uint64_t job, uint64_t checkpoint) {
        struct barrier *barrier;

        LIST_FOREACH (barrier, &c->barriers, entry)
                if (barrier->job == job && barrier->checkpoint == checkpoint)
                        return barrier;
        return NULL;
}

static void on_round_over(evutil_socket_t fd, short what, void *arg);

static struct barrier *create(struct checkpoints *c, uint64_t job, const Rm__Checkpoint *checkpoint) {
        struct barrier *barrier = xcalloc(1, sizeof(*barrier));

        barrier->c = c;
        barrier->round_over = evtimer_new(c->rmd->base, on_round_over, barrier);
        barrier->job = job;
        barrier->checkpoint = checkpoint->id;
        barrier->n = checkpoint->n_parts;
        barrier->parts = xcalloc(checkpoint->n_parts, sizeof(*barrier->parts));
        for (size_t i = 0; i < checkpoint->n_parts; i++)
                barrier->parts[i].index = checkpoint->parts[i]->capsule;
        LIST_INSERT_HEAD(&c->barriers, barrier, entry);
        return barrier;
}

static void barrier_free(struct barrier *barrier) {
        LIST_REMOVE(barrier, entry);
        event_free(barrier->round_over);
        free(barrier->parts);
        free(barrier);
}

/* Only a capsule whose ranks have places is to come to them. */
static bool is_meant(const struct barrier *barrier, size_t part, Rm__CheckpointPhase phase) {
        return phase != RM__CHECKPOINT_PHASE__CHECKPOINT_PHASE_PLACE || barrier->parts[part].places > 0;
}

/* To each node with a capsule of the job that is meant, once. */
static void report_nodes(struct checkpoints *c, const struct barrier *barrier, const Rm__Checkpoint *checkpoint,
                         Rm__CheckpointGo *go) {
        const Rm__PeerMessage message = PEER_MESSAGE(go);

        go->job = barrier->job;
        go->checkpoint = barrier->checkpoint;
        for (size_t i = 0; i < checkpoint->n_parts; i++) {
                bool reported = !is_meant(barrier, i, go->phase);

                for (size_t k = 0; k < i && !reported; k++)
                        reported = is_meant(barrier, k, go->phase) &&
                                   strcmp(checkpoint->parts[k]->node, checkpoint->parts[i]->node) == 0;
                if (!reported && checkpoints_send(c, checkpoint->parts[i]->node, &message) < 0)
                        log_warn("checkpoint %" PRIu64 ".%" PRIu64 ": %s cannot be reached", barrier->job, barrier->checkpoint,
                                 checkpoint->parts[i]->node);
        }
}

static void report_all(struct checkpoints *c, const struct barrier *barrier, const Rm__Checkpoint *checkpoint,
                       Rm__CheckpointPhase phase, const char *error) {
        Rm__CheckpointGo go = RM__CHECKPOINT_GO__INIT;

        go.phase = phase;
        go.error = (char *) error;
        report_nodes(c, barrier, checkpoint, &go);
}

static Rm__CheckpointPhase least(const struct barrier *barrier) {
        Rm__CheckpointPhase phase = RM__CHECKPOINT_PHASE__CHECKPOINT_PHASE_CAPTURED;

        for (size_t i = 0; i < barrier->n; i++)
                if (barrier->parts[i].phase < phase)
                        phase = barrier->parts[i].phase;
        return phase;
}

static void propose_captured(struct checkpoints *c, struct barrier *barrier) {
        struct command cmd;
        Rm__CmdCheckpointCaptured *body = command_checkpoint_captured(&cmd, barrier->job, barrier->checkpoint);

        for (size_t i = 0; i < barrier->n; i++)
                if (barrier->parts[i].pause_usec > body->pause_usec)
                        body->pause_usec = barrier->parts[i].pause_usec;
        body->output_end = barrier->output_end;
        body->n_output_end = ARRAY_SIZE(barrier->output_end);
        checkpoints_propose(c, &cmd.command);
        checkpoints_retry(c);
}

/* ---- places ---- */

static bool has_places(const struct barrier *barrier) {
        for (size_t i = 0; i < barrier->n; i++)
                if (barrier->parts[i].places > 0)
                        return true;
        return false;
}

static bool all_in_place(const struct barrier *barrier) {
        for (size_t i = 0; i < barrier->n; i++)
                if (barrier->parts[i].places > 0 && barrier->parts[i].round != barrier->rounds.round)
                        return false;
        return true;
}

static void begin_round(struct barrier *barrier, const Rm__Checkpoint *checkpoint) {
        Rm__CheckpointGo go = RM__CHECKPOINT_GO__INIT;
        uint64_t now = now_usec();

        go.phase = RM__CHECKPOINT_PHASE__CHECKPOINT_PHASE_PLACE;
        go.error = (char *) "";
        go.round = barrier->rounds.round;
        go.wait_usec = barrier->rounds.end_usec > now ? barrier->rounds.end_usec - now : 0;
        timer_arm(barrier->round_over, rounds_left(&barrier->rounds, now));
        report_nodes(barrier->c, barrier, checkpoint, &go);
}

/* False: no rank is to be waited for, or there is no time for that. */
static bool begin_places(struct barrier *barrier, const Rm__Checkpoint *checkpoint) {
        const struct checkpoints *c = barrier->c;
        const Rm__State *state = checkpoints_state(c);
        const Rm__Job *job = state_job(state, barrier->job);
        uint64_t wait_usec = job ? leave_by_wait_usec(job_leave_by_usec(state, job), cluster_log_usec(c->rmd->cluster),
                                                      c->rmd->config->place_wait_usec)
                                 : 0;

        if (wait_usec == 0 || !has_places(barrier))
                return false;
        rounds_begin(&barrier->rounds, now_usec(), wait_usec);
        begin_round(barrier, checkpoint);
        return true;
}

static void end_places(struct barrier *barrier) {
        rounds_end(&barrier->rounds);
        (void) evtimer_del(barrier->round_over);
}

static void freeze_all(struct barrier *barrier, const Rm__Checkpoint *checkpoint) {
        end_places(barrier);
        report_all(barrier->c, barrier, checkpoint, RM__CHECKPOINT_PHASE__CHECKPOINT_PHASE_COPIED, "");
}

static void on_round_over(evutil_socket_t fd, short what, void *arg) {
        struct barrier *barrier = arg;
        const Rm__Checkpoint *checkpoint = checkpoints_record(barrier->c, barrier->job, barrier->checkpoint);

        if (!checkpoint || barrier->rounds.round == 0)
                return;
        if (rounds_next(&barrier->rounds, now_usec())) {
                begin_round(barrier, checkpoint);
                return;
        }
        log_info("checkpoint %" PRIu64 ".%" PRIu64 ": not all ranks came to their places in time", barrier->job,
                 barrier->checkpoint);
        freeze_all(barrier, checkpoint);
}

static void on_place(struct barrier *barrier, const Rm__Checkpoint *checkpoint, const Rm__CheckpointAt *at) {
        for (size_t i = 0; i < barrier->n; i++)
                if (barrier->parts[i].index == at->capsule)
                        barrier->parts[i].round = at->round;
        if (barrier->rounds.round > 0 && all_in_place(barrier))
                freeze_all(barrier, checkpoint);
}

/* ---- from phase to phase ---- */

static void advance(struct checkpoints *c, struct barrier *barrier, const Rm__Checkpoint *checkpoint) {
        Rm__CheckpointPhase phase = least(barrier);

        if (barrier->failed || phase <= barrier->reached)
                return;
        barrier->reached = phase;
        if (phase == RM__CHECKPOINT_PHASE__CHECKPOINT_PHASE_CAPTURED)
                propose_captured(c, barrier);
        else if (phase != RM__CHECKPOINT_PHASE__CHECKPOINT_PHASE_COPIED || !begin_places(barrier, checkpoint))
                report_all(c, barrier, checkpoint, phase, "");
}

static void barrier_fail(struct checkpoints *c, struct barrier *barrier, const Rm__Checkpoint *checkpoint, const char *error) {
        if (!barrier->failed)
                report_all(c, barrier, checkpoint, RM__CHECKPOINT_PHASE__CHECKPOINT_PHASE_FAILED, error);
        barrier->failed = true;
        end_places(barrier);
        checkpoints_propose_abort(c, barrier->job, barrier->checkpoint, error);
}

void barrier_on_at(struct checkpoints *c, const Rm__CheckpointAt *at) {
        const Rm__Checkpoint *checkpoint = checkpoints_record(c, at->job, at->checkpoint);
        struct barrier *barrier = find(c, at->job, at->checkpoint);

        if (!checkpoint || checkpoint->state != RM__CHECKPOINT_STATE__CHECKPOINT_CAPTURING)
                return; /* it is over, or this node has not heard of it yet; then the others' limits end it */
        if (!barrier)
                barrier = create(c, at->job, checkpoint);
        if (at->phase == RM__CHECKPOINT_PHASE__CHECKPOINT_PHASE_FAILED) {
                barrier_fail(c, barrier, checkpoint, at->error);
                return;
        }
        if (at->phase == RM__CHECKPOINT_PHASE__CHECKPOINT_PHASE_PLACE) {
                on_place(barrier, checkpoint, at);
                return;
        }
        for (size_t i = 0; i < at->n_output_end && i < ARRAY_SIZE(barrier->output_end); i++)
                barrier->output_end[i] = at->output_end[i];
        for (size_t i = 0; i < barrier->n; i++)
                if (barrier->parts[i].index == at->capsule && at->phase > barrier->parts[i].phase) {
                        barrier->parts[i].phase = at->phase;
                        barrier->parts[i].pause_usec = at->pause_usec;
                        barrier->parts[i].places = at->places;
                }
        advance(c, barrier, checkpoint);
}

void barrier_wake(struct checkpoints *c) {
        struct barrier *barrier, *next;

        for (barrier = LIST_FIRST(&c->barriers); barrier; barrier = next) {
                const Rm__Checkpoint *checkpoint = checkpoints_record(c, barrier->job, barrier->checkpoint);

                next = LIST_NEXT(barrier, entry);
                if (!checkpoint || checkpoint->state != RM__CHECKPOINT_STATE__CHECKPOINT_CAPTURING)
                        barrier_free(barrier);
                else if (barrier->reached == RM__CHECKPOINT_PHASE__CHECKPOINT_PHASE_CAPTURED)
                        propose_captured(c, barrier);
        }
}

static bool awaits(const struct barrier *barrier, const Rm__CheckpointPart *part) {
        for (size_t i = 0; i < barrier->n; i++)
                if (barrier->parts[i].index == part->capsule)
                        return barrier->parts[i].phase < RM__CHECKPOINT_PHASE__CHECKPOINT_PHASE_CAPTURED;
        return false;
}

/* The other capsules may be frozen, and must not remain so until that node is back or missed. */
void barrier_on_lost(struct checkpoints *c, const char *node) {
        struct barrier *barrier;

        LIST_FOREACH (barrier, &c->barriers, entry) {
                const Rm__Checkpoint *checkpoint = checkpoints_record(c, barrier->job, barrier->checkpoint);
                cleanup_free char *why = xasprintf("the connection to node %s was lost", node);

                for (size_t i = 0; checkpoint && !barrier->failed && i < checkpoint->n_parts; i++)
                        if (strcmp(checkpoint->parts[i]->node, node) == 0 && awaits(barrier, checkpoint->parts[i]))
                                barrier_fail(c, barrier, checkpoint, why);
        }
}

void barrier_keep(const struct checkpoints *c) {
        const struct barrier *barrier;

        LIST_FOREACH (barrier, &c->barriers, entry) {
                const Rm__Checkpoint *checkpoint = checkpoints_record(c, barrier->job, barrier->checkpoint);

                for (size_t i = 0; checkpoint && i < checkpoint->n_parts; i++)
                        if (strcmp(checkpoint->parts[i]->node, checkpoints_self(c)) != 0)
                                cluster_keep(c->rmd->cluster, checkpoint->parts[i]->node);
        }
}

void barrier_finish(struct checkpoints *c) {
        while (!LIST_EMPTY(&c->barriers))
                barrier_free(LIST_FIRST(&c->barriers));
}
