/* Steps up the model of a dual: the bound rises, and is never more than the cheapest plan costs. */
#include <inttypes.h>
#include <stdlib.h>

#include "common/util.h"
#include "policies/distrib/bundle.h"
#include "policies/distrib/dp_row.h"
#include "tests/unit/policy/exhaustive.h"
#include "tests/unit/repeat.h"

enum { SHIFT = 6, SCALE = 1 << SHIFT };

static uint64_t enough_time(void *context) {
        (void) context;
        return UINT64_C(1000000);
}

static const struct rm_policy_run endless = { .left_usec = enough_time };
static const struct deadline deadline = { .run = &endless };

/* A dual with any prices, after some sweeps. */
static void make_dual(const struct problem *problem, struct dual_work *work, struct dice *dice, int64_t target,
                      struct dual *ret_dual) {
        struct arena arena = { 0 };
        struct dual_start start = { .job_price = arena_alloc(&arena, problem->n_jobs, sizeof(int64_t)),
                                    .node_price = arena_alloc(&arena, problem->n_nodes, sizeof(int64_t)) };
        uint32_t sweeps = dice_roll(dice, 3);

        for (uint32_t j = 0; j < problem->n_jobs; j++)
                start.job_price[j] = dice_roll(dice, 20) * SCALE;
        for (uint32_t s = 0; s < problem->n_nodes; s++)
                start.node_price[s] = dice_roll(dice, 10) * SCALE;
        assert_int_equal(dual_init(ret_dual, problem, &start, SHIFT, target), 0);
        for (uint32_t i = 0; i < sweeps && !dual_is_over(ret_dual); i++)
                (void) dual_sweep(ret_dual, work);
        arena_finish(&arena);
}

/* The least cost of the factors, computed again. */
static int64_t sum_of_chains(const struct dual *dual, struct dual_work *work) {
        int64_t sum = 0, least;
        struct dp_row row;

        for (uint32_t s = 0; s < dual->problem->n_nodes; s++) {
                dp_row_of_node(dual, work, s, &row);
                assert_true(dp_row_least(work, &row, &least));
                sum += least + row.constant;
        }
        for (uint32_t j = 0; j < dual->problem->n_jobs; j++) {
                dp_row_of_job(dual, work, j, &row);
                assert_true(dp_row_least(work, &row, &least));
                sum += least + row.constant;
        }
        return sum;
}

static void check_prices(const struct dual *now, const struct dual *before, uint32_t seed) {
        for (size_t i = 0; i < (size_t) now->problem->n_jobs * now->problem->n_nodes; i++) {
                assert_int_equal(now->cells[i].n, before->cells[i].n);
                for (uint32_t k = 0; k < now->cells[i].n; k++) {
                        const struct dual_value *a = &now->values[now->cells[i].first + k],
                                                *b = &before->values[before->cells[i].first + k];

                        if (a->v != b->v || a->node_cost + a->job_cost != b->node_cost + b->job_cost)
                                fail_msg("seed %" PRIu32 ": a price is another one", seed);
                }
        }
}

/* Returns by how much the bound has risen, scaled; or that it was over in the beginning: 0. */
static int64_t raise(const struct problem *problem, struct dice *dice, int64_t least, uint32_t seed) {
        bool none, over;
        struct dual_work *work = dual_work_create(problem);
        struct bundle *bundle = bundle_create(problem, &none);
        struct dual dual, before = { 0 };
        int64_t gain = 0;

        assert_non_null(work);
        assert_non_null(bundle);
        make_dual(problem, work, dice, least + dice_roll(dice, 30), &dual);
        over = dual_is_over(&dual);
        for (int i = 0; i < 2 && !over; i++) {
                int64_t low = dual.sum;

                assert_int_equal(dual_copy(&before, &dual), 0);
                bundle_run(bundle, &dual, work, &deadline, 1 + dice_roll(dice, 30));
                if (dual.sum < low || dual_is_over(&dual) || dual_bound(&dual) > least)
                        fail_msg("seed %" PRIu32 ": bound %" PRId64 ", the least is %" PRId64, seed, dual_bound(&dual), least);
                if (dual.sum != sum_of_chains(&dual, work))
                        fail_msg("seed %" PRIu32 ": a bound that its costs do not give", seed);
                check_prices(&dual, &before, seed);
                gain += dual.sum - low;
                (void) dual_sweep(&dual, work);
        }
        if (dual_is_over(&dual))
                fail_msg("seed %" PRIu32 ": over, though a plan costs the target or less", seed);
        dual_finish(&dual);
        dual_finish(&before);
        bundle_destroy(bundle);
        dual_work_destroy(work);
        return gain;
}

static void rises_but_not_too_high(void **state) {
        struct test_policy greedy;
        int done = 0, raised = 0;

        (void) state;
        test_policy_load(&greedy, "greedy");
        for (uint32_t seed = 1; seed <= repetitions(3000); seed++) {
                struct dice dice = { seed };
                struct exhaustive_kind kind = {
                        .groups = seed % 3 == 0, .running = seed % 2 == 0, .limits = seed % 5 == 0, .pins = seed % 7 == 0
                };
                cleanup_snapshot struct snapshot *snapshot = exhaustive_instance(&dice, &kind);
                cleanup_plan struct rm_plan *plan = NULL;
                struct problem problem;

                if (test_policy_place(&greedy, snapshot_view(snapshot), &plan) < 0)
                        continue;
                assert_int_equal(problem_init(&problem, snapshot_view(snapshot), plan, 10000), 0);
                if (problem.n_jobs > 0) {
                        raised += raise(&problem, &dice, exhaustive_least(snapshot_view(snapshot), plan), seed) > 0;
                        done++;
                }
                problem_finish(&problem);
        }
        print_message("%d of %d raised\n", raised, done);
        assert_true(done > (int) repetitions(3000) / 2 && raised > done / 3);
        test_policy_unload(&greedy);
}

int main(void) {
        const struct CMUnitTest tests[] = { cmocka_unit_test(rises_but_not_too_high) };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
