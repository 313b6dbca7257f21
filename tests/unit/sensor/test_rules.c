/* The changes of statuses: at thresholds, after so many readings, after a while; and that flapping
 * does not change them. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "daemon/sensor/rules.h"
#include "tests/unit/repeat.h"

#define MINUTE UINT64_C(60000000)

static const struct rule_thresholds thresholds = { .low = 80,
                                                   .high = 95,
                                                   .margin = 5,
                                                   .at_low = RM_SENSOR_WARN,
                                                   .at_high = RM_SENSOR_CRITICAL };
static const struct rule_limits limits = { .readings = 3, .hold_usec = 10 * MINUTE };

static bool take(struct rule *rule, double value, uint64_t minute) {
        bool at_once;
        enum rm_sensor_status says = rule_says(&thresholds, rule->status, value, &at_once);

        return rule_step(rule, &limits, says, at_once, minute * MINUTE);
}

static void test_thresholds(void **state) {
        const struct rule_thresholds none = {
                .low = NAN, .high = NAN, .margin = NAN, .at_low = RM_SENSOR_WARN, .at_high = RM_SENSOR_CRITICAL
        };
        const struct rule_thresholds part = {
                .low = 100, .high = NAN, .margin = NAN, .at_low = RM_SENSOR_FAILING, .at_high = RM_SENSOR_CRITICAL
        };
        bool at_once = true;

        assert_int_equal(rule_says(&none, RM_SENSOR_OK, 1e9, &at_once), RM_SENSOR_OK);
        assert_false(at_once);
        assert_int_equal(rule_says(&thresholds, RM_SENSOR_OK, 79.9, &at_once), RM_SENSOR_OK);
        assert_int_equal(rule_says(&thresholds, RM_SENSOR_OK, 80, &at_once), RM_SENSOR_WARN);
        assert_false(at_once);
        assert_int_equal(rule_says(&thresholds, RM_SENSOR_OK, 95, &at_once), RM_SENSOR_CRITICAL);
        assert_true(at_once);
        /* The margin counts only for a status that is there. */
        assert_int_equal(rule_says(&thresholds, RM_SENSOR_WARN, 75.1, &at_once), RM_SENSOR_WARN);
        assert_int_equal(rule_says(&thresholds, RM_SENSOR_WARN, 75, &at_once), RM_SENSOR_OK);
        assert_int_equal(rule_says(&thresholds, RM_SENSOR_WARN, 92, &at_once), RM_SENSOR_WARN);
        assert_int_equal(rule_says(&thresholds, RM_SENSOR_CRITICAL, 92, &at_once), RM_SENSOR_CRITICAL);
        assert_false(at_once);
        /* 5 % where none is given. */
        assert_int_equal(rule_says(&part, RM_SENSOR_FAILING, 95.1, &at_once), RM_SENSOR_FAILING);
        assert_int_equal(rule_says(&part, RM_SENSOR_FAILING, 95, &at_once), RM_SENSOR_OK);
}

static void test_worse_after_some_in_a_row(void **state) {
        struct rule rule = { 0 };

        assert_false(take(&rule, 85, 0));
        assert_false(take(&rule, 85, 1));
        assert_false(take(&rule, 70, 2)); /* one in between */
        assert_false(take(&rule, 85, 3));
        assert_false(take(&rule, 85, 4));
        assert_int_equal(rule.status, RM_SENSOR_OK);
        assert_true(take(&rule, 85, 5));
        assert_int_equal(rule.status, RM_SENSOR_WARN);
}

static void test_high_mark_at_once(void **state) {
        struct rule rule = { 0 };

        assert_true(take(&rule, 95, 0));
        assert_int_equal(rule.status, RM_SENSOR_CRITICAL);
}

