/* A checkpoint comes back that was exported: to its job if that is known, or with it. What it says
 * was written with the cluster's key, or one that root has named; here it is compared with what
 * there is now. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/groups.h"
#include "common/util.h"
#include "daemon/state/state_internal.h"

/* ---- may it come? ---- */

static bool lists_ranks_well(const Rm__JobSpec *spec, const Rm__Checkpoint *checkpoint) {
        const Rm__RankLosses *losses = checkpoint->rank_losses;
        bool *seen;
        bool well = true;

        if (!losses)
                return spec->on_rank_loss == RM__RANK_LOSS__RANK_LOSS_ABORT;
        if (spec->on_rank_loss != RM__RANK_LOSS__RANK_LOSS_CONTINUE || losses->n_lost > spec->ranks ||
            losses->n_finished >= checkpoint->n_parts)
                return false;
        seen = xcalloc((size_t) spec->ranks + 1, sizeof(*seen));
        for (size_t i = 0; i < losses->n_lost && well; i++) {
                well = losses->lost[i] < spec->ranks && !seen[losses->lost[i]];
                if (well)
                        seen[losses->lost[i]] = true;
        }
        for (size_t i = 0; i < losses->n_finished && well; i++)
                well = losses->finished[i] >= 0 && (size_t) losses->finished[i] < checkpoint->n_parts - 1;
        free(seen);
        return well;
}

/* The groups that a placement would give it. Others could never be placed. */
static bool divides_ranks_well(const Rm__JobSpec *spec, const Rm__Checkpoint *checkpoint) {
        if (spec->ranks == 0 || checkpoint->group_size == 0 || checkpoint->parts[0]->ranks != 0 ||
            checkpoint->n_parts - 1 != groups_number(spec->ranks, checkpoint->group_size))
                return false;
        for (uint32_t g = 0; g + 1U < checkpoint->n_parts; g++)
                if (checkpoint->parts[g + 1]->ranks != groups_ranks(spec->ranks, checkpoint->group_size, g))
                        return false;
        return true;
}

static int check_parts(const Rm__JobSpec *spec, const Rm__Checkpoint *checkpoint, struct rm_error *err) {
        uint64_t ranks = 0;

        if (checkpoint->id == 0 || checkpoint->id > INT64_MAX || checkpoint->n_parts < 2 ||
            checkpoint->n_parts > STATE_CAPSULES_MAX)
                return error_set(err, -EINVAL, "it has no number, or no groups");
        for (size_t i = 0; i < checkpoint->n_parts; i++) {
                const Rm__CheckpointPart *part = checkpoint->parts[i];

                if (part->capsule != (int32_t) i - 1 || part->address == 0 || part->address > STATE_CAPSULES_MAX)
                        return error_set(err, -EINVAL, "part %zu is of no capsule, or has no address", i);
                ranks += part->ranks;
        }
        if ((checkpoint->resize != NULL) != (spec->active_ranks > 0) ||
            (checkpoint->resize && (checkpoint->resize->active == 0 || checkpoint->resize->active > spec->ranks ||
                                    checkpoint->resize->requested > spec->ranks || spec->active_ranks > spec->ranks)))
                return error_set(err, -EINVAL, "it does not say well how many of its ranks compute");
        if (ranks == spec->ranks && !divides_ranks_well(spec, checkpoint))
                return error_set(err, -EINVAL, "its groups are not all of %u ranks, or it has others than these",
                                 checkpoint->group_size);
        if (!lists_ranks_well(spec, checkpoint))
                return error_set(err, -EINVAL, "it does not say well which of its ranks were lost");
        return ranks == spec->ranks
                       ? 0
                       : error_set(err, -EINVAL, "its groups have %" PRIu64 " ranks, and the job %u", ranks, spec->ranks);
}

