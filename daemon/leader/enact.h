/* Carries out what a round of scheduling has decided: proposes its actions as commands. */
#ifndef RM_LEADER_ENACT_H
#define RM_LEADER_ENACT_H

#include "daemon/context.h"
#include "daemon/leader/cooldown.h"
#include "daemon/sched/round.h"
#include "daemon/state/state.h"

/* `warnings`: what was wrong with policies; empty: nothing. True: a move has to wait after
 * failures, and is to be looked at again. `ret_short_of_memory` becomes true if a parked group
 * stays on a node that it should leave; else it is as it was. */
bool enact_round(struct rmd *rmd, const struct rm_snapshot *snapshot, const struct round_result *result, const char *warnings,
                 bool *ret_short_of_memory);
/* Begins those of the moves for which there is room among the moves that are under way. True: as
 * above. */
bool enact_moves(struct rmd *rmd, const struct rm_snapshot *snapshot, const struct round_result *moves);
/* The job at `index` of the snapshot, which names jobs by their numbers; NULL: it is no more. */
const Rm__Job *enact_job(const struct rmd *rmd, const struct rm_snapshot *snapshot, uint32_t index);
/* Why this action's move would not be begun now. */
enum cooldown enact_cooldown(const struct rmd *rmd, const struct rm_snapshot *snapshot, const struct round_action *action);
struct reason {
        const char *text;
        bool lost_round; /* others were served, and the job ages */
        const char *stays_on; /* the node that groups do not leave as long as this is so; NULL or empty: none */
};
/* Tells a job why it waits, or stays, when that is another reason than before. */
void enact_report_reason(struct rmd *rmd, const Rm__Job *job, const struct reason *reason);

#endif
