/* On the node of a job's head: all capsules of a checkpoint go from one phase to the next together. It keeps nothing that must last: if this rmd is lost, the nodes'
 * own limits end the checkpoint, and nothing of it counts. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "common/util.h"
#include "daemon/checkpoint/checkpoints_internal.h"
#include "daemon/cluster/commands.h"

static struct barrier *find(struct checkpoints *c, uint64_t job, uint64_t checkpoint) {
        struct barrier *barrier;

        LIST_FOREACH (barrier, &c->barriers, entry)
                if (barrier->job == job && barrier->checkpoint == checkpoint)
                        return barrier;
        return NULL;
}

static struct barrier *create(struct checkpoints *c, uint64_t job, const Rm__Checkpoint *checkpoint) {
        struct barrier *barrier = xcalloc(1, sizeof(*barrier));

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
        free(barrier->parts);
        free(barrier);
}

/* To each node with a capsule of the job, once. */
static void tell_all(struct checkpoints *c, const struct barrier *barrier, const Rm__Checkpoint *checkpoint,
                     Rm__CheckpointPhase phase, const char *error) {
        Rm__PeerMessage message = RM__PEER_MESSAGE__INIT;
        Rm__CheckpointGo go = RM__CHECKPOINT_GO__INIT;

        go.job = barrier->job;
        go.checkpoint = barrier->checkpoint;
        go.phase = phase;
        go.error = (char *) error;
        message.body_case = RM__PEER_MESSAGE__BODY_CHECKPOINT_GO;
        message.checkpoint_go = &go;
        for (size_t i = 0; i < checkpoint->n_parts; i++) {
                bool told = false;

                for (size_t k = 0; k < i && !told; k++)
                        told = strcmp(checkpoint->parts[k]->node, checkpoint->parts[i]->node) == 0;
                if (!told && checkpoints_send(c, checkpoint->parts[i]->node, &message) < 0)
                        log_warn("checkpoint %" PRIu64 ".%" PRIu64 ": %s cannot be reached", barrier->job, barrier->checkpoint,
                                 checkpoint->parts[i]->node);
        }
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

static void advance(struct checkpoints *c, struct barrier *barrier, const Rm__Checkpoint *checkpoint) {
        Rm__CheckpointPhase phase = least(barrier);

        if (barrier->failed || phase <= barrier->reached)
                return;
        barrier->reached = phase;
        if (phase == RM__CHECKPOINT_PHASE__CHECKPOINT_PHASE_CAPTURED)
                propose_captured(c, barrier);
        else
                tell_all(c, barrier, checkpoint, phase, "");
}

static void barrier_fail(struct checkpoints *c, struct barrier *barrier, const Rm__Checkpoint *checkpoint, const char *error) {
        if (!barrier->failed)
                tell_all(c, barrier, checkpoint, RM__CHECKPOINT_PHASE__CHECKPOINT_PHASE_FAILED, error);
        barrier->failed = true;
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
        for (size_t i = 0; i < at->n_output_end && i < ARRAY_SIZE(barrier->output_end); i++)
                barrier->output_end[i] = at->output_end[i];
        for (size_t i = 0; i < barrier->n; i++)
                if (barrier->parts[i].index == at->capsule && at->phase > barrier->parts[i].phase) {
                        barrier->parts[i].phase = at->phase;
                        barrier->parts[i].pause_usec = at->pause_usec;
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

/* The others may stand still, and must not until that node is back or missed. */
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
