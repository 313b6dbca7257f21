/* Lets jobs grow and shrink as malleable.h decides: proposes it as commands. */
#ifndef RM_LEADER_RESIZES_H
#define RM_LEADER_RESIZES_H

#include "daemon/context.h"
#include "daemon/leader/progress.h"
#include "daemon/sched/round.h"

/* Decides about resizes after a round. True: a job was changed a moment ago, and is to be looked at
 * again. */
bool resizes_decide(struct rmd *rmd, const struct progress *progress, const struct rm_snapshot *snapshot,
                    const struct round_result *result);

#endif
