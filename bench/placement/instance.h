/* Instances to measure placement on, made from a seed. The same seed gives the same instance
 * everywhere. */
#ifndef RM_BENCH_INSTANCE_H
#define RM_BENCH_INSTANCE_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/sched/snapshot.h"

enum family {
        FAMILY_DRAWN, /* jobs as drawn; the lowest priorities wait until the others fit */
        FAMILY_HARD,  /* jobs scaled so that they want 90 to 100 % of all cores */
        FAMILY_LIGHT, /* jobs as drawn, never more than half of all cores */
        FAMILY_BUSY,  /* a cluster in use, see busy.h */
};

struct instance {
        enum family family;
        uint32_t nodes, jobs;
        uint32_t group_size;
        bool penalties; /* uniform 1..10, else all 1 */
        bool moving;    /* every job runs somewhere already, and moving a group costs */
        uint64_t seed;
};

struct dice {
        uint64_t state;
};
uint32_t dice_between(struct dice *dice, uint32_t low, uint32_t high);

/* Cores and ranks uniform 1..64 (when hard, ranks are scaled), priorities uniform 1..10, K = 10. */
struct snapshot *instance_create(const struct instance *instance);

/* Jobs run where `plan` puts them, moving a group costs 0..30, the same for all of a job; then
 * nodes change places: a fifth of them have the cores, and penalties, of another now. What runs
 * there may be too much for them. */
void instance_change(const struct instance *instance, struct snapshot *snapshot, const struct rm_plan *plan);

#endif
