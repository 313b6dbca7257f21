/* Cuts of distrib for one job against all ways to place it: no way breaks one, some way just keeps it, and what breaks it is cut off. */
#include <math.h>
#include <string.h>

#include "common/util.h"
#include "policies/distrib/facet.h"
#include "tests/unit/policy/exhaustive.h"

enum { NODES = 4, MOST = 5, STRIDE = MOST + 1 };

/* A job of `full` groups on nodes that hold `high` of them each. */
struct little {
        struct problem problem;
        struct problem_job job;
        struct cell cells[NODES];
        uint16_t low[NODES], high[NODES];
};

static void little_init(struct little *little, struct dice *dice) {
        uint32_t sum = 0;

        *little = (struct little) { .problem = { .n_jobs = 1, .n_nodes = NODES } };
        for (uint32_t s = 0; s < NODES; s++) {
                little->high[s] = (uint16_t) dice_roll(dice, STRIDE);
                sum += little->high[s];
                little->cells[s] = (struct cell) { .first = (size_t) s * STRIDE, .n_x = STRIDE, .n = STRIDE };
        }
        if (sum == 0)
                sum = little->high[0] = 1;
        little->job.full = 1 + dice_roll(dice, sum);
        for (uint32_t s = 0; s < NODES; s++)
                if (little->high[s] > little->job.full)
                        little->high[s] = (uint16_t) little->job.full;
        little->problem.jobs = &little->job;
        little->problem.cells = little->cells;
        little->problem.n_prices = (size_t) NODES * STRIDE;
}

/* The least of all ways, from node s on with `left` groups to place. INT64_MAX: none. */
static int64_t least_of(const struct little *little, const int32_t *values, uint32_t s, uint32_t left) {
        int64_t least = INT64_MAX;

        if (s == NODES)
                return left == 0 ? 0 : INT64_MAX;
        for (uint32_t v = little->low[s]; v <= little->high[s] && v <= left; v++) {
                int64_t rest = least_of(little, values, s + 1, left - v);

                if (rest < INT64_MAX && rest + values[s * STRIDE + v] < least)
                        least = rest + values[s * STRIDE + v];
        }
        return least;
}

/* Shares of amounts on each node, drawn without regard to what the job can have. */
static void draw_shares(const struct little *little, struct dice *dice, double *shares) {
        memset(shares, 0, sizeof(*shares) * NODES * STRIDE);
        for (uint32_t s = 0; s < NODES; s++) {
                uint32_t parts = 1 + dice_roll(dice, 3);

                for (uint32_t i = 0; i < parts; i++)
                        shares[s * STRIDE + dice_roll(dice, little->high[s] + 1u)] += 1.0 / parts;
        }
}

static void all_ways_keep_them(void **state) {
        struct dice dice = { 1 };
        int cuts = 0, imports = 0;

        (void) state;
        for (int i = 0; i < 2000; i++) {
                int32_t values[NODES * STRIDE];
                double shares[NODES * STRIDE], costs[NODES * STRIDE];
                struct facets *facets;
                struct little little;
                int64_t least;

                little_init(&little, &dice);
                facets = facets_create(&little.problem, STRIDE, little.low, little.high);
                assert_non_null(facets);
                for (uint32_t k = 0; k < NODES * STRIDE; k++)
                        costs[k] = dice_roll(&dice, 8) == 0 && k % STRIDE > 0 ? INFINITY : (double) dice_roll(&dice, 1000) / 10;
                if (facets_import(facets, 0, costs, values, &least)) {
                        assert_int_equal(least, least_of(&little, values, 0, little.job.full));
                        imports++;
                }
                for (int round = 0; round < 3; round++) {
                        double kept = 0;

                        draw_shares(&little, &dice, shares);
                        if (!facets_find(facets, 0, shares, values, &least))
                                continue;
                        for (uint32_t k = 0; k < NODES * STRIDE; k++)
                                kept += shares[k] * values[k];
                        assert_int_equal(least, least_of(&little, values, 0, little.job.full));
                        assert_true(kept < (double) least);
                        cuts++;
                }
                facets_destroy(facets);
        }
        print_message("%d cuts found, %d made of costs\n", cuts, imports);
        assert_true(cuts > 1000 && imports > 1000);
}

/* What is a mixture of ways is not cut off. */
static void no_mixture_breaks_them(void **state) {
        struct dice dice = { 2 };

        (void) state;
        for (int i = 0; i < 500; i++) {
                double shares[NODES * STRIDE] = { 0 };
                int32_t values[NODES * STRIDE];
                struct facets *facets;
                struct little little;
                int64_t least;

                little_init(&little, &dice);
                for (int way = 0; way < 2; way++) {
                        uint32_t left = little.job.full, first = dice_roll(&dice, NODES);

                        for (uint32_t k = 0; k < NODES; k++) {
                                uint32_t s = (first + k) % NODES, v = left < little.high[s] ? left : little.high[s];

                                shares[s * STRIDE + v] += 0.5;
                                left -= v;
                        }
                        assert_int_equal(left, 0);
                }
                facets = facets_create(&little.problem, STRIDE, little.low, little.high);
                assert_non_null(facets);
                assert_false(facets_find(facets, 0, shares, values, &least));
                facets_destroy(facets);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = { cmocka_unit_test(all_ways_keep_them), cmocka_unit_test(no_mixture_breaks_them) };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
