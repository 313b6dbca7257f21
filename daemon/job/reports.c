/* Proposals to the log about one capsule. */
#include <inttypes.h>
#include <stdlib.h>

#include "common/util.h"
#include "daemon/job/runner_internal.h"
#include "daemon/state/commands.h"

struct reports {
        bool under_way; /* a proposal about the capsule is */
};

static struct reports *reports_of(const struct resident *resident) {
        return resident_part(resident, RESIDENT_REPORTS, sizeof(struct reports));
}

bool reports_under_way(const struct resident *resident) {
        return reports_of(resident)->under_way;
}

static void on_reported(void *userdata, int code, const char *text, uint64_t index, uint64_t created) {
        const struct resident *resident = call_done(userdata, code);

        if (!resident)
                return;
        reports_of(resident)->under_way = false;
        if (code < 0)
                runner_retry(resident_runner(resident));
}

void runner_propose(struct runner *runner, struct resident *resident, const Rm__Command *command) {
        struct reports *reports = reports_of(resident);

        if (reports->under_way)
                return;
        reports->under_way = true;
        cluster_propose(runner->rmd->cluster, command, on_reported, resident_call(resident));
}

static void report_ready(struct runner *runner, struct resident *resident) {
        struct command c;

        runner_propose(runner, resident,
                       command_capsule_ready(&c, resident_job(resident), resident_index(resident),
                                             cluster_self(runner->rmd->cluster)));
}

void reports_placed(struct runner *runner, struct resident *resident, const Rm__Job *job) {
        if (job->restored_from == 0 || resident_holder(resident) == RESIDENT_RESTORED)
                report_ready(runner, resident);
}

void runner_report_exit(struct runner *runner, struct resident *resident, int exit_code, const char *reason,
                        Rm__JobState final_state) {
        struct command c;

        runner_propose(runner, resident, command_job_exit(&c, resident_job(resident), exit_code, reason, final_state));
}

void reports_running(struct runner *runner, struct resident *resident) {
        struct command c;

        runner_propose(runner, resident, command_job_running(&c, resident_job(resident)));
}

void reports_restart_or_end(struct runner *runner, struct resident *resident, const Rm__Job *job, bool again, const char *reason) {
        struct command c;

        if (again)
                runner_propose(runner, resident,
                               command_job_restart(&c, job->id, job->attempt + 1, cluster_self(runner->rmd->cluster), reason,
                                                   false));
        else
                runner_report_exit(runner, resident, 255, reason, job->cancel ? job->final_state : RM__JOB_STATE__JOB_NODE_FAIL);
}

/* A node that was started anew has lost its capsules as one that is down has. */
void reports_lost(struct runner *runner, struct resident *resident, const Rm__Job *job, const Rm__Capsule *capsule) {
        bool had_one = !resident_capsule(resident) && capsule->state == RM__CAPSULE_STATE__CAPSULE_READY;
        bool again = (had_one || job->restored_from > 0) && job_may_restart(job);
        cleanup_free char *reason =
                again ? xasprintf("node %s has lost its capsules (was it restarted?)", cluster_self(runner->rmd->cluster))
                      : xasprintf("a capsule of %s is lost: %s", cluster_self(runner->rmd->cluster), resident_why_lost(resident));

        reports_restart_or_end(runner, resident, job, again, reason);
}

bool reports_broken(struct runner *runner, struct resident *resident, const Rm__Job *job) {
        struct capsule_status status = { 0 };
        cleanup_free char *reason = NULL;

        if (resident_answers(resident))
                capsule_get_status(resident_capsule(resident), &status);
        if (!status.broken)
                return false;
        reason = ends_why_killed(runner, resident);
        reports_restart_or_end(runner, resident, job, job_may_restart(job), reason);
        return true;
}
