/* How much longer a folded job takes, from what nodes report of its groups. */
#include "daemon/leader/core_share.h"
#include "tests/unit/state/state_test.h"

#define SECOND UINT64_C(1000000)

struct scene {
        struct world world;
        struct core_share *share;
        uint64_t job;
};

/* Two groups of two ranks, on n1 with a usable core, and on n2 with two. */
static int set_up(void **state) {
        static const char *const nodes[] = { "n1", "n2" };
        static const uint32_t ranks[] = { 2, 2 }, cores[] = { 1, 2 };
        struct scene *s = xcalloc(1, sizeof(*s));
        struct world *w = &s->world;

        world_init(w);
        assert_int_equal(join(w, "n1", 4), 0);
        assert_int_equal(join(w, "n2", 4), 0);
        assert_int_equal(available(w, nodes, cores, 2), 0);
        s->job = (uint64_t) submit(w, 4);
        assert_int_equal(place(w, s->job, "n1", nodes, ranks, 2), 0);
        assert_int_equal(running(w, s->job), 0);
        s->share = core_share_create();
        *state = s;
        return 0;
}

static int tear_down(void **state) {
        struct scene *s = *state;

        core_share_destroy(s->share);
        world_finish(&s->world);
        free(s);
        return 0;
}

/* Reports the share of the last so many seconds. */
static void reports(struct scene *s, int32_t group, uint64_t seconds, double ran, double waited) {
        Rm__CoreShare report = RM__CORE_SHARE__INIT;

        report.job = s->job;
        report.capsule = group;
        report.usec = seconds * SECOND;
        report.ran_usec = (uint64_t) (ran * SECOND);
        report.waited_usec = (uint64_t) (waited * SECOND);
        core_share_add(s->share, s->world.indexed, &report);
}

static double slowdown(const struct scene *s) {
        return core_share_slowdown(s->share, state_job(s->world.state, s->job));
}

#define ABOUT(value, requested) assert_true((value) > (requested) - 0.01 && (value) < (requested) + 0.01)

static void test_slowdown(void **state) {
        struct scene *s = *state;

        assert_true(slowdown(s) == 0);
        reports(s, 0, 2, 2, 2); /* both ranks half of the time */
        ABOUT(slowdown(s), 2.0);
        reports(s, 1, 2, 4, 0);
        ABOUT(slowdown(s), 2.0); /* the slowest group counts */
}

/* A first short report counts for its time. */
static void test_first_report(void **state) {
        struct scene *s = *state;

        reports(s, 0, 1, 0.5, 1.5);
        ABOUT(slowdown(s), 4.0);
        reports(s, 0, 3, 4.5, 1.5); /* 5 of 8 seconds of two ranks */
        ABOUT(slowdown(s), 1.6);
}

static void test_sleepers(void **state) {
        struct scene *s = *state;

        reports(s, 0, 10, 1, 1); /* a twentieth of each rank's time */
        ABOUT(slowdown(s), 1.05);
        reports(s, 1, 10, 10, 30); /* more processes than ranks: a quarter of what they wanted */
        ABOUT(slowdown(s), 4.0);
}

static void test_smoothing(void **state) {
        struct scene *s = *state;

        reports(s, 0, 20, 20, 20);
        reports(s, 0, 2, 4, 0);
        assert_true(slowdown(s) > 1.5 && slowdown(s) < 2);
        for (unsigned i = 0; i < 50; i++)
                reports(s, 0, 2, 4, 0);
        ABOUT(slowdown(s), 1.0);
}

static void test_what_does_not_fit(void **state) {
        struct scene *s = *state;
        static const char *const nodes[] = { "n1" };
        static const uint32_t cores[] = { 4 };

        reports(s, STATE_HEAD, 2, 2, 2);
        reports(s, 2, 2, 2, 2);
        reports(s, 0, 0, 2, 2);
        assert_true(slowdown(s) == 0);
        reports(s, 0, 2, 0, 9); /* more than all of it waited */
        assert_true(slowdown(s) == 0);
        reports(s, 1, 2, 2, 2);
        core_share_forget(s->share, s->world.indexed);
        assert_true(slowdown(s) > 0);
        assert_int_equal(available(&s->world, nodes, cores, 1), 0);
        core_share_forget(s->share, s->world.indexed);
        assert_true(slowdown(s) == 0);
        reports(s, 1, 2, 2, 2); /* not folded any more */
        assert_true(slowdown(s) == 0);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_slowdown, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_first_report, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_sleepers, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_smoothing, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_what_does_not_fit, set_up, tear_down),
        };

        return cmocka_run_group_tests_name("core_share", tests, NULL, NULL);
}
