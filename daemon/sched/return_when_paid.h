/*
 * When going back pays (Wang, Mueller, Engelmann, Scott 2012): a job that runs slower where it is
 * than where it could be should go back only while enough of it is left,
 *
 *      R > T_m / (T_d - T_o)        R steps left, T_m the time the move takes, T_d and T_o the time
 *                                   of a step here and there
 *
 * Pure; a step of a round (round.h).
 */
#ifndef RM_SCHED_RETURN_WHEN_PAID_H
#define RM_SCHED_RETURN_WHEN_PAID_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/sched/fold.h"
#include "daemon/sched/round_state.h"

/* Times in one unit, whichever. Where it is not slower here, going back never pays. */
bool return_pays(double steps_left, double move_time, double step_here, double step_there);

/* Judges by the times of a step that `back` has: how many steps the job still has to do, and
 * whether it stays, since moves that take so long do not pay. */
void return_judge(const struct round_job_state *state, double moving_usec, struct round_return *back);

/*
 * Take moves that are a choice out of `plan` (valid for the fold's snapshot) where they would not
 * pay before the job's end: T_m is what its moves took when they were measured. T_d and T_o are
 * what its steps take, where its program counts them: on the very nodes, if it was measured on both
 * sets of them, else by how many ranks share a core; R is what is left of these, or less if the
 * time limit leaves room for less. While others share its cores, they gain by its leaving too: T_d
 * is then at least in proportion to the ranks on a core. Where no steps are known, T_d and T_o are
 * how much its ranks share cores before and after, and R what the time limit leaves room for. A job
 * that shares no fewer cores after than before is not moved when its limit is nearer than T_m. Jobs
 * of which neither steps nor a limit are known, or no measured moves, are left as planned, and so
 * are those that must leave a node or whose cores are wanted by others. The job's reason says so,
 * and `jobs[].back` what was measured.
 */
void return_when_paid(const struct fold *fold, struct round_job_state *jobs, struct rm_plan *plan);

#endif
