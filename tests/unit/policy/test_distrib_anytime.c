/* distrib with too little time, large problems' methods on small ones, and jobs that wait for
 * long. */
#include <inttypes.h>
#include <stdio.h>

#include "common/util.h"
#include "placement/cost.h"
#include "placement/pack.h"
#include "policies/distrib/large.h"
#include "tests/unit/policy/exhaustive.h"
#include "tests/unit/repeat.h"

/* Time that runs out after so many looks at the clock. */
static uint64_t looks_left(void *context) {
        uint32_t *looks = context;

        return *looks > 0 ? (*looks)--, UINT64_C(1000000) : 0;
}

/* A clock that goes on by a millisecond with each look. */
static uint64_t milliseconds_left(void *context) {
        uint32_t *looks = context;

        return *looks > 0 ? (*looks)-- * UINT64_C(1000) : 0;
}

static void check_claims(const struct rm_snapshot *snapshot, const struct rm_plan *plan, int64_t bound, bool proven,
                         uint32_t seed) {
        struct rm_error err = { 0 };
        int64_t cost, least;

        if (plan_validate(snapshot, plan, &err) < 0)
                fail_msg("seed %" PRIu32 ": %s", seed, error_text(&err));
        assert_int_equal(cost_plan(snapshot, plan, &cost), 0);
        least = exhaustive_least(snapshot, plan);
        if (cost < least || bound > least || (proven && cost != least))
                fail_msg("seed %" PRIu32 ": cost %" PRId64 ", bound %" PRId64 "%s, the least is %" PRId64, seed, cost, bound,
                         proven ? ", proven" : "", least);
}

static void too_little_time(void **state) {
        struct test_policy policy;
        int open = 0;

        (void) state;
        test_policy_load(&policy, "distrib");
        for (uint32_t seed = 1; seed <= repetitions(800); seed++) {
                struct dice dice = { seed };
                struct exhaustive_kind kind = { .groups = seed % 2, .running = seed % 3 == 0, .limits = seed % 5 == 0 };
                cleanup_snapshot struct snapshot *snapshot = exhaustive_instance(&dice, &kind);
                cleanup_plan struct rm_plan *plan = plan_create(snapshot_view(snapshot));
                uint32_t looks = seed % 40;
                struct rm_policy_run run = { .size = sizeof(run), .context = &looks, .left_usec = looks_left };

                if (policy.plugin->place(NULL, snapshot_view(snapshot), &run, plan) < 0)
                        continue;
                check_claims(snapshot_view(snapshot), plan, plan->bound, plan->proven, seed);
                open += !plan->proven;
        }
        print_message("%d left open\n", open);
        assert_true(open > 0);
        test_policy_unload(&policy);
}

/* The method for ten thousand nodes never claims a false bound. */
static void wide_bounds(void **state) {
        struct test_policy policy;
        int gained = 0;

        (void) state;
        test_policy_load(&policy, "greedy");
        for (uint32_t seed = 1; seed <= repetitions(1500); seed++) {
                struct dice dice = { seed };
                struct exhaustive_kind kind = { .groups = seed % 3 == 0, .running = seed % 4 == 0, .limits = seed % 5 == 0 };
                cleanup_snapshot struct snapshot *snapshot = exhaustive_instance(&dice, &kind);
                cleanup_plan struct rm_plan *plan = NULL;
                uint32_t looks = 300;
                struct rm_policy_run run = { .size = sizeof(run), .context = &looks, .left_usec = milliseconds_left };
                struct deadline deadline = { .run = &run };
                struct large_result result;
                int64_t before;

                if (test_policy_place(&policy, snapshot_view(snapshot), &plan) < 0)
                        continue;
                assert_int_equal(cost_plan(snapshot_view(snapshot), plan, &before), 0);
                assert_int_equal(large_run(snapshot_view(snapshot), &deadline, 0, plan, &result), 0);
                check_claims(snapshot_view(snapshot), plan, result.bound, result.bound >= result.cost, seed);
                gained += result.cost < before;
        }
        print_message("%d better than greedy\n", gained);
        assert_true(gained > 0);
        test_policy_unload(&policy);
}

/* ---- ageing ---- */

/* A cluster of 8 cores on which a job of 4 ranks and high priority arrives every round and runs for
 * two; one of 8 ranks and low priority waits. Returns the round in which it is placed. */
static uint32_t rounds_until_placed(const struct test_policy *policy) {
        uint32_t last_placed = UINT32_MAX; /* the round in which a small one was placed last */

        for (uint32_t round = 0; round < 40; round++) {
                cleanup_snapshot struct snapshot *snapshot = snapshot_create();
                cleanup_plan struct rm_plan *plan = NULL;
                bool runs = last_placed != UINT32_MAX && last_placed + 1 == round;

                for (int s = 0; s < 2; s++)
                        snapshot_add_node(snapshot, s ? "n2" : "n1", 4)->penalty = 1;
                snapshot_add_job(snapshot, "big", 8, 1)->priority = 1;
                snapshot_job(snapshot, 0)->age = round;
                if (runs) {
                        snapshot_add_job(snapshot, "running", 4, 1)->priority = 8;
                        for (uint32_t g = 0; g < 4; g++)
                                snapshot_group(snapshot, 1, g)->node = 0;
                }
                snapshot_add_job(snapshot, "new", 4, 1)->priority = 8;
                assert_int_equal(test_policy_place(policy, snapshot_view(snapshot), &plan), 0);
                if (plan->jobs[0].decision == RM_PLACE)
                        return round;
                if (plan->jobs[runs ? 2 : 1].decision == RM_PLACE)
                        last_placed = round;
        }
        return UINT32_MAX;
}

static void nobody_starves(void **state) {
        static const char *const names[] = { "greedy", "distrib" };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
                struct test_policy policy;
                uint32_t round;

                test_policy_load(&policy, names[i]);
                round = rounds_until_placed(&policy);
                assert_true(round > 4); /* the others come first as long as it has not waited */
                assert_true(round < 12);
                test_policy_unload(&policy);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(too_little_time),
                cmocka_unit_test(wide_bounds),
                cmocka_unit_test(nobody_starves),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
