#include "launcher/sim/simulate.h"

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
