/* The parts that make plans and bounds of large problems, on small ones: each part by itself, and
 * all of it on problems of every kind. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/util.h"
#include "placement/cost.h"
#include "placement/pack.h"
#include "placement/relaxation.h"
#include "policies/distrib/anneal_large.h"
#include "policies/distrib/dive.h"
#include "policies/distrib/lagrangian.h"
#include "policies/distrib/large.h"
#include "policies/distrib/repair.h"
#include "tests/unit/policy/drawn.h"
#include "tests/unit/policy/exhaustive.h"
#include "tests/unit/repeat.h"

/* ---- pieces ---- */

static void pieces_bound(void **state) {
        struct test_policy policy;
        int tight = 0, tight_running = 0;

        (void) state;
        test_policy_load(&policy, "greedy");
        for (uint32_t seed = 1; seed <= repetitions(2000); seed++) {
                struct dice dice = { seed };
                struct exhaustive_kind kind = {
                        .groups = seed % 3 > 0, .running = seed % 2 == 0, .limits = seed % 5 == 0, .pins = seed % 8 == 0
                };
                cleanup_snapshot struct snapshot *snapshot = exhaustive_instance(&dice, &kind);
                const struct rm_snapshot *view = snapshot_view(snapshot);
                cleanup_plan struct rm_plan *plan = NULL;
                uint32_t looks = 1000;
                struct rm_policy_run run = { .size = sizeof(run), .context = &looks, .left_usec = drawn_milliseconds_left };
                struct deadline deadline = { .run = &run };
                struct relaxation relaxation;
                struct lagrangian *lagrangian;
                int64_t cost, bound, least;

                if (test_policy_place(&policy, view, &plan) < 0)
                        continue;
                assert_int_equal(relaxation_init(&relaxation, view, plan), 0);
                assert_int_equal(cost_plan(view, plan, &cost), 0);
                lagrangian = lagrangian_create(&relaxation, view);
                assert_true(lagrangian || relaxation.n_demands == 0 || relaxation.n_classes == 0);
                if (lagrangian) {
                        bound = lagrangian_raise(lagrangian, cost, &deadline, 0, 200);
                        least = exhaustive_least(view, plan);
                        if (bound > least)
                                fail_msg("seed %" PRIu32 ": bound %" PRId64 ", the least is %" PRId64, seed, bound, least);
                        tight += bound == least;
                        tight_running += bound == least && lagrangian->homes.n_sites > 0;
                }
                lagrangian_destroy(lagrangian);
                relaxation_finish(&relaxation);
        }
        print_message("%d tight, %d of them with jobs that run\n", tight, tight_running);
        assert_true(tight > 100 && tight_running > 30);
        test_policy_unload(&policy);
}

/* A node that one job fills to two thirds: what is left is not worth as much to another of the same
 * size. */
static void pieces_know_what_is_left_of_nodes(void **state) {
        cleanup_snapshot struct snapshot *snapshot = snapshot_create();
        const struct rm_snapshot *view;
        cleanup_plan struct rm_plan *plan = NULL;
        uint32_t looks = 10000;
        struct rm_policy_run run = { .size = sizeof(run), .context = &looks, .left_usec = drawn_milliseconds_left };
        struct deadline deadline = { .run = &run };
        struct relaxation relaxation;
        struct lagrangian *lagrangian;
        int64_t relaxed, by_pieces, weight;

        (void) state;
        snapshot_add_node(snapshot, "good", 60)->penalty = 1;
        snapshot_add_node(snapshot, "bad", 60)->penalty = 3;
        snapshot_add_job(snapshot, "a", 40, 1)->priority = 1;
        snapshot_add_job(snapshot, "b", 40, 1)->priority = 1;
        view = snapshot_view(snapshot);
        weight = view->params.distribution_weight;
        plan = plan_create(view);
        assert_int_equal(pack_plan(view, plan, true), 0);
        assert_int_equal(relaxation_init(&relaxation, view, plan), 0);
        relaxed = relaxation_bound(&relaxation, weight);
        lagrangian = lagrangian_create(&relaxation, view);
        by_pieces = lagrangian_raise(lagrangian, 150, &deadline, 0, 1000);
        print_message("by relaxation %" PRId64 ", by pieces %" PRId64 "\n", relaxed, by_pieces);
        assert_true(by_pieces > relaxed);
        assert_true(by_pieces <= 40 + 20 + 3 * 20 + 3 * weight); /* a on good, b on both */
        lagrangian_destroy(lagrangian);
        relaxation_finish(&relaxation);
}

/* ---- dives ---- */

