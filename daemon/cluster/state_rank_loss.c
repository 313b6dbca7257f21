/* Jobs that go on without ranks that are lost. Which ranks those are, in which order, is agreed on here, since MPI does not: all groups hear the same list, which only grows. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"
#include "daemon/cluster/state_internal.h"

enum { RANKS_NAMED_MAX = 16 }; /* in one event */

/* ---- reading ---- */

bool rank_losses_has(const Rm__RankLosses *losses, uint32_t rank) {
        for (size_t i = 0; losses && i < losses->n_lost; i++)
                if (losses->lost[i] == rank)
                        return true;
        return false;
}

bool rank_losses_finished(const Rm__RankLosses *losses, int32_t group) {
        for (size_t i = 0; losses && i < losses->n_finished; i++)
                if (losses->finished[i] == group)
                        return true;
        return false;
}

/* ---- changes ---- */

/* From a checkpoint it goes on as its ranks remember it. */
void job_rank_losses_begin(struct apply *a, Rm__Job *job, const Rm__Checkpoint *checkpoint) {
        const Rm__RankLosses *saved = checkpoint ? checkpoint->rank_losses : NULL;

        if (job->rank_losses)
                rm__rank_losses__free_unpacked(job->rank_losses, NULL);
        job->rank_losses = NULL;
        if (job->spec->on_rank_loss != RM__RANK_LOSS__RANK_LOSS_CONTINUE || a->state->level < STATE_LEVEL_RANK_LOSS)
                return;
        if (saved) {
                job->rank_losses = (Rm__RankLosses *) message_copy(&saved->base);
                return;
        }
        job->rank_losses = xcalloc(1, sizeof(*job->rank_losses));
        rm__rank_losses__init(job->rank_losses);
}

/* "2 5 7 and 3 more"; malloc'ed. */
static char *name_ranks(const uint32_t *ranks, size_t n) {
        char *text = NULL;
        size_t bytes = 0;
        FILE *f = open_memstream(&text, &bytes);

        if (!f)
                abort();
        for (size_t i = 0; i < n && i < RANKS_NAMED_MAX; i++)
                (void) fprintf(f, "%s%" PRIu32, i > 0 ? " " : "", ranks[i]);
        if (n > RANKS_NAMED_MAX)
                (void) fprintf(f, " and %zu more", n - RANKS_NAMED_MAX);
        (void) fclose(f);
        return text;
}

/* What is captured has all ranks that the list has, and no others: it is of a time before or after. */
static void interrupt_capture(struct apply *a, Rm__Job *job) {
        const Rm__Checkpoint *checkpoint = job_checkpoint_under_way(job);

        if (checkpoint && checkpoint->state == RM__CHECKPOINT_STATE__CHECKPOINT_CAPTURING)
                job_checkpoints_interrupt(a, job, "a rank was lost meanwhile");
}

static void lose(struct apply *a, Rm__Job *job, const uint32_t *ranks, size_t n) {
        Rm__RankLosses *losses = job->rank_losses;
        size_t before = losses->n_lost, left;
        char *names;

        for (size_t i = 0; i < n; i++)
                if (!rank_losses_has(losses, ranks[i]))
                        REPEATED_PUSH(losses->lost, losses->n_lost, ranks[i]);
        if (losses->n_lost == before)
                return;
        interrupt_capture(a, job);
        left = job->spec->ranks - losses->n_lost;
        names = name_ranks(losses->lost + before, losses->n_lost - before);
        apply_event(a, "job-ranks-lost", NULL, job->id, 0, 0, "job %" PRIu64 " has lost rank%s %s: %zu of %u are left", job->id,
                    losses->n_lost - before > 1 ? "s" : "", names, left, job->spec->ranks);
        free(names);
}

/* A group can tell of its own ranks only. */
static int check_told(struct apply *a, const Rm__CmdJobRanksTold *in, const Rm__Job *job) {
        const Rm__Capsule *capsule = in->group >= 0 ? job_capsule(job, in->group) : NULL;
        uint32_t first = capsule ? job_first_rank(job, capsule) : 0;
        bool open = job_running(job) || job->state == RM__JOB_STATE__JOB_COMPLETING;

        if (!open || job->cancel || in->attempt != job->attempt)
                return apply_refuse(a, -ESRCH, "ranks-told: that attempt of job %" PRIu64 " does not run, or is being ended",
                                    job->id);
        if (!capsule || strcmp(capsule->node, in->node) != 0)
                return apply_refuse(a, -ESRCH, "ranks-told: the group is not on that node");
        for (size_t i = 0; i < in->n_lost; i++)
                if (in->lost[i] < first || in->lost[i] - first >= capsule->ranks || in->lost[i] >= job->spec->ranks)
                        return apply_refuse(a, -EINVAL, "ranks-told: rank %" PRIu32 " is not of group %" PRId32, in->lost[i],
                                            in->group);
        return 0;
}

int apply_job_ranks_told(struct apply *a) {
        const Rm__CmdJobRanksTold *in = a->command->job_ranks_told;
        Rm__Job *job = state_job(a->state, in->job);
        int r;

        if (!job || !job->rank_losses)
                return apply_refuse(a, -ENOENT, "ranks-told: no job %" PRIu64 " that goes on without ranks", in->job);
        r = check_told(a, in, job);
        if (r < 0)
                return r;
        job->rank_losses->speaks |= in->speaks;
        lose(a, job, in->lost, in->n_lost);
        if (in->finished && !rank_losses_finished(job->rank_losses, in->group))
                REPEATED_PUSH(job->rank_losses->finished, job->rank_losses->n_finished, in->group);
        return 0;
}

static void fail(Rm__Job *job, char *reason) {
        job->final_state = RM__JOB_STATE__JOB_FAILED;
        job->exit_code = 1;
        message_set_string(&job->reason, reason);
        free(reason);
}

/* mpirun cannot know it: it says 0 also if ranks were killed. One none of whose ranks speaks is no MPI program, and mpirun's word counts. */
void job_rank_losses_judge(Rm__Job *job) {
        const Rm__RankLosses *losses = job->rank_losses;

        if (!losses || !losses->speaks || job->final_state != RM__JOB_STATE__JOB_COMPLETED)
                return;
        if (losses->n_lost == job->spec->ranks) {
                fail(job, xstrdup("all of its ranks were lost"));
                return;
        }
        for (size_t i = 0; i < job->n_capsules; i++) {
                int32_t group = job->capsules[i]->index;

                if (group == STATE_HEAD || rank_losses_finished(losses, group))
                        continue;
                fail(job, xasprintf("not all ranks of group %" PRId32 " have come to the end of MPI_Finalize", group));
                return;
        }
}
