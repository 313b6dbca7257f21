/* Ranks that were lost, of a job that goes on without them: told once, those that were lost
 * together in one line. */
#include <inttypes.h>
#include <stdlib.h>

#include "common/rank_map.h"
#include "common/text.h"
#include "common/util.h"
#include "launcher/client/attachment_internal.h"

/* Where the loss of some is followed by that of all, or is part of the end of the job, that is
 * known by then. */
#define TOGETHER_USEC (300U * 1000U)
#define NAMED_MAX 16U

/* "5", "5 (8 replaces it)", "8 (spare)", "8 (was rank 5, 9 replaces it)"; malloc'ed. */
static char *name_lost(const struct rank_map *map, uint32_t process) {
        uint32_t rank = rank_map_rank(map, process), by = rank_map_process(map, rank);
        cleanup_free char *was = NULL;
        cleanup_free char *replaced = NULL;

        if (rank == RANK_MAP_NONE)
                return xasprintf("%" PRIu32 " (spare)", process);
        was = rank != process ? xasprintf("was rank %" PRIu32, rank) : xstrdup("");
        replaced = by != RANK_MAP_NONE ? xasprintf("%" PRIu32 " replaces it", by) : xstrdup("");
        if (!*was && !*replaced)
                return xasprintf("%" PRIu32, process);
        return xasprintf("%" PRIu32 " (%s%s%s)", process, was, *was && *replaced ? ", " : "", replaced);
}

static void add(struct lately_lost *lost, const struct rank_map *map, uint32_t process) {
        cleanup_free char *name = NULL;

        if (lost->n++ >= NAMED_MAX)
                return;
        name = name_lost(map, process);
        lost->names = text_add_word(lost->names, " ", name);
}

static void add_all(struct lately_lost *lost, const Rm__JobSpec *spec, const Rm__RankLosses *losses) {
        uint32_t spares = spec->spare_ranks < spec->ranks ? spec->spare_ranks : 0;
        struct rank_map *map = NULL;

        if (rank_map_create(spec->ranks - spares, spares, spec->critical_ranks, &map, NULL) < 0)
                return;
        rank_map_lose(map, losses->lost, losses->n_lost);
        while (lost->seen < losses->n_lost)
                add(lost, map, losses->lost[lost->seen++]);
        lost->ranks = spec->ranks - spares;
        lost->left = rank_map_living(map);
        rank_map_destroy(map);
}

/* Ranks that were lost at the end of an attempt are no news: the reason for the next attempt is
 * reported instead. */
static void forget(struct lately_lost *lost) {
        free(take_ptr(lost->names));
        lost->n = 0;
        lost->at_usec = ATTACHMENT_NEVER_USEC;
}

void losses_follow(struct attachment *a, const Rm__Job *job, uint64_t now) {
        const Rm__RankLosses *losses = job->rank_losses;
        struct lately_lost *lost = &a->lost;

        if (!losses || !job->spec)
                return;
        if (lost->attempt && lost->attempt != job->attempt) {
                lost->seen = losses->n_lost; /* it goes on from a checkpoint, or begins again */
                forget(lost);
        }
        lost->attempt = job->attempt;
        lost->over =
                job->cancel || (job->state >= RM__JOB_STATE__JOB_COMPLETING && job->final_state != RM__JOB_STATE__JOB_COMPLETED);
        if (losses->n_lost <= lost->seen)
                return;
        add_all(lost, job->spec, losses);
        if (lost->at_usec == ATTACHMENT_NEVER_USEC)
                lost->at_usec = now + TOGETHER_USEC;
}

void node_losses_report(struct attachment *a, uint64_t now) {
        struct lately_lost *lost = &a->lost;
        cleanup_free char *names = NULL;
        cleanup_free char *more = NULL;
        const char *s = lost->n > 1 ? "s" : "", *were = lost->n > 1 ? "were" : "was";

        if (!lost->names || (now < lost->at_usec && !a->ending))
                return;
        names = take_ptr(lost->names);
        more = lost->n > NAMED_MAX ? xasprintf(" and %zu more", lost->n - NAMED_MAX) : xstrdup("");
        lost->at_usec = ATTACHMENT_NEVER_USEC;
        lost->n = 0;
        if (lost->over)
                return;
        if (lost->left == 0)
                attachment_say(a, "rank%s %s%s %s lost: none of job %" PRIu64 " is left", s, names, more, were, a->config.job);
        else
                attachment_say(a, "rank%s %s%s %s lost: job %" PRIu64 " goes on with %zu of %" PRIu32, s, names, more, were,
                               a->config.job, lost->left, lost->ranks);
}
