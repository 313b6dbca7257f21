/* What administrators may say of a drain. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/requests/drain.h"
#include "daemon/state/state.h"

static int check(uint32_t level, const char *reason, uint64_t deadline_usec, const char *text) {
        char *names[] = { (char *) "n1" };
        Rm__Node old = RM__NODE__INIT;
        Rm__Node *nodes[] = { &old };
        Rm__State state = RM__STATE__INIT;
        Rm__DrainNode in = RM__DRAIN_NODE__INIT;
        struct rm_error err = { 0 };
        int r;

        old.name = (char *) "n2";
        old.level = level;
        state.nodes = nodes;
        state.n_nodes = 1;
        state.level = level;
        in.names = names;
        in.n_names = 1;
        in.reason = (char *) reason;
        in.deadline_usec = deadline_usec;
        r = drain_check(&state, &in, &err);
        if (r < 0)
                assert_non_null(strstr(error_text(&err), text));
        return r;
}

static void test_reason(void **state) {
        char reason[258];

        (void) state;
        memset(reason, 'x', sizeof(reason));
        reason[257] = 0;
        assert_int_equal(check(STATE_LEVEL, reason, 0, "at most 256 bytes"), -EINVAL);
        assert_int_equal(check(STATE_LEVEL, reason + 1, 0, ""), 0);
        assert_int_equal(check(STATE_LEVEL, "two\nlines", 0, "of one line"), -EINVAL);
}

static void test_deadline(void **state) {
        const uint64_t year = UINT64_C(366) * 86400 * 1000000;

        (void) state;
        assert_int_equal(check(STATE_LEVEL, "", 1, ""), 0);
        assert_int_equal(check(STATE_LEVEL, "", year, ""), 0);
        assert_int_equal(check(STATE_LEVEL, "", year + 1, "at most 366 days"), -EINVAL);
        assert_int_equal(check(STATE_LEVEL, "", UINT64_MAX, "at most 366 days"), -EINVAL);
}

/* The entry would end the rmd of an older node. */
static void test_older_nodes(void **state) {
        (void) state;
        assert_int_equal(check(STATE_LEVEL_DEADLINE - 1, "", 1,
                               "drain-node: --deadline needs feature level 8, and the cluster is at 7, since rmd is older on n2"),
                         -EAGAIN);
        assert_int_equal(check(STATE_LEVEL_DEADLINE - 1, "disk", 0, ""), 0);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_reason),
                cmocka_unit_test(test_deadline),
                cmocka_unit_test(test_older_nodes),
        };

        return cmocka_run_group_tests_name("drain", tests, NULL, NULL);
}
