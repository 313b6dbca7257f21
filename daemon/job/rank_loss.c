/* Jobs that go on without ranks that are lost, on the nodes of their groups. PID 1 of each sees
 * which of its ranks end, and passes on which ones the job has lost; both are said again until the
 * other side shows them, so all of this may be done again at any time. */
#include <string.h>

#include "common/util.h"
#include "daemon/job/runner_internal.h"
#include "daemon/state/commands.h"

/* mpirun has ended, so all that its ranks have said is in their PID 1's program socket; those that
 * have said nothing will not. */
#define WORDS_WAIT_USEC (UINT64_C(1) * 1000000U)
/* No rank is left: mpirun ends within milliseconds. PRRTE's may miss the end of the last ones if
 * several end at once, and then waits for ever. */
#define MPIRUN_WAIT_USEC (UINT64_C(10) * 1000000U)

/* The part of each copy that this file keeps. */
struct rank_loss {
        /* PID 1 of the copy has the first `n_reported` ranks that the job has lost, and knows
         * whether any speaks. */
        bool ordered;
        size_t n_reported;
        bool speaks_reported;
        /* The time since which something is awaited; 0: nothing is. A group whose job has ended
         * waits for what its ranks have said; a head whose job has lost all ranks waits for
         * mpirun's end. */
        uint64_t wait_usec;
};

static struct rank_loss *loss_of(const struct resident *resident) {
        return resident_part(resident, RESIDENT_RANK_LOSS, sizeof(struct rank_loss));
}

void rank_loss_order_again(struct resident *resident) {
        loss_of(resident)->ordered = false;
}

static void pass_on(const struct resident *resident, const Rm__Job *job, const Rm__Capsule *capsule) {
        const Rm__RankLosses *losses = job->rank_losses;
        struct rank_loss *loss = loss_of(resident);

        if (loss->ordered && loss->n_reported == losses->n_lost && loss->speaks_reported == losses->speaks)
                return;
        loss->ordered = capsule_rank_order(resident_capsule(resident), job_first_rank(job, capsule), capsule->ranks, losses->lost,
                                           losses->n_lost, losses->speaks) == 0;
        loss->n_reported = losses->n_lost;
        loss->speaks_reported = losses->speaks;
}

/* Does the state lack something of what the ranks have said? */
static bool is_news(const Rm__RankLosses *losses, const Rm__Capsule *capsule, const struct capsule_ranks_said *said) {
        if ((said->speaks && !losses->speaks) || (said->finished && !rank_losses_finished(losses, capsule->index)))
                return true;
        for (size_t i = 0; i < said->n_lost; i++)
                if (!rank_losses_has(losses, said->lost[i]))
                        return true;
        return false;
}

/* Tells the log what the ranks have said. False: the state shows all that is known. */
static bool report(struct runner *runner, struct resident *resident, const Rm__Job *job, const Rm__Capsule *capsule) {
        struct capsule_status status;
        Rm__CmdJobRanksReported *body;
        struct command c;

        capsule_get_status(resident_capsule(resident), &status);
        if (!is_news(job->rank_losses, capsule, &status.ranks_said))
                return false;
        body = command_job_ranks_reported(&c, job->id, job->attempt, capsule->index, capsule->node);
        body->speaks = status.ranks_said.speaks;
        body->finished = status.ranks_said.finished;
        body->lost = (uint32_t *) status.ranks_said.lost;
        body->n_lost = status.ranks_said.n_lost;
        runner_propose(runner, resident, &c.command);
        return true;
}

void rank_loss_apply(struct runner *runner, struct resident *resident, const Rm__Job *job, const Rm__Capsule *capsule) {
        pass_on(resident, job, capsule);
        if (!job->cancel) /* else they are not lost, but ended */
                (void) report(runner, resident, job, capsule);
}

/* Has so much time passed since this was asked first? Until then it is to be asked again. */
static bool has_waited(struct runner *runner, const struct resident *resident, uint64_t usec) {
        struct rank_loss *loss = loss_of(resident);

        if (!loss->wait_usec)
                loss->wait_usec = now_usec();
        if (now_usec() - loss->wait_usec >= usec)
                return true;
        runner_retry(runner);
        return false;
}

bool rank_loss_is_total(const Rm__Job *job) {
        return job->rank_losses && job->rank_losses->n_lost >= job->spec->ranks;
}

bool rank_loss_waited_for_mpirun(struct runner *runner, const struct resident *head) {
        return has_waited(runner, head, MPIRUN_WAIT_USEC);
}

bool rank_loss_reported(struct runner *runner, struct resident *group, const Rm__Job *job, const Rm__Capsule *capsule) {
        const Rm__RankLosses *losses = job->rank_losses;

        if (!losses || job->cancel || !resident_capsule(group) || !resident_answers(group))
                return true;
        if (report(runner, group, job, capsule))
                return false;
        if (!losses->speaks || rank_losses_finished(losses, capsule->index) || job->final_state != RM__JOB_STATE__JOB_COMPLETED)
                return true;
        return has_waited(runner, group, WORDS_WAIT_USEC);
}
