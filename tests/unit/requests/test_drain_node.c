/* The fields of a drain that administrators may set. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/requests/drain_node.h"
#include "daemon/state/state.h"

static int check(const char *reason, uint64_t deadline_usec, const char *text) {
        char *names[] = { (char *) "n1" };
        Rm__DrainNode in = RM__DRAIN_NODE__INIT;
        struct rm_error err = { 0 };
        int r;

        in.names = names;
        in.n_names = 1;
        in.reason = (char *) reason;
        in.deadline_usec = deadline_usec;
        r = drain_node_check(&in, &err);
        if (r < 0)
                assert_non_null(strstr(error_text(&err), text));
        return r;
}

static void test_reason(void **state) {
        char reason[258];

        (void) state;
        memset(reason, 'x', sizeof(reason));
        reason[257] = 0;
        assert_int_equal(check(reason, 0, "at most 256 bytes"), -EINVAL);
        assert_int_equal(check(reason + 1, 0, ""), 0);
        assert_int_equal(check("two\nlines", 0, "of one line"), -EINVAL);
}

static void test_deadline(void **state) {
        const uint64_t year = UINT64_C(366) * 86400 * 1000000;

        (void) state;
        assert_int_equal(check("", 1, ""), 0);
        assert_int_equal(check("", year, ""), 0);
        assert_int_equal(check("", year + 1, "at most 366 days"), -EINVAL);
        assert_int_equal(check("", UINT64_MAX, "at most 366 days"), -EINVAL);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_reason),
                cmocka_unit_test(test_deadline),
        };

        return cmocka_run_group_tests_name("drain", tests, NULL, NULL);
}
