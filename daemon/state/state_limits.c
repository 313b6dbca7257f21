/*
 * The limits of what one user may have in the state. limits_admit() is asked on every way by which
 * he may come to have another job that has not ended, or more of one:
 *
 *   submission           one job more, and all its ranks
 *   restart-job          the same, if the job had ended. One that was stopped at a checkpoint has
 *                        not ended, and has counted all the time.
 *   import-checkpoint    nothing runs before restart-job lets it, but the number of groups is
 *                        looked at, and the job is one ended job more
 *   drill                the ranks of its copy, as long as the drill is under way
 *
 * Other ways do not ask, since a limit must not end what it has let in:
 *
 *   growth               parked ranks count from the submission on
 *   restart by rmd       after the loss of a node, or when the job was saved to leave one: it has
 *                        not ended in between (RECOVERING, PENDING), so that it has counted all the
 *                        time
 *   checkpoint           nothing runs that did not run before
 *
 * Spare ranks are among the ranks of a job (JobSpec.ranks). The limits are in the command, by the
 * user who proposes it: an administrator has none, and all nodes come to the same state whatever
 * their configurations say.
 */
#include <inttypes.h>

#include "daemon/state/state_internal.h"

/* A share is what one user takes of the table of jobs. */
struct share {
        size_t open; /* jobs that have not ended */
        uint64_t open_ranks;
        size_t ended;
};

static bool is_drilled(const Rm__Job *job) {
        const Rm__Checkpoint *checkpoint = job_checkpoint_under_way(job);

        return checkpoint && checkpoint_is_drill(checkpoint);
}

static struct share share_of(const Rm__State *state, uint32_t uid) {
        struct share share = { 0 };

        for (size_t i = 0; i < state->n_jobs; i++) {
                const Rm__Job *job = state->jobs[i];

                if (job->spec->uid != uid)
                        continue;
                if (job_ended(job)) {
                        share.ended++;
                        continue;
                }
                share.open++;
                share.open_ranks += job->spec->ranks;
                if (is_drilled(job))
                        share.open_ranks += job->spec->ranks;
        }
        return share;
}

int limits_admit(struct apply *a, const char *what, const Rm__UserLimits *limits, const Rm__JobSpec *spec,
                 const struct limits_demand *more) {
        struct share share;

        if (!limits)
                return 0;
        share = share_of(a->state, spec->uid);
        if (more->jobs > 0 && limits->jobs > 0 && share.open + more->jobs > limits->jobs)
                return apply_refuse(a, -EDQUOT,
                                    "%s%s has %zu jobs that have not ended, and %u is the limit ([job] max_jobs_per_user); "
                                    "try again when some have ended",
                                    what, spec->user, share.open, limits->jobs);
        if (more->ranks > 0 && limits->ranks > 0 && share.open_ranks + more->ranks > limits->ranks)
                return apply_refuse(a, -EDQUOT,
                                    "%sthe jobs of %s that have not ended have %" PRIu64
                                    " ranks (parked ranks, spare ones and copies of drills count); with %u more they are over the "
                                    "limit of %" PRIu64 " ([job] max_ranks_per_user)",
                                    what, spec->user, share.open_ranks, more->ranks, limits->ranks);
        if (limits->groups > 0 && more->groups > limits->groups)
                return apply_refuse(a, -EDQUOT, "%sit has %zu groups, and a job of %s may have %u ([job] max_groups_per_job)", what,
                                    more->groups, spec->user, limits->groups);
        return 0;
}

/* ---- ended jobs ---- */

/* By the time of their end, not of their submission: a front end may still be reading what ended
 * just now. `but` NULL ok. */
static Rm__Job *first_ended(const Rm__State *state, uint32_t uid, const Rm__Job *but, bool with_checkpoints) {
        Rm__Job *first = NULL;

        for (size_t i = 0; i < state->n_jobs; i++) {
                Rm__Job *job = state->jobs[i];

                if (job == but || job->spec->uid != uid || !job_ended(job) || (with_checkpoints && job->n_checkpoints == 0))
                        continue;
                if (!first || job->end_usec < first->end_usec)
                        first = job;
        }
        return first;
}

size_t limits_ended_over(const Rm__State *state, const Rm__UserLimits *limits, uint32_t uid, size_t more) {
        size_t ended = limits && limits->ended_kept > 0 ? share_of(state, uid).ended + more : 0;

        return limits && ended > limits->ended_kept ? ended - limits->ended_kept : 0;
}

void limits_forget_ended(struct apply *a, const Rm__UserLimits *limits, uint32_t uid, size_t more) {
        for (size_t n = limits_ended_over(a->state, limits, uid, more); n > 0; n--) {
                const Rm__Job *job = first_ended(a->state, uid, NULL, false);

                if (job)
                        job_remove(a, job);
        }
}

/* A job's checkpoints hold the same ones. */
static size_t addresses_held(const Rm__Job *job) {
        size_t most = 0;

        for (size_t k = 0; k < job->n_checkpoints; k++)
                if (job->checkpoints[k]->n_parts > most)
                        most = job->checkpoints[k]->n_parts;
        return most;
}

static size_t held_by_ended(const Rm__State *state, uint32_t uid) {
        size_t held = 0;

        for (size_t i = 0; i < state->n_jobs; i++)
                if (state->jobs[i]->spec->uid == uid && job_ended(state->jobs[i]))
                        held += addresses_held(state->jobs[i]);
        return held;
}

void limits_forget_checkpoints(struct apply *a, const Rm__Job *but) {
        uint32_t uid = but->spec->uid;
        Rm__Job *job;

        if (but->n_checkpoints == 0)
                return;
        while (held_by_ended(a->state, uid) > STATE_USER_HELD_MAX && (job = first_ended(a->state, uid, but, true))) {
                job_checkpoints_forget(job);
                apply_event(a, "checkpoint-removed", NULL, job->id, 0, 0,
                            "the checkpoints of job %" PRIu64 " are removed: those of ended jobs of %s hold more than %u addresses",
                            job->id, job->spec->user, STATE_USER_HELD_MAX);
        }
}
