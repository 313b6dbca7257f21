/* How often nodes are lost, how many losses were foreseen, and for how long nodes were there to be
 * lost. */
#include "state_test.h"

#define HOUR_USEC (3600 * UINT64_C(1000000))
#define STEP_USEC 1000 /* of the clock, with each command */

enum { UNKNOWN, UP, DOWN };
enum { OK, WARN, FAILING, CRITICAL };

static int set_up(void **state) {
        return world_start(state, 3, 4);
}

static void expect(const struct world *w, uint64_t losses, uint64_t foreseen) {
        struct state_failures f;

        state_failures(w->state, 0, &f);
        assert_int_equal(f.losses, losses);
        assert_int_equal(f.foreseen, foreseen);
}

static uint64_t node_usec(const struct world *w, uint64_t now_usec) {
        struct state_failures f;

        state_failures(w->state, now_usec, &f);
        return f.node_usec;
}

/* Head and one group. */
static uint64_t job_on(struct world *w, const char *node) {
        const char *const nodes[] = { node };
        static const uint32_t ranks[] = { 2 };
        int id = submit(w, 2);

        assert_true(id > 0);
        assert_int_equal(place(w, (uint64_t) id, node, nodes, ranks, 1), 0);
        return (uint64_t) id;
}

static void test_losses(void **state) {
        struct world *w = *state;

        expect(w, 0, 0);
        assert_int_equal(health(w, "n1", DOWN), 0);
        expect(w, 1, 0);
        assert_int_equal(health(w, "n1", DOWN), 0);
        expect(w, 1, 0);
        assert_int_equal(health(w, "n1", UP), 0);
        expect(w, 1, 0);
        assert_int_equal(health(w, "n1", DOWN), 0);
        expect(w, 2, 0);
        /* The node is back, started again: that was counted. */
        w->boot = 1;
        assert_int_equal(join(w, "n1", 4), 0);
        expect(w, 2, 0);
}

static void test_foreseen(void **state) {
        struct world *w = *state;

        for (int said = WARN; said <= CRITICAL; said++) {
                assert_int_equal(condition(w, "n1", "edac", said, "errors"), 0);
                assert_int_equal(health(w, "n1", DOWN), 0);
                expect(w, (uint64_t) said, (uint64_t) said);
                assert_int_equal(health(w, "n1", UP), 0);
        }
        /* A report about another node foresees nothing. */
        assert_int_equal(health(w, "n2", DOWN), 0);
        expect(w, 4, 3);
        /* A report that the node is well comes too late to be the first one. */
        assert_int_equal(condition(w, "n3", "edac", OK, ""), 0);
        assert_int_equal(health(w, "n3", DOWN), 0);
        expect(w, 5, 3);
}

/* A loss that a condition announced, and that still took work with it, was not avoided. */
static void test_not_avoided(void **state) {
        struct world *w = *state;
        uint64_t id = job_on(w, "n1");
        uint64_t losses = 0;

        for (int said = WARN; said <= CRITICAL; said++) {
                assert_int_equal(condition(w, "n1", "edac", said, "errors"), 0);
                assert_int_equal(health(w, "n1", DOWN), 0);
                expect(w, ++losses, 0);
                assert_int_equal(health(w, "n1", UP), 0);
        }
        /* A report of a while ago saves as little. */
        assert_int_equal(condition(w, "n1", "edac", OK, ""), 0);
        assert_int_equal(health(w, "n1", DOWN), 0);
        expect(w, ++losses, 0);
        assert_int_equal(health(w, "n1", UP), 0);
        assert_int_equal(cancel(w, id, 15, false), 0);
        assert_int_equal(ends(w, id, 143, RM__JOB_STATE__JOB_CANCELLED, ""), 0);
        assert_int_equal(gone(w, id, STATE_HEAD, "n1"), 0);
        assert_int_equal(gone(w, id, 0, "n1"), 0);
        assert_int_equal(health(w, "n1", DOWN), 0);
        expect(w, ++losses, 1);
}

/* A head that is left on the node is enough, and so is a group that has begun to leave it. The
 * reboot comes before the node is missed. */
static void test_not_all_avoided(void **state) {
        struct world *w = *state;
        const char *const nodes[] = { "n2" };
        static const uint32_t ranks[] = { 2 };
        int id = submit(w, 2);

        assert_int_equal(place(w, (uint64_t) id, "n1", nodes, ranks, 1), 0);
        assert_int_equal(condition(w, "n1", "edac", FAILING, "errors"), 0);
        assert_int_equal(condition(w, "n2", "edac", FAILING, "errors"), 0);
        w->boot = 1;
        assert_int_equal(join(w, "n1", 4), 0);
        expect(w, 1, 0);
        assert_int_equal(join(w, "n2", 4), 0);
        expect(w, 2, 0);
}

/* Nodes that know less apply the same log: until all know it, each counts as before. */
static void test_not_avoided_in_older_log(void **state) {
        struct world *w = *state;

        w->state->level = w->twin->level = STATE_LEVEL_AVOIDED - 1;
        (void) job_on(w, "n1");
        assert_int_equal(condition(w, "n1", "edac", WARN, "errors"), 0);
        assert_int_equal(health(w, "n1", DOWN), 0);
        expect(w, 1, 1);
}

