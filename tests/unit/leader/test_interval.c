/* How often a job is saved: known values, limits, what is learned, and 24 h of failing nodes
 * against every other interval. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "common/util.h"
#include "daemon/leader/interval.h"
#include "tests/unit/repeat.h"

#define SEC 1e6
#define HOUR (3600 * SEC)
#define DAY (24 * HOUR)
#define SEEDS 100U /* 24 h each, the same failures for all that are compared */
#define GRID (repetitions(4) == 4 ? 1.04 : 1.1) /* from one fixed interval tried to the next */
#define WITHIN 0.02

/* ---- one job for 24 h ---- */

struct world {
        unsigned nodes;
        double cost_usec;    /* of a checkpoint; while it is made nothing is computed */
        double restore_usec; /* after a failure; may fail too */
};

/* The same failures for each interval: they do not depend on what the job does. splitmix64. */
static double random_exponential(uint64_t *seed, double mean) {
        uint64_t z = (*seed += UINT64_C(0x9e3779b97f4a7c15));

        z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
        z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
        z ^= z >> 31;
        return -mean * log(((double) (z >> 11) + 0.5) / 9007199254740992.0);
}

/* The work of `span_usec` that is kept without a failure: all checkpoints that were ended in it. */
static double kept_usec(const struct world *w, double span_usec, double interval_usec, bool to_the_end) {
        double compute = interval_usec - w->cost_usec, up = span_usec - w->restore_usec;
        double whole, rest;

        if (up <= 0)
                return 0;
        whole = floor(up / interval_usec);
        rest = up - whole * interval_usec;
        return whole * compute + (to_the_end ? fmin(rest, compute) : 0);
}

static double best_usec(const struct world *w, double mtbf_usec) {
        struct interval_facts facts = { .cost_usec = (uint64_t) w->cost_usec,
                                        .mtbf_usec = (uint64_t) mtbf_usec,
                                        .nodes = w->nodes };

        return (double) interval_best(&facts);
}

/* Share of 24 h of useful work. `interval_usec` 0: the best one by what has been seen of failures
 * so far, from `prior_usec` on; it changes with each failure. */
static double day(const struct world *w, double interval_usec, double prior_usec, uint64_t seed) {
        double now = 0, kept = 0;

        for (uint64_t losses = 0; now < DAY; losses++) {
                double span = random_exponential(&seed, HOUR / w->nodes);
                double interval = interval_usec;

                if (interval <= 0)
                        interval = best_usec(w, (double) interval_mtbf((uint64_t) prior_usec, (uint64_t) (now * w->nodes), losses));
                kept += kept_usec(w, fmin(span, DAY - now), interval, now + span >= DAY);
                now += span;
        }
        return kept / DAY;
}

static double efficiency(const struct world *w, double interval_usec, double prior_usec) {
        double sum = 0;

        for (unsigned i = 0; i < SEEDS; i++)
                sum += day(w, interval_usec, prior_usec, (uint64_t) i << 40);
        return sum / SEEDS;
}

/* The best fixed one, found by trying all. */
static double best_fixed(const struct world *w, double *ret_interval_usec) {
        double best = 0;

        for (double t = fmax((double) INTERVAL_LEAST_USEC, w->cost_usec * GRID); t < 4 * HOUR; t *= GRID) {
                double e = efficiency(w, t, 0);

                if (e > best) {
                        best = e;
                        *ret_interval_usec = t;
                }
        }
        return best;
}

static const unsigned node_counts[] = { 1, 2, 4, 8, 16, 32 };
static const double costs_sec[] = { 0.2, 1, 5, 30 };
static const double restores_sec[] = { 1, 30 };

/* A job that hardly gets on at all is not what an interval is chosen for. */
#define HOPELESS 0.25

typedef void (*with_world)(const struct world *w, double best, double best_interval_usec);

static struct {
        struct world world;
        double best, interval_usec;
} worlds[ARRAY_SIZE(node_counts) * ARRAY_SIZE(costs_sec) * ARRAY_SIZE(restores_sec)];

/* To try all intervals takes by far the most time: once for all tests. */
static int find_best(void **state) {
        size_t n = 0;

        for (size_t i = 0; i < ARRAY_SIZE(node_counts); i++)
                for (size_t k = 0; k < ARRAY_SIZE(costs_sec); k++)
                        for (size_t l = 0; l < ARRAY_SIZE(restores_sec); l++, n++) {
                                worlds[n].world = (struct world) { node_counts[i], costs_sec[k] * SEC, restores_sec[l] * SEC };
                                worlds[n].best = best_fixed(&worlds[n].world, &worlds[n].interval_usec);
                        }
        return 0;
}

static void for_all_worlds(with_world check) {
        for (size_t i = 0; i < ARRAY_SIZE(worlds); i++)
                if (worlds[i].best > HOPELESS)
                        check(&worlds[i].world, worlds[i].best, worlds[i].interval_usec);
}

static void check_one(const struct world *w, const char *what, double have, double best, double best_interval_usec) {
        print_message("%2u nodes, cost %4.1f s, restore %2.0f s: best fixed %.4f (%6.1f s), %s %.4f: %+.2f %%\n", w->nodes,
                      w->cost_usec / SEC, w->restore_usec / SEC, best, best_interval_usec / SEC, what, have,
                      (have / best - 1) * 100);
        assert_true(have >= (1 - WITHIN) * best);
}