static void test_better_after_a_while(void **state) {
        struct rule rule = { .status = RM_SENSOR_CRITICAL };

        assert_false(take(&rule, 85, 1));
        assert_false(take(&rule, 60, 5));
        assert_false(take(&rule, 60, 10));
        /* The worst of the while counts: it was at the low threshold in it. */
        assert_true(take(&rule, 60, 11));
        assert_int_equal(rule.status, RM_SENSOR_WARN);
        assert_false(take(&rule, 60, 12));
        assert_false(take(&rule, 76, 21)); /* within the margin: the while begins anew */
        assert_false(take(&rule, 60, 22));
        assert_false(take(&rule, 60, 31));
        assert_true(take(&rule, 60, 32));
        assert_int_equal(rule.status, RM_SENSOR_OK);
}

/* However it goes up and down: the way to a better status takes the whole while, in which every
 * reading is better than the status; one to a worse status takes all readings in a row, or the high
 * threshold. */
static void test_random_sequences(void **state) {
        for (unsigned seed = 0; seed < repetitions(2000); seed++) {
                struct rule rule = { 0 };
                uint64_t minute = 1, not_better_minute = 0;
                unsigned worse = 0;

                srandom(seed);
                for (unsigned i = 0; i < 2000; i++) {
                        double value = 60 + (double) (random() % 400) / 10;
                        enum rm_sensor_status before = rule.status;
                        bool at_once, changed;
                        enum rm_sensor_status says;

                        if ((seed + i / 50) % 2 && random() % 30) /* quiet times, so that it gets better too */
                                value = 65;
                        says = rule_says(&thresholds, before, value, &at_once);
                        minute += (uint64_t) (random() % 3);
                        worse = says > before ? worse + 1 : 0;
                        if (says >= before)
                                not_better_minute = minute;
                        changed = rule_step(&rule, &limits, says, at_once, minute * MINUTE);
                        assert_int_equal(changed, rule.status != before);
                        if (rule.status > before)
                                assert_true(at_once || worse >= limits.readings);
                        if (rule.status < before)
                                assert_true((minute - not_better_minute) * MINUTE >= limits.hold_usec);
                        if (at_once)
                                assert_int_equal(rule.status, RM_SENSOR_CRITICAL);
                        if (changed) {
                                worse = 0;
                                not_better_minute = minute;
                        }
                }
        }
}

/* Around either threshold, with whatever period below the while: one change. */
static void test_flapping_changes_once(void **state) {
        static const double around[] = { 80, 95 };

        for (size_t m = 0; m < 2; m++)
                for (unsigned period = 1; period < 10; period++)
                        for (unsigned seed = 0; seed < repetitions(80); seed++) {
                                struct rule rule = { 0 };
                                unsigned changes = 0;

                                srandom(seed);
                                for (unsigned minute = 0; minute < 1000; minute++) {
                                        bool up = minute % (period + 3) < 3; /* three in a row are enough for a worse status */
                                        double way = (double) (random() % 40) / 10;
                                        double down = seed % 2 ? around[m] - 0.1 - way : 60; /* within the margin, or not */
                                        double value = up ? around[m] + way : down;

                                        changes += take(&rule, value, minute);
                                }
                                assert_int_equal(changes, 1);
                        }
}

static void test_growth(void **state) {
        struct growth growth = { 0 };

        assert_true(growth_step(&growth, 1000, 5 * MINUTE) == 0); /* all that was before */
        assert_true(growth_step(&growth, 1003, 6 * MINUTE) == 3);
        assert_true(growth_step(&growth, 1003, 64 * MINUTE) == 3);
        assert_true(growth_step(&growth, 1007, 65 * MINUTE) == 7);
        assert_true(growth_step(&growth, 1007, 66 * MINUTE) == 4);
        assert_true(growth_step(&growth, 2, 67 * MINUTE) == 6); /* it was set to 0 */
        assert_true(growth_step(&growth, 2, 1000 * MINUTE) == 0);
        assert_true(growth_step(&growth, 12, 100000 * MINUTE) == 10);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_thresholds),
                cmocka_unit_test(test_worse_after_some_in_a_row),
                cmocka_unit_test(test_high_mark_at_once),
                cmocka_unit_test(test_better_after_a_while),
                cmocka_unit_test(test_random_sequences),
                cmocka_unit_test(test_flapping_changes_once),
                cmocka_unit_test(test_growth),
        };

        return cmocka_run_group_tests_name("sensor-rules", tests, NULL, NULL);
}
