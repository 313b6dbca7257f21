/* The state of one job in a round, beside its snapshots and the plan: for the steps of the round
 * (round.c, back.c, spare.c, diff.c). */
#ifndef RM_SCHED_ROUND_STATE_H
#define RM_SCHED_ROUND_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/sched/steps.h"

/* The judgement of a job that could go back, by its measured steps. */
struct round_return {
        bool asked; /* the others are set */
        bool stays;
        double usec_here, usec_there; /* a step */
        double steps_left; /* INFINITY: no end is known */
};

/* The first are as in struct round_job, but that arrays are the fold's. */
struct round_job_state {
        int32_t head_node;
        int32_t head_moving_to;
        bool head_stays;
        bool pinned;
        uint64_t left_usec;
        uint32_t spares;
        uint32_t n_spare_nodes;
        const int32_t *spare_nodes;
        const bool *kept_off;
        const uint64_t *group_move_usec; /* NULL: not known */
        struct steps steps;
        const bool *pool; /* likewise the same of all */
        struct round_return back;
        uint32_t pass;
        const char *policy; /* that placed it, with as many bytes as in struct round_job_result; NULL: none did */
        const char *why_skipped; /* no policy was heard; NULL: one was */
};

#endif
