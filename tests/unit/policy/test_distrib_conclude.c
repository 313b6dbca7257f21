/* Plans in pieces: the cheapest partition into components is the cheapest plan, whatever the dual knows. */
#include <inttypes.h>
#include <stdlib.h>

#include "common/util.h"
#include "policies/distrib/anneal.h"
#include "policies/distrib/conclude.h"
#include "policies/distrib/partition.h"
#include "policies/distrib/row.h"
#include "tests/unit/policy/exhaustive.h"
#include "tests/unit/repeat.h"

static uint64_t enough_time(void *context) {
        (void) context;
        return UINT64_C(1000000);
}

static const struct rm_policy_run endless = { .left_usec = enough_time };
static const struct deadline deadline = { .run = &endless };

struct attempt {
        struct problem problem;
        struct conclude *conclude;
        struct dual_work *work;
        uint32_t *values;
        int64_t cost; /* of the plan that it begins with */
};

/* False: the problem is none for it. */
static bool attempt_init(struct attempt *attempt, const struct rm_snapshot *snapshot, const struct rm_plan *plan) {
        bool none;

        *attempt = (struct attempt) { 0 };
        assert_int_equal(problem_init(&attempt->problem, snapshot, plan, 10000), 0);
        attempt->values = xcalloc((size_t) attempt->problem.n_jobs * attempt->problem.n_nodes + 1, sizeof(*attempt->values));
        attempt->cost = problem_read_plan(&attempt->problem, plan, attempt->values);
        attempt->conclude = conclude_create(&attempt->problem, &none);
        attempt->work = dual_work_create(&attempt->problem);
        assert_non_null(attempt->work);
        assert_true(none == !attempt->conclude);
        return !none;
}

static void attempt_finish(struct attempt *attempt) {
        conclude_destroy(attempt->conclude);
        dual_work_destroy(attempt->work);
        free(attempt->values);
        problem_finish(&attempt->problem);
}

/* A dual with any prices, after some sweeps. */
static void make_dual(struct attempt *attempt, struct dice *dice, int64_t target, struct dual *ret_dual) {
        struct arena arena = { 0 };
        const struct problem *problem = &attempt->problem;
        struct dual_start start = { .job_price = arena_alloc(&arena, problem->n_jobs, sizeof(int64_t)),
                                    .node_price = arena_alloc(&arena, problem->n_nodes, sizeof(int64_t)) };
        int64_t *job_costs = arena_alloc(&arena, problem->n_prices, sizeof(*job_costs));
        uint32_t sweeps = dice_roll(dice, 6), split = dice_roll(dice, 1);

        for (uint32_t j = 0; j < problem->n_jobs; j++)
                start.job_price[j] = dice_roll(dice, 20) * 64;
        for (uint32_t s = 0; s < problem->n_nodes; s++)
                start.node_price[s] = dice_roll(dice, 10) * 64;
        assert_int_equal(dual_init(ret_dual, problem, &start, 6, target), 0);
        for (size_t i = 0; i < problem->n_prices; i++)
                job_costs[i] = (int64_t) dice_roll(dice, 4000) - 2000;
        if (split)
                dual_split(ret_dual, job_costs);
        for (uint32_t i = 0; i < sweeps && !dual_is_over(ret_dual); i++)
                (void) dual_sweep(ret_dual, attempt->work);
        arena_finish(&arena);
}

/* What the cheapest plan costs that costs `target` or less; PRICE_NEVER: there is none. */
static int64_t conclude(struct attempt *attempt, struct dice *dice, int64_t target, bool bit_by_bit) {
        struct conclude_task task = { .deadline = &deadline, .work = attempt->work, .target = target, .max_steps = UINT64_MAX / 2 };
        struct dual dual;
        int64_t cost = PRICE_NEVER;
        struct conclude_progress progress = { .settled = INT64_MIN / 2 };
        int r = 1;

        make_dual(attempt, dice, target, &dual);
        if (!dual_is_over(&dual))
                r = bit_by_bit ? conclude_bit_by_bit(attempt->conclude, &dual, &task, &progress, attempt->values, &cost)
                               : conclude_at_once(attempt->conclude, &dual, &task, attempt->values, &cost);
        dual_finish(&dual);
        assert_int_equal(r, 1);
        if (cost < PRICE_NEVER)
                assert_int_equal(problem_judge(&attempt->problem, attempt->values), cost);
        return cost;
}

