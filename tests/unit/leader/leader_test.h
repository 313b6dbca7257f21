/* The common functions of the tests of the leader: a job that runs. */
#ifndef RM_TESTS_LEADER_TEST_H
#define RM_TESTS_LEADER_TEST_H

#include "tests/unit/state/state_test.h"

/* Three nodes of 4 cores. */
static inline int leader_set_up(void **state) {
        struct world *w = xcalloc(1, sizeof(*w));

        world_init(w);
        assert_int_equal(join(w, "n1", 4), 0);
        assert_int_equal(join(w, "n2", 4), 0);
        assert_int_equal(join(w, "n3", 4), 0);
        *state = w;
        return 0;
}

static inline int leader_tear_down(void **state) {
        world_finish(*state);
        free(*state);
        return 0;
}

/* The head on n1, a group of 2 ranks on `a` and one on `b`; RUNNING. */
static inline uint64_t run_job(struct world *w, const char *a, const char *b) {
        const char *const nodes[] = { a, b };
        static const uint32_t ranks[] = { 2, 2 };
        uint64_t job = (uint64_t) submit(w, 4);

        start_job(w, job, nodes, ranks, 2);
        return job;
}

#endif
