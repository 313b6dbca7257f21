/* Passes this node's lease on to PID 1 of each fenced capsule. */
#include <string.h>

#include "daemon/job/fence.h"
#include "daemon/job/runner_internal.h"

struct lease {
        uint64_t reported_usec; /* that its PID 1 was told last (now_boot_usec()); 0: none, by this rmd */
};

static bool belongs(const struct runner *runner, const Rm__Job *job, const struct resident *resident) {
        const Rm__Capsule *capsule = job_capsule(job, resident_index(resident));
        bool lives = job_running(job) || job->state == RM__JOB_STATE__JOB_COMPLETING;

        if (lives && capsule && capsule->incarnation == resident_incarnation(resident) &&
            strcmp(capsule->node, cluster_self(runner->rmd->cluster)) == 0)
                return true;
        return runner->ops->keeps_copy(runner->userdata, resident);
}

static void renew(struct runner *runner, const struct resident *resident, const Rm__Job *job) {
        struct lease *lease = resident_part(resident, RESIDENT_LEASES, sizeof(*lease));
        struct fence_view view = {
                .synced = cluster_synced(runner->rmd->cluster),
                .belongs = belongs(runner, job, resident),
                .lease_usec = cluster_lease_end_usec(runner->rmd->cluster),
                .reported_usec = lease->reported_usec,
        };

        if (fence_due(&view) && capsule_renew_lease(resident_capsule(resident), view.lease_usec) == 0)
                lease->reported_usec = view.lease_usec;
}

void runner_renew_leases(struct runner *runner) {
        for (const struct resident *l = LIST_FIRST(&runner->residents); l; l = resident_next_of(l)) {
                const Rm__Job *job = state_job(cluster_state(runner->rmd->cluster), resident_job(l));

                if (resident_answers(l) && job && fence_applies(job->spec))
                        renew(runner, l, job);
        }
}