static void finds_what_there_is(void **state) {
        struct test_policy greedy;
        int done = 0;

        (void) state;
        test_policy_load(&greedy, "greedy");
        for (uint32_t seed = 1; seed <= repetitions(2000); seed++) {
                struct dice dice = { seed };
                struct exhaustive_kind kind = { .groups = seed % 4 == 0, .limits = seed % 5 == 0, .running = seed % 7 == 0 };
                cleanup_snapshot struct snapshot *snapshot = exhaustive_instance(&dice, &kind);
                cleanup_plan struct rm_plan *plan = NULL;
                struct attempt attempt;

                if (test_policy_place(&greedy, snapshot_view(snapshot), &plan) < 0)
                        continue;
                if (attempt_init(&attempt, snapshot_view(snapshot), plan)) {
                        int64_t least = exhaustive_least(snapshot_view(snapshot), plan);
                        int64_t more = dice_roll(&dice, 40);
                        int64_t found = conclude(&attempt, &dice, least + more, seed % 2);

                        if (found != least)
                                fail_msg("seed %" PRIu32 ": %" PRId64 " instead of %" PRId64, seed, found, least);
                        if (conclude(&attempt, &dice, least - 1, seed % 2) != PRICE_NEVER)
                                fail_msg("seed %" PRIu32 ": something less than %" PRId64, seed, least);
                        done++;
                }
                attempt_finish(&attempt);
        }
        print_message("%d settled\n", done);
        assert_true(done > (int) repetitions(2000) / 2);
        test_policy_unload(&greedy);
}

/* A larger one, where branches are joined: all duals agree, and annealing finds nothing cheaper. False: nothing fits. */
static bool agree_on(struct test_policy *greedy, uint32_t seed) {
        struct dice dice = { seed };
        bool stars = seed % 2; /* few jobs on many nodes each */
        cleanup_snapshot struct snapshot *snapshot = snapshot_create();
        cleanup_plan struct rm_plan *plan = NULL;
        uint32_t nodes = 4 + dice_roll(&dice, stars ? 6 : 4), jobs = stars ? 1 + dice_roll(&dice, 2) : 2 + dice_roll(&dice, 4);
        struct attempt attempt;
        bool fits;

        for (uint32_t s = 0; s < nodes; s++) {
                char name[16];

                (void) snprintf(name, sizeof(name), "n%" PRIu32, s);
                snapshot_add_node(snapshot, name, 1 + dice_roll(&dice, stars ? 4 : 11))->penalty = 1 + dice_roll(&dice, 5);
        }
        for (uint32_t j = 0; j < jobs; j++) {
                char name[16];

                (void) snprintf(name, sizeof(name), "j%" PRIu32, j);
                snapshot_add_job(snapshot, name, 1 + dice_roll(&dice, 16), 1)->priority = 1 + dice_roll(&dice, 5);
        }
        if (test_policy_place(greedy, snapshot_view(snapshot), &plan) < 0)
                return false;
        fits = attempt_init(&attempt, snapshot_view(snapshot), plan);
        if (fits) {
                struct anneal *anneal = anneal_create(&attempt.problem, attempt.values);
                int64_t least, annealed;

                assert_non_null(anneal);
                annealed = anneal_run(anneal, 20000);
                anneal_destroy(anneal);
                least = conclude(&attempt, &dice, annealed, false);
                if (least > annealed)
                        fail_msg("seed %" PRIu32 ": %" PRId64 ", annealing found %" PRId64, seed, least, annealed);
                if (conclude(&attempt, &dice, annealed + dice_roll(&dice, 20), true) != least ||
                    conclude(&attempt, &dice, least - 1, false) != PRICE_NEVER)
                        fail_msg("seed %" PRIu32 ": duals do not agree on %" PRId64, seed, least);
        }
        attempt_finish(&attempt);
        return fits;
}

static void agrees_with_itself(void **state) {
        struct test_policy greedy;
        int done = 0;

        (void) state;
        test_policy_load(&greedy, "greedy");
        for (uint32_t seed = 1; seed <= repetitions(5000); seed++)
                done += agree_on(&greedy, seed);
        print_message("%d agreed\n", done);
        assert_true(done > (int) repetitions(5000) / 2);
        /* A job on three nodes, one of which has something free: this plan was not seen once. */
        assert_true(agree_on(&greedy, 6633));
        test_policy_unload(&greedy);
}

/* Looking through many components is work, too: four nodes and seventeen jobs once took eight seconds for a million steps. */
static void looking_takes_steps(void **state) {
        enum { MANY = 100 * 1000 };
        struct problem problem = { .n_jobs = 1, .n_nodes = 1 };
        struct component *components = xcalloc(MANY, sizeof(*components));
        struct partition_task task = { .problem = &problem,
                                       .deadline = &deadline,
                                       .components = components,
                                       .n = MANY,
                                       .target = MANY,
                                       .gap = MANY,
                                       .max_steps = MANY };
        struct partition_result result;

        (void) state;
        for (uint32_t i = 0; i < MANY; i++)
                components[i] = (struct component) { .mask = component_node(0), .cost = i, .above = i };
        assert_int_equal(partition_find(&task, &result), 1);
        assert_int_equal(result.n, 0);
        assert_true(result.steps > MANY / 100);
        free(components);
}

int main(void) {
        const struct CMUnitTest tests[] = { cmocka_unit_test(finds_what_there_is), cmocka_unit_test(agrees_with_itself),
                                            cmocka_unit_test(looking_takes_steps) };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
