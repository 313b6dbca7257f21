/* Time limits, and how long ended jobs are kept. */
#include "daemon/leader/expiry.h"
#include "tests/unit/leader/leader_test.h"

#define SEC UINT64_C(1000000)

static void test_time_limit(void **state) {
        struct world *w = *state;
        uint64_t first = run_job(w, "n1", "n2"), job = run_job(w, "n1", "n2"), start;

        assert_int_equal(expiry_over_limit(w->state, UINT64_MAX), 0); /* they have none */
        state_job(w->state, job)->spec->time_limit_usec = 60 * SEC;
        start = state_job(w->state, job)->start_usec;
        assert_int_equal(expiry_over_limit(w->state, start + 60 * SEC), 0);
        assert_int_equal(expiry_over_limit(w->state, start + 60 * SEC + 1), job);
        w->thorough = false; /* the twin has no limit */
        assert_int_equal(cancel(w, job, 0, true), 0);
        assert_int_equal(expiry_over_limit(w->state, start + 90 * SEC), 0); /* it is being ended */
        assert_true(first != 0);
}

static uint64_t ended_job(struct world *w) {
        uint64_t job = (uint64_t) submit(w, 1);

        assert_int_equal(cancel(w, job, 0, false), 0);
        return job;
}

static void test_kept_for_a_while(void **state) {
        struct world *w = *state;
        uint64_t running = run_job(w, "n1", "n2"), job = ended_job(w), end = state_job(w->state, job)->end_usec;

        assert_int_equal(expiry_to_forget(w->state, 3600 * SEC, end + 3600 * SEC), 0);
        assert_int_equal(expiry_to_forget(w->state, 3600 * SEC, end + 3600 * SEC + 1), job);
        assert_int_equal(forget(w, job), 0);
        assert_int_equal(expiry_to_forget(w->state, 3600 * SEC, UINT64_MAX), 0);
        assert_true(running != 0);
}

/* The ended jobs beyond 500 go if their output was taken. */
static void test_many(void **state) {
        struct world *w = *state;
        uint64_t last = 0;

        w->thorough = false;
        for (int i = 0; i < 501; i++)
                last = ended_job(w);
        assert_int_equal(expiry_to_forget(w->state, 3600 * SEC, w->time_usec), 0);
        assert_int_equal(output_done(w, last), 0);
        assert_int_equal(expiry_to_forget(w->state, 3600 * SEC, w->time_usec), last);
        assert_int_equal(forget(w, last), 0);
        assert_int_equal(output_done(w, 7), 0);
        assert_int_equal(expiry_to_forget(w->state, 3600 * SEC, w->time_usec), 0); /* 500 may stay */
}

static void test_overdue_node(void **state) {
        struct world *w = *state;
        const uint64_t deadline = w->time_usec + 60 * SEC;
        uint64_t job = run_job(w, "n2", "n2");

        assert_int_equal(drain(w, "n1", "", false), 0); /* without a deadline */
        assert_int_equal(drain_until(w, "n2", deadline, false), 0);
        assert_int_equal(drain_until(w, "n3", deadline - 1, false), 0); /* empty */
        assert_null(expiry_overdue_node(w->indexed, deadline - 1));
        assert_non_null(expiry_overdue_node(w->indexed, deadline));
        assert_string_equal(expiry_overdue_node(w->indexed, deadline)->name, "n2");
        assert_int_equal(health(w, "n2", RM__NODE_HEALTH__NODE_HEALTH_DOWN), 0);
        assert_null(expiry_overdue_node(w->indexed, deadline));
        assert_int_equal(health(w, "n2", RM__NODE_HEALTH__NODE_HEALTH_UP), 0);
        assert_int_equal(overdue(w, "n2", deadline), 0);
        assert_null(expiry_overdue_node(w->indexed, UINT64_MAX));
        assert_true(job != 0);
}

#define T(test) cmocka_unit_test_setup_teardown(test, leader_set_up, leader_tear_down)

int main(void) {
        const struct CMUnitTest tests[] = { T(test_time_limit), T(test_kept_for_a_while), T(test_many), T(test_overdue_node) };

        return cmocka_run_group_tests_name("expiry", tests, NULL, NULL);
}
