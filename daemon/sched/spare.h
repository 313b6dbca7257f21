/*
 * Spare nodes (`rm-mpirun --spares N`): nodes that are kept free for one job, so that it can go
 * there when one of its own is to be left, loses cores or fails. While they are not needed they
 * count as nodes without cores, for all jobs; when they are, only their job may use them. A spare
 * that its job has moved to is a spare no more, and another idle node becomes one as soon as there
 * is one. A pool of nodes (`[sched] spare_nodes`) is kept free in the same way for all jobs that
 * may use it. Pure; two steps of a round (round.h).
 */
#ifndef RM_SCHED_SPARE_H
#define RM_SCHED_SPARE_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/sched/fold.h"
#include "daemon/sched/round.h"
#include "daemon/sched/round_state.h"

/* Which spare nodes a round sees. `snapshot` has nodes to be left without cores already, and groups
 * that move where they go. Of each spare that is not needed the cores are taken, and mentioned in
 * ret_held (n_nodes entries, zeroed by the caller: the cores it has). */
void spare_describe(struct snapshot *snapshot, const struct round_job *jobs, uint32_t *ret_held);

/* Choosing spares, after the policies have decided. */
struct spare_choice;

struct spare_question {
        const struct rm_snapshot *given; /* with the jobs' own limits, not those of the fold */
        const struct fold *fold;
        const struct rm_plan *plan; /* valid for the fold's snapshot */
        const struct round_job_state *jobs;
        const uint32_t *held; /* of spare_describe() */
        const bool *pool; /* nodes that are kept free for all; NULL: none is */
};

struct spare_choice *spare_choice_create(const struct spare_question *question);
void spare_choice_destroy(struct spare_choice *choice); /* NULL ok */

/* The spare nodes `job`, which the plan places, has from now on: those it has that are still of
 * use, and idle ones with at least as many cores as it has ranks on any one node, where it may go
 * and nothing keeps it off. At most jobs[job].spares; `ret_nodes` has room for so many. Returns how
 * many; these are taken. Ask for jobs that have spares already first. */
uint32_t spare_choose(struct spare_choice *choice, uint32_t job, int32_t *ret_nodes);

#endif
