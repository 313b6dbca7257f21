/* A viewer is sent the changes of lists that are made again all the time: new entries, and those
 * that are gone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/web/delta.h"
#include "proto/local.pb-c.h"

static char gone[256];

static void on_gone(void *userdata, const char *key) {
        size_t n = strlen(gone);

        (void) snprintf(gone + n, sizeof(gone) - n, "%s ", key);
}

static void expect_gone(struct delta *delta, const char *keys) {
        gone[0] = 0;
        delta_end_pass(delta, on_gone, NULL);
        assert_string_equal(gone, keys);
}

static bool scan(struct delta *delta, const char *key, uint32_t ranks) {
        Rm__NodeView view = RM__NODE_VIEW__INIT;

        view.ranks = ranks;
        return delta_is_new(delta, key, &view.base);
}

static void test_passes(void **state) {
        struct delta *delta = delta_create();

        assert_true(scan(delta, "n1", 1));
        assert_true(scan(delta, "n2", 1));
        expect_gone(delta, "");
        assert_false(scan(delta, "n1", 1));
        assert_true(scan(delta, "n2", 2));
        assert_true(scan(delta, "n3", 0));
        expect_gone(delta, "");
        assert_false(scan(delta, "n2", 2));
        assert_false(scan(delta, "n3", 0));
        expect_gone(delta, "n1 ");
        /* An entry that comes back is new, also as it was. */
        assert_true(scan(delta, "n1", 1));
        expect_gone(delta, "n2 n3 ");
        expect_gone(delta, "n1 ");
        expect_gone(delta, "");
        delta_destroy(delta);
        delta_destroy(NULL);
}

int main(void) {
        const struct CMUnitTest tests[] = { cmocka_unit_test(test_passes) };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