static int check_known(const Rm__Job *job, const Rm__Job *in, struct rm_error *err) {
        uint64_t number = in->checkpoints[0]->id;

        if (job->submit_usec != in->submit_usec || job->spec->uid != in->spec->uid)
                return error_set(err, -EEXIST, "another job has the number %" PRIu64 " here", in->id);
        if (!job_ended(job))
                return error_set(err, -EBUSY, "job %" PRIu64 " has not ended; cancel it first, its checkpoints stay", job->id);
        if (job_checkpoint(job, number))
                return error_set(err, -EEXIST, "job %" PRIu64 " has a checkpoint %" PRIu64 " here", job->id, number);
        if (job->n_checkpoints >= STATE_CHECKPOINTS_MAX)
                return error_set(err, -EDQUOT, "job %" PRIu64 " has %u of them; remove one", job->id, STATE_CHECKPOINTS_MAX);
        return 0;
}

/* For each address, which other job's checkpoint needs it: 0: none. */
static uint64_t *held_by_others(const Rm__State *state, uint64_t job) {
        uint64_t *held = xcalloc(STATE_CAPSULES_MAX + 1, sizeof(*held));

        for (size_t j = 0; j < state->n_jobs; j++)
                for (size_t i = 0; state->jobs[j]->id != job && i < state->jobs[j]->n_checkpoints; i++)
                        for (size_t k = 0; k < state->jobs[j]->checkpoints[i]->n_parts; k++) {
                                uint32_t address = state->jobs[j]->checkpoints[i]->parts[k]->address;

                                if (address <= STATE_CAPSULES_MAX)
                                        held[address] = state->jobs[j]->id;
                        }
        return held;
}

/* Connections inside the job are restored with the addresses that they had. */
static int check_addresses(const struct state_index *index, const Rm__Job *in, struct rm_error *err) {
        const Rm__Checkpoint *checkpoint = in->checkpoints[0];
        cleanup_free uint64_t *held = held_by_others(state_index_state(index), in->id);

        for (size_t i = 0; i < checkpoint->n_parts; i++) {
                uint32_t address = checkpoint->parts[i]->address;

                if (held[address] == in->id)
                        return error_set(err, -EINVAL, "two of its parts have one address");
                if (held[address])
                        return error_set(err, -EADDRINUSE,
                                         "a checkpoint of job %" PRIu64
                                         " holds an address that it needs; try again when that is gone",
                                         held[address]);
                if (state_address_used(index, address))
                        return error_set(err, -EADDRINUSE,
                                         "another job uses an address that it needs; try again when that has ended");
                held[address] = in->id;
        }
        return 0;
}

int state_check_import(const struct state_index *index, const Rm__Job *in, struct rm_error *err) {
        const Rm__State *state = state_index_state(index);
        const Rm__Job *job = in ? state_job(state, in->id) : NULL;
        int r;

        if (!in || !in->spec || in->n_checkpoints != 1 || in->id == 0 || in->id >= INT64_MAX || in->spec->n_argv == 0)
                return error_set(err, -EINVAL, "it names no job with one checkpoint");
        r = check_parts(in->spec, in->checkpoints[0], err);
        if (r == 0 && job)
                r = check_known(job, in, err);
        else if (r == 0 && state->n_jobs >= STATE_JOBS_MAX)
                r = error_set(err, -EAGAIN, "%u jobs are known already; try again when some are forgotten", STATE_JOBS_MAX);
        return r < 0 ? r : check_addresses(index, in, err);
}

/* ---- it comes ---- */

/* Makes an imported job as if it had been cancelled just now: it is kept for as long as any job
 * that has ended. */
static Rm__Job *bring_job_back(struct apply *a, const Rm__Job *in) {
        Rm__State *state = a->state;
        Rm__Job *job = xcalloc(1, sizeof(*job));
        size_t at = 0;

        rm__job__init(job);
        job->id = in->id;
        job->spec = (Rm__JobSpec *) message_copy(&in->spec->base);
        job->submit_usec = in->submit_usec;
        job->attempt = in->attempt;
        job->free_attempts = in->free_attempts;
        job->last_checkpoint = in->last_checkpoint;
        job->state = job->final_state = RM__JOB_STATE__JOB_CANCELLED;
        job->end_usec = a->time_usec;
        message_set_string(&job->reason, "brought back with a checkpoint that had been exported");
        while (at < state->n_jobs && state->jobs[at]->id < job->id)
                at++;
        REPEATED_INSERT(state->jobs, state->n_jobs, at, job);
        if (state->next_job <= job->id) /* of a cluster that lost its state */
                state->next_job = job->id + 1;
        state_index_job(a->index, job->id);
        return job;
}

