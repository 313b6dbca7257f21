/* What makes plans where nodes are shared by several jobs, each part by itself. */
#include <inttypes.h>
#include <string.h>

#include "common/util.h"
#include "placement/cost.h"
#include "placement/relaxation.h"
#include "policies/distrib/ejection.h"
#include "policies/distrib/hall.h"
#include "policies/distrib/market.h"
#include "policies/distrib/merge.h"
#include "policies/distrib/pieces.h"
#include "policies/distrib/rankwise.h"
#include "tests/unit/policy/drawn.h"
#include "tests/unit/policy/exhaustive.h"
#include "tests/unit/repeat.h"

/* The bound by linear programming is none that a plan costs less than, is not lower than that of the steps before, and often as good as
 * it can be; and walks with a hall find valid plans, that are not dearer. */
static void markets_and_halls(void **state) {
        struct test_policy policy;
        int markets = 0, raised = 0, tight = 0, walks = 0, better = 0;

        (void) state;
        test_policy_load(&policy, "greedy");
        for (uint32_t seed = 1; seed <= repetitions(1000); seed++) {
                struct dice dice = { seed };
                struct exhaustive_kind kind = { .groups = seed % 3 == 0, .limits = seed % 7 == 0 };
                cleanup_snapshot struct snapshot *snapshot = exhaustive_instance(&dice, &kind);
                const struct rm_snapshot *view = snapshot_view(snapshot);
                cleanup_plan struct rm_plan *plan = NULL;
                uint32_t looks = 1000;
                struct rm_policy_run run = { .size = sizeof(run), .context = &looks, .left_usec = drawn_milliseconds_left };
                struct deadline deadline = { .run = &run };
                struct relaxation relaxation;
                struct pieces *pieces;
                struct market *market;
                struct rm_error err = { 0 };
                int64_t cost, after, before, bound, least;

                if (test_policy_place(&policy, view, &plan) < 0)
                        continue;
                assert_int_equal(relaxation_init(&relaxation, view, plan), 0);
                assert_int_equal(cost_plan(view, plan, &cost), 0);
                pieces = pieces_create(&relaxation, view);
                market = pieces ? market_create(pieces) : NULL;
                if (market) {
                        before = pieces_raise(pieces, cost, &deadline, 0, 3);
                        bound = market_raise(market, &deadline, 700 * 1000);
                        least = exhaustive_least(view, plan);
                        if (bound > least || bound < before)
                                fail_msg("seed %" PRIu32 ": bound %" PRId64 " after %" PRId64 ", the least is %" PRId64, seed,
                                         bound, before, least);
                        markets++;
                        raised += bound > before;
                        tight += bound == least;
                }
                market_destroy(market);
                if (pieces && hall_applies(pieces, view)) {
                        struct hall *hall = hall_create(pieces, view, 1000 * 1000, plan);

                        assert_non_null(hall);
                        assert_true(hall_walk(hall, &deadline, 0, 100 * 1000, seed) <= cost);
                        rankwise_write(&relaxation, hall_nodes(hall), plan);
                        hall_destroy(hall);
                        if (plan_validate(view, plan, &err) < 0)
                                fail_msg("seed %" PRIu32 ": %s", seed, error_text(&err));
                        assert_int_equal(cost_plan(view, plan, &after), 0);
                        assert_true(after <= cost);
                        walks++;
                        better += after < cost;
                }
                pieces_destroy(pieces);
                relaxation_finish(&relaxation);
        }
        print_message("%d markets, %d raised the bound, %d to the least; %d walks, %d found a better plan\n", markets, raised,
                      tight, walks, better);
        assert_true(raised > 20 && tight > 20 && better > 5);
        test_policy_unload(&policy);
}

/* A problem, a plan of it, and prices. */
struct scene {
        struct snapshot *snapshot;
        const struct rm_snapshot *view;
        struct rm_plan *plan;
        uint32_t looks;
        struct rm_policy_run run;
        struct deadline deadline;
        struct relaxation relaxation;
        struct pieces *pieces;
        struct hall *hall; /* or NULL */
        struct merge *merge; /* the same */
        int64_t cost; /* of the first plan */
};

