/* The report of a group's node about the end of its daemon. */
#include "tests/unit/cluster/cluster_test.h"

#include <sys/wait.h>

#include "daemon/job/runner_internal.h"

/* A capsule without a connection, which has told nothing and takes nothing: all of it is 0. */
static uint64_t zeros[1 << 13];
#define CAPSULE ((struct capsule *) (void *) zeros)

static int set_up(void **state) {
        struct world *w = xcalloc(1, sizeof(*w));

        world_init(w);
        (void) tnode_start(w, 0, 0);
        EXPECT(w, joined(w, 1), 1000);
        *state = w;
        return 0;
}

static int tear_down(void **state) {
        world_finish(*state);
        free(*state);
        return 0;
}

static bool is_reported_of(struct world *w, Rm__JobState final_state, int wait_status, uint32_t signalled, bool lost,
                           const char *reason) {
        struct rmd rmd = { .base = w->base, .cluster = w->nodes[0].cluster };
        struct runner runner = { .rmd = &rmd, .retry_requested = true /* nothing is armed */ };
        struct resident *group = resident_create(&runner, &runner.calls, 7, 1, 3);
        Rm__Job job = RM__JOB__INIT;
        bool reported;

        job.id = 7;
        job.state = RM__JOB_STATE__JOB_COMPLETING;
        job.final_state = final_state;
        job.reason = (char *) reason;
        (void) resident_made(group, CAPSULE, RESIDENT_CREATED);
        (void) resident_event(group, RESIDENT_EV_FOUND);
        if (signalled)
                ending_signal(group, signalled);
        if (lost)
                (void) resident_lost(group, RESIDENT_EV_LOST, "its PID 1 is dead", 5);
        else
                (void) resident_exited(group, wait_status, 5);
        resident_list_add(&runner.residents, group);
        reported = ends_reported(&runner, group, &job);
        EXPECT(w, !reports_under_way(group), 1000);
        ending_forget(group);
        resident_destroy(group);
        return !reported;
}

/* The failure of a job that mpirun gives no reason for: what it is told of, the state may take for
 * the loss of a node. */
static bool is_reported(struct world *w, int wait_status, uint32_t signalled, bool lost, const char *reason) {
        return is_reported_of(w, RM__JOB_STATE__JOB_FAILED, wait_status, signalled, lost, reason);
}

static bool is_reported_of_success(struct world *w, int wait_status, uint32_t signalled, bool lost) {
        return is_reported_of(w, RM__JOB_STATE__JOB_COMPLETED, wait_status, signalled, lost, "");
}

/* A success of mpirun is none where a daemon did not end well. */
static void test_bad_end_makes_a_failure_of_a_success(void **state) {
        struct world *w = *state;

        assert_false(is_reported_of_success(w, W_EXITCODE(0, 0), 0, false));
        assert_true(is_reported_of_success(w, W_EXITCODE(1, 0), 0, false));
        assert_true(is_reported_of_success(w, W_EXITCODE(137, 0), 0, false));
        assert_true(is_reported_of_success(w, W_EXITCODE(0, SIGSEGV), 0, false));
        assert_true(is_reported_of_success(w, 0, 0, true));
}

/* rmd ends the daemons that mpirun leaves behind: that they end so is no reason for anything. */
static void test_end_by_own_signal_is_not_told(void **state) {
        struct world *w = *state;

        assert_false(is_reported(w, W_EXITCODE(0, SIGTERM), SIGTERM, false, ""));
        assert_true(is_reported(w, W_EXITCODE(0, SIGTERM), 0, false, ""));
        assert_true(is_reported(w, W_EXITCODE(0, SIGKILL), 0, false, ""));
        assert_false(is_reported(w, W_EXITCODE(0, SIGKILL), 0, false, "mpirun was killed"));
        assert_false(is_reported(w, W_EXITCODE(137, 0), 0, false, ""));
        /* A capsule is not lost by a signal to its daemon. */
        assert_true(is_reported(w, 0, 0, true, ""));
        assert_true(is_reported(w, 0, SIGTERM, true, ""));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_bad_end_makes_a_failure_of_a_success, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_end_by_own_signal_is_not_told, set_up, tear_down),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
