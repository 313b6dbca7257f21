/* Branch and price of distrib against trying everything: what it proves is so, and it proves what
 * is so. */
#include <inttypes.h>
#include <stdlib.h>

#include "common/util.h"
#include "placement/cost.h"
#include "policies/distrib/pattern.h"
#include "tests/unit/policy/exhaustive.h"
#include "tests/unit/repeat.h"

struct looking {
        int64_t target;
        int supports;
};

static int64_t target_of(void *context) {
        return ((struct looking *) context)->target;
}

static int64_t enough_time(void *context) {
        (void) context;
        return INT64_C(1000000);
}

static void no_other_way(void *context) {
        (void) context;
}

static void count_support(void *context, const bool *support) {
        (void) support;
        ((struct looking *) context)->supports++;
}

static int run(const struct problem *problem, const uint32_t *values, int64_t target, int64_t *ret_bound, int *ret_supports) {
        struct looking looking = { .target = target };
        struct pattern_host host = { .context = &looking,
                                     .target = target_of,
                                     .left_usec = enough_time,
                                     .improve = no_other_way,
                                     .try_support = count_support };
        struct pattern *pattern = pattern_create(problem, &host, &(struct pattern_start) { .values = values });
        uint64_t branches = 0;
        int r = 0;

        assert_non_null(pattern);
        for (int i = 0; i < 1000 && r == 0; i++) /* it goes on where it was */
                r = pattern_run(pattern, 10, &branches);
        *ret_bound = pattern_bound(pattern);
        *ret_supports = looking.supports;
        pattern_destroy(pattern);
        return r;
}

static void proves_what_is_so(void **state) {
        struct test_policy greedy;
        int proven = 0, found = 0;

        (void) state;
        test_policy_load(&greedy, "greedy");
        for (uint32_t seed = 1; seed <= repetitions(1500); seed++) {
                struct dice dice = { seed };
                struct exhaustive_kind kind = { .limits = seed % 3 == 0 };
                cleanup_snapshot struct snapshot *snapshot = exhaustive_instance(&dice, &kind);
                cleanup_plan struct rm_plan *plan = NULL;
                cleanup_free uint32_t *values = NULL;
                struct problem problem;
                int64_t cost, least, bound;
                int supports;

                if (test_policy_place(&greedy, snapshot_view(snapshot), &plan) < 0)
                        continue;
                assert_int_equal(problem_init(&problem, snapshot_view(snapshot), plan, 1000), 0);
                values = xcalloc((size_t) problem.n_jobs * problem.n_nodes + 1, sizeof(*values));
                cost = problem_read_plan(&problem, plan, values);
                least = exhaustive_least(snapshot_view(snapshot), plan);
                if (pattern_applies(&problem, cost)) {
                        if (run(&problem, values, least - 1, &bound, &supports) != 1 || bound > least)
                                fail_msg("seed %" PRIu32 ": not proven, or a bound of %" PRId64 ", the least is %" PRId64, seed,
                                         bound, least);
                        proven++;
                        if (run(&problem, values, least, &bound, &supports) == 1 || bound > least)
                                fail_msg("seed %" PRIu32 ": there is a plan of %" PRId64, seed, least);
                        found += supports > 0;
                }
                problem_finish(&problem);
        }
        print_message("%d proven, %d led to a plan\n", proven, found);
        assert_true(proven > (int) repetitions(1500) / 3 && found > proven / 2);
        test_policy_unload(&greedy);
}

int main(void) {
        const struct CMUnitTest tests[] = { cmocka_unit_test(proves_what_is_so) };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
