/* Shared by the files of the runner. */
#ifndef RM_JOB_RUNNER_INTERNAL_H
#define RM_JOB_RUNNER_INTERNAL_H

#include <event2/event.h>
#include <sys/queue.h>

#include "daemon/cluster/cluster.h"
#include "daemon/config/config.h"
#include "daemon/job/core_report.h"
#include "daemon/job/memory_report.h"
#include "daemon/job/runner.h"

/* A command that an rm-agent in a head capsule on this node wants run elsewhere. */
struct agent_request {
        uint64_t job;
        int32_t to;
        char *id;
        char *command;
        uint64_t asked;  /* incarnation of the target that it was sent to last; 0: none */
        bool confirmed;  /* that one has it */
        LIST_ENTRY(agent_request) entry;
};

struct runner {
        struct rmd *rmd;
        const struct runner_ops *ops;
        void *userdata;
        struct resident_list residents;
        struct calls calls; /* of residents */
        LIST_HEAD(, agent_request) requests;
        LIST_HEAD(, gone_report) gone_reports; /* gone.c: under way */
        struct event *wake;
        struct event *retry;
        bool retry_requested;
        struct event *scan;        /* as retry, but not so soon */
        uint32_t usable_cores;     /* cores.c: of this node, when there last were some */
        uint64_t unusable_usec;    /* cores.c: since when there are none; 0: there are */
        struct event *memory; /* memory_report.c */
        struct memory_report_sent memory_reported;
        struct event *core_report; /* core_report.c */
        struct event *sample; /* while there are groups whose traffic is of interest */
};

/* agents.c */
void agents_on_request(struct runner *runner, struct resident *resident, const char *id, const char *host, const char *command);
void agents_on_gone(struct runner *runner, struct resident *resident, const char *id);
void agents_report_exit(struct runner *runner, struct resident *group);
/* The group has a lease: run what could not be run without. */
void agents_unfenced(struct runner *runner, struct resident *group);
/* Send what is not confirmed; forget what belongs to no head of ours. */
void agents_reconcile(struct runner *runner);
void agents_forget(struct resident *resident);
void agents_finish(struct runner *runner);

/*
 * ends.c: how a group's MPI daemon ended. mpirun ends with 0 when it has lost one, so the group's
 * node tells the log before it lets go of the capsule.
 */
/* The rm-agent of a group is gone: its daemon may end by itself, and is ended if it does not. */
void ends_orphan(struct runner *runner, struct resident *group);
/* Ends the daemons that were left alone for too long. */
void ends_reconcile(struct runner *runner);
/* Returns "mpirun on n2 was killed: its memory ..." when PID 1 of the capsule has killed its
 * payload itself; NULL: it has not; malloc'ed. */
char *ends_why_killed(const struct runner *runner, const struct resident *resident);
/* May the capsule of a job that is COMPLETING go? False while it must stay, since it is not known
 * or not in the log how its daemon ended. */
bool ends_reported(struct runner *runner, struct resident *group, const Rm__Job *job);

/*
 * gone.c: the log is told that nothing is left here of a capsule, until the state shows it. One
 * report of each is under way at a time: every entry of the log has the runner look again.
 */
void gone_report(struct runner *runner, uint64_t job, const Rm__Capsule *capsule);

/* own_programs.c: copies `program` (rm-agent) from rmd's own directory to `path` in a capsule in
 * which nothing has run yet. 0 or negative errno. */
int runner_copy_program(const struct resident *resident, const char *program, const char *path);

/* Copies rm-prrte into such a capsule: LAUNCH_WITH_PRRTE; 0: it cannot, which does not keep the job
 * from running. */
unsigned runner_give_prrte(const struct resident *resident);

/* reports.c: what the log is told of one capsule. */
/* At most one proposal about a capsule is under way; it is made again until the state shows it. */
void runner_propose(struct runner *runner, struct resident *resident, const Rm__Command *command);
bool reports_under_way(const struct resident *resident);
/* The capsule is made; one that goes on from a checkpoint is not ready before that is in it. */
void reports_placed(struct runner *runner, struct resident *resident, const Rm__Job *job);
void reports_running(struct runner *runner, struct resident *resident);
/* The head's: how its job has ended. `reason` NULL: it needs none; `final_state` PENDING: as the
 * exit code says. */
void runner_report_exit(struct runner *runner, struct resident *resident, int exit_code, const char *reason,
                        Rm__JobState final_state);
/* The job starts `again`, or ends, as if this node had been lost under the capsule. */
void reports_restart_or_end(struct runner *runner, struct resident *resident, const Rm__Job *job, bool again, const char *reason);
/* The capsule of a job that runs is lost. */
void reports_lost(struct runner *runner, struct resident *resident, const Rm__Job *job, const Rm__Capsule *capsule);
/* The memory that a capsule lacked was on another node and is lost, so that PID 1 has cut it off
 * and killed it. False: that is not so. */
