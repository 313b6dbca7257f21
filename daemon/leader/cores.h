/* The cores that a policy chose for running groups become known to the nodes that have them. */
#ifndef RM_LEADER_CORES_H
#define RM_LEADER_CORES_H

#include "daemon/context.h"
#include "daemon/sched/round.h"

/* Proposes what has changed, a command for each job. Only for the leader. */
void cores_report(struct rmd *rmd, const struct rm_snapshot *snapshot, const struct round_result *result);

#endif
