#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "common/log.h"
#include "common/util.h"
#include "daemon/job/launch.h"
#include "daemon/job/runner_internal.h"
#include "daemon/state/commands.h"

/* mpirun also kills its rm-agents at a normal end, a moment before the daemons are through with
 * theirs. */
#define ORPHAN_USEC (UINT64_C(2) * 1000000U)
/* A daemon is waited for so long after mpirun's end: it ends within milliseconds, but its group may
 * be frozen in a move that is being undone. */
#define END_WAIT_USEC (UINT64_C(10) * 1000000U)
/* A daemon's end is waited for so long when it is known already that the job has failed, since the
 * end of this group may be why. */
#define WHY_WAIT_USEC (UINT64_C(1) * 1000000U)

struct orphan {
        uint64_t since_usec; /* when the rm-agent of a group was gone, or its job's end decided; 0: not yet */
};

static struct orphan *orphan_of(const struct resident *group) {
        return resident_part(group, RESIDENT_ENDS, sizeof(struct orphan));
}

/* The way in which a group's MPI daemon has ended. */
enum end {
        END_UNKNOWN, /* it runs, or nothing was heard of it yet */
        END_WELL,    /* exit code 0, or never started */
        END_EXITED,  /* another exit code */
        END_KILLED,  /* by a signal */
        END_LOST,    /* with its capsule */
};

/* PRRTE's daemon may crash when it is through, as in jobs with MPI_Comm_spawn(): no rank has lost
 * anything by that. */
static bool ranks_ended_well(const struct resident *group) {
        struct capsule_status status = { 0 };

        if (resident_capsule(group))
                capsule_get_status(resident_capsule(group), &status);
        return status.rank_ends.all_well;
}

static enum end end_of(const struct resident *group) {
        if (resident_is_lost(group))
                return END_LOST;
        if (resident_phase(group) == RESIDENT_EXITED && ranks_ended_well(group))
                return END_WELL;
        if (resident_phase(group) == RESIDENT_EXITED && WIFSIGNALED(resident_wait_status(group)))
                return END_KILLED;
        if (resident_phase(group) == RESIDENT_EXITED)
                return WEXITSTATUS(resident_wait_status(group)) == 0 ? END_WELL : END_EXITED;
        return resident_phase(group) == RESIDENT_READY && capsule_phase(resident_capsule(group)) == CAPSULE_EMPTY ? END_WELL
                                                                                                                  : END_UNKNOWN;
}

char *ends_why_killed(const struct runner *runner, const struct resident *resident) {
        cleanup_free char *who =
                resident_index(resident) == STATE_HEAD ? xstrdup("mpirun") : xasprintf("group %" PRId32, resident_index(resident));
        struct capsule_status status = { 0 };

        if (resident_capsule(resident))
                capsule_get_status(resident_capsule(resident), &status);
        return status.killed[0] ? xasprintf("%s on %s was killed: %s", who, cluster_self(runner->rmd->cluster), status.killed)
                                : NULL;
}

/* malloc'ed. */
static char *reason_of(const struct runner *runner, const struct resident *group, enum end end) {
        const char *self = cluster_self(runner->rmd->cluster);
        int status = resident_wait_status(group);
        char *killed = ends_why_killed(runner, group);

        if (killed)
                return killed;
        switch (end) {
        case END_LOST:
                return xasprintf("group %" PRId32 " on %s is lost: %s", resident_index(group), self, resident_why_lost(group));
        case END_KILLED:
                return xasprintf("the MPI daemon of group %" PRId32 " on %s was killed by signal %d (%s)", resident_index(group),
                                 self, WTERMSIG(status), strsignal(WTERMSIG(status)));
        case END_EXITED:
                return xasprintf("the MPI daemon of group %" PRId32 " on %s ended with exit code %d", resident_index(group), self,
                                 WEXITSTATUS(status));
        default:
                return xasprintf("mpirun ended while the MPI daemon of group %" PRId32 " on %s still ran", resident_index(group),
                                 self);
        }
}

/* Was the daemon killed by somebody other than rmd? The shell that PRRTE runs a daemon in ends with
 * 128 and the signal; who makes that up gets another attempt at his job, which is counted. */
static bool was_killed(const struct resident *group, enum end end) {
        int code = end == END_EXITED ? WEXITSTATUS(resident_wait_status(group)) : 0;

        return !ending_signalled(group) && (end == END_KILLED || (code > 128 && code <= 128 + SIGRTMAX));
}

static void report(struct runner *runner, struct resident *group, enum end end) {
        bool has_status = end == END_KILLED || end == END_EXITED;
        cleanup_free char *reason = reason_of(runner, group, end);
        Rm__CmdGroupEnd *body;
        struct command c;

        if (reports_under_way(group))
                return;
        log_warn("job %" PRIu64 ": %s", resident_job(group), reason);
        body = command_group_end(&c, resident_job(group), resident_index(group), cluster_self(runner->rmd->cluster));
        body->exit_code = has_status ? launch_exit_code(resident_wait_status(group)) : 255;
        body->reason = reason;
        body->lost = end == END_LOST;
        body->killed = was_killed(group, end);
        body->end_usec = resident_end_real_usec(group) ? resident_end_real_usec(group) : now_real_usec();
        runner_propose(runner, group, &c.command);
}

/* Must the log hear of this end? It must hear of an end that makes a failure of mpirun's 0, and of
 * one that explains a failure. */
static bool worth_telling(const Rm__Job *job, const struct resident *group, enum end end) {
        bool cause = (end == END_KILLED && !ending_signalled(group)) || end == END_LOST;

        if (job->final_state == RM__JOB_STATE__JOB_COMPLETED)
                return end != END_WELL;
        if (job->group_end_usec > 0)
                return end != END_WELL && end != END_UNKNOWN && resident_end_real_usec(group) > 0 &&
                       resident_end_real_usec(group) < job->group_end_usec;
        return job->final_state == RM__JOB_STATE__JOB_FAILED && !job->reason[0] && cause;
}

static uint64_t wait_usec(const Rm__Job *job) {
        if (job->final_state == RM__JOB_STATE__JOB_COMPLETED)
                return END_WAIT_USEC;
        return job->group_end_usec > 0 || (job->final_state == RM__JOB_STATE__JOB_FAILED && !job->reason[0]) ? WHY_WAIT_USEC : 0;
}

bool ends_reported(struct runner *runner, struct resident *group, const Rm__Job *job) {
        struct orphan *orphan = orphan_of(group);
        enum end end = end_of(group);

        if (!orphan->since_usec)
                orphan->since_usec = now_usec();
        if (end == END_UNKNOWN && now_usec() - orphan->since_usec < wait_usec(job)) {
                runner_retry(runner);
                return false;
        }
        if (!worth_telling(job, group, end))
                return true;
        report(runner, group, end);
        return false;
}

void ends_orphan(struct runner *runner, struct resident *group) {
        struct orphan *orphan = orphan_of(group);

        if (!orphan->since_usec)
                orphan->since_usec = now_usec();
        runner_retry(runner);
}

void ends_reconcile(struct runner *runner) {
        for (struct resident *l = LIST_FIRST(&runner->residents); l; l = resident_next_of(l)) {
                uint64_t since_usec = orphan_of(l)->since_usec;

                if (!since_usec || !resident_is_live(l) || ending_signalled(l))
                        continue;
                if (now_usec() - since_usec < ORPHAN_USEC)
                        runner_retry(runner);
                else
                        ending_signal(l, SIGTERM);
        }
}