bool reports_broken(struct runner *runner, struct resident *resident, const Rm__Job *job);

/* head.c: does what is to be done now for a job that runs, whose head is here. */
void head_reconcile(struct runner *runner, struct resident *head, const Rm__Job *job, const Rm__Capsule *capsule);

/*
 * ending.c: a job is ended: first its ranks, then mpirun.
 */
/* The signal by which the job of this head is to end; 0: it is not. */
uint32_t ending_requested(const struct resident *head, const Rm__Job *job);
/* Returns the exit code of a job whose head has exited: 128 and the signal by which it was
 * cancelled, or what mpirun returned. */
int ending_exit_code(const struct resident *head, const Rm__Job *job);
/* Does what is still to be done for a job that is to end so. */
void ending_reconcile(struct runner *runner, struct resident *head, const Rm__Job *job);
/* The same for all whose heads run here, also without a leader. */
void ending_go_on(struct runner *runner);
/* Sends the payload a signal that is to end it, again until it has taken it; SIGKILL only once. */
void ending_signal(struct resident *resident, uint32_t signo);
/* Has rmd sent such a signal? */
bool ending_signalled(const struct resident *resident);
void ending_forget(struct resident *resident);

/*
 * rank_ends.c: how the ranks of a job whose mpirun has failed have ended.
 */
/* Is it known how the ranks have ended, once the head has exited? False while groups are still
 * asked. */
bool rank_ends_known(struct runner *runner, struct resident *head, const Rm__Job *job);
/* Puts the code of what ended the job in the place of mpirun's, if it is another, once that is
 * known. Returns why the job has failed, malloc'ed; NULL: as mpirun says. */
char *rank_ends_take(const struct resident *head, const Rm__Job *job, int *ret_exit_code);
void rank_ends_forget(struct resident *resident);

/* traffic.c: asks this node's groups from time to time what they have sent to whom, and tells the
 * leader. */
void traffic_start(struct runner *runner);
/* Groups may have come. */
void traffic_wake(struct runner *runner);
void traffic_forget(struct resident *resident);
void traffic_stop(struct runner *runner);

/* memory_report.c: tells the leader from time to time what memory there is on this node, and what
 * its groups take. */
void memory_report_start(struct runner *runner);
void memory_report_stop(struct runner *runner);

/* cores.c: a capsule that is here, and runs, gets the cores that were chosen for it, or else all of
 * the node that may be used. */
void cores_apply(struct runner *runner, struct resident *resident, const Rm__Capsule *capsule);
void cores_forget(struct resident *resident);

/* blocker.c: what keeps the capsule from being moved. PID 1 has told it; the log is told of it when
 * it is another thing than the state says. */
void blocker_reported(struct resident *resident, const char *text, uint64_t processes);
void blocker_report(struct runner *runner, struct resident *resident, const Rm__Capsule *capsule);
void blocker_forget(struct resident *resident);

/* stalls.c: PID 1 has told that it cannot keep the capsule's output. */
void stalls_report(struct runner *runner, const struct resident *resident, enum capsule_stall why);

/* resizing.c: a group of a job with parked ranks is told what is wanted of them, and the log what
 * its rank 0 has said. */
void resizing_apply(struct runner *runner, struct resident *resident, const Rm__Job *job, const Rm__Capsule *capsule);
/* PID 1 does not have that any more. */
void resizing_order_again(struct resident *resident);

/*
 * rank_loss.c: a group of a job that goes on without lost ranks is told which those are, and the
 * log which ones it has lost itself.
 */
void rank_loss_apply(struct runner *runner, struct resident *resident, const Rm__Job *job, const Rm__Capsule *capsule);
/* PID 1 does not have that any more. */
void rank_loss_order_again(struct resident *resident);
/* May the capsule of a job that is COMPLETING go? False while it must stay, since not all that its
 * ranks have said is in the log. */
bool rank_loss_reported(struct runner *runner, struct resident *group, const Rm__Job *job, const Rm__Capsule *capsule);
/* Were all ranks of the job lost? */
bool rank_loss_is_total(const Rm__Job *job);
/* Were all ranks lost so long ago that mpirun, in `head`, will not end by itself? */
bool rank_loss_waited_for_mpirun(struct runner *runner, const struct resident *head);
/* own_state.c: the log is told whether the program of a job, whose group of rank 0 this is, keeps
 * its own state. */
void own_state_report(struct runner *runner, struct resident *resident, const Rm__Job *job);

/* The runner looks again soon, since something has to be looked after for as long as it lasts. */
void runner_scan_again(struct runner *runner);

#endif
