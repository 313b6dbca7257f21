/* Programs that restore themselves: what rank 0 says of that goes to the log. */
#include "common/util.h"
#include "daemon/job/runner_internal.h"
#include "daemon/state/commands.h"

#define AGAIN_USEC UINT64_C(10000000) /* a program may change its mind as often as it likes, but the log is everybody's */

void own_state_report(struct runner *runner, struct resident *resident, const Rm__Job *job) {
        struct capsule_status status;
        struct command c;

        capsule_get_status(resident->capsule, &status);
        if (!job_running(job) || !status.progress.own_state_said || status.progress.own_state == job->own_state)
                return;
        if (resident->own_state_usec > 0 && now_usec() < resident->own_state_usec + AGAIN_USEC) {
                runner_retry(runner);
                return;
        }
        resident->own_state_usec = now_usec();
        runner_propose(runner, resident, command_job_own_state(&c, job->id, job->attempt, status.progress.own_state));
}
