/* distrib against trying everything. */
#include <inttypes.h>
#include <stdio.h>

#include "common/util.h"
#include "placement/cost.h"
#include "placement/pack.h"
#include "tests/unit/policy/exhaustive.h"
#include "tests/unit/repeat.h"

static void compare_all(uint64_t seed, unsigned most, const struct exhaustive_kind *kind) {
        int rounds = (int) repetitions(most);
        struct dice dice = { seed };
        struct test_policy distrib, greedy;
        int placed = 0, refused = 0, better = 0;

        test_policy_load(&distrib, "distrib");
        test_policy_load(&greedy, "greedy");
        for (int i = 0; i < rounds; i++) {
                cleanup_snapshot struct snapshot *snapshot = exhaustive_instance(&dice, kind);
                cleanup_plan struct rm_plan *plan = NULL, *greedy_plan = NULL;
                struct rm_error err = { 0 };
                int64_t cost, least, greedy_cost;
                int r = test_policy_place(&distrib, snapshot_view(snapshot), &plan);

                if (r < 0) { /* running jobs that fit nowhere, or that pinned groups and limits keep apart */
                        assert_true(kind->running && r == -ENOSPC);
                        refused++;
                        continue;
                }
                if (plan_validate(snapshot_view(snapshot), plan, &err) < 0)
                        fail_msg("instance %d of seed %" PRIu64 ": %s", i, seed, error_text(&err));
                assert_int_equal(cost_plan(snapshot_view(snapshot), plan, &cost), 0);
                least = exhaustive_least(snapshot_view(snapshot), plan);
                if (!plan->proven || cost != least || plan->bound != least)
                        fail_msg("instance %d of seed %" PRIu64 ": cost %" PRId64 ", bound %" PRId64 ", the least is %" PRId64, i,
                                 seed, cost, plan->bound, least);
                placed++;
                if (test_policy_place(&greedy, snapshot_view(snapshot), &greedy_plan) == 0) {
                        assert_int_equal(plan_validate(snapshot_view(snapshot), greedy_plan, &err), 0);
                        assert_int_equal(cost_plan(snapshot_view(snapshot), greedy_plan, &greedy_cost), 0);
                        if (greedy_plan->bound > exhaustive_least(snapshot_view(snapshot), greedy_plan))
                                fail_msg("instance %d of seed %" PRIu64 ": greedy claims a bound of %" PRId64, i, seed,
                                         greedy_plan->bound);
                        better += greedy_cost > cost;
                }
        }
        print_message("%d proven and equal to the exhaustive least, %d without room, greedy was dearer in %d\n", placed, refused,
                      better);
        assert_true(placed > rounds / 4 && refused < rounds / 2);
        test_policy_unload(&distrib);
        test_policy_unload(&greedy);
}

static void single_ranks(void **state) {
        (void) state;
        compare_all(1, 600, &(struct exhaustive_kind) { 0 });
}

static void whole_groups(void **state) {
        (void) state;
        compare_all(2, 600, &(struct exhaustive_kind) { .groups = true });
}

static void running_jobs(void **state) {
        (void) state;
        compare_all(3, 600, &(struct exhaustive_kind) { .running = true });
        compare_all(4, 600, &(struct exhaustive_kind) { .running = true, .groups = true });
}

static void limits_and_pins(void **state) {
        (void) state;
        compare_all(5, 600, &(struct exhaustive_kind) { .limits = true });
        compare_all(6, 600, &(struct exhaustive_kind) { .running = true, .groups = true, .limits = true, .pins = true });
}

/* ---- who waits ---- */