/* Takes the snapshot. `policy`: makes the plan; NULL: it is `plan`. Either is the scene's. */
static void scene_set(struct scene *scene, struct snapshot *snapshot, struct test_policy *policy, struct rm_plan *plan,
                      uint32_t looks) {
        *scene = (struct scene) { .snapshot = snapshot, .view = snapshot_view(snapshot), .plan = plan, .looks = looks };
        scene->run = (struct rm_policy_run) {
                .size = sizeof(scene->run),
                .context = &scene->looks,
                .left_usec = drawn_milliseconds_left,
        };
        scene->deadline.run = &scene->run;
        if (policy)
                assert_int_equal(test_policy_place(policy, scene->view, &scene->plan), 0);
        assert_int_equal(relaxation_init(&scene->relaxation, scene->view, scene->plan), 0);
        assert_int_equal(cost_plan(scene->view, scene->plan, &scene->cost), 0);
        scene->pieces = pieces_create(&scene->relaxation, scene->view);
        assert_non_null(scene->pieces);
}

/* A drawn one, and a hall. */
static void scene_begin(struct scene *scene, struct test_policy *policy, uint32_t seed) {
        const struct drawn_kind kind = { .nodes = 30, .jobs = 40, .most_ranks = 30, .group_size = 1 };
        struct dice dice = { seed };

        scene_set(scene, drawn_snapshot(&dice, &kind), policy, NULL, 100 * 1000);
        (void) pieces_raise(scene->pieces, scene->cost, &scene->deadline, 0, 200);
        scene->hall = hall_create(scene->pieces, scene->view, 1000 * 1000, scene->plan);
        assert_non_null(scene->hall);
}

static void scene_end(struct scene *scene) {
        merge_destroy(scene->merge);
        hall_destroy(scene->hall);
        pieces_destroy(scene->pieces);
        relaxation_finish(&scene->relaxation);
        plan_destroy(scene->plan);
        snapshot_destroy(scene->snapshot);
}

struct corner {
        uint32_t cores[4];
        int64_t penalties[4];
        uint32_t ranks[2];
        int64_t priorities[2];
};

/* Four nodes, two jobs, and what merges plans of them. */
static void scene_begin_corner(struct scene *scene, const struct corner *corner) {
        struct snapshot *snapshot = snapshot_create();
        struct test_policy policy;

        for (uint32_t s = 0; s < 4; s++)
                snapshot_add_node(snapshot, (char[]) { 'n', (char) ('0' + s), 0 }, corner->cores[s])->penalty =
                        corner->penalties[s];
        for (uint32_t j = 0; j < 2; j++)
                snapshot_add_job(snapshot, (char[]) { 'j', (char) ('0' + j), 0 }, corner->ranks[j], 1)->priority =
                        corner->priorities[j];
        test_policy_load(&policy, "greedy");
        scene_set(scene, snapshot, &policy, NULL, 10000);
        test_policy_unload(&policy);
        scene->merge = merge_create(scene->pieces, scene->view);
        assert_non_null(scene->merge);
}

/* Two plans, each of which has one job where it is cheap: merged, both are. */
static void two_plans_merge_into_a_better_one(void **state) {
        static const struct corner corner = { { 4, 4, 6, 6 }, { 1, 5, 2, 6 }, { 4, 6 }, { 3, 2 } };
        static const int32_t one[] = { 0, 0, 0, 0, 3, 3, 3, 3, 3, 3 }, other[] = { 1, 1, 1, 1, 2, 2, 2, 2, 2, 2 };
        static const int32_t both[] = { 0, 0, 0, 0, 2, 2, 2, 2, 2, 2 };
        struct scene scene;
        const int32_t *merged;
        int64_t cost = 0;

        (void) state;
        scene_begin_corner(&scene, &corner);
        assert_null(merge_solve(scene.merge, &scene.deadline, 1000 * 1000, &cost));
        merge_add(scene.merge, one, 3 * (4 * 1 + 10) + 2 * (6 * 6 + 10));
        assert_null(merge_solve(scene.merge, &scene.deadline, 1000 * 1000, &cost));
        merge_add(scene.merge, other, 3 * (4 * 5 + 10) + 2 * (6 * 2 + 10));
        merged = merge_solve(scene.merge, &scene.deadline, 1000 * 1000, &cost);
        assert_non_null(merged);
        assert_memory_equal(merged, both, sizeof(both));
        assert_int_equal(cost, 3 * (4 * 1 + 10) + 2 * (6 * 2 + 10));
        assert_null(merge_solve(scene.merge, &scene.deadline, 1000 * 1000, &cost));
        scene_end(&scene);
}

