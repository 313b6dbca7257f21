/* Rounds go on while they gain something. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "daemon/mover/rounds.h"

static void little_is_enough(void **state) {
        struct rounds r = { .max = 9, .part = 16 };

        (void) state;
        assert_true(rounds_another(&r, 16000));
        assert_true(rounds_another(&r, 1001));
        r.before_bytes = 0;
        assert_false(rounds_another(&r, 1000));
}

static void nothing_is_enough(void **state) {
        struct rounds r = { .max = 9, .part = 16 };

        (void) state;
        assert_false(rounds_another(&r, 0));
}

/* A program that writes all its memory between two rounds. */
static void without_gain(void **state) {
        struct rounds r = { .max = 9, .part = 16 };

        (void) state;
        assert_true(rounds_another(&r, 1000));
        assert_true(rounds_another(&r, 750));
        assert_false(rounds_another(&r, 563));
}

static void not_for_ever(void **state) {
        struct rounds r = { .max = 3, .part = 1024 };

        (void) state;
        assert_true(rounds_another(&r, 1000));
        assert_true(rounds_another(&r, 500));
        assert_false(rounds_another(&r, 250));
}

/* What came between made the next one larger; how much is little stays. */
static void once_more(void **state) {
        struct rounds r = { .max = 3, .part = 16 };

        (void) state;
        assert_true(rounds_another(&r, 16000));
        assert_false(rounds_another(&r, 900));
        r.n = 0;
        r.before_bytes = 0;
        assert_true(rounds_another(&r, 2000));
        assert_false(rounds_another(&r, 1000));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(little_is_enough), cmocka_unit_test(nothing_is_enough), cmocka_unit_test(without_gain),
                cmocka_unit_test(not_for_ever),     cmocka_unit_test(once_more),
        };

        return cmocka_run_group_tests_name("rounds", tests, NULL, NULL);
}
