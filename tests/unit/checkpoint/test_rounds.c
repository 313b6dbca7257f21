/* The wait for ranks that come to their places. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "daemon/checkpoint/rounds.h"

/* Each is twice as long as the one before, and the last ends with all. */
static void test_longer(void **state) {
        struct rounds rounds = { 0 };
        uint64_t now = 1000, last = 0;

        rounds_begin(&rounds, now, 1000000);
        assert_int_equal(rounds.round, 1);
        do {
                uint64_t left = rounds_left(&rounds, now);

                assert_true(left > 0);
                assert_true(last == 0 || left == 2 * last || now + left == 1001000);
                last = left;
                now += left;
        } while (rounds_next(&rounds, now));
        assert_int_equal(now, 1001000);
        assert_int_equal(rounds.round, 7);
        rounds_end(&rounds);
        assert_int_equal(rounds.round, 0);
}

static void test_late(void **state) {
        struct rounds rounds = { 0 };

        rounds_begin(&rounds, 5, 1);
        assert_int_equal(rounds_left(&rounds, 5), 1);
        assert_int_equal(rounds_left(&rounds, 9), 0);
        assert_false(rounds_next(&rounds, 9));
}

int main(void) {
        const struct CMUnitTest tests[] = { cmocka_unit_test(test_longer), cmocka_unit_test(test_late) };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
