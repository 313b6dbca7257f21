/* The head of a job that runs here: it launches mpirun, and the log is told what becomes of it. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "common/util.h"
#include "daemon/job/bodies.h"
#include "daemon/job/head_step.h"
#include "daemon/job/launch.h"
#include "daemon/job/runner_internal.h"

/* The reason reaches the job's owner, for whom a directory of the node may well be there. */
static const char *advice(const struct runner *runner, uint64_t id) {
        const Rm__Job *job = state_job(cluster_state(runner->rmd->cluster), id);

        for (const char *const *mount = capsule_tmpfs_mounts; job && *mount; mount++)
                if (strncmp(job->spec->cwd, *mount, strlen(*mount)) == 0 && job->spec->cwd[strlen(*mount)] == '/')
                        return " (/tmp, /run and /dev/shm are a job's own)";
        return "";
}

static void on_head_launched(struct capsule *capsule, int error, const char *text, void *arg) {
        struct resident *head = call_done(arg, error);

        if (!head)
                return;
        if (error == -ETIME) {
                (void) resident_event(head, RESIDENT_EV_UNLAUNCHED); /* again when the lease is renewed */
                return;
        }
        if (error < 0) {
                cleanup_free char *why =
                        xasprintf("cannot start mpirun: %s%s", text, advice(resident_runner(head), resident_job(head)));

                log_warn("job %" PRIu64 ": %s", resident_job(head), why);
                (void) resident_lost(head, RESIDENT_EV_UNSTARTABLE, why, 0);
        }
        runner_wake(resident_runner(head));
}

static int write_hostfile(const struct resident *head, const Rm__Job *job) {
        cleanup_free char *text = launch_hostfile(job);
        cleanup_free char *path = xasprintf("%s%s", capsule_root(resident_capsule(head)), LAUNCH_HOSTFILE);

        return write_file_atomic(path, text, strlen(text), 0644, false);
}

/* Returns the spec that a head is launched with; NULL: it is not here yet. A job whose body is lost
 * ends. */
static Rm__JobSpec *head_spec(struct runner *runner, struct resident *head, const Rm__Job *job) {
        struct rm_error err = { 0 };
        Rm__JobSpec *spec = NULL;
        int r = bodies_get(runner->rmd->bodies, job, &spec, &err);

        if (r < 0 && r != -EAGAIN)
                runner_report_exit(runner, head, 255, error_text(&err), RM__JOB_STATE__JOB_FAILED);
        if (r == -EAGAIN)
                runner_retry(runner);
        return spec;
}

static void launch_head(struct runner *runner, struct resident *head, const Rm__Job *job) {
        Rm__JobSpec *spec = head_spec(runner, head, job);
        struct launch_command command;
        struct call *call;
        unsigned preload;
        int r;

        if (!spec)
                return;
        (void) resident_event(head, RESIDENT_EV_LAUNCH);
        r = write_hostfile(head, job);
        if (r < 0)
                log_warn("job %" PRIu64 ": cannot write the host file: %s", job->id, strerror(-r));
        r = runner_copy_program(head, "rm-agent", LAUNCH_AGENT);
        if (r < 0)
                log_warn("job %" PRIu64 ": cannot copy rm-agent into the head: %s", job->id, strerror(-r));
        preload = runner_give_prrte(head);
        call = resident_call(head);
        launch_head_command(&command, job, spec, preload);
        r = capsule_run(resident_capsule(head), &command.command, on_head_launched, call);
        launch_command_finish(&command);
        rm__job_spec__free_unpacked(spec, NULL);
        if (!call_begun(call, r)) {
                (void) resident_event(head, RESIDENT_EV_UNLAUNCHED);
                runner_retry(runner);
        }
}

static bool all_ready(const Rm__Job *job) {
        for (size_t i = 0; i < job->n_capsules; i++)
                if (job->capsules[i]->state != RM__CAPSULE_STATE__CAPSULE_READY)
                        return false;
        return true;
}

static unsigned facts_of(const struct resident *head, const Rm__Job *job, const Rm__Capsule *capsule) {
        return (capsule->state == RM__CAPSULE_STATE__CAPSULE_PLACED ? HEAD_PLACED : 0U) |
               (job->state == RM__JOB_STATE__JOB_STARTING ? HEAD_STARTING : 0U) | (all_ready(job) ? HEAD_ALL_READY : 0U) |
               (job->restored_from ? HEAD_FROM_CHECKPOINT : 0U) | (job_may_restart(job) ? HEAD_MAY_RESTART : 0U) |
               (capsule_phase(resident_capsule(head)) > CAPSULE_EMPTY ? HEAD_OCCUPIED : 0U) | (job->cancel ? HEAD_CANCELLED : 0U) |
               (ending_requested(head, job) ? HEAD_ENDING : 0U) | (rank_loss_is_total(job) ? HEAD_NO_RANKS : 0U);
}

/* Reports the end of mpirun, once it is known how the ranks of a job that has failed have ended. */
static void report_exit(struct runner *runner, struct resident *head, const Rm__Job *job) {
        cleanup_free char *reason = NULL, *killed = NULL;
        int exit_code;

        if (!rank_ends_known(runner, head, job))
                return;
        exit_code = ending_exit_code(head, job);
        killed = rank_ends_take(head, job, &exit_code);
        reason = ends_why_killed(runner, head);
        runner_report_exit(runner, head, exit_code, reason ? reason : killed, RM__JOB_STATE__JOB_PENDING);
}

static void report_lost(struct runner *runner, struct resident *head) {
        cleanup_free char *reason = xasprintf("mpirun is lost: %s", resident_why_lost(head));

        runner_report_exit(runner, head, 255, reason, RM__JOB_STATE__JOB_FAILED);
}

void head_reconcile(struct runner *runner, struct resident *head, const Rm__Job *job, const Rm__Capsule *capsule) {
        switch (head_step(resident_phase(head), facts_of(head, job, capsule))) {
        case HEAD_REPORT_PLACED:
                reports_placed(runner, head, job);
                break;
        case HEAD_LAUNCH:
                launch_head(runner, head, job);
                break;
        case HEAD_REPORT_RUNNING:
                reports_running(runner, head);
                break;
        case HEAD_END_JOB:
                ending_reconcile(runner, head, job);
                break;
        case HEAD_AWAIT_MPIRUN:
                if (rank_loss_waited_for_mpirun(runner, head))
                        runner_report_exit(runner, head, 1, "all of its ranks were lost, and mpirun did not end",
                                           RM__JOB_STATE__JOB_FAILED);
                break;
        case HEAD_REPORT_EXIT:
                report_exit(runner, head, job);
                break;
        case HEAD_REPORT_UNSTARTED:
                runner_report_exit(runner, head, 255, resident_why_lost(head), RM__JOB_STATE__JOB_FAILED);
                break;
        case HEAD_REPORT_LOST:
                report_lost(runner, head);
                break;
        case HEAD_RESTART_JOB:
                reports_restart_or_end(runner, head, job, true, resident_why_lost(head));
                break;
        default: /* HEAD_WAIT */
                break;
        }
}