static void check_portions(const struct relaxation *relaxation, const struct rm_snapshot *view, const struct portion *portions,
                           uint32_t n) {
        cleanup_free uint32_t *load = xcalloc(view->n_nodes, sizeof(*load)),
                              *ranks = xcalloc(relaxation->n_demands, sizeof(*ranks));

        for (uint32_t i = 0; i < n; i++) {
                assert_true(portions[i].demand < relaxation->n_demands && portions[i].node < view->n_nodes &&
                            portions[i].ranks > 0);
                load[portions[i].node] += portions[i].ranks;
                ranks[portions[i].demand] += portions[i].ranks;
        }
        for (uint32_t s = 0; s < view->n_nodes; s++)
                assert_true(load[s] <= view->nodes[s].cores);
        for (uint32_t t = 0; t < relaxation->n_demands; t++)
                assert_true(ranks[t] <= relaxation->demands[t].ranks);
}

/* ---- anneal ---- */

static const struct drawn_kind kinds[] = {
        { .nodes = 30, .jobs = 20, .most_ranks = 30, .group_size = 1 },
        { .nodes = 30, .jobs = 20, .most_ranks = 30, .group_size = 1, .running = true },
        { .nodes = 30, .jobs = 20, .most_ranks = 30, .group_size = 4, .running = true },
        { .nodes = 30, .jobs = 20, .most_ranks = 30, .group_size = 3, .running = true, .limits = true },
        { .nodes = 30, .jobs = 20, .most_ranks = 30, .group_size = 2, .running = true, .pins = true },
        { .nodes = 30, .jobs = 20, .most_ranks = 30, .group_size = 1, .limits = true },
};

/* As the anneal of a problem of the first kind, whose jobs may be put anywhere, goes by prices. */
static void set_prices(struct anneal_large *anneal, const struct rm_snapshot *view, const struct rm_plan *plan, int64_t cost,
                       const struct deadline *deadline) {
        struct relaxation relaxation;
        struct lagrangian *lagrangian;

        assert_int_equal(relaxation_init(&relaxation, view, plan), 0);
        lagrangian = lagrangian_create(&relaxation, view);
        (void) lagrangian_raise(lagrangian, cost, deadline, 0, 100);
        assert_int_equal(anneal_large_set_prices(anneal, lagrangian), 0);
        lagrangian_destroy(lagrangian);
        relaxation_finish(&relaxation);
}

static void anneals(void **state) {
        int gained[ARRAY_SIZE(kinds)] = { 0 };

        (void) state;
        for (uint32_t seed = 0; seed < repetitions(240); seed++) {
                struct dice dice = { seed + 1 };
                cleanup_snapshot struct snapshot *snapshot = drawn_snapshot(&dice, &kinds[seed % ARRAY_SIZE(kinds)]);
                const struct rm_snapshot *view = snapshot_view(snapshot);
                cleanup_plan struct rm_plan *plan = plan_create(view);
                uint32_t looks = 200;
                struct rm_policy_run run = { .size = sizeof(run), .context = &looks, .left_usec = drawn_milliseconds_left };
                struct deadline deadline = { .run = &run };
                struct rm_error err = { 0 };
                struct anneal_large *anneal;
                int64_t before, after, gain;

                if (pack_plan(view, plan, true) < 0 || !(anneal = anneal_large_create(view, plan, seed)))
                        continue;
                assert_int_equal(cost_plan(view, plan, &before), 0);
                if (seed % ARRAY_SIZE(kinds) == 0 && seed % 4 == 0)
                        set_prices(anneal, view, plan, before, &deadline);
                looks = 20;
                gain = anneal_large_run(anneal, &deadline, 0, 1000000, 0.05, 0.001);
                assert_int_equal(anneal_large_write(anneal, plan), 0);
                if (plan_validate(view, plan, &err) < 0)
                        fail_msg("seed %" PRIu32 ": %s", seed, error_text(&err));
                assert_int_equal(cost_plan(view, plan, &after), 0);
                if (before - after != gain || gain < 0)
                        fail_msg("seed %" PRIu32 ": from %" PRId64 " to %" PRId64 ", which is not %" PRId64 " less", seed, before,
                                 after, gain);
                gained[seed % ARRAY_SIZE(kinds)] += gain > 0;
                anneal_large_destroy(anneal);
        }
        for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
                assert_true(gained[i] > 0);
}

/* ---- plans that are completed ---- */

/* The jobs run and have groups: the placement of a dive is valid, and the plan that it is made into
 * costs as much as it is said to. */
