#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"
#include "daemon/state/state_internal.h"

void job_drop_capsules(Rm__Job *job) {
        for (size_t k = 0; k < job->n_capsules; k++)
                rm__capsule__free_unpacked(job->capsules[k], NULL);
        free(job->capsules);
        job->capsules = NULL;
        job->n_capsules = 0;
        job->group_size = 0;
}

void job_left(const struct apply *a, Rm__Job *job) {
        if (a->state->level >= STATE_LEVEL_LEFT)
                job->left_usec = a->time_usec;
}

void job_recover(struct apply *a, Rm__Job *job) {
        cleanup_free char *reason = NULL;

        if (job->state != RM__JOB_STATE__JOB_RECOVERING)
                return;
        for (size_t k = 0; k < job->n_capsules; k++)
                if (job->capsules[k]->state != RM__CAPSULE_STATE__CAPSULE_GONE)
                        return;
        state_index_forget(a->index, job->id); /* it points at the capsules */
        job_drop_capsules(job);
        job->state = RM__JOB_STATE__JOB_PENDING;
        job->pending_since_usec = a->time_usec;
        job_left(a, job);
        state_index_job(a->index, job->id);
        if (job->cancel) {
                job->exit_code = 128 + (int32_t) job->cancel_signal;
                job_end(a, job, job->final_state);
                return;
        }
        reason = job_wait_text(job, job->held ? "" : "waits to be placed");
        message_set_string(&job->reason, reason);
}

/* A group there whose node has not said how it ended; NULL: none. */
static const Rm__Capsule *unheard_on(const Rm__Job *job, const char *node) {
        for (size_t k = 0; k < job->n_capsules; k++) {
                const Rm__Capsule *capsule = job->capsules[k];

                if (capsule->index != STATE_HEAD && capsule->state != RM__CAPSULE_STATE__CAPSULE_GONE &&
                    strcmp(capsule->node, node) == 0)
                        return capsule;
        }
        return NULL;
}

static bool may_have_ended_by(const Rm__Job *job, const char *node) {
        const Rm__Capsule *capsule = unheard_on(job, node);

        return capsule && job_end_may_be_loss(job, capsule);
}

static int check_restart(struct apply *a, const Rm__CmdJobRestart *in, const Rm__Job *job) {
        bool by_loss = may_have_ended_by(job, in->node);

        if (!job_running(job) && !by_loss)
                return apply_refuse(a, -EALREADY, "restart: job %" PRIu64 " does not run", job->id);
        if (!job_may_restart(job) && !by_loss)
                return apply_refuse(a, -EPERM, "restart: job %" PRIu64 " may not start again", job->id);
        if (in->attempt != job->attempt + 1)
                return apply_refuse(a, -EALREADY, "restart: attempt %u does not follow attempt %u of job %" PRIu64, in->attempt,
                                    job->attempt, job->id);
        return 0;
}

/* Removes the rest of the current attempt from its nodes. */
static void leave_nodes(struct apply *a, Rm__Job *job, uint32_t attempt) {
        cleanup_free char *reason = NULL;

        job_moves_forget(a, job->id, "the job starts again");
        job_checkpoints_interrupt(a, job, "the job starts again");
        job_set_spares(job, NULL, 0);
        job->attempt = attempt;
        job->restored_from = 0;
        job->state = RM__JOB_STATE__JOB_RECOVERING;
        job->start_usec = job->fold_since_usec = 0;
        job->exit_code = 0;
        job->final_state = RM__JOB_STATE__JOB_PENDING;
        job->group_end_usec = 0;
        reason = job_wait_text(job, "what is left of the one before is being removed");
        message_set_string(&job->reason, reason);
        state_index_job_state(a->index, job->id);
}

static void begin_recovery(struct apply *a, const Rm__CmdJobRestart *in, Rm__Job *job) {
        const Rm__Checkpoint *checkpoint;
        char name[48];

        message_set_string(&job->restart_reason, in->reason);
        leave_nodes(a, job, in->attempt);
        checkpoint = job_newest_checkpoint(a->state, job);
        apply_event(a, "job-restarted", in->node, job->id, 0, 0, "job %" PRIu64 " starts again, attempt %u of %" PRIu64 "%s%s: %s",
                    job->id, job->attempt, job->spec->restarts + UINT64_C(1) + job->free_attempts,
                    checkpoint ? " from checkpoint " : "", checkpoint ? checkpoint_name(job->id, checkpoint->id, name) : "",
                    in->reason);
}

void job_restart(struct apply *a, Rm__Job *job, const char *reason) {
        Rm__CmdJobRestart restart = RM__CMD_JOB_RESTART__INIT;

        restart.attempt = job->attempt + 1;
        restart.reason = (char *) reason;
        begin_recovery(a, &restart, job);
        job_recover(a, job);
}

