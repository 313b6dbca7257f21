/* Jobs that go on without ranks that are lost. Which ranks those are, in which order, is agreed on
 * here, since MPI does not: all groups hear the same list, which only grows. */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/rank_map.h"
#include "common/util.h"
#include "daemon/state/state_internal.h"

enum { RANKS_NAMED_MAX = 16 }; /* in one event */

/* ---- reading ---- */

uint32_t job_program_ranks(const Rm__JobSpec *spec) {
        return spec->spare_ranks < spec->ranks ? spec->ranks - spec->spare_ranks : spec->ranks;
}

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

/* Returns the map of the processes that are the job's ranks now; the caller frees it. */
static struct rank_map *map_ranks(const Rm__Job *job) {
        uint32_t ranks = job_program_ranks(job->spec);
        struct rank_map *map = NULL;

        if (rank_map_create(ranks, job->spec->ranks - ranks, job->spec->critical_ranks, &map, NULL) == 0)
                rank_map_lose(map, job->rank_losses->lost, job->rank_losses->n_lost);
        return map;
}

/* From a checkpoint it goes on as its ranks remember it. */
void job_rank_losses_begin(const Rm__State *state, Rm__Job *job, const Rm__Checkpoint *checkpoint) {
        const Rm__RankLosses *saved = checkpoint ? checkpoint->rank_losses : NULL;
        struct rank_map *map;

        if (job->rank_losses)
                rm__rank_losses__free_unpacked(job->rank_losses, NULL);
        job->rank_losses = NULL;
        if (job->spec->on_rank_loss != RM__RANK_LOSS__RANK_LOSS_CONTINUE)
                return;
        if (saved) {
                job->rank_losses = (Rm__RankLosses *) message_copy(&saved->base);
        } else {
                job->rank_losses = xcalloc(1, sizeof(*job->rank_losses));
                rm__rank_losses__init(job->rank_losses);
        }
        map = job_may_park(state, job->spec) ? map_ranks(job) : NULL;
        job->rank_losses->with_cores = map ? rank_map_used(map) : 0;
        rank_map_destroy(map);
}

/* A spare rank that replaces another one computes where it is. Its group asks for cores from now
 * on, and shares some until a round finds it a better place. */
