/*
 * This file finds out what ended a job whose mpirun has failed. mpirun returns the code of the rank
 * of which it hears first, and that is often one that has aborted since another one, in another
 * group, is gone. Each group's PID 1 knows how its ranks have ended by themselves: the head's node
 * asks all of them before it reports the end, and takes the first.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"
#include "daemon/cluster/cluster.h"
#include "daemon/job/launch.h"
#include "daemon/job/rank_ends.h"
#include "daemon/job/runner_internal.h"
#include "daemon/peers/peer_message.h"

/* A group that stands still for a move, or whose node does not answer, is not waited for longer. */
#define ANSWER_USEC (UINT64_C(1) * 1000000U)
/* Clocks of nodes differ, and a connection is closed a moment before its process has ended. Of two
 * ends that are so close, one that can be the consequence of the other is. */
#define CLOSE_USEC (UINT64_C(1) * 1000000U)
/* mpirun returns this if it has no code of a rank, such as for one that has ended with 0 before
 * MPI_Finalize. */
#define NO_RANK 1
/* MPI_ERR_UNKNOWN of Open MPI, with which a rank aborts that has lost its connection to another
 * one. */
#define LOST_PEER 14

/* The answer of a group. */
struct group_ends {
        bool reported;
        struct capsule_rank_ends ends;
};

/* The part of each head that this file keeps. */
struct rank_ends {
        uint64_t asked_usec; /* since when its groups are asked how their ranks have ended; 0: they are not */
        struct group_ends *groups; /* NULL likewise */
};

static struct rank_ends *rank_ends_of(const struct resident *head) {
        return resident_part(head, RESIDENT_RANK_ENDS, sizeof(struct rank_ends));
}

void rank_ends_forget(struct resident *resident) {
        free(take_ptr(rank_ends_of(resident)->groups));
}

/* The kinds of ends, from the most certain cause on. */
enum kind { BY_SIGNAL, BY_CODE, BY_LOST_PEER, KINDS };

struct found {
        struct rank_ends_first first;
        uint64_t usec; /* 0: there is none */
};

static void take(struct found *found, uint64_t usec, struct rank_ends_first first) {
        if (usec > 0 && (found->usec == 0 || usec < found->usec))
                *found = (struct found) { first, usec };
}

struct rank_ends_first rank_ends_choose(int exit_code, const struct capsule_rank_ends *groups, size_t n) {
        struct found found[KINDS] = { 0 };
        const struct found *best = NULL;

        for (size_t i = 0; i < n; i++) {
                const struct capsule_rank_ends *g = &groups[i];

                take(&found[BY_SIGNAL], g->signal_usec, (struct rank_ends_first) { 128 + g->signal, g->signal, (int32_t) i });
                take(&found[g->exit_code == LOST_PEER ? BY_LOST_PEER : BY_CODE], g->exit_usec,
                     (struct rank_ends_first) { g->exit_code, 0, (int32_t) i });
        }
        for (size_t k = 0; k < KINDS; k++)
                if (found[k].usec > 0 && (!best || found[k].usec + CLOSE_USEC <= best->usec))
                        best = &found[k];
        if (!best || (best != &found[BY_SIGNAL] && exit_code == NO_RANK))
                return (struct rank_ends_first) { exit_code, 0, -1 };
        return best->first;
}

/* ---- the node of the head ---- */

static size_t groups_of(const Rm__Job *job) {
        return job->n_capsules > 0 ? job->n_capsules - 1 : 0;
}

static void ask(struct runner *runner, const Rm__Job *job, const Rm__Capsule *group) {
        Rm__EndsGet get = RM__ENDS_GET__INIT;

        get.job = job->id;
        get.attempt = job->attempt;
        get.to_capsule = group->index;
        (void) cluster_send(runner->rmd->cluster, group->node, &PEER_MESSAGE(&get));
}

