/* Which jobs end when a node is lost, and when. */
#include "daemon/leader/node_losses.h"
#include "tests/unit/leader/leader_test.h"

#define GRACE UINT64_C(10000000)

static uint64_t lose(struct world *w, const char *node) {
        assert_int_equal(health(w, node, RM__NODE_HEALTH__NODE_HEALTH_DOWN), 0);
        return state_node(w->state, node)->health_since_usec;
}

/* `userdata`: the names of the nodes that have. */
static bool has_fenced(void *userdata, const char *node) {
        return strstr(userdata, node);
}

static struct loss *find(const struct world *w, uint64_t now, const char *fenced, size_t *ret_n) {
        const struct node_losses_rule rule = { GRACE, has_fenced, (void *) fenced, false };

        return losses_find(w->indexed, &rule, now, ret_n);
}

/* "JOB:NODE JOB:NODE>ATTEMPT ": the first ends, the second starts again */
static void expect_when(const struct world *w, uint64_t now, const char *fenced, const char *text) {
        size_t n, used = 0;
        struct loss *losses = find(w, now, fenced, &n);
        char have[256] = "";

        for (size_t i = 0; i < n; i++)
                used += (size_t) snprintf(have + used, sizeof(have) - used,
                                          losses[i].answer == LOSS_RESTART ? "%lu:%s>%u " : "%lu:%s ",
                                          (unsigned long) losses[i].job, losses[i].node->name, losses[i].attempt);
        assert_string_equal(have, text);
        free(losses);
}

static void expect(const struct world *w, uint64_t now, const char *text) {
        expect_when(w, now, "n1 n2 n3", text);
}

static void test_nothing_is_lost(void **state) {
        struct world *w = *state;

        expect(w, UINT64_MAX, "");
        (void) run_job(w, "n1", "n2");
        expect(w, UINT64_MAX, "");
        assert_int_equal(health(w, "n2", RM__NODE_HEALTH__NODE_HEALTH_UNKNOWN), 0); /* not known is not lost */
        expect(w, UINT64_MAX, "");
}

static void test_after_a_while(void **state) {
        struct world *w = *state;
        uint64_t at;

        (void) run_job(w, "n2", "n3");
        (void) run_job(w, "n1", "n1");
        at = lose(w, "n3");
        expect(w, at + GRACE - 1, "");
        expect(w, at + GRACE, "1:n3 ");
        assert_int_equal(health(w, "n3", RM__NODE_HEALTH__NODE_HEALTH_UP), 0);
        expect(w, at + GRACE, "");
}

/* Each once, however many of its nodes are lost; the head counts as any other. */
static void test_each_job_once(void **state) {
        struct world *w = *state;
        uint64_t at;

        (void) run_job(w, "n2", "n3");
        (void) run_job(w, "n2", "n2");
        (void) lose(w, "n2");
        at = lose(w, "n3");
        expect(w, at + GRACE, "1:n2 2:n2 ");
        at = lose(w, "n1");
        expect(w, at + GRACE, "1:n1 2:n1 ");
}

/* A job that is ending anyway, or that waits, loses nothing; a capsule that has moved away is
 * safe. */
static void test_others_go_on(void **state) {
        struct world *w = *state;
        uint64_t ends_now = run_job(w, "n2", "n2"), moved = run_job(w, "n1", "n2"), at;

        assert_int_equal(ends(w, ends_now, 0, 0, ""), 0);
        (void) submit(w, 1);
        assert_int_equal(move_start(w, moved, 1, "n3"), 0);
        assert_int_equal(move_commit(w, w->created), 0);
        at = lose(w, "n2");
        expect(w, at + GRACE, "");
}

static void reason_is(const struct world *w, uint64_t at, const char *text) {
        size_t n;
        struct loss *losses = find(w, at, "n1 n2 n3", &n);
        char *reason;

        assert_int_equal(n, 1);
        reason = loss_reason(&losses[0], state_job(w->state, losses[0].job));
        assert_string_equal(reason, text);
        free(reason);
        free(losses);
}

/* A job starts again as often as it may; then it ends, and says how often that was. */
static void test_starts_again(void **state) {
        static const char *const nodes[] = { "n1", "n1" };
        static const uint32_t ranks[] = { 2, 2 };
        struct world *w = *state;
        uint64_t job = run_job(w, "n2", "n2"), at;

        let_restart(w, job, 1);
        expect(w, UINT64_MAX, ""); /* who is not DOWN is heard of */
        at = lose(w, "n2");
        expect_when(w, at + 100 * GRACE, "n1 n3", ""); /* however long it takes */
        expect_when(w, at, "n2", "1:n2>2 ");
        reason_is(w, at + GRACE, "node n2 is down");
        assert_int_equal(restart(w, job, 2, "n2", true), 0);
        expect(w, at + GRACE, ""); /* n1 removes the head */
        assert_int_equal(gone(w, job, STATE_HEAD, "n1"), 0);
        expect(w, at + GRACE, "");
        assert_int_equal(place(w, job, "n3", nodes, ranks, 2), 0);
        expect(w, at + GRACE, "");
        at = lose(w, "n1");
        expect(w, at + GRACE, "1:n1 ");
        reason_is(w, at + GRACE, "node n1 is down, and the job has been restarted 1 time (--restarts 1)");
}

