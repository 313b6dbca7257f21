/* The state of one job in a round, beside its snapshots and the plan: for the steps of the round
 * (round.c, back.c, spare.c, diff.c). */
#ifndef RM_SCHED_ROUND_STATE_H
#define RM_SCHED_ROUND_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/sched/round.h"

/* The judgement of a job that could go back, by its measured steps. */
struct round_return {
        bool asked; /* the others are set */
        bool stays;
        double usec_here, usec_there; /* a step */
        double steps_left; /* INFINITY: no end is known */
};

struct round_job_state {
        struct round_job given; /* but that arrays are the fold's, and that it does not say where groups move to */
        struct round_return back;
        uint32_t pass;
        const char *policy; /* that placed it, with as many bytes as in struct round_job_result; NULL: none did */
        const char *why_skipped; /* no policy was heard; NULL: one was */
};

#endif
