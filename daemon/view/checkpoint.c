#include "daemon/view/checkpoint.h"

#include "daemon/leader/checkpoint_schedule.h"

/* The usual time from when a node is known to be lost until its jobs run again. */
#define RESTART_USEC UINT64_C(1500000)

/* The work that would have to be repeated, and the time until that can begin. */
static uint64_t expected_loss_usec(const struct view_source *source, const Rm__Job *job) {
        uint64_t from_usec = job->start_usec, now = source->now_real_usec;

        for (size_t i = 0; i < job->n_checkpoints; i++)
                if (job->checkpoints[i]->state == RM__CHECKPOINT_STATE__CHECKPOINT_DONE &&
                    job->checkpoints[i]->captured_usec > from_usec)
                        from_usec = job->checkpoints[i]->captured_usec;
        return (now > from_usec ? now - from_usec : 0) + source->lease_usec + RESTART_USEC;
}

void view_checkpoints(const struct view_source *source, const Rm__Job *job, Rm__JobView *view) {
        if (job_ended(job))
                return;
        view->checkpoint_interval_usec =
                checkpoint_interval_usec(state_index_state(source->index), job, source->checkpoint_mtbf_usec);
        if (job->state == RM__JOB_STATE__JOB_RUNNING && job_wants_restart(job->spec) && !job->own_state)
                view->expected_loss_usec = expected_loss_usec(source, job);
}
