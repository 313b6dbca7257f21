/* From a settled plan to what is to be done now, and what to tell about each job. Pure; the last
 * step of a round (round.h). */
#ifndef RM_SCHED_DIFF_H
#define RM_SCHED_DIFF_H

#include "daemon/sched/fold.h"
#include "daemon/sched/round.h"
#include "daemon/sched/round_state.h"

struct diff {
        const struct rm_snapshot *given;    /* where groups that move still are */
        const struct fold *fold;            /* its snapshot has the same jobs, with groups that move where they go */
        const struct rm_plan *plan;         /* valid for the fold's snapshot */
        const struct round_job_state *jobs;
        const uint32_t *held; /* each node: its cores, where they are kept free as a spare */
};

/* Fill in the actions. A start that needs cores which something still holds is not given: it waits
 * for the moves. */
void diff_actions(const struct diff *diff, struct round_result *result);
/* Then what there is to say about each job. */
void diff_outcomes(const struct diff *diff, struct round_result *result);

#endif
