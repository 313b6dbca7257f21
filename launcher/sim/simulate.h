/* A simulation from the first submission to the last end. */
#ifndef RM_SIM_SIMULATE_H
#define RM_SIM_SIMULATE_H

#include "launcher/sim/scheduler.h"
#include "launcher/sim/world.h"

/* After a change the scheduler runs when `settle_usec` have passed, so that a burst makes one
 * round; then the next one not before the same time again. *ret_rounds: how often it ran. It ends
 * when nothing can happen any more; jobs may be left that wait indefinitely. */
int simulate(struct world *world, const struct sim_scheduler *scheduler, int64_t settle_usec, uint64_t *ret_rounds,
             struct rm_error *err);

/* How long a change waits for others by default: 1 s, and more where a round for each change would
 * take too long with so many nodes and jobs at a time; but never more than a fiftieth of the mean
 * run time, so that it does not count beside what jobs wait and run. */
int64_t simulate_usual_settle_usec(const struct rm_snapshot *cluster, const struct swf *trace, const struct capacity *capacity);

#endif
