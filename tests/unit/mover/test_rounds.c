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

/* Writes in between made the next round larger; the bound for a small round stays. */
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

/* Worth it where a freeze would be noticed, and the rounds, each a quarter of the one before, end
 * in time. */
static void when_to_slow(void **state) {
        (void) state;
        assert_false(rounds_slow_pays(99999, 2000000));
        assert_true(rounds_slow_pays(100000, 2000000));
        assert_true(rounds_slow_pays(1499999, 2000000));
        assert_false(rounds_slow_pays(1500000, 2000000));
        assert_false(rounds_slow_pays(500000, 0));
        assert_true(rounds_slow_enough(30000));
        assert_false(rounds_slow_enough(30001));
}

/* 4 GB/s at that share are a quarter of what is sent. */
static void how_slow(void **state) {
        (void) state;
        assert_int_equal(rounds_first_share(1200000000, 1000000), 75000); /* 10 Gbit/s: 300 MB/s are written */
        assert_int_equal(rounds_first_share(118000000, 1000000), 7375);
        assert_int_equal(rounds_first_share(1000000, 1000000), 2000);
        assert_int_equal(rounds_first_share(UINT64_C(100) << 30, 1000000), 200000);
        assert_int_equal(rounds_first_share(0, 0), 2000);
        assert_int_equal(rounds_next_share(75000, 250, 1000), 75000);
        assert_int_equal(rounds_next_share(75000, 900, 1000), 18750);
        assert_int_equal(rounds_next_share(3000, 900, 1000), 2000);
}

/* All of a large memory is written in a moment. */
static void when_to_leave(void **state) {
        (void) state;
        assert_true(rounds_futile(100 << 20, 50 << 20));
        assert_false(rounds_futile(100 << 20, 49 << 20));
        assert_false(rounds_futile(15 << 20, 15 << 20));
        assert_true(rounds_maybe_futile(100 << 20, 10 << 20, 11 << 20, 4));
        assert_false(rounds_maybe_futile(100 << 20, 10 << 20, 10 << 20, 4));
        assert_false(rounds_maybe_futile(100 << 20, 10 << 20, 0, 4));
        assert_false(rounds_maybe_futile(15 << 20, 1 << 20, 15 << 20, 4));
        assert_int_equal(rounds_futile_steps(0), 4);
        assert_int_equal(rounds_futile_steps(2000000000), 20);
        assert_int_equal(rounds_futile_steps(UINT64_MAX), 40);
        assert_true(rounds_too_long(128 << 10, 100000));
        assert_false(rounds_too_long(128 << 10, 99999));
        assert_false(rounds_too_long(3 << 12, 10000000));
}

/* Another round and the freeze, each as long as the last round, and a second for dump and
 * restore. */
static void hurried(void **state) {
        struct rounds_deadline d = { 0 };

        (void) state;
        assert_true(rounds_in_time(NULL, 5, UINT64_MAX));
        assert_true(rounds_in_time(&d, 5, UINT64_MAX));
        d.end_usec = 10000000;
        assert_true(rounds_in_time(&d, 5000000, 2000000));
        assert_int_equal(d.cut_usec, 0);
        assert_false(rounds_in_time(&d, 5000000, 2000001));
        assert_int_equal(d.cut_usec, 5000000);
        assert_true(rounds_in_time(&d, 8000000, 500000));
        assert_false(rounds_in_time(&d, 9000000, 0));
        assert_int_equal(d.cut_usec, 1000000);
        assert_false(rounds_in_time(&d, 1, UINT64_MAX));
        assert_int_equal(d.cut_usec, 9999999);
}

static void deadline_is_over(void **state) {
        struct rounds_deadline d = { .end_usec = 10000000 };

        (void) state;
        assert_false(rounds_in_time(&d, 10000000, 0));
        assert_int_equal(d.cut_usec, 1);
        d.cut_usec = 0;
        assert_false(rounds_in_time(&d, UINT64_MAX, 0));
        assert_int_equal(d.cut_usec, 1);
}

/* The figures keep what was noted. */
static void deadline_is_taken_back(void **state) {
        struct rounds_deadline d = { .end_usec = 1 };

        (void) state;
        assert_false(rounds_in_time(&d, 5, 0));
        d.end_usec = 0;
        assert_true(rounds_in_time(&d, 5, 1000));
        assert_int_equal(d.cut_usec, 1);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(little_is_enough),
                cmocka_unit_test(nothing_is_enough),
                cmocka_unit_test(without_gain),
                cmocka_unit_test(not_for_ever),
                cmocka_unit_test(once_more),
                cmocka_unit_test(when_to_slow),
                cmocka_unit_test(how_slow),
                cmocka_unit_test(when_to_leave),
                cmocka_unit_test(hurried),
                cmocka_unit_test(deadline_is_over),
                cmocka_unit_test(deadline_is_taken_back),
        };

        return cmocka_run_group_tests_name("rounds", tests, NULL, NULL);
}
