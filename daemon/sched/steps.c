#include "daemon/sched/steps.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* A measurement for one number of ranks to a core holds for another number that is as near. */
#define SAME_SHARE 0.05
/* The share of a program that is not slower for sharing. */
#define MOST_SHARE 1e6

bool steps_known(const struct steps *steps) {
        return steps->own_rate > 0 || steps->shared_rate > 0;
}

static bool shared_known(const struct steps *steps) {
        return steps->shared_rate > 0 && steps->shared_by > 1;
}

static double usec_of(double rate) {
        return 1e6 / rate;
}

/* Where a core has `share` ranks: on the line through what was measured, or if only one point of it
 * was, in proportion to that. */
static double usec_at(const struct steps *steps, double share) {
        double own = steps->own_rate > 0 ? usec_of(steps->own_rate) : 0;
        double shared = shared_known(steps) ? usec_of(steps->shared_rate) : 0;

        if (own > 0 && shared > 0)
                return own + (shared - own) * (share - 1) / (steps->shared_by - 1);
        return own > 0 ? own * share : shared * share / steps->shared_by;
}

bool steps_times(const struct steps *steps, double here, double there, double *ret_usec_here, double *ret_usec_there) {
        struct steps used = *steps;

        /* Measured where far more or fewer ranks shared a core: that line would be a guess, and the
         * proportion is the usual one. */
        if (shared_known(&used) && used.own_rate > 0 && fabs(used.shared_by - here) > SAME_SHARE * here)
                used.shared_rate = 0;
        if (used.own_rate <= 0 && !shared_known(&used))
                return false;
        *ret_usec_here = usec_at(&used, here);
        *ret_usec_there = usec_at(&used, there);
        return true;
}

static double requested(const struct steps *steps) {
        return steps->goal_min > 0 ? steps->goal_min : steps->goal_max;
}

/* Ranks to a core with which it is just as fast as wanted. */
static double share_requested(const struct steps *steps) {
        double own = usec_of(steps->own_rate), usec = usec_of(requested(steps));
        double shared = shared_known(steps) ? usec_of(steps->shared_rate) : 2 * own,
               by = shared_known(steps) ? steps->shared_by : 2;

        return shared > own ? 1 + (usec - own) * (by - 1) / (shared - own) : MOST_SHARE;
}

bool steps_above_goal(const struct steps *steps, double *ret_bears) {
        *ret_bears = 1;
        if (requested(steps) > 0 && steps->own_rate > requested(steps))
                *ret_bears = fmin(share_requested(steps), MOST_SHARE);
        else if (requested(steps) > 0 && steps->own_rate <= 0 && steps->shared_rate > requested(steps))
                *ret_bears = steps->shared_by;
        return *ret_bears > 1;
}

static void append(char *text, size_t size, const char *format, double rate) {
        size_t used = strlen(text);

        (void) snprintf(text + used, size - used, format, rate);
}

void steps_explain(const struct steps *steps, char *text, size_t size) {
        double bears;
        bool first = steps_above_goal(steps, &bears);

        text[0] = '\0';
        if (!steps_known(steps))
                return;
        (void) snprintf(text, size, "%s", first ? "folds first: " : "");
        if (steps->own_rate > 0)
                append(text, size, "%.4g steps a second on its own cores", steps->own_rate);
        if (steps->shared_rate > 0)
                append(text, size, steps->own_rate > 0 ? ", %.4g on shared ones" : "%.4g steps a second on shared cores",
                       steps->shared_rate);
        if (first)
                append(text, size, ", %.4g wanted", requested(steps));
}
