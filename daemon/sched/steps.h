/* The steps that a job's program counts (rmrt(3)): how long a step takes on cores of its own and on
 * shared ones, and whether the job should be the first to share. Pure. */
#ifndef RM_SCHED_STEPS_H
#define RM_SCHED_STEPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Nodes that a job has run on, other than those where it is. */
struct steps_place {
        const int32_t *group_node; /* of each group of the snapshot's job */
        double rate; /* steps per second there */
        bool left; /* it had to leave them */
};

/* Rates are steps per second. 0, each: not known, or not wanted. */
struct steps {
        double own_rate; /* while each of its ranks had a core */
        double shared_rate; /* while ranks shared cores as they did last */
        double shared_by; /* so many to a core on its fullest node, more than 1 */
        uint64_t left; /* steps that are still to be done */
        double goal_min, goal_max;
        double here_rate; /* on the nodes where it is */
        uint32_t n_places;
        const struct steps_place *places;
};

/* Anything of it. */
bool steps_known(const struct steps *steps);

/* Computes how long a step takes, in microseconds, where as many ranks as `here` share a core and
 * where `there` do (at least 1, `there` is less): as measured, and in proportion to a measurement
 * where that share was not measured. False: there is no measurement. */
bool steps_times(const struct steps *steps, double here, double there, double *ret_usec_here, double *ret_usec_there);

/* The job should be the first to share cores, since on its own ones it does more steps than its
 * goal wants: by the goal's minimum, or if it has none by its maximum. `ret_bears`: how many ranks
 * to a core leave it as fast as that, else 1. None is the last to share: a goal is the program's
 * word, and costs nothing. */
bool steps_above_goal(const struct steps *steps, double *ret_bears);

/* Explains the steps to people, in `size` bytes: "folds first: 80 steps a second on its own cores,
 * 40 on shared ones, 10 wanted". Empty if nothing is known. */
void steps_explain(const struct steps *steps, char *text, size_t size);

#endif