static Rm__CheckpointPart *make_part(const Rm__CheckpointPart *in, const char *node) {
        Rm__CheckpointPart *part = xcalloc(1, sizeof(*part));

        rm__checkpoint_part__init(part);
        part->capsule = in->capsule;
        part->ranks = in->ranks;
        part->address = in->address;
        part->incarnation = in->incarnation;
        part->raw_bytes = in->raw_bytes;
        part->stored_bytes = in->stored_bytes;
        part->store_usec = in->store_usec;
        message_set_string(&part->node, node);
        REPEATED_PUSH(part->stored, part->n_stored, xstrdup(node));
        return part;
}

static Rm__Checkpoint *make_checkpoint(const Rm__Checkpoint *in, const char *node) {
        Rm__Checkpoint *checkpoint = xcalloc(1, sizeof(*checkpoint));

        rm__checkpoint__init(checkpoint);
        checkpoint->id = in->id;
        checkpoint->attempt = in->attempt;
        checkpoint->state = RM__CHECKPOINT_STATE__CHECKPOINT_DONE;
        checkpoint->cause = in->cause;
        checkpoint->start_usec = in->start_usec;
        checkpoint->captured_usec = in->captured_usec;
        checkpoint->end_usec = in->end_usec;
        checkpoint->pause_usec = in->pause_usec;
        checkpoint->group_size = in->group_size;
        if (in->resize)
                checkpoint->resize = (Rm__Resize *) message_copy(&in->resize->base);
        if (in->rank_losses)
                checkpoint->rank_losses = (Rm__RankLosses *) message_copy(&in->rank_losses->base);
        message_set_string(&checkpoint->by, in->by);
        REPEATED_RESERVE(checkpoint->parts, checkpoint->n_parts, in->n_parts);
        for (size_t i = 0; i < in->n_parts; i++)
                REPEATED_ADD(checkpoint->parts, checkpoint->n_parts, make_part(in->parts[i], node));
        for (size_t i = 0; i < in->n_output_end && i < 2; i++)
                REPEATED_PUSH(checkpoint->output_end, checkpoint->n_output_end, in->output_end[i]);
        return checkpoint;
}

static void insert(Rm__Job *job, Rm__Checkpoint *checkpoint) {
        size_t at = 0;

        while (at < job->n_checkpoints && job->checkpoints[at]->id < checkpoint->id)
                at++;
        REPEATED_INSERT(job->checkpoints, job->n_checkpoints, at, checkpoint);
        if (job->last_checkpoint < checkpoint->id) /* its numbers are not given again */
                job->last_checkpoint = checkpoint->id;
}

int apply_checkpoint_import(struct apply *a) {
        const Rm__CmdCheckpointImport *in = a->command->checkpoint_import;
        struct limits_demand more = { 0 };
        struct rm_error err = { 0 };
        Rm__Checkpoint *checkpoint;
        char name[48];
        Rm__Job *job;

        if (state_check_import(a->index, in->job, &err) < 0)
                return apply_refuse(a, err.code, "%s", err.text);
        if (strcmp(in->node, STATE_STORED_SHARED) != 0 && !state_node(a->state, in->node))
                return apply_refuse(a, -ESRCH, "there is no node '%s'", in->node);
        more.groups = in->job->checkpoints[0]->n_parts - 1;
        if (limits_admit(a, "", in->limits, in->job->spec, &more) < 0)
                return a->result->error.code;
        if (!apply_goes_on(a, true))
                return 0;
        job = state_job(a->state, in->job->id);
        if (!job) {
                limits_forget_ended(a, in->limits, in->job->spec->uid, 1);
                job = bring_job_back(a, in->job);
        }
        checkpoint = make_checkpoint(in->job->checkpoints[0], in->node);
        insert(job, checkpoint);
        limits_forget_checkpoints(a, job);
        a->result->created = job->id;
        apply_event(a, "checkpoint-imported", in->node, job->id, 0, 0, "checkpoint %s is imported by %s",
                    checkpoint_name(job->id, checkpoint->id, name), in->by);
        return 0;
}
