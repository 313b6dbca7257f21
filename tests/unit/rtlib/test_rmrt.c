/* The library without rmd, and what it checks. That rmd hears of it is a cluster test's affair. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "rm/rmrt.h"

static void test_arguments(void) {
        assert_int_equal(rmrt_step(0, 0), 0);
        assert_int_equal(rmrt_step(5, 0), 0);
        assert_int_equal(rmrt_step(5, 5), 0);
        assert_int_equal(rmrt_step(6, 5), -EINVAL);
        assert_int_equal(rmrt_goal(0, 0), 0);
        assert_int_equal(rmrt_goal(1, 0), 0);
        assert_int_equal(rmrt_goal(0, 1), 0);
        assert_int_equal(rmrt_goal(2, 1), -EINVAL);
        assert_int_equal(rmrt_goal(-1, 0), -EINVAL);
        assert_int_equal(rmrt_goal(NAN, 0), -EINVAL);
        assert_int_equal(rmrt_goal(0, INFINITY), -EINVAL);
}

static void test_outside(void **state) {
        assert_int_equal(unsetenv("RM_JOB_ID"), 0);
        test_arguments();
        assert_int_equal(rmrt_init(), 0);
        assert_false(rmrt_is_managed());
        test_arguments();
        rmrt_finalize();
}

static void test_no_rank(void **state) {
        static const char *const ranks[] = { "", "x", "-1", " 1", "1x", "99999999999999999999", "4294967296" };

        assert_int_equal(setenv("RM_JOB_ID", "1", 1), 0);
        for (size_t i = 0; i < sizeof(ranks) / sizeof(*ranks); i++) {
                assert_int_equal(setenv("PMIX_RANK", ranks[i], 1), 0);
                assert_int_equal(rmrt_init(), 0);
                assert_false(rmrt_is_managed());
        }
}

/* There is nobody at the program socket. */
static void test_nobody(void **state) {
        assert_int_equal(setenv("RM_JOB_ID", "1", 1), 0);
        assert_int_equal(setenv("PMIX_RANK", "3", 1), 0);
        assert_int_equal(rmrt_init(), 0);
        assert_int_equal(rmrt_init(), 0);
        assert_true(rmrt_is_managed());
        test_arguments();
        errno = 77;
        assert_int_equal(rmrt_step(1, 2), 0);
        rmrt_finalize();
        assert_int_equal(errno, 77);
        assert_false(rmrt_is_managed());
        rmrt_finalize();
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_outside),
                cmocka_unit_test(test_no_rank),
                cmocka_unit_test(test_nobody),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