static void check_known(const struct world *w, double best, double best_interval_usec) {
        double interval = best_usec(w, HOUR);

        check_one(w, "known mtbf", efficiency(w, interval, 0), best, best_interval_usec);
}

static void test_day_with_known_mtbf(void **state) {
        for_all_worlds(check_known);
}

/* Learned from a prior ten times too long, or too short. */
static void check_learned(const struct world *w, double best, double best_interval_usec) {
        check_one(w, "prior 10 h", efficiency(w, 0, 10 * HOUR), best, best_interval_usec);
        check_one(w, "prior 6 min", efficiency(w, 0, HOUR / 10), best, best_interval_usec);
}

static void test_day_with_learned_mtbf(void **state) {
        for_all_worlds(check_learned);
}

/* The default of rmd.conf: a thousand times too long. With fewer nodes the first failure, of which
 * nothing is known, takes a larger part of the day than the limit allows. */
static void check_default(const struct world *w, double best, double best_interval_usec) {
        if (w->nodes >= 4)
                check_one(w, "prior 1000 h", efficiency(w, 0, 1000 * HOUR), best, best_interval_usec);
}

static void test_day_with_default_prior(void **state) {
        for_all_worlds(check_default);
}

/* ---- known values and limits ---- */

static uint64_t best(uint64_t cost_usec, uint64_t mtbf_usec, uint32_t nodes, double foreseen) {
        struct interval_facts facts = { cost_usec, mtbf_usec, nodes, foreseen };

        return interval_best(&facts);
}

static void assert_about(uint64_t have, double want, double share) {
        if (fabs((double) have / want - 1) > share)
                fail_msg("%.3f s, not %.3f s", (double) have / SEC, want / SEC);
}

static void test_known_values(void **state) {
        uint64_t sec = 1000000, hour = 3600 * sec;

        /* Young's sqrt(2 C M) where the cost is small. */
        assert_about(best(sec, 1000 * hour, 1, 0), sqrt(2 * SEC * 1000 * HOUR), 0.001);
        /* The more nodes a job has, the more often one is lost; from those whose loss is foreseen
         * the job moves away. */
        assert_int_equal(best(sec, 1000 * hour, 10, 0), best(sec, 100 * hour, 1, 0));
        assert_about(best(sec, 1000 * hour, 1, 0.75), (double) best(sec, 4000 * hour, 1, 0), 1e-6);
        /* A cost as large as the time between failures: x - 1 + e^-x = 1. */
        assert_about(best(hour, hour, 1, 0), 1.84140566 * HOUR, 1e-6);
        assert_true(best(100 * sec, hour, 1, 0) > best(10 * sec, hour, 1, 0));
}

static void test_limits(void **state) {
        assert_int_equal(best(1, 1, 1, 0), INTERVAL_LEAST_USEC);
        assert_int_equal(best(1000000, 1, UINT32_MAX, 0), INTERVAL_LEAST_USEC);
        assert_int_equal(best(UINT64_MAX, UINT64_MAX, 1, 0), INTERVAL_MOST_USEC);
        assert_int_equal(best(UINT64_MAX, 1, UINT32_MAX, 1), INTERVAL_MOST_USEC);
        assert_int_equal(best(0, 3600000000, 0, 0), best(500000, 3600000000, 1, 0));
        assert_int_equal(best(1000000, 3600000000, 1, -1), best(1000000, 3600000000, 1, 0));
        assert_true(best(1000000, 3600000000, 1, 2) < INTERVAL_MOST_USEC);
}

static void test_mtbf_is_learned(void **state) {
        double prior = 1000 * HOUR;

        assert_about(interval_mtbf((uint64_t) prior, 0, 0), prior, 1e-9);
        assert_about(interval_mtbf((uint64_t) prior, (uint64_t) (500 * HOUR), 0), 1500 * HOUR,
                     1e-9); /* it lasts longer, as it seems */
        assert_about(interval_mtbf((uint64_t) prior, (uint64_t) prior, 1), prior, 1e-9); /* as it was expected */
        assert_about(interval_mtbf((uint64_t) prior, (uint64_t) HOUR, 1), 3.7 * HOUR, 0.05); /* one that is hardly to be believed */
        assert_about(interval_mtbf((uint64_t) prior, (uint64_t) (192 * HOUR), 192), HOUR, 0.001);
        assert_about(interval_mtbf((uint64_t) HOUR, (uint64_t) (10000 * HOUR), 10), 1000 * HOUR,
                     0.1); /* a prior that is too short */
        assert_true(interval_mtbf(0, 0, 0) > 0);
        assert_true(interval_mtbf(0, 0, UINT64_MAX) > 0);
        assert_true(interval_mtbf(UINT64_MAX, UINT64_MAX, 0) > 0);
        assert_true(interval_mtbf(UINT64_MAX, 1, UINT64_MAX) > 0);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_known_values),          cmocka_unit_test(test_limits),
                cmocka_unit_test(test_mtbf_is_learned),       cmocka_unit_test(test_day_with_known_mtbf),
                cmocka_unit_test(test_day_with_learned_mtbf), cmocka_unit_test(test_day_with_default_prior),
        };

        return cmocka_run_group_tests_name("leader-interval", tests, find_best, NULL);
}
