/* The fields of a report about a node that administrators and their tools may set. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/requests/report_health.h"

enum { OK, WARN, FAILING, CRITICAL };

static int check(int condition, const char *source, const char *reason, const char *text) {
        char *names[] = { (char *) "n1" };
        Rm__ReportHealth in = RM__REPORT_HEALTH__INIT;
        struct rm_error err = { 0 };
        int r;

        in.names = names;
        in.n_names = 1;
        in.condition = (Rm__Condition) condition;
        in.source = (char *) source;
        in.reason = (char *) reason;
        r = report_health_check(&in, &err);
        if (r < 0)
                assert_non_null(strstr(error_text(&err), text));
        return r;
}

static void test_conditions(void **state) {
        (void) state;
        assert_int_equal(check(OK, "", "", ""), 0);
        assert_int_equal(check(OK, "", "all is well", ""), 0);
        assert_int_equal(check(WARN, "", "hot", ""), 0);
        assert_int_equal(check(CRITICAL, "edac", "hot", ""), 0);
        assert_int_equal(check(CRITICAL + 1, "", "hot", "must be ok, warn, failing or critical"), -EINVAL);
        assert_int_equal(check(-1, "", "hot", "must be ok, warn, failing or critical"), -EINVAL);
        assert_int_equal(check(FAILING, "", "", "say with --reason why it is failing"), -EINVAL);
}

static void test_texts(void **state) {
        char text[258];

        (void) state;
        memset(text, 'x', sizeof(text));
        text[257] = 0;
        assert_int_equal(check(WARN, "", text, "at most 256 bytes"), -EINVAL);
        assert_int_equal(check(WARN, "", text + 1, ""), 0);
        assert_int_equal(check(WARN, "", "two\nlines", "one line"), -EINVAL);
        assert_int_equal(check(WARN, "", "\x1b[31mred", "one line"), -EINVAL);
        assert_int_equal(check(WARN, "a b", "hot", "--source: a name"), -EINVAL);
        assert_int_equal(check(WARN, text + 257 - 64, "hot", "--source: a name"), -EINVAL);
        assert_int_equal(check(WARN, text + 257 - 63, "hot", ""), 0);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_conditions),
                cmocka_unit_test(test_texts),
        };

        return cmocka_run_group_tests_name("report_health", tests, NULL, NULL);
}
