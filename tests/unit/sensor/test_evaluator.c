/* The status of a sensor, of several readings and what it says itself. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/util.h"
#include "daemon/sensor/evaluator.h"

#define MINUTE UINT64_C(60000000)

static const struct evaluator_config defaults = { .limits = { .readings = 2, .hold_usec = 10 * MINUTE },
                                                  .low = NAN,
                                                  .high = NAN,
                                                  .margin = NAN };

static struct answer_reading reading(const char *name, double value) {
        struct answer_reading r = {
                .unit = "C", .value = value, .low = 80, .high = 90, .at_low = RM_SENSOR_WARN, .at_high = RM_SENSOR_CRITICAL
        };

        (void) snprintf(r.name, sizeof(r.name), "%s", name);
        return r;
}

static bool take(struct evaluator *evaluator, struct answer_reading *readings, size_t n, uint64_t minute) {
        const struct answer answer = { .readings = readings, .n_readings = n };

        return evaluator_take(evaluator, &answer, minute * MINUTE);
}

static void test_worst_counts(void **state) {
        struct evaluator *evaluator = evaluator_create(&defaults);
        struct answer_reading r[] = { reading("a", 50), reading("b", 60), reading("c", 85) };

        assert_string_equal(evaluator_text(evaluator), "");
        r[2].value = 1e300;
        r[2].low = r[2].high = 2e300;
        assert_false(take(evaluator, r + 2, 1, 0));
        assert_string_equal(evaluator_text(evaluator), "c: 1e+300 C (low threshold 2e+300)");
        r[2] = reading("c", 85);
        assert_false(take(evaluator, r, 3, 0));
        assert_string_equal(evaluator_text(evaluator), "c: 85 C (low threshold 80)"); /* the nearest */
        assert_true(take(evaluator, r, 3, 1));
        assert_int_equal(evaluator_status(evaluator), RM_SENSOR_WARN);
        r[0].value = 91;
        assert_true(take(evaluator, r, 3, 2));
        assert_int_equal(evaluator_status(evaluator), RM_SENSOR_CRITICAL);
        assert_string_equal(evaluator_text(evaluator), "a: 91 C (high threshold 90)");
        /* Another that gets better does not make it so, and one that is gone does in time. */
        r[2].value = 50;
        assert_false(take(evaluator, r, 3, 3));
        assert_false(take(evaluator, r + 1, 2, 13));
        assert_string_equal(evaluator_text(evaluator), "a: not told any more");
        assert_true(take(evaluator, r + 1, 2, 23));
        assert_int_equal(evaluator_status(evaluator), RM_SENSOR_OK);
        evaluator_destroy(evaluator);
        evaluator_destroy(NULL);
}

static void test_configuration_overrides(void **state) {
        struct evaluator_config config = defaults;
        struct answer_reading r[] = { reading("a", 55), reading("fixed", 55) };
        struct evaluator *evaluator;

        config.low = 40;
        config.high = 50;
        config.at_high = RM_SENSOR_FAILING;
        r[1].fixed = true;
        evaluator = evaluator_create(&config);
        assert_false(take(evaluator, r + 1, 1, 0));
        assert_true(take(evaluator, r, 2, 1));
        assert_int_equal(evaluator_status(evaluator), RM_SENSOR_FAILING);
        assert_string_equal(evaluator_text(evaluator), "a: 55 C (high threshold 50)");
        evaluator_destroy(evaluator);
        /* No high threshold says less than the low one. */
        config.at_low = RM_SENSOR_CRITICAL;
        evaluator = evaluator_create(&config);
        assert_true(take(evaluator, r, 1, 0));
        assert_int_equal(evaluator_status(evaluator), RM_SENSOR_CRITICAL);
        evaluator_destroy(evaluator);
}

static void test_counter_counts_by_its_growth(void **state) {
        struct evaluator *evaluator = evaluator_create(&defaults);
        struct answer_reading r = reading("mc0", 100000);

        r.counter = true;
        assert_false(take(evaluator, &r, 1, 0));
        assert_string_equal(evaluator_text(evaluator), "mc0: 0 C (low threshold 80)");
        r.value += 95;
        assert_true(take(evaluator, &r, 1, 1));
        assert_int_equal(evaluator_status(evaluator), RM_SENSOR_CRITICAL);
        assert_string_equal(evaluator_text(evaluator), "mc0: 95 C (high threshold 90)");
        evaluator_destroy(evaluator);
}

static void test_own_word(void **state) {
        struct evaluator *evaluator = evaluator_create(&defaults);
        struct answer answer = { .evaluates = true, .status = RM_SENSOR_WARN, .text = "a fan is slow" };

        assert_false(evaluator_take(evaluator, &answer, 0));
        assert_true(evaluator_take(evaluator, &answer, MINUTE));
        assert_int_equal(evaluator_status(evaluator), RM_SENSOR_WARN);
        assert_string_equal(evaluator_text(evaluator), "a fan is slow");
        answer.status = RM_SENSOR_OK;
        (void) strcpy(answer.text, "all is well");
        assert_false(evaluator_take(evaluator, &answer, 2 * MINUTE));
        assert_string_equal(evaluator_text(evaluator), "a fan is slow"); /* why it still warns */
        assert_true(evaluator_take(evaluator, &answer, 12 * MINUTE));
        assert_string_equal(evaluator_text(evaluator), "all is well");
        answer.status = RM_SENSOR_CRITICAL;
        assert_true(evaluator_take(evaluator, &answer, 13 * MINUTE)); /* at once */
        evaluator_destroy(evaluator);
}

/* Names that are new each time, all bad, so that none is forgotten for a while: what is remembered
 * is bounded, and those that fit count. */
static void test_changing_names_are_bounded(void **state) {
        struct evaluator *evaluator = evaluator_create(&defaults);
        struct answer_reading *r = xcalloc(RM_SENSOR_READINGS_MAX, sizeof(*r));

        for (uint64_t minute = 0; minute < 10; minute++) {
                for (unsigned i = 0; i < RM_SENSOR_READINGS_MAX; i++) {
                        char name[32];

                        (void) snprintf(name, sizeof(name), "%u.%u", (unsigned) minute, i);
                        r[i] = reading(name, 99);
                }
                (void) take(evaluator, r, RM_SENSOR_READINGS_MAX, minute);
                assert_int_equal(evaluator_status(evaluator), RM_SENSOR_CRITICAL);
        }
        free(r);
        evaluator_destroy(evaluator);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_worst_counts),
                cmocka_unit_test(test_configuration_overrides),
                cmocka_unit_test(test_counter_counts_by_its_growth),
                cmocka_unit_test(test_own_word),
                cmocka_unit_test(test_changing_names_are_bounded),
        };

        return cmocka_run_group_tests_name("sensor-evaluator", tests, NULL, NULL);
}
