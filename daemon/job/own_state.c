/* Programs that restore themselves: what rank 0 says of that goes to the log. */
#include "common/util.h"
#include "daemon/job/runner_internal.h"
#include "daemon/state/commands.h"

#define AGAIN_USEC UINT64_C(10000000) /* a program may change its mind as often as it likes, but the log is everybody's */

struct own_state {
        uint64_t reported_usec; /* when the log was told last; 0: never */
};

void own_state_report(struct runner *runner, struct resident *resident, const Rm__Job *job) {
        struct own_state *own_state = resident_part(resident, RESIDENT_OWN_STATE, sizeof(*own_state));
        struct capsule_status status;
        struct command c;

        capsule_get_status(resident_capsule(resident), &status);
        if (!job_running(job) || !status.progress.own_state_said || status.progress.own_state == job->own_state)
                return;
        if (own_state->reported_usec > 0 && now_usec() < own_state->reported_usec + AGAIN_USEC) {
                runner_retry(runner);
                return;
        }
        own_state->reported_usec = now_usec();
        runner_propose(runner, resident, command_job_own_state(&c, job->id, job->attempt, status.progress.own_state));
}
