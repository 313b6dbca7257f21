/* The next step of a head's node for its job, by a table. Pure.
 *
 * The head's phase and what is so of the job decide it, and not what was done before: a step is
 * taken again until the state, or the phase, shows that it has been taken. */
#ifndef RM_JOB_HEAD_STEP_H
#define RM_JOB_HEAD_STEP_H

#include "daemon/job/resident_phase.h"

/* Facts about the head and its job, which may be so in any combination. */
enum head_fact {
        HEAD_PLACED = 1 << 0,          /* the log does not know yet that the head's capsule is made */
        HEAD_STARTING = 1 << 1,        /* the job is STARTING */
        HEAD_ALL_READY = 1 << 2,       /* the log knows that all capsules of the job are made */
        HEAD_FROM_CHECKPOINT = 1 << 3, /* this attempt goes on from a checkpoint */
        HEAD_MAY_RESTART = 1 << 4,     /* the job may be started once more */
        HEAD_OCCUPIED = 1 << 5,        /* something runs in the head's capsule, or has run in it */
        HEAD_CANCELLED = 1 << 6,       /* the log says that the job is to end */
        HEAD_ENDING = 1 << 7,          /* the log says so, or the head's PID 1 */
        HEAD_NO_RANKS = 1 << 8,        /* all ranks of the job were lost */
        HEAD_FACTS = 1 << 9
};

enum head_step {
        HEAD_WAIT,
        HEAD_REPORT_PLACED,
        HEAD_LAUNCH,
        HEAD_REPORT_RUNNING,
        HEAD_END_JOB,
        HEAD_AWAIT_MPIRUN, /* mpirun ends by itself, or is ended after a while */
        HEAD_REPORT_EXIT,
        HEAD_REPORT_UNSTARTED,
        HEAD_REPORT_LOST,
        HEAD_RESTART_JOB,
        HEAD_STEPS
};

/* `phase`: one with a capsule. `facts`: of enum head_fact. */
enum head_step head_step(enum resident_phase phase, unsigned facts);

#endif