static void lowest_priority_waits(void **state) {
        static const char *const names[] = { "greedy", "distrib" };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
                cleanup_snapshot struct snapshot *snapshot = test_snapshot(
                        "{'version':1,'nodes':[{'name':'n1','cores':6,'penalty':1},{'name':'n2','cores':4,'penalty':1}],'jobs':["
                        "{'name':'low','ranks':2,'priority':1},{'name':'high','ranks':8,'priority':5},"
                        "{'name':'mid','ranks':3,'priority':3},{'name':'huge','ranks':11,'priority':9}]}");
                cleanup_plan struct rm_plan *plan = NULL;
                struct test_policy policy;

                test_policy_load(&policy, names[i]);
                assert_int_equal(test_policy_place(&policy, snapshot_view(snapshot), &plan), 0);
                /* huge fits nowhere and holds up nobody; low may not pass mid, but with backfill,
                 * or when it has waited long enough */
                assert_int_equal(plan->jobs[0].decision, RM_WAIT);
                assert_int_equal(plan->jobs[1].decision, RM_PLACE);
                assert_int_equal(plan->jobs[2].decision, RM_WAIT);
                assert_int_equal(plan->jobs[3].decision, RM_WAIT);
                plan_destroy(take_ptr(plan));
                snapshot_params(snapshot)->backfill = 1;
                assert_int_equal(test_policy_place(&policy, snapshot_view(snapshot), &plan), 0);
                assert_int_equal(plan->jobs[0].decision, RM_PLACE);
                assert_int_equal(plan->jobs[2].decision, RM_WAIT);
                plan_destroy(take_ptr(plan));
                snapshot_params(snapshot)->backfill = 0;
                snapshot_job(snapshot, 0)->age = 3;
                assert_int_equal(test_policy_place(&policy, snapshot_view(snapshot), &plan), 0);
                assert_int_equal(plan->jobs[0].decision, RM_PLACE);
                test_policy_unload(&policy);
        }
}

static void makes_space_for_large_groups(void **state) {
        cleanup_snapshot struct snapshot *snapshot = test_snapshot(
                "{'version':1,'nodes':[{'name':'n1','cores':4,'penalty':1},{'name':'n2','cores':4,'penalty':1}],'jobs':["
                "{'name':'small','ranks':4,'group_size':2,'priority':1,'placed':[{'node':'n1','ranks':2},"
                "{'node':'n2','ranks':2}],'move_cost':5},"
                "{'name':'large','ranks':4,'group_size':4,'priority':1}]}");
        cleanup_plan struct rm_plan *plan = NULL;
        struct test_policy policy;
        int64_t cost;

        (void) state;
        test_policy_load(&policy, "distrib");
        assert_int_equal(test_policy_place(&policy, snapshot_view(snapshot), &plan), 0);
        assert_int_equal(plan->jobs[1].decision, RM_PLACE);
        assert_int_equal(cost_plan(snapshot_view(snapshot), plan, &cost), 0);
        assert_int_equal(cost, 4 + 10 + 4 + 10 + 5);
        test_policy_unload(&policy);
}

/* Half of each of many nodes is free, and a job needs a whole one: others move together, so that
 * nodes become emptier than any was. */
static void room_is_made_on_many_nodes(void **state) {
        static const char *const names[] = { "distrib", "treematch" };
        char *text = NULL;
        size_t size_bytes;
        FILE *out = open_memstream(&text, &size_bytes);

        (void) state;
        (void) fprintf(out, "{'version':1,'nodes':[");
        for (int i = 0; i < 60; i++)
                (void) fprintf(out, "%s{'name':'n%d','cores':4,'penalty':1}", i ? "," : "", i);
        (void) fprintf(out, "],'jobs':[");
        for (int i = 0; i < 60; i++)
                (void) fprintf(out, "{'name':'r%d','ranks':2,'priority':1,'placed':[{'node':'n%d','ranks':2}]},", i, i);
        (void) fprintf(out, "{'name':'w','ranks':4,'group_size':4,'priority':5}]}");
        assert_int_equal(fclose(out), 0);
        for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
                cleanup_snapshot struct snapshot *snapshot = test_snapshot(text);
                cleanup_plan struct rm_plan *plan = NULL;
                struct test_policy policy;
                struct rm_error err = { 0 };

                test_policy_load(&policy, names[i]);
                assert_int_equal(test_policy_place(&policy, snapshot_view(snapshot), &plan), 0);
                if (plan_validate(snapshot_view(snapshot), plan, &err) < 0)
                        fail_msg("%s: %s", names[i], err.text);
                assert_int_equal(plan->jobs[60].decision, RM_PLACE);
                test_policy_unload(&policy);
        }
        free(text);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(room_is_made_on_many_nodes),
                cmocka_unit_test(single_ranks),
                cmocka_unit_test(whole_groups),
                cmocka_unit_test(running_jobs),
                cmocka_unit_test(limits_and_pins),
                cmocka_unit_test(lowest_priority_waits),
                cmocka_unit_test(makes_space_for_large_groups),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
