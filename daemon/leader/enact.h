/* Carries out what a round of scheduling has decided: proposes its actions as commands. */
#ifndef RM_LEADER_ENACT_H
#define RM_LEADER_ENACT_H

#include "daemon/context.h"
#include "daemon/leader/cooldown.h"
#include "daemon/sched/round.h"
#include "daemon/state/state.h"

/* `warnings`: what was wrong with policies; empty: nothing. True: a move has to wait after
 * failures, and is to be looked at again. */
bool enact_round(struct rmd *rmd, const struct rm_snapshot *snapshot, const struct round_result *result, const char *warnings);
/* Begins those of the moves for which there is room among the moves that are under way. True: as
 * above. */
bool enact_moves(struct rmd *rmd, const struct rm_snapshot *snapshot, const struct round_result *moves);
/* The job at `index` of the snapshot, which names jobs by their numbers; NULL: it is no more. */
const Rm__Job *enact_job(const struct rmd *rmd, const struct rm_snapshot *snapshot, uint32_t index);
/* Why this action's move would not be begun now. */
enum cooldown enact_cooldown(const struct rmd *rmd, const struct rm_snapshot *snapshot, const struct round_action *action);
/* Tell a job why it waits, or stays, when that is another reason than before. lost_round: others
 * were served, and it ages. */
void enact_report_reason(struct rmd *rmd, const Rm__Job *job, const char *reason, bool lost_round);

#endif