/* A report is not forgotten at once. */
static void test_foreseen_within_a_day(void **state) {
        struct world *w = *state;

        for (int i = 0; i < 2; i++) {
                assert_int_equal(condition(w, "n1", "edac", WARN, "errors"), 0);
                assert_int_equal(condition(w, "n1", "hwmon", FAILING, "hot"), 0);
                w->time_usec += 100 * HOUR_USEC; /* it lasts */
                assert_int_equal(condition(w, "n1", "edac", OK, ""), 0);
                assert_int_equal(condition(w, "n1", "hwmon", OK, ""), 0);
                w->time_usec += 24 * HOUR_USEC - STEP_USEC + (i == 0 ? 0 : 1);
                assert_int_equal(health(w, "n1", DOWN), 0);
                expect(w, 1 + (uint64_t) i, 1);
                assert_int_equal(health(w, "n1", UP), 0);
        }
}

/* A node that is switched off while it is drained, or removed, is not lost, as long as it was
 * empty. */
static void test_maintenance(void **state) {
        struct world *w = *state;

        assert_int_equal(drain(w, "n1", "disk", false), 0);
        assert_int_equal(health(w, "n1", DOWN), 0);
        expect(w, 0, 0);
        w->boot = 1;
        assert_int_equal(join(w, "n1", 4), 0);
        assert_int_equal(resume(w, "n1"), 0);
        expect(w, 0, 0);
        /* The node is started again before it is missed. */
        assert_int_equal(drain(w, "n2", "kernel", false), 0);
        assert_int_equal(join(w, "n2", 4), 0);
        expect(w, 0, 0);
        assert_int_equal(remove_node(w, "n2"), 0);
        expect(w, 0, 0);
        (void) job_on(w, "n3");
        assert_int_equal(drain(w, "n3", "fan", false), 0);
        assert_int_equal(health(w, "n3", DOWN), 0);
        expect(w, 1, 0);
}

/* A node that keeps the log leaves when another one does. */
static void test_removal_of_voter(void **state) {
        static const char *const voters[] = { "n2" };
        struct world *w = *state;

        assert_int_equal(keep_log(w, voters, 1), 0);
        assert_int_equal(remove_node(w, "n2"), 0);
        assert_non_null(state_node(w->state, "n2"));
        assert_int_equal(health(w, "n2", DOWN), 0);
        expect(w, 0, 0);
}

static void test_reboot_before_it_is_missed(void **state) {
        struct world *w = *state;

        assert_int_equal(join(w, "n1", 8), 0); /* rmd alone was started again */
        expect(w, 0, 0);
        w->boot = 1;
        assert_int_equal(condition(w, "n1", "edac", WARN, "errors"), 0);
        assert_int_equal(join(w, "n1", 4), 0);
        expect(w, 1, 1);
}

/* A leader that has just begun may be cut off itself. */
static void test_unknown(void **state) {
        struct world *w = *state;

        assert_int_equal(health(w, "n1", UNKNOWN), 0);
        assert_int_equal(health(w, "n1", DOWN), 0);
        expect(w, 0, 0);
        (void) job_on(w, "n2");
        assert_int_equal(health(w, "n2", UNKNOWN), 0);
        expect(w, 0, 0);
        assert_int_equal(health(w, "n2", DOWN), 0);
        expect(w, 1, 0);
}

static void test_node_time(void **state) {
        struct world *w = *state;
        uint64_t known = node_usec(w, 0);

        assert_int_equal(known, STEP_USEC + 2 * STEP_USEC); /* n1, then n1 and n2 */
        w->time_usec += HOUR_USEC;
        assert_int_equal(node_usec(w, 0), known); /* no command has told of it */
        assert_int_equal(node_usec(w, w->time_usec), known += 3 * HOUR_USEC);
        assert_int_equal(note(w, "x"), 0);
        assert_int_equal(node_usec(w, 0), known += 3 * STEP_USEC);
        assert_int_equal(node_usec(w, 1), known); /* another clock is behind */
        assert_int_equal(health(w, "n2", UNKNOWN), 0);
        assert_int_equal(health(w, "n3", DOWN), 0);
        known += 3 * STEP_USEC + 2 * STEP_USEC;
        w->time_usec += HOUR_USEC;
        assert_int_equal(health(w, "n2", UP), 0);
        assert_int_equal(node_usec(w, 0), known += HOUR_USEC + STEP_USEC);
        assert_int_equal(remove_node(w, "n2"), 0);
        known += 2 * STEP_USEC;
        w->time_usec += HOUR_USEC;
        assert_int_equal(join(w, "n3", 4), 0);
        assert_int_equal(node_usec(w, 0), known += HOUR_USEC + STEP_USEC);
}

#define T(test) cmocka_unit_test_setup_teardown(test, set_up, world_tear_down)

int main(void) {
        const struct CMUnitTest tests[] = {
                T(test_losses),
                T(test_foreseen),
                T(test_foreseen_within_a_day),
                T(test_maintenance),
                T(test_removal_of_voter),
                T(test_reboot_before_it_is_missed),
                T(test_unknown),
                T(test_node_time),
                T(test_not_avoided),
                T(test_not_all_avoided),
                T(test_not_avoided_in_older_log),
        };

        return cmocka_run_group_tests_name("failures", tests, NULL, NULL);
}
