/* Programs that restore themselves when they begin again: no checkpoints are made of them, and they
 * go on from none. */
#include <inttypes.h>

#include "daemon/state/state_internal.h"

static int check(struct apply *a, const char *what, uint64_t id, const Rm__Job *job, uint32_t attempt) {
        if (!job)
                return apply_refuse(a, -ENOENT, "%s: no job %" PRIu64, what, id);
        if (!job_running(job) || job->attempt != attempt)
                return apply_refuse(a, -ESRCH, "%s: that attempt of job %" PRIu64 " does not run", what, job->id);
        return 0;
}

int apply_job_own_state(struct apply *a) {
        const Rm__CmdJobOwnState *in = a->command->job_own_state;
        Rm__Job *job = state_job(a->state, in->job);
        int r = check(a, "own-state", in->job, job, in->attempt);

        if (r < 0 || job->own_state == in->own_state)
                return r;
        job->own_state = in->own_state;
        apply_event(a, "job-own-state", NULL, job->id, 0, 0, "job %" PRIu64 " %s", job->id,
                    in->own_state ? "keeps its own state, says its program: no checkpoints are made of it"
                                  : "does not keep its own state, says its program");
        return 0;
}

int apply_job_requeue(struct apply *a) {
        const Rm__CmdJobRequeue *in = a->command->job_requeue;
        Rm__Job *job = state_job(a->state, in->job);
        int r = check(a, "requeue", in->job, job, in->attempt);

        if (r == 0 && (!job->own_state || job->cancel))
                r = apply_refuse(a, -EPERM, "requeue: job %" PRIu64 " %s", job->id,
                                 job->cancel ? "is being cancelled" : "does not keep its own state");
        if (r == 0)
                job_requeue(a, job, false, in->reason);
        return r;
}
