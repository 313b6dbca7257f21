/* What administrators and their tools may say of the condition of a node. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/requests/report_health.h"
#include "daemon/state/state.h"

enum { OK, WARN, FAILING, CRITICAL };

static int check(uint32_t level, int condition, const char *source, const char *reason, const char *text) {
        char *names[] = { (char *) "n1" };
        Rm__Node old = RM__NODE__INIT;
        Rm__Node *nodes[] = { &old };
        Rm__State state = RM__STATE__INIT;
        Rm__ReportHealth in = RM__REPORT_HEALTH__INIT;
        struct rm_error err = { 0 };
        int r;

        old.name = (char *) "n2";
        old.level = level;
        state.nodes = nodes;
        state.n_nodes = 1;
        state.level = level;
        in.names = names;
        in.n_names = 1;
        in.condition = (Rm__Condition) condition;
        in.source = (char *) source;
        in.reason = (char *) reason;
        r = report_health_check(&state, &in, &err);
        if (r < 0)
                assert_non_null(strstr(error_text(&err), text));
        return r;
}

static void test_conditions(void **state) {
        (void) state;
        assert_int_equal(check(STATE_LEVEL, OK, "", "", ""), 0);
        assert_int_equal(check(STATE_LEVEL, OK, "", "all is well", ""), 0);
        assert_int_equal(check(STATE_LEVEL, WARN, "", "hot", ""), 0);
        assert_int_equal(check(STATE_LEVEL, CRITICAL, "edac", "hot", ""), 0);
        assert_int_equal(check(STATE_LEVEL, CRITICAL + 1, "", "hot", "must be ok, warn, failing or critical"), -EINVAL);
        assert_int_equal(check(STATE_LEVEL, -1, "", "hot", "must be ok, warn, failing or critical"), -EINVAL);
        assert_int_equal(check(STATE_LEVEL, FAILING, "", "", "say with --reason why it is failing"), -EINVAL);
}

static void test_texts(void **state) {
        char text[258];

        (void) state;
        memset(text, 'x', sizeof(text));
        text[257] = 0;
        assert_int_equal(check(STATE_LEVEL, WARN, "", text, "at most 256 bytes"), -EINVAL);
        assert_int_equal(check(STATE_LEVEL, WARN, "", text + 1, ""), 0);
        assert_int_equal(check(STATE_LEVEL, WARN, "", "two\nlines", "one line"), -EINVAL);
        assert_int_equal(check(STATE_LEVEL, WARN, "", "\x1b[31mred", "one line"), -EINVAL);
        assert_int_equal(check(STATE_LEVEL, WARN, "a b", "hot", "--source: a name"), -EINVAL);
        assert_int_equal(check(STATE_LEVEL, WARN, text + 257 - 64, "hot", "--source: a name"), -EINVAL);
        assert_int_equal(check(STATE_LEVEL, WARN, text + 257 - 63, "hot", ""), 0);
}

/* The entry would end the rmd of an older node. */
static void test_older_nodes(void **state) {
        (void) state;
        assert_int_equal(check(STATE_LEVEL_CONDITION - 1, WARN, "", "hot",
                               "report-health: needs feature level 9, and the cluster is at 8, since rmd is older on n2"),
                         -EAGAIN);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_conditions),
                cmocka_unit_test(test_texts),
                cmocka_unit_test(test_older_nodes),
        };

        return cmocka_run_group_tests_name("report_health", tests, NULL, NULL);
}