void job_requeue(struct apply *a, Rm__Job *job, bool held, const char *reason) {
        job->free_attempts++;
        job->held = held;
        message_set_string(&job->restart_reason, reason);
        leave_nodes(a, job, job->attempt + 1);
        apply_event(a, "job-requeued", NULL, job->id, 0, 0, "job %" PRIu64 " leaves its nodes: %s", job->id, reason);
        job_recover(a, job);
}

/* ---- what is not restored ---- */

bool job_is_restored(const Rm__Job *job) {
        return job->state == RM__JOB_STATE__JOB_STARTING && job->restored_from > 0 && !job->cancel;
}

void job_unrestored(struct apply *a, Rm__Job *job, const struct unrestored *why) {
        Rm__Checkpoint *checkpoint = job_checkpoint(job, job->restored_from);
        cleanup_free char *reason = NULL;
        bool again;
        char name[48];

        if (checkpoint) {
                checkpoint->restore_failures++;
                again = why->passing && checkpoint->restore_failures < STATE_RESTORES_MAX;
                checkpoint->unreadable = why->unread && !again;
        }
        /* There may be one before, or, where no node has a good copy of any, the beginning. */
        if (!checkpoint || checkpoint->unreadable)
                again = job_goes_on_by_itself(a->state, job);
        (void) checkpoint_name(job->id, job->restored_from, name);
        reason = again ? xasprintf("checkpoint %s was not restored: %s", name, why->text)
                       : xasprintf("checkpoint %s was not restored: %s; 'rmctl restart-job %" PRIu64 "' tries again", name,
                                   why->text, job->id);
        job_requeue(a, job, !again, reason);
}

int apply_checkpoint_unrestored(struct apply *a) {
        const Rm__CmdCheckpointUnrestored *in = a->command->checkpoint_unrestored;
        Rm__Job *job = state_job(a->state, in->job);
        cleanup_free char *text = xasprintf("%s: %s", in->node, in->error);

        if (!job)
                return apply_refuse(a, -ENOENT, "checkpoint-unrestored: no job %" PRIu64, in->job);
        if (!job_is_restored(job) || job->restored_from != in->checkpoint || job->attempt != in->attempt)
                return apply_refuse(a, -EALREADY,
                                    "checkpoint-unrestored: job %" PRIu64 " is not being restored from %" PRIu64 ".%" PRIu64,
                                    job->id, job->id, in->checkpoint);
        job_unrestored(a, job, &(struct unrestored) { .text = text, .passing = in->passing, .unread = in->unread });
        return 0;
}

/* ---- nodes that are lost ---- */

/* The node's own copies go when it is back: their incarnations are in no capsule then. */
static void leave_behind(struct apply *a, Rm__Job *job, const char *node) {
        for (size_t k = 0; k < job->n_capsules; k++) {
                Rm__Capsule *capsule = job->capsules[k];

                if (strcmp(capsule->node, node) != 0)
                        continue;
                capsule->state = RM__CAPSULE_STATE__CAPSULE_GONE;
                state_index_capsule(a->index, job->id, capsule->index);
        }
}

void jobs_lose_boot(struct apply *a, const char *node) {
        cleanup_free char *reason = xasprintf("node %s was started anew", node);

        for (size_t i = 0; i < a->state->n_jobs; i++) {
                Rm__Job *job = a->state->jobs[i];
                const Rm__Capsule *unheard = unheard_on(job, node);
                Rm__CmdJobRestart restart = RM__CMD_JOB_RESTART__INIT;

                if (job->state != RM__JOB_STATE__JOB_COMPLETING || !unheard)
                        continue;
                if (!job_end_may_be_loss(job, unheard)) {
                        job_fail_unheard(job, unheard);
                        continue;
                }
                restart.attempt = job->attempt + 1;
                restart.node = (char *) node;
                restart.reason = reason;
                begin_recovery(a, &restart, job);
                leave_behind(a, job, node);
                job_recover(a, job);
        }
}

int apply_job_restart(struct apply *a) {
        const Rm__CmdJobRestart *in = a->command->job_restart;
        Rm__Job *job = state_job(a->state, in->job);
        const Rm__Node *node = state_node(a->state, in->node);
        bool under_way = job && job->state == RM__JOB_STATE__JOB_RECOVERING && job->attempt == in->attempt;
        int r;

        if (!job)
                return apply_refuse(a, -ENOENT, "restart: no job %" PRIu64, in->job);
        if (in->down && node && node->health != RM__NODE_HEALTH__NODE_HEALTH_DOWN)
                return apply_refuse(a, -EAGAIN, "restart: node '%s' is not down any more", in->node);
        r = under_way ? 0 : check_restart(a, in, job);
        if (r < 0)
                return r;
        if (!under_way && job_is_restored(job))
                job_unrestored(a, job, &(struct unrestored) { .text = in->reason, .passing = true });
        else if (!under_way)
                begin_recovery(a, in, job);
        if (in->down)
                leave_behind(a, job, in->node);
        job_recover(a, job);
        return 0;
}