static void repairs(void **state) {
        uint64_t placed = 0, all = 0;
        int better = 0, n_plans = 0;

        (void) state;
        for (uint32_t seed = 0; seed < repetitions(60); seed++) {
                struct dice dice = { seed + 1 };
                cleanup_snapshot struct snapshot *snapshot = drawn_snapshot(&dice, &kinds[seed % 5]);
                const struct rm_snapshot *view = snapshot_view(snapshot);
                cleanup_plan struct rm_plan *plan = plan_create(view);
                uint32_t looks = 10000, n = 0;
                struct rm_policy_run run = { .size = sizeof(run), .context = &looks, .left_usec = drawn_milliseconds_left };
                struct deadline deadline = { .run = &run };
                struct portion *portions = NULL;
                struct relaxation relaxation;
                struct rm_error err = { 0 };
                struct lagrangian *lagrangian;
                int64_t before, after, said, bound;

                if (pack_plan(view, plan, true) < 0)
                        continue;
                assert_int_equal(cost_plan(view, plan, &before), 0);
                assert_int_equal(relaxation_init(&relaxation, view, plan), 0);
                lagrangian = lagrangian_create(&relaxation, view);
                bound = lagrangian_raise(lagrangian, before, &deadline, 0, 200);
                if (seed % 4 > 0)
                        assert_int_equal(dive_run(lagrangian, view, &deadline, 0, seed, &portions, &n), 0);
                check_portions(&relaxation, view, portions, n);
                said = before;
                assert_int_equal(repair_run(view, &relaxation, portions, n, plan, &said), 0);
                if (plan_validate(view, plan, &err) < 0)
                        fail_msg("seed %" PRIu32 ": %s", seed, error_text(&err));
                assert_int_equal(cost_plan(view, plan, &after), 0);
                assert_int_equal(after, said);
                assert_true(after <= before && after >= bound);
                assert_true(lagrangian_raise(lagrangian, before, &deadline, 0, 1) >= bound); /* a dive leaves all as it was */
                better += after < before;
                n_plans++;
                for (uint32_t i = 0; i < n; i++)
                        placed += portions[i].ranks;
                for (uint32_t t = 0; t < relaxation.n_demands && n > 0; t++)
                        all += relaxation.demands[t].ranks;
                free(portions);
                lagrangian_destroy(lagrangian);
                relaxation_finish(&relaxation);
        }
        print_message("%" PRIu64 " of %" PRIu64 " ranks placed, %d of %d plans better than packing\n", placed, all, better,
                      n_plans);
        assert_true(placed > all * 3 / 4 && better > n_plans / 3);
}

/* ---- all of it ---- */

/* The problems are of every kind: the plan is valid, the bound below it, and the plan better than
 * greedy's. */
static void all_kinds(void **state) {
        struct test_policy greedy;

        (void) state;
        test_policy_load(&greedy, "greedy");
        for (uint32_t i = 0; i < ARRAY_SIZE(kinds); i++) {
                struct drawn_kind kind = kinds[i];
                struct dice dice = { 77 + i };
                cleanup_snapshot struct snapshot *snapshot = NULL;
                cleanup_plan struct rm_plan *plan = NULL;
                uint32_t looks = 2000;
                struct rm_policy_run run = { .size = sizeof(run), .context = &looks, .left_usec = drawn_milliseconds_left };
                struct deadline deadline = { .run = &run };
                struct large_result result;
                struct rm_error err = { 0 };
                int64_t before, after;

                kind.nodes = 200;
                kind.jobs = 100;
                snapshot = drawn_snapshot(&dice, &kind);
                assert_int_equal(test_policy_place(&greedy, snapshot_view(snapshot), &plan), 0);
                assert_int_equal(cost_plan(snapshot_view(snapshot), plan, &before), 0);
                assert_int_equal(large_run(snapshot_view(snapshot), &deadline, 0, plan, &result), 0);
                if (plan_validate(snapshot_view(snapshot), plan, &err) < 0)
                        fail_msg("kind %" PRIu32 ": %s", i, error_text(&err));
                assert_int_equal(cost_plan(snapshot_view(snapshot), plan, &after), 0);
                print_message("kind %" PRIu32 ": %" PRId64 " by greedy, %" PRId64 " now, at least %" PRId64 "\n", i, before, after,
                              result.bound);
                assert_true(after < before);
                assert_int_equal(result.cost, after);
                assert_true(result.bound <= after && result.bound > 0);
        }
        test_policy_unload(&greedy);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(pieces_bound), cmocka_unit_test(pieces_know_what_is_left_of_nodes),
                cmocka_unit_test(anneals),      cmocka_unit_test(repairs),
                cmocka_unit_test(all_kinds),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
