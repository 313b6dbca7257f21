/* Ranks that were lost, of a job that goes on without them: told once, those that were lost together in one line. */
#include <inttypes.h>
#include <stdlib.h>

#include "common/util.h"
#include "launcher/client/attachment_internal.h"

/* Where the loss of some is followed by that of all, or is part of the end of the job, that is known by then. */
#define TOGETHER_USEC (300U * 1000U)
#define NAMED_MAX 16U

static void add(struct lately_lost *lost, uint32_t rank) {
        cleanup_free char *before = NULL;

        if (lost->n++ >= NAMED_MAX)
                return;
        before = take_ptr(lost->names);
        lost->names = xasprintf("%s%s%" PRIu32, before ? before : "", before ? " " : "", rank);
}

void losses_follow(struct attachment *a, const Rm__Job *job, uint64_t now) {
        const Rm__RankLosses *losses = job->rank_losses;
        struct lately_lost *lost = &a->lost;

        if (!losses || !job->spec)
                return;
        if (lost->attempt && lost->attempt != job->attempt)
                lost->seen = losses->n_lost; /* it goes on from a checkpoint, or begins again */
        lost->attempt = job->attempt;
        lost->over =
                job->cancel || (job->state >= RM__JOB_STATE__JOB_COMPLETING && job->final_state != RM__JOB_STATE__JOB_COMPLETED);
        if (losses->n_lost <= lost->seen)
                return;
        while (lost->seen < losses->n_lost)
                add(lost, losses->lost[lost->seen++]);
        lost->ranks = job->spec->ranks;
        lost->left = lost->ranks > losses->n_lost ? lost->ranks - losses->n_lost : 0;
        if (lost->at_usec == ATTACHMENT_NEVER_USEC)
                lost->at_usec = now + TOGETHER_USEC;
}

void losses_tell(struct attachment *a, uint64_t now) {
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
