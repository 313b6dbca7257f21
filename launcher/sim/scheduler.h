/* The scheduler of a simulation: rmd's with a policy, or a plain batch system to compare with. */
#ifndef RM_SIM_SCHEDULER_H
#define RM_SIM_SCHEDULER_H

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"
#include "launcher/sim/world.h"

/* A way to decide. `run` looks at the world as it is now and starts, moves and kills jobs; called
 * again after every change. */
struct sim_scheduler {
        void *self;
        int (*run)(void *self, struct world *world, struct rm_error *err);
        void (*destroy)(void *self);
};

#define EASY_NAME "easy"

/* EASY backfill (Lifka 1995): jobs start in order; one that waits may overtake when it neither runs
 * into the time the first one can start at, by the time limits of what runs, nor takes cores that
 * the first one will need. Ranks go to any free cores. Nothing moves: where a node loses cores that
 * are used, the jobs there that started last are killed and wait again. */
struct sim_scheduler easy_create(void);

enum managed_backfill {
        MANAGED_STRICT,
        MANAGED_LIMITS,
        MANAGED_ANY,
};

struct managed_config {
        const char *directory, *policy; /* of the policy's shared object; it is loaded into this process */
        uint64_t budget_usec; /* of real time, for each answer */
        int64_t horizon_usec; /* as in rmd.conf */
        int64_t resize_interval_usec; /* likewise */
        uint32_t group_size; /* 0: chosen as rmd does */
        uint32_t moves_at_once;
        uint32_t queue; /* how many of the waiting jobs are looked at */
        enum managed_backfill backfill;
};

/* Rounds of daemon/sched (fold, policy, settle, diff), carried out in the world. */
int managed_create(const struct managed_config *config, struct sim_scheduler *ret_scheduler, struct rm_error *err);

#endif
