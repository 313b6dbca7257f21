/* Jobs that grow and shrink. All ranks are started, and those that do not compute are parked: they
 * wait in librmrt, and a group of nothing but parked ranks is frozen and asks for no cores. A
 * change is asked for, begun by the program (from then on groups are unparked), and done. */
#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

#include "common/util.h"
#include "daemon/state/state_internal.h"

/* ---- reading ---- */

static bool may_have_spares(const Rm__State *state, const Rm__JobSpec *spec) {
        return state->level >= STATE_LEVEL_SPARES && spec->spare_ranks > 0 &&
               spec->on_rank_loss == RM__RANK_LOSS__RANK_LOSS_CONTINUE;
}

bool job_may_park(const Rm__State *state, const Rm__JobSpec *spec) {
        return spec->active_ranks > 0 || may_have_spares(state, spec);
}

/* Spare ranks that replace others compute, too. */
static uint32_t ranks_without_spares(const Rm__State *state, const Rm__Job *job) {
        const Rm__Checkpoint *checkpoint = job->n_capsules == 0 ? job_newest_checkpoint(state, job) : NULL;
        const Rm__RankLosses *losses = checkpoint ? checkpoint->rank_losses : job->rank_losses;

        if (!may_have_spares(state, job->spec))
                return job->spec->ranks;
        if (job->n_capsules == 0 && !checkpoint)
                return job_program_ranks(job->spec);
        return losses && losses->with_cores && losses->with_cores < job->spec->ranks ? losses->with_cores : job->spec->ranks;
}

uint32_t job_active_ranks(const Rm__State *state, const Rm__Job *job) {
        const Rm__Checkpoint *checkpoint;

        if (job->spec->active_ranks == 0)
                return ranks_without_spares(state, job);
        if (job->n_capsules > 0)
                return job->resize ? job->resize->active : job->spec->active_ranks;
        checkpoint = job_newest_checkpoint(state, job);
        return checkpoint && checkpoint->resize ? checkpoint->resize->active : job->spec->active_ranks;
}

uint32_t job_first_rank(const Rm__Job *job, const Rm__Capsule *capsule) {
        return capsule->index > 0 ? (uint32_t) capsule->index * job->group_size : 0;
}

/* The first rank that does not compute. */
static uint32_t end_of_active(const Rm__Job *job) {
        if (job->resize)
                return job->resize->active;
        return job->rank_losses && job->rank_losses->with_cores ? job->rank_losses->with_cores : job->spec->ranks;
}

bool job_group_parked(const Rm__Job *job, const Rm__Capsule *capsule) {
        return capsule->index != STATE_HEAD && job_first_rank(job, capsule) >= end_of_active(job);
}

/* A spare rank must run to see that it is needed. */
bool job_group_may_freeze(const Rm__Job *job, const Rm__Capsule *capsule) {
        return job->resize && job_group_parked(job, capsule) && job->state == RM__JOB_STATE__JOB_RUNNING && !job->cancel &&
               !job->resize->ending;
}

bool job_parked_have_cores(const Rm__State *state, const Rm__Job *job) {
        if (job->spec->active_ranks == 0)
                return false;
        return job->n_capsules > 0 && job->resize ? !job->resize->cores_by_rank : state->level < STATE_LEVEL_PARKED;
}

uint32_t job_capsule_cores(const Rm__Job *job, const Rm__Capsule *capsule) {
        uint32_t computing;

        if (capsule->index == STATE_HEAD || job_group_parked(job, capsule))
                return 0;
        computing = end_of_active(job) - job_first_rank(job, capsule);
        return (job->resize && !job->resize->cores_by_rank) || capsule->ranks < computing ? capsule->ranks : computing;
}

/* ---- changes ---- */

/* No change is under way, and whatever its ranks know of is of an earlier number. */
void job_resize_begin(const Rm__State *state, Rm__Job *job, const Rm__Checkpoint *checkpoint) {
        const Rm__Resize *saved = checkpoint ? checkpoint->resize : NULL;
        uint64_t last = job->resize ? job->resize->epoch : 0;
        bool by_hand = job->resize && job->resize->by_hand;

        if (job->resize)
                rm__resize__free_unpacked(job->resize, NULL);
        job->resize = NULL;
        if (job->spec->active_ranks == 0)
                return;
        job->resize = xcalloc(1, sizeof(*job->resize));
        rm__resize__init(job->resize);
        job->resize->active = saved ? saved->active : job->spec->active_ranks;
        job->resize->epoch = (saved && saved->epoch > last ? saved->epoch : last) + 1;
        job->resize->by_hand = by_hand;
        job->resize->cores_by_rank = state->level >= STATE_LEVEL_PARKED;
}

