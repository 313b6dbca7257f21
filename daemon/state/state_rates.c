/* How many steps a second a job has done on each of the last sets of nodes that it ran on, so that
 * the next leader knows, too: often the leader's node is the one that a job has to leave. */
#include <inttypes.h>
#include <stdlib.h>

#include "common/util.h"
#include "daemon/state/state_internal.h"

static int check(struct apply *a, const Rm__CmdJobRates *in, const Rm__Job *job) {
        if (!job)
                return apply_refuse(a, -ENOENT, "rates: no job %" PRIu64, in->job);
        if (!job_running(job) || job->attempt != in->attempt)
                return apply_refuse(a, -ESRCH, "rates: that attempt of job %" PRIu64 " does not run", in->job);
        if (in->n_rates > STATE_RATES_MAX || job->n_capsules > STATE_RATES_CAPSULES_MAX)
                return apply_refuse(a, -EINVAL, "rates: %zu sets of nodes of %zu capsules", in->n_rates, job->n_capsules);
        for (size_t i = 0; i < in->n_rates; i++)
                if (in->rates[i]->n_nodes != job->n_capsules)
                        return apply_refuse(a, -EINVAL, "rates: %zu nodes of %zu capsules", in->rates[i]->n_nodes, job->n_capsules);
        return 0;
}

int apply_job_rates(struct apply *a) {
        const Rm__CmdJobRates *in = a->command->job_rates;
        Rm__Job *job = state_job(a->state, in->job);
        int r = check(a, in, job);

        if (r < 0)
                return r;
        REPEATED_SET(job->rates, job->n_rates, in->rates, in->n_rates);
        job->rates_attempt = in->attempt;
        job->rates_next_move = a->state->next_move;
        return 0;
}