/* A node that held one job of a priority may as well hold another one: both cheap nodes are known of the same job only. */
static void jobs_alike_change_places(void **state) {
        static const struct corner corner = { { 4, 4, 4, 4 }, { 1, 2, 8, 9 }, { 4, 4 }, { 3, 3 } };
        static const int32_t one[] = { 0, 0, 0, 0, 2, 2, 2, 2 }, other[] = { 1, 1, 1, 1, 3, 3, 3, 3 };
        struct scene scene;
        const int32_t *merged;
        int64_t cost = 0;

        (void) state;
        scene_begin_corner(&scene, &corner);
        merge_add(scene.merge, one, 3 * (4 * 1 + 10) + 3 * (4 * 8 + 10));
        merge_add(scene.merge, other, 3 * (4 * 2 + 10) + 3 * (4 * 9 + 10));
        merged = merge_solve(scene.merge, &scene.deadline, 1000 * 1000, &cost);
        assert_non_null(merged);
        assert_int_equal(cost, 3 * (4 * 1 + 10) + 3 * (4 * 2 + 10));
        assert_int_equal(merged[0] + merged[4], 0 + 1);
        scene_end(&scene);
}

/* The plan is valid, and costs so much. */
static void scene_check(struct scene *scene, uint32_t seed, const int32_t *nodes, int64_t told) {
        struct rm_error err = { 0 };
        int64_t cost;

        rankwise_write(&scene->relaxation, nodes, scene->plan);
        if (plan_validate(scene->view, scene->plan, &err) < 0)
                fail_msg("seed %" PRIu32 ": %s", seed, error_text(&err));
        assert_int_equal(cost_plan(scene->view, scene->plan, &cost), 0);
        assert_int_equal(cost, told);
}

/* What some owners sell and buy of the first prices, in ones and twos. Returns how many entries that is. */
static uint32_t sell_and_buy(struct ledger *ledger) {
        enum { OWNERS = 5, PRICES = 12 };
        uint32_t n = 0;

        for (uint32_t owner = 0; owner < OWNERS; owner++)
                for (uint32_t i = 0; i < PRICES; i++)
                        for (uint32_t k = i + 1; k <= PRICES; k++, n += 2) {
                                uint32_t sold[] = { k, i }, bought[] = { k, i };

                                /* the first one there is not: of it there is no piece */
                                assert_int_not_equal(ledger_sell(ledger, owner, sold, i > 0 ? 2 : 1), LEDGER_FULL);
                                assert_int_not_equal(ledger_buy(ledger, owner, bought, i > 0 ? 2 : 1), LEDGER_FULL);
                        }
        return n;
}

/* What differs in anything is another entry, what does not is the same. */
static void entries_are_told_apart(void **state) {
        struct test_policy policy;
        struct scene scene;
        struct ledger ledger;
        uint32_t n;

        (void) state;
        test_policy_load(&policy, "greedy");
        scene_begin(&scene, &policy, 1);
        assert_true(ledger_init(&ledger, scene.pieces));
        n = sell_and_buy(&ledger);
        assert_int_equal(ledger.n_entries, n);
        (void) sell_and_buy(&ledger);
        assert_int_equal(ledger.n_entries, n);
        ledger_finish(&ledger);
        scene_end(&scene);
        test_policy_unload(&policy);
}

/* Where the program ends, no steps get further. */
static void markets_end_at_the_best_prices(void **state) {
        struct test_policy policy;

        (void) state;
        test_policy_load(&policy, "greedy");
        for (uint32_t seed = 1; seed <= repetitions(20); seed++) {
                struct scene scene;
                struct pieces *pieces;
                struct market *market;
                int64_t by_steps;

                scene_begin(&scene, &policy, seed);
                by_steps = pieces_raise(scene.pieces, scene.cost, &scene.deadline, 0, 20 * 1000);
                pieces = pieces_create(&scene.relaxation, scene.view);
                assert_non_null(pieces);
                scene.looks = 100 * 1000;
                market = market_create(pieces);
                assert_non_null(market);
                (void) pieces_raise(pieces, scene.cost, &scene.deadline, 0, 50);
                assert_true(market_raise(market, &scene.deadline, 0) >= by_steps);
                market_destroy(market);
                pieces_destroy(pieces);
                scene_end(&scene);
        }
        test_policy_unload(&policy);
}