/* rmd itself takes a resize back if the job has not begun to grow. A number that was asked for by
 * hand is kept. */
static bool is_taken_back(const Rm__CmdJobResize *in, const Rm__Resize *resize) {
        return resize->requested != 0 && !resize->begun && in->ranks == resize->active;
}

static int check_resize(struct apply *a, const Rm__CmdJobResize *in, const Rm__Job *job) {
        const Rm__Resize *resize = job->resize;

        if (job->spec->active_ranks == 0)
                return apply_refuse(a, -EOPNOTSUPP,
                                    "resize-job: job %" PRIu64 " has no ranks in reserve: it was started without --max-ranks",
                                    job->id);
        if (job_ended(job) || job->state == RM__JOB_STATE__JOB_COMPLETING)
                return apply_refuse(a, -EALREADY, "resize-job: job %" PRIu64 " has already ended", job->id);
        if (!resize || job->state != RM__JOB_STATE__JOB_RUNNING || job->cancel || resize->ending)
                return apply_refuse(a, -EBUSY, "resize-job: job %" PRIu64 " does not run", job->id);
        if (!in->by[0] && (resize->by_hand || in->ranks == 0 || (resize->requested != 0 && !is_taken_back(in, resize))))
                return apply_refuse(a, -EBUSY, "resize-job: job %" PRIu64 " has the number of ranks that was asked for", job->id);
        if (in->ranks == 0)
                return 0;
        if (in->ranks > job->spec->ranks || in->ranks < job->spec->min_ranks)
                return apply_refuse(a, -ERANGE, "resize-job: job %" PRIu64 " can have %u to %u active ranks, not %u", job->id,
                                    job->spec->min_ranks ? job->spec->min_ranks : 1, job->spec->ranks, in->ranks);
        if (resize->begun)
                return apply_refuse(a, -EBUSY,
                                    "resize-job: the program of job %" PRIu64 " changes to %u active ranks; try again in a moment",
                                    job->id, resize->requested);
        if (!resize->listens)
                return apply_refuse(a, -EAGAIN,
                                    "resize-job: the program of job %" PRIu64
                                    " has not asked for changes yet: it does so by rmrt_resize_point(), see rmrt_resize_point(3)",
                                    job->id);
        return 0;
}

/* The user who asks, or rmd's reason; the caller frees the text. */
static char *asked_for(const Rm__CmdJobResize *in) {
        return in->by[0] ? xasprintf("asked for by %s", in->by) : xstrdup(in->reason);
}

static void take_back(struct apply *a, const Rm__CmdJobResize *in, Rm__Job *job) {
        cleanup_free char *why = asked_for(in);

        assert(!job->resize->begun); /* ranks of the other number may run from then on */
        job->resize->epoch++;
        job->resize->requested = 0;
        apply_event(a, "job-resize-cancelled", NULL, job->id, 0, 0, "job %" PRIu64 " stays at %u active ranks: %s", job->id,
                    job->resize->active, why);
}

static void ask(struct apply *a, const Rm__CmdJobResize *in, Rm__Job *job) {
        cleanup_free char *why = asked_for(in);

        assert(!job->resize->begun);
        assert(in->ranks > 0 && in->ranks >= job->spec->min_ranks && in->ranks <= job->spec->ranks);
        job->resize->epoch++;
        job->resize->requested = in->ranks;
        job->resize->begun = false;
        job->resize->asked_usec = a->time_usec;
        a->result->created = job->resize->epoch;
        apply_event(a, "job-resize", NULL, job->id, 0, 0, "job %" PRIu64 " is to have %u active ranks, not %u: %s", job->id,
                    in->ranks, job->resize->active, why);
}

/* The job has that number of active ranks, or is asked for it already, and remains under the
 * control of the one who asked last. */
static bool is_resized_so(const Rm__CmdJobResize *in, const Rm__Resize *resize) {
        uint32_t goal = resize->requested ? resize->requested : resize->active;

        return resize->by_hand == (in->by[0] && in->ranks > 0) && (in->ranks == 0 || in->ranks == goal);
}

int apply_job_resize(struct apply *a) {
        const Rm__CmdJobResize *in = a->command->job_resize;
        Rm__Job *job = state_job(a->state, in->job);
        int r = job ? check_resize(a, in, job) : apply_refuse(a, -ENOENT, "resize-job: no job %" PRIu64, in->job);

        if (r < 0)
                return r;
        if (!apply_goes_on(a, !is_resized_so(in, job->resize))) {
                /* A caller who asks again waits for the same change. */
                a->result->created = in->ranks > 0 && job->resize->requested > 0 ? job->resize->epoch : 0;
                return 0;
        }
        job->resize->by_hand = in->by[0] && in->ranks > 0;
        if (in->ranks == 0)
                return 0;
        if (in->ranks != job->resize->active)
                ask(a, in, job);
        else if (job->resize->requested != 0)
                take_back(a, in, job);
        return 0;
}