bool rank_ends_known(struct runner *runner, struct resident *head, const Rm__Job *job) {
        struct rank_ends *ends = rank_ends_of(head);
        uint64_t now = now_usec();
        bool all = true;

        if (launch_exit_code(resident_wait_status(head)) == 0 || ending_requested(head, job) || launch_goes_on(job->spec))
                return true;
        if (!ends->asked_usec)
                ends->asked_usec = now;
        if (!ends->groups)
                ends->groups = xcalloc(groups_of(job) + 1, sizeof(*ends->groups));
        for (size_t i = 0; i < job->n_capsules; i++) {
                const Rm__Capsule *group = job->capsules[i];

                if (group->index < 0 || (size_t) group->index >= groups_of(job) || ends->groups[group->index].reported)
                        continue;
                all = false;
                ask(runner, job, group);
        }
        if (all || now - ends->asked_usec > ANSWER_USEC)
                return true;
        runner_retry(runner);
        return false;
}

char *rank_ends_take(const struct resident *head, const Rm__Job *job, int *ret_exit_code) {
        const struct group_ends *reported = rank_ends_of(head)->groups;
        cleanup_free struct capsule_rank_ends *groups = xcalloc(groups_of(job) + 1, sizeof(*groups));
        struct rank_ends_first first;
        const Rm__Capsule *group;

        for (size_t i = 0; reported && i < groups_of(job); i++)
                groups[i] = reported[i].ends;
        if (!reported)
                return NULL;
        first = rank_ends_choose(*ret_exit_code, groups, groups_of(job));
        *ret_exit_code = first.exit_code;
        group = first.signal ? job_capsule(job, first.group) : NULL;
        return group ? xasprintf("a rank of group %" PRId32 " on %s was killed by signal %d (%s)", first.group, group->node,
                                 first.signal, strsignal(first.signal))
                     : NULL;
}

void runner_ends(struct runner *runner, const Rm__Ends *ends) {
        const Rm__Job *job = state_job(cluster_state(runner->rmd->cluster), ends->job);
        const struct resident *head = runner_current(runner, ends->job, STATE_HEAD);
        struct group_ends *groups = head ? rank_ends_of(head)->groups : NULL;

        if (!job || !groups || job->attempt != ends->attempt || ends->from_capsule < 0 ||
            (size_t) ends->from_capsule >= groups_of(job) || ends->signal > 127 || ends->exit_code > 255)
                return;
        groups[ends->from_capsule] = (struct group_ends) {
                .reported = true,
                .ends = { .signal = (int) ends->signal,
                          .signal_usec = ends->signal_usec,
                          .exit_code = (int) ends->exit_code,
                          .exit_usec = ends->exit_usec },
        };
        runner_wake(runner);
}

/* ---- the node of a group ---- */

static void answer(struct runner *runner, const struct resident *group, const struct capsule_rank_ends *ends) {
        const Rm__Job *job = state_job(cluster_state(runner->rmd->cluster), resident_job(group));
        const Rm__Capsule *head = job ? job_capsule(job, STATE_HEAD) : NULL;
        Rm__Ends message = RM__ENDS__INIT;

        if (!head)
                return;
        message.job = job->id;
        message.attempt = job->attempt;
        message.from_capsule = resident_index(group);
        if (ends) {
                message.signal = (uint32_t) ends->signal;
                message.signal_usec = ends->signal_usec;
                message.exit_code = (uint32_t) ends->exit_code;
                message.exit_usec = ends->exit_usec;
        }
        (void) cluster_send(runner->rmd->cluster, head->node, &PEER_MESSAGE(&message));
}

static void on_ends(struct capsule *capsule, int error, const struct capsule_rank_ends *ends, void *arg) {
        const struct resident *group = call_done(arg, error);

        if (group)
                answer(resident_runner(group), group, ends);
}

void runner_ends_get(struct runner *runner, const Rm__EndsGet *get) {
        struct resident *group = runner_current(runner, get->job, get->to_capsule);
        const Rm__Job *job = state_job(cluster_state(runner->rmd->cluster), get->job);
        struct call *call;

        if (!group || !resident_answers(group) || !job || get->to_capsule < 0 || job->attempt != get->attempt)
                return; /* not here, or not yet: it is asked again */
        call = resident_call(group);
        if (!call_begun(call, capsule_get_rank_ends(resident_capsule(group), on_ends, call)))
                answer(runner, group, NULL);
}
