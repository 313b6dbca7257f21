/*
 * How a job is ended (README.md, "How a job ends"). The node of its head has the ranks of all
 * groups end, as far as they do within kill_wait, before mpirun hears of anything:
 * daemon/capsule/init/ranks/ending.h. Messages are sent again until they are answered, so that none
 * of this needs to be kept: PID 1 of the head knows the signal, and those of the groups that they
 * have got it.
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"
#include "daemon/cluster/cluster.h"
#include "daemon/job/launch.h"
#include "daemon/job/runner_internal.h"
#include "daemon/peers/peer_message.h"

/* So long after kill_wait, PID 1 and the rmd of a group's node are waited for to say that kill_wait
 * has passed. A node that does not run says nothing. */
#define ANSWER_USEC (UINT64_C(3) * 1000000U)

/* The order to end its ranks, to PID 1 of a copy. */
enum order {
        ORDER_NONE,
        ORDER_UNDER_WAY,
        ORDER_UNKNOWN, /* of the head: PID 1 is of an rmd that does not know it, and is not given it again */
};

/* The part of each copy that this file keeps. */
struct resident_ending {
        enum order order;
        uint32_t order_signal; /* of a group: the last one in it */
        uint64_t begin_usec; /* of the head: since when its ranks are to end; 0: they are not */
        bool *ended;      /* of the head, by group: its ranks have ended, or had the time for it */
        uint32_t signalled; /* the last signal that rmd sent to end it; 0: none */
        uint64_t signal_usec;
};

static struct resident_ending *ending_of(const struct resident *resident) {
        return resident_part(resident, RESIDENT_ENDING, sizeof(struct resident_ending));
}

void ending_forget(struct resident *resident) {
        free(take_ptr(ending_of(resident)->ended));
}

/* ---- a signal that ends what runs in a copy ---- */

/* A capsule that is frozen, for a move or a checkpoint, takes no signal: what would take it may go
 * on elsewhere. */
static void on_signalled(struct capsule *capsule, int error, const char *text, void *arg) {
        const struct resident *resident = call_done(arg, error);
        struct resident_ending *ending = resident ? ending_of(resident) : NULL;

        if (ending && error == -EBUSY && ending->signalled != SIGKILL) {
                ending->signalled = 0; /* it is sent again */
                runner_retry(resident_runner(resident));
        }
}

void ending_signal(struct resident *resident, uint32_t signo) {
        struct call *call = resident_call(resident);

        ending_of(resident)->signalled = signo;
        (void) call_begun(call, capsule_signal(resident_capsule(resident), (int) signo, false, on_signalled, call));
}

bool ending_signalled(const struct resident *resident) {
        return ending_of(resident)->signalled != 0;
}

/* ---- the node of the head: its ranks ---- */

uint32_t ending_requested(const struct resident *head, const Rm__Job *job) {
        struct capsule_status status = { 0 };

        if (job->cancel)
                return job->cancel_signal;
        if (resident_answers(head))
                capsule_get_status(resident_capsule(head), &status);
        return status.ending;
}

static void on_head_reported(struct capsule *capsule, int error, const char *text, void *arg) {
        const struct resident *head = call_done(arg, error);

        if (head)
                ending_of(head)->order = error == -ENOSYS ? ORDER_UNKNOWN : ORDER_NONE;
}

/* Tells PID 1 of the head; from then on the head is not moved, and whatever rmd runs on this node
 * knows that the job is being ended. False: not yet. */
static bool report_head(const struct resident *head, uint32_t signo) {
        struct resident_ending *ending = ending_of(head);
        struct capsule_status status;
        struct call *call;

        capsule_get_status(resident_capsule(head), &status);
        if (status.ending || ending->order == ORDER_UNKNOWN)
                return true;
        if (ending->order == ORDER_UNDER_WAY)
                return false;
        call = resident_call(head);
        if (call_begun(call, capsule_end_ranks(resident_capsule(head), (int) signo, 0, on_head_reported, call)))
                ending->order = ORDER_UNDER_WAY;
        return false;
}

