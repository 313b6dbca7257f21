/* The knowledge of a rank about others that were lost. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "rtlib/ft/losses.h"

static void test_order(void **state) {
        struct losses l;

        losses_init(&l, 4);
        assert_int_equal(losses_add(&l, 0, (const uint32_t[]) { 2 }, 1), 1);
        assert_int_equal(losses_add(&l, 0, (const uint32_t[]) { 2, 0 }, 2), 2);
        assert_int_equal(losses_add(&l, 0, (const uint32_t[]) { 2, 0 }, 2), 2);
        assert_true(losses_has(&l, 2, 1));
        assert_false(losses_has(&l, 0, 1));
        assert_true(losses_has(&l, 0, 2));
        assert_false(losses_has(&l, 77, 2));
        losses_finish(&l);
}

/* Messages of PID 1 that cannot be true are not believed. */
static void test_nonsense(void **state) {
        struct losses l;

        losses_init(&l, 4);
        assert_int_equal(losses_add(&l, 1, (const uint32_t[]) { 3 }, 1), 0);
        assert_int_equal(losses_add(&l, 0, (const uint32_t[]) { 4 }, 1), 0);
        assert_int_equal(losses_add(&l, 0, (const uint32_t[]) { 1, 1 }, 2), 1);
        assert_int_equal(losses_add(&l, UINT32_MAX, (const uint32_t[]) { 0, 3 }, 2), 1);
        assert_int_equal(losses_add(&l, 1, (const uint32_t[]) { 0, 3, 2, 5 }, 4), 4);
        losses_finish(&l);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_order),
                cmocka_unit_test(test_nonsense),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
