/* Placement by trying everything, on instances that are small enough for it. */
#ifndef RM_TESTS_EXHAUSTIVE_H
#define RM_TESTS_EXHAUSTIVE_H

#include "tests/unit/sched/sched_test.h"

/* The least cost of any plan that places the jobs that `given` places; INT64_MAX: there is none. */
int64_t exhaustive_least(const struct rm_snapshot *snapshot, const struct rm_plan *given);

struct exhaustive_kind {
        bool groups, running, limits, pins; /* of several ranks; that run already; on nodes; that must stay */
};

/* At most 4 nodes and 3 jobs with 9 groups together. */
struct snapshot *exhaustive_instance(struct dice *dice, const struct exhaustive_kind *kind);

#endif