static bool *ended_of(const struct resident *head, const Rm__Job *job, int32_t index) {
        struct resident_ending *ending = ending_of(head);

        if (!ending->ended)
                ending->ended = xcalloc(job->n_capsules + 1, sizeof(*ending->ended));
        return index >= 0 && (size_t) index < job->n_capsules ? &ending->ended[index] : NULL;
}

static void ask(struct runner *runner, const Rm__Job *job, const Rm__Capsule *group, uint32_t signo) {
        Rm__RanksEnd order = RM__RANKS_END__INIT;

        order.job = job->id;
        order.attempt = job->attempt;
        order.to_capsule = group->index;
        order.signal = signo;
        (void) cluster_send(runner->rmd->cluster, group->node, &PEER_MESSAGE(&order));
}

/* The time of a group that is frozen for a move or a checkpoint begins afterwards. */
static bool is_held_up(const struct runner *runner, const Rm__Job *job, const Rm__Capsule *group) {
        return state_capsule_move(cluster_index(runner->rmd->cluster), job->id, group->index) || job_checkpoint_under_way(job);
}

static bool ranks_gone(struct runner *runner, struct resident *head, const Rm__Job *job, uint32_t signo) {
        struct resident_ending *ending = ending_of(head);
        uint64_t now = now_usec();
        bool all = true;

        if (!report_head(head, signo))
                return false;
        if (!ending->begin_usec)
                ending->begin_usec = now;
        for (size_t i = 0; i < job->n_capsules; i++) {
                const Rm__Capsule *group = job->capsules[i];
                const bool *ended = ended_of(head, job, group->index);

                if (!ended || *ended)
                        continue;
                all = false;
                if (is_held_up(runner, job, group))
                        ending->begin_usec = now;
                ask(runner, job, group, launch_signal_for_ranks(signo));
        }
        return all || now - ending->begin_usec > runner->rmd->config->kill_wait_usec + ANSWER_USEC;
}

void runner_ranks_ended(struct runner *runner, const Rm__RanksEnded *answer) {
        const Rm__Job *job = state_job(cluster_state(runner->rmd->cluster), answer->job);
        struct resident *head = runner_current(runner, answer->job, STATE_HEAD);
        bool *ended = job && head && job->attempt == answer->attempt ? ended_of(head, job, answer->from_capsule) : NULL;

        if (!ended)
                return;
        *ended = true;
        runner_wake(runner);
}

/* ---- the node of the head: mpirun ---- */

/* An rmd to which the head came by a move has not sent its command itself. */
static bool was_started(const struct resident *head, const Rm__Job *job) {
        return resident_phase(head) == RESIDENT_LAUNCHED ||
               (job->state != RM__JOB_STATE__JOB_STARTING && capsule_phase(resident_capsule(head)) > CAPSULE_EMPTY);
}

void ending_reconcile(struct runner *runner, struct resident *head, const Rm__Job *job) {
        uint32_t signo = ending_requested(head, job), last = launch_signal_for_mpirun(signo);
        Rm__JobState final_state = job->cancel ? job->final_state : RM__JOB_STATE__JOB_PENDING;
        struct resident_ending *ending = ending_of(head);
        uint64_t now = now_usec();

        if (!was_started(head, job)) {
                runner_report_exit(runner, head, 128 + (int) signo, NULL, final_state);
                return;
        }
        runner_retry(runner);
        if (signo != SIGKILL && !ranks_gone(runner, head, job, signo))
                return;
        if (ending->signalled != last) {
                ending->signal_usec = now;
                ending_signal(head, last);
        } else if (signo == SIGKILL || now - ending->signal_usec > runner->rmd->config->kill_wait_usec) {
                /* mpirun does not listen: the capsules go, and everything in them. */
                runner_report_exit(runner, head, 128 + (int) signo, NULL, final_state);
        }
}

void ending_go_on(struct runner *runner) {
        const Rm__State *state = cluster_state(runner->rmd->cluster);

        for (struct resident *l = LIST_FIRST(&runner->residents); l; l = resident_next_of(l)) {
                const Rm__Job *job = resident_index(l) == STATE_HEAD && resident_is_live(l) && !resident_is_lost(l)
                                             ? state_job(state, resident_job(l))
                                             : NULL;

                if (job && job_running(job) && runner_current(runner, resident_job(l), STATE_HEAD) == l && ending_requested(l, job))
                        ending_reconcile(runner, l, job);
        }
}

