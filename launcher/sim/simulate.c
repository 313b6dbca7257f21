#include "launcher/sim/simulate.h"

#define SECOND 1e6
#define NODE_ROUNDS 1.5e8 /* rounds times nodes: half a minute or less */

int64_t simulate_usual_settle_usec(const struct rm_snapshot *cluster, const struct swf *trace, const struct capacity *capacity) {
        double most = NODE_ROUNDS / (cluster->n_nodes + 1.0), changes = 2.0 * (double) trace->n_jobs + (double) capacity->n_changes;
        double span, mean_run = 0, settle;

        if (trace->n_jobs == 0 || changes <= most)
                return (int64_t) SECOND;
        span = (double) (trace->jobs[trace->n_jobs - 1].submit_usec - trace->jobs[0].submit_usec);
        for (size_t j = 0; j < trace->n_jobs; j++)
                mean_run += (double) trace->jobs[j].run_usec / (double) trace->n_jobs;
        settle = span / most;
        settle = settle < mean_run / 100 ? settle : mean_run / 100;
        return (int64_t) (settle > SECOND ? settle : SECOND);
}

int simulate(struct world *world, const struct sim_scheduler *scheduler, int64_t settle_usec, uint64_t *ret_rounds,
             struct rm_error *err) {
        uint64_t rounds = 0;

        for (;;) {
                int64_t next = world_next_usec(world);
                int r;

                if (next == WORLD_NEVER)
                        break;
                world_advance(world, next);
                if (!world->touched)
                        continue;
                if (settle_usec > 0)
                        world_advance(world, world->now_usec + settle_usec);
                world->touched = false;
                rounds++;
                r = scheduler->run(scheduler->self, world, err);
                if (r < 0)
                        return r;
        }
        *ret_rounds = rounds;
        return 0;
}