/* Short walks, merged: the plan is valid, costs what is said, and less than each of them. */
static void merges(void **state) {
        struct test_policy policy;
        int merged = 0;

        (void) state;
        test_policy_load(&policy, "greedy");
        for (uint32_t seed = 1; seed <= repetitions(100); seed++) {
                struct scene scene;
                const int32_t *nodes;
                int64_t least, told;

                scene_begin(&scene, &policy, seed);
                least = scene.cost;
                scene.merge = merge_create(scene.pieces, scene.view);
                assert_non_null(scene.merge);
                for (uint32_t i = 0; i < 5; i++) {
                        int64_t cost = hall_walk(scene.hall, &scene.deadline, 0, 5 * 1000, i);

                        merge_add(scene.merge, hall_nodes(scene.hall), cost);
                        least = cost < least ? cost : least;
                }
                nodes = merge_solve(scene.merge, &scene.deadline, INT64_C(10) * 1000 * 1000, &told);
                if (nodes) {
                        scene_check(&scene, seed, nodes, told);
                        assert_true(told < least);
                        merged++;
                }
                scene_end(&scene);
        }
        print_message("%d merged into a better plan\n", merged);
        assert_true(merged > (int) repetitions(100) / 4);
        test_policy_unload(&policy);
}

/* Each job is on the node that another one fills, but one, which is where it is dear: they all have to move at once. */
static void a_chain_goes_through_all_nodes(void **state) {
        static const uint32_t ranks[] = { 10, 7, 5 };
        static const int32_t bad[] = { 3, 0, 1 };
        struct snapshot *snapshot = snapshot_create();
        struct rm_plan *plan;
        struct scene scene;
        struct ejection *ejection;
        const int32_t *nodes;
        int64_t gain = 0;

        (void) state;
        for (uint32_t i = 0; i < ARRAY_SIZE(ranks); i++) {
                snapshot_add_node(snapshot, (char[]) { 'n', (char) ('0' + i), 0 }, ranks[i])->penalty = 1;
                snapshot_add_job(snapshot, (char[]) { 'j', (char) ('0' + i), 0 }, ranks[i], 1)->priority = 1;
        }
        snapshot_add_node(snapshot, "n3", 10)->penalty = 9;
        plan = plan_create(snapshot_view(snapshot));
        for (uint32_t i = 0; i < ARRAY_SIZE(ranks); i++) {
                plan->jobs[i].decision = RM_PLACE;
                for (uint32_t g = 0; g < ranks[i]; g++)
                        plan->jobs[i].group_node[g] = bad[i];
        }
        scene_set(&scene, snapshot, NULL, plan, 100 * 1000);
        (void) pieces_raise(scene.pieces, scene.cost, &scene.deadline, 0, 500);
        ejection = ejection_create(scene.pieces, scene.view);
        assert_non_null(ejection);

        nodes = ejection_run(ejection, plan, &scene.deadline, 0, &gain);
        assert_non_null(nodes);
        assert_int_equal(gain, 10 * (9 - 1));
        rankwise_write(&scene.relaxation, nodes, plan);
        for (uint32_t i = 0; i < ARRAY_SIZE(ranks); i++)
                for (uint32_t g = 0; g < ranks[i]; g++)
                        assert_int_equal(plan->jobs[i].group_node[g], i);
        assert_null(ejection_run(ejection, plan, &scene.deadline, 0, &gain));

        ejection_destroy(ejection);
        scene_end(&scene);
}

/* Plans of annealing, bettered: valid, and cheaper by what is said. No time: nothing. */
static void ejects(void **state) {
        struct test_policy policy;
        int better = 0;

        (void) state;
        test_policy_load(&policy, "greedy");
        for (uint32_t seed = 1; seed <= repetitions(100); seed++) {
                struct scene scene;
                struct ejection *ejection;
                const int32_t *nodes;
                int64_t before, gain;

                scene_begin(&scene, &policy, seed);
                ejection = ejection_create(scene.pieces, scene.view);
                assert_non_null(ejection);
                before = hall_walk(scene.hall, &scene.deadline, 0, 5 * 1000, seed);
                rankwise_write(&scene.relaxation, hall_nodes(scene.hall), scene.plan);
                assert_null(ejection_run(ejection, scene.plan, &scene.deadline, deadline_left_usec(&scene.deadline), &gain));
                nodes = ejection_run(ejection, scene.plan, &scene.deadline, 0, &gain);
                if (nodes) {
                        scene_check(&scene, seed, nodes, before - gain);
                        better++;
                }
                ejection_destroy(ejection);
                scene_end(&scene);
        }
        print_message("%d plans bettered\n", better);
        assert_true(better > (int) repetitions(100) / 2);
        test_policy_unload(&policy);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(markets_and_halls),
                cmocka_unit_test(two_plans_merge_into_a_better_one),
                cmocka_unit_test(jobs_alike_change_places),
                cmocka_unit_test(entries_are_told_apart),
                cmocka_unit_test(markets_end_at_the_best_prices),
                cmocka_unit_test(merges),
                cmocka_unit_test(a_chain_goes_through_all_nodes),
                cmocka_unit_test(ejects),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