/* mpirun returns 1 when a signal has ended it. */
int ending_exit_code(const struct resident *head, const Rm__Job *job) {
        struct capsule_status status;

        capsule_get_status(resident_capsule(head), &status);
        return job->cancel && status.ending ? 128 + (int) job->cancel_signal : launch_exit_code(resident_wait_status(head));
}

struct signalling {
        struct runner *runner;
        int signo;
        capsule_done_fn done;
        void *arg;
};

static void on_end_noted(struct capsule *capsule, int error, const char *text, void *arg) {
        struct signalling *signalling = arg;
        capsule_done_fn done = signalling->done;
        void *done_arg = signalling->arg;
        int signo = signalling->signo;

        if (error == 0)
                runner_wake(signalling->runner);
        free(signalling);
        /* PID 1 is of an older rmd. */
        if (error != -ENOSYS || capsule_signal(capsule, signo, false, done, done_arg) < 0)
                done(capsule, error, text, done_arg);
}

int runner_signal_head(struct runner *runner, uint64_t job, int signo, capsule_done_fn done, void *arg) {
        struct resident *head = runner_current(runner, job, STATE_HEAD);
        struct signalling *signalling;
        int r;

        if (!head || !resident_is_live(head))
                return -ESRCH;
        if (!launch_signal_ends_job((uint32_t) signo) || capsule_phase(resident_capsule(head)) == CAPSULE_EMPTY)
                return capsule_signal(resident_capsule(head), signo, false, done, arg);
        signalling = xcalloc(1, sizeof(*signalling));
        *signalling = (struct signalling) { runner, signo, done, arg };
        r = capsule_end_ranks(resident_capsule(head), signo, 0, on_end_noted, signalling);
        if (r < 0)
                free(signalling);
        return r;
}

/* ---- the node of a group ---- */

static void answer(struct runner *runner, const struct resident *group) {
        const Rm__Job *job = state_job(cluster_state(runner->rmd->cluster), resident_job(group));
        const Rm__Capsule *head = job ? job_capsule(job, STATE_HEAD) : NULL;
        Rm__RanksEnded ended = RM__RANKS_ENDED__INIT;

        if (!head)
                return;
        ended.job = job->id;
        ended.attempt = job->attempt;
        ended.from_capsule = resident_index(group);
        (void) cluster_send(runner->rmd->cluster, head->node, &PEER_MESSAGE(&ended));
}

/* A group that is frozen is asked again; one whose PID 1 is of an older rmd leaves its ranks to
 * mpirun. */
static void on_ranks_ended(struct capsule *capsule, int error, const char *text, void *arg) {
        const struct resident *group = call_done(arg, error);

        if (!group)
                return;
        ending_of(group)->order = ORDER_NONE;
        if (error == 0 || error == -ENOSYS || error == -ESRCH)
                answer(resident_runner(group), group);
}

void runner_ranks_end(struct runner *runner, const Rm__RanksEnd *order) {
        struct resident *group = runner_current(runner, order->job, order->to_capsule);
        const Rm__Job *job = state_job(cluster_state(runner->rmd->cluster), order->job);
        uint64_t wait_usec = runner->rmd->config->kill_wait_usec;
        struct resident_ending *ending;
        struct call *call;

        if (!group || !resident_answers(group) || !job || order->to_capsule < 0 || job->attempt != order->attempt)
                return; /* not here, or not yet: it is sent again */
        if (resident_phase(group) == RESIDENT_EXITED) {
                answer(runner, group);
                return;
        }
        ending = ending_of(group);
        if (ending->order == ORDER_UNDER_WAY && ending->order_signal == order->signal)
                return;
        call = resident_call(group);
        ending->order_signal = order->signal;
        ending->order = ORDER_NONE;
        if (call_begun(call, capsule_end_ranks(resident_capsule(group), (int) order->signal, wait_usec, on_ranks_ended, call)))
                ending->order = ORDER_UNDER_WAY;
}