/* All lost nodes are left, also one that is lost while the rest of the job on others is removed. */
static void test_starts_again_without_any_of_them(void **state) {
        struct world *w = *state;
        uint64_t job = run_job(w, "n2", "n3"), at;

        let_restart(w, job, 3);
        (void) lose(w, "n2");
        at = lose(w, "n3");
        expect(w, at + GRACE, "1:n2>2 1:n3>2 ");
        assert_int_equal(restart(w, job, 2, "n2", true), 0);
        expect(w, at + GRACE, "1:n3>2 ");
        assert_int_equal(restart(w, job, 2, "n3", true), 0);
        at = lose(w, "n1");
        expect_when(w, at + GRACE, "n2 n3", "");
        expect_when(w, at, "n1", "1:n1>2 ");
}

/* mpirun may have ended because of it; the head tells nothing of that. Nobody else ends such a
 * job. */
static void test_starts_again_though_mpirun_has_ended(void **state) {
        struct world *w = *state;
        uint64_t job, other, at;

        job = run_job(w, "n2", "n3");
        other = run_job(w, "n2", "n2");
        let_restart(w, job, 1);
        let_restart(w, other, 1);
        assert_int_equal(ends(w, job, 1, 0, ""), 0);
        assert_int_equal(ends(w, other, 0, 0, ""), 0);
        expect(w, UINT64_MAX, "");
        at = lose(w, "n3");
        expect_when(w, at + 100 * GRACE, "n1 n2", "");
        expect_when(w, at, "n3", "1:n3>2 ");
        at = lose(w, "n1");
        expect_when(w, at + GRACE, "n1", "");
        assert_int_equal(restart(w, job, 2, "n3", true), 0);
        expect_when(w, at + GRACE, "n1", "1:n1>2 ");
}

/* The end of the job is asked for. */
static void test_cancelled_one_does_not_start_again(void **state) {
        struct world *w = *state;
        uint64_t job = run_job(w, "n2", "n2"), at;

        let_restart(w, job, 3);
        assert_int_equal(cancel(w, job, 15, false), 0);
        at = lose(w, "n2");
        expect(w, at + GRACE, "1:n2 ");
        reason_is(w, at + GRACE, "node n2 is down");
}

static void expect_fence(const struct world *w, uint64_t at, const char *fenced, const char *text) {
        static const char *const words[] = { [LOSS_END] = "ends", [LOSS_RESTART] = "restarts", [LOSS_FENCE] = "fence" };
        const struct node_losses_rule rule = { GRACE, has_fenced, (void *) fenced, true };
        size_t n, used = 0;
        struct loss *losses = losses_find(w->indexed, &rule, at, &n);
        char have[256] = "";

        for (size_t i = 0; i < n; i++)
                used += (size_t) snprintf(have + used, sizeof(have) - used, "%lu:%s:%s ", (unsigned long) losses[i].job,
                                          losses[i].node->name, words[losses[i].answer]);
        assert_string_equal(have, text);
        free(losses);
}

/* Where a plugin must fence a node: each node once, not before its lease is over; not for jobs that
 * end. */
static void test_waits_for_fence(void **state) {
        struct world *w = *state;
        uint64_t job = run_job(w, "n1", "n2"), other = run_job(w, "n1", "n2"), at;

        (void) run_job(w, "n1", "n2");
        let_restart(w, job, 3);
        let_restart(w, other, 3);
        at = lose(w, "n2");
        expect_fence(w, at, "n1", "");
        expect_fence(w, at, "n2", "1:n2:fence ");
        expect_fence(w, at + GRACE, "n2", "1:n2:fence 3:n2:ends ");
        assert_int_equal(node_fence(w, "n2", at, false, "plugin 'x' runs"), 0);
        expect_fence(w, at, "n2", "1:n2:fence ");
        assert_int_equal(node_fence(w, "n2", at, true, "done"), 0);
        expect_fence(w, at, "n1", "");
        expect_fence(w, at, "n2", "1:n2:restarts 2:n2:restarts ");
        /* The same holds for a node that is lost while the rest of the job is removed. */
        assert_int_equal(restart(w, job, 2, "n2", true), 0);
        at = lose(w, "n1");
        expect_fence(w, at, "n1", "1:n1:fence ");
        assert_int_equal(node_fence(w, "n1", at, true, "done"), 0);
        expect_fence(w, at, "n1", "1:n1:restarts 2:n1:restarts ");
}

#define T(test) cmocka_unit_test_setup_teardown(test, leader_set_up, leader_tear_down)

int main(void) {
        const struct CMUnitTest tests[] = { T(test_nothing_is_lost),
                                            T(test_after_a_while),
                                            T(test_each_job_once),
                                            T(test_others_go_on),
                                            T(test_starts_again),
                                            T(test_starts_again_without_any_of_them),
                                            T(test_starts_again_though_mpirun_has_ended),
                                            T(test_waits_for_fence),
                                            T(test_cancelled_one_does_not_start_again) };

        return cmocka_run_group_tests_name("losses", tests, NULL, NULL);
}
