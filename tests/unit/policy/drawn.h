/* Problems drawn at random for tests of what makes plans of large ones, and what these tests have
 * in common. */
#ifndef RM_TESTS_UNIT_POLICY_DRAWN_H
#define RM_TESTS_UNIT_POLICY_DRAWN_H

#include "tests/unit/sched/sched_test.h"

struct drawn_kind {
        uint32_t nodes, jobs, most_ranks, group_size;
        bool running, limits, pins;
};

/* Draws as many jobs as fit; running ones are where there is room, in the order of nodes drawn. */
struct snapshot *drawn_snapshot(struct dice *dice, const struct drawn_kind *kind);

/* A clock that goes on by a millisecond with each look, for left_usec of struct rm_policy_run.
 * `context`: uint32_t, looks left. */
uint64_t drawn_milliseconds_left(void *context);

#endif