static void set_active(struct apply *a, Rm__Job *job, uint32_t ranks) {
        if (job->resize->active == ranks)
                return;
        assert(ranks > 0); /* a job that runs has an active rank */
        job->resize->active = ranks;
        for (size_t i = 0; i < job->n_capsules; i++) {
                Rm__Capsule *capsule = job->capsules[i];

                /* A parked rank gives up its cores, which other jobs may have by now, and one that
                 * computes has none yet: the next round chooses anew for the group. */
                if (capsule->n_cores != job_capsule_cores(job, capsule)) {
                        free(take_ptr(capsule->cores));
                        capsule->n_cores = 0;
                }
                state_index_capsule(a->index, job->id, capsule->index);
        }
}

/* A resize waits until a capture is over: all of a checkpoint is of the time before a change, or of
 * the time after. */
static int check_begin(struct apply *a, const Rm__Job *job) {
        const Rm__Checkpoint *checkpoint = job_checkpoint_under_way(job);

        if (checkpoint && checkpoint->state == RM__CHECKPOINT_STATE__CHECKPOINT_CAPTURING)
                return apply_refuse(a, -EAGAIN, "resize: job %" PRIu64 " is being captured", job->id);
        return 0;
}

/* From here on ranks of the larger world run. */
static void begin(struct apply *a, Rm__Job *job) {
        assert(job->resize->requested != 0 && !job->resize->begun);
        job->resize->begun = true;
        if (job->resize->requested > job->resize->active)
                set_active(a, job, job->resize->requested);
}

static void end_change(Rm__Job *job) {
        job->resize->requested = 0;
        job->resize->begun = false;
}

/* The number is none that the job may have. The change is over all the same: else the node of rank
 * 0 would bring the program's word again without end. The job counts as having all ranks that may
 * compute. */
static void refuse_number(struct apply *a, Rm__Job *job, uint32_t ranks, uint32_t least, uint32_t most) {
        if (a->state->level < STATE_LEVEL_RESIZED)
                return;
        apply_event(a, "job-resize-refused", NULL, job->id, 0, 0,
                    "job %" PRIu64 " cannot have %u active ranks, as its program says, but %u to %u: it counts as having %u",
                    job->id, ranks, least, most, job->resize->active);
        end_change(job);
}

/* A program may also stay as it is, or come to something between. */
static void finish(struct apply *a, Rm__Job *job, uint32_t ranks) {
        uint32_t most = job->resize->requested > job->resize->active ? job->resize->requested : job->resize->active;
        uint32_t least = job->spec->min_ranks > 0 && a->state->level >= STATE_LEVEL_RESIZED ? job->spec->min_ranks : 1;

        assert(job->resize->requested != 0);
        if (ranks < least || ranks > most) {
                refuse_number(a, job, ranks, least, most);
                return;
        }
        if (ranks != job->resize->requested)
                apply_event(a, "job-resize-refused", NULL, job->id, 0, 0,
                            "job %" PRIu64 " goes on with %u active ranks, not %u, as its program says", job->id, ranks,
                            job->resize->requested);
        else
                apply_event(a, "job-resized", NULL, job->id, 0, 0, "job %" PRIu64 " has %u active ranks of %u", job->id, ranks,
                            job->spec->ranks);
        end_change(job);
        set_active(a, job, ranks);
}

static bool begins(const Rm__CmdJobResizeReported *in, const Rm__Resize *resize) {
        return resize->requested != 0 && !resize->begun && (in->begun == resize->epoch || in->done == resize->epoch);
}

int apply_job_resize_reported(struct apply *a) {
        const Rm__CmdJobResizeReported *in = a->command->job_resize_reported;
        Rm__Job *job = state_job(a->state, in->job);
        int r;

        if (!job || !job->resize)
                return apply_refuse(a, -ENOENT, "resize: no job %" PRIu64 " that grows or shrinks", in->job);
        if (!job_running(job) || in->attempt != job->attempt)
                return apply_refuse(a, -ESRCH, "resize: that attempt of job %" PRIu64 " does not run", job->id);
        r = begins(in, job->resize) ? check_begin(a, job) : 0;
        if (r < 0)
                return r;
        job->resize->listens |= in->listens;
        job->resize->ending |= in->ending;
        if (begins(in, job->resize))
                begin(a, job);
        if (job->resize->requested != 0 && in->done == job->resize->epoch)
                finish(a, job, in->ranks);
        return 0;
}
