/*
 * Back migration (Wang, Mueller, Engelmann, Scott 2012, section 5.8): a job that had to leave
 * nodes, and does fewer steps a second where it is now than it did there, goes back once they are
 * usable again, if what is left of it is worth the moves. The time of a step was measured on both
 * sets of nodes, so this sees what no number of cores tells: slower processors, longer ways, other
 * jobs on the network. A job goes back only to where it had to leave from, and only to cores of its
 * own, so no other job has to make room for it. Pure; a step of a round (round.h).
 */
#ifndef RM_SCHED_RETURN_TO_FASTER_H
#define RM_SCHED_RETURN_TO_FASTER_H

#include <stdint.h>

#include "daemon/sched/fold.h"
#include "daemon/sched/round_state.h"

/* `plan`: valid for the fold's snapshot; jobs of which it moves nothing may be moved. Those of them
 * that stay because it does not pay are told why. A node that is held for the job itself, or for
 * all jobs (`held`, of spare_describe()) counts with its cores; if the job goes there, fold and
 * `held` have it as usable. */
void return_to_faster(struct fold *fold, struct round_job_state *jobs, uint32_t *held, struct rm_plan *plan);

#endif
