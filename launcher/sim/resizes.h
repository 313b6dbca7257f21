/* Jobs of a simulation that grow and shrink, by rmd's rule (daemon/sched/malleable.h), as its
 * leader does after each round. */
#ifndef RM_SIM_RESIZES_H
#define RM_SIM_RESIZES_H

#include "daemon/sched/round.h"
#include "launcher/sim/world.h"

/* After a round over `snapshot`, whose jobs are those of `job_at` in the world, has been carried
 * out. Returns when the first of the jobs that would change now, but listen not yet or have just
 * changed, can do so; WORLD_NEVER: there are none. */
int64_t resizes_decide(struct world *world, const struct rm_snapshot *snapshot, const struct round_result *result,
                       const uint32_t *job_at, int64_t interval_usec);

#endif