static void give_cores(struct apply *a, Rm__Job *job, const struct rank_map *map) {
        uint32_t used = rank_map_used(map);

        if (job->rank_losses->with_cores == 0 || job->rank_losses->with_cores == used)
                return;
        assert(used > job->rank_losses->with_cores);
        for (size_t i = 0; i < job->n_capsules; i++) {
                Rm__Capsule *capsule = job->capsules[i];
                uint32_t first = job_first_rank(job, capsule);

                if (capsule->index == STATE_HEAD || first >= used || first + capsule->ranks <= job->rank_losses->with_cores)
                        continue;
                free(take_ptr(capsule->cores)); /* those of fewer ranks */
                capsule->n_cores = 0;
        }
        job->rank_losses->with_cores = used;
        for (size_t i = 0; i < job->n_capsules; i++)
                state_index_capsule(a->index, job->id, job->capsules[i]->index);
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

/* A checkpoint has exactly the ranks of the job's list, so one that is being captured when a rank
 * is lost is given up. */
static void interrupt_capture(struct apply *a, Rm__Job *job) {
        const Rm__Checkpoint *checkpoint = job_checkpoint_under_way(job);

        if (checkpoint && checkpoint->state == RM__CHECKPOINT_STATE__CHECKPOINT_CAPTURING)
                job_checkpoints_interrupt(a, job, "a rank was lost meanwhile");
}

/* malloc'ed */
static char *name_missing(uint32_t rank) {
        return xasprintf("critical rank %" PRIu32 " was lost, and no spare rank is left", rank);
}

/* ", spare rank 8 replaces rank 5", for each of them that is; malloc'ed. */
static char *name_replaced(const struct rank_map *map, const uint32_t *lost, size_t n) {
        char *text = NULL;
        size_t bytes = 0;
        FILE *f = open_memstream(&text, &bytes);

        if (!f)
                abort();
        for (size_t i = 0; i < n && i < RANKS_NAMED_MAX; i++) {
                uint32_t rank = rank_map_rank(map, lost[i]), by = rank_map_process(map, rank);

                if (by != RANK_MAP_NONE)
                        (void) fprintf(f, ", spare rank %" PRIu32 " replaces rank %" PRIu32, by, rank);
        }
        (void) fclose(f);
        return text;
}

static void report(struct apply *a, const Rm__Job *job, const struct rank_map *map, size_t before) {
        const uint32_t *lost = job->rank_losses->lost + before;
        size_t n = job->rank_losses->n_lost - before;
        cleanup_free char *names = name_ranks(lost, n);
        cleanup_free char *replaced = name_replaced(map, lost, n);

        apply_event(a, "job-ranks-lost", NULL, job->id, 0, 0,
                    "job %" PRIu64 " has lost rank%s %s: %" PRIu32 " of %" PRIu32 " are left%s", job->id, n > 1 ? "s" : "", names,
                    rank_map_living(map), job_program_ranks(job->spec), replaced);
}

/* A job that lost a rank it needs starts again like one whose node is lost: from its newest
 * checkpoint, if its owner wants that, else it has failed. */
static void end_without(struct apply *a, Rm__Job *job, uint32_t rank) {
        cleanup_free char *reason = name_missing(rank);

        if (job_may_restart(job))
                job_restart(a, job, reason);
        else
                job_fail(a, job, reason);
}

static void lose(struct apply *a, Rm__Job *job, const uint32_t *ranks, size_t n) {
        Rm__RankLosses *losses = job->rank_losses;
        size_t before = losses->n_lost;
        struct rank_map *map;
        uint32_t missing;

        for (size_t i = 0; i < n; i++)
                if (!rank_losses_has(losses, ranks[i]))
                        REPEATED_PUSH(losses->lost, losses->n_lost, ranks[i]);
        if (losses->n_lost == before)
                return;
        interrupt_capture(a, job);
        map = map_ranks(job);
        if (!map)
                return;
        report(a, job, map, before);
        give_cores(a, job, map);
        missing = rank_map_missing(map);
        rank_map_destroy(map);
        if (missing != RANK_MAP_NONE && job_running(job))
                end_without(a, job, missing);
}

/* A group can tell of its own ranks only. */
static int check_reported(struct apply *a, const Rm__CmdJobRanksReported *in, const Rm__Job *job) {
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

int apply_job_ranks_reported(struct apply *a) {
        const Rm__CmdJobRanksReported *in = a->command->job_ranks_reported;
        Rm__Job *job = state_job(a->state, in->job);
        int r;

        if (!job || !job->rank_losses)
                return apply_refuse(a, -ENOENT, "ranks-told: no job %" PRIu64 " that goes on without ranks", in->job);
        r = check_reported(a, in, job);
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

/* Why the program cannot have come to a good end, by the ranks that are left of it; malloc'ed,
 * NULL: it can. */
static char *lacks_ranks(const Rm__Job *job) {
        struct rank_map *map = map_ranks(job);
        uint32_t living = map ? rank_map_living(map) : 0, missing = map ? rank_map_missing(map) : RANK_MAP_NONE;

        rank_map_destroy(map);
        if (living == 0)
                return xstrdup("all of its ranks were lost");
        return missing != RANK_MAP_NONE ? name_missing(missing) : NULL;
}

/* mpirun cannot know it: it says 0 also if ranks were killed. One none of whose ranks speaks is no
 * MPI program, and mpirun's word counts. */
void job_rank_losses_judge(Rm__Job *job) {
        const Rm__RankLosses *losses = job->rank_losses;
        char *why;

        if (!losses || !losses->speaks || job->final_state != RM__JOB_STATE__JOB_COMPLETED)
                return;
        why = lacks_ranks(job);
        if (why) {
                fail(job, why);
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
