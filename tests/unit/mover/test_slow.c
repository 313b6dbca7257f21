/* Limits of processor time, in a directory with the files of a control group. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/util.h"
#include "daemon/mover/slow.h"

static char *in(const char *dir, const char *name) {
        return xasprintf("%s/%s", dir, name);
}

static void put(const char *dir, const char *name) {
        cleanup_free char *path = in(dir, name);

        int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

        assert_true(fd >= 0);
        (void) close(fd);
}

/* A text that was written over a longer one leaves the end of that: these are no files of the
 * kernel. */
static void expect(const char *dir, const char *name, const char *requested) {
        cleanup_free char *path = in(dir, name);
        cleanup_free char *text = NULL;

        assert_int_equal(read_file(path, 4096, &text, NULL), 0);
        assert_int_equal(strncmp(text, requested, strlen(requested)), 0);
}

static void test_v2(void **state) {
        char dir[] = "/tmp/slow.XXXXXX";
        struct slow *slow;

        (void) state;
        assert_non_null(mkdtemp(dir));
        put(dir, "cpu.max");
        assert_int_equal(slow_open(dir, 2, &slow), 0);
        assert_int_equal(slow_set(slow, 75000), 0);
        expect(dir, "cpu.max", "15000 100000");
        assert_int_equal(slow_set(slow, 2000), 0);
        expect(dir, "cpu.max", "1000 250000");
        slow_end(slow);
        expect(dir, "cpu.max", "max");
        assert_int_equal(remove_tree(dir), 0);
}

static void test_v1(void **state) {
        char dir[] = "/tmp/slow.XXXXXX";
        struct slow *slow;

        (void) state;
        assert_non_null(mkdtemp(dir));
        put(dir, "cpu.cfs_quota_us");
        assert_int_equal(slow_open(dir, 1, &slow), -ENOENT);
        put(dir, "cpu.cfs_period_us");
        assert_int_equal(slow_open(dir, 0, &slow), 0); /* one core at least */
        assert_int_equal(slow_set(slow, 2000), 0);
        expect(dir, "cpu.cfs_period_us", "500000");
        expect(dir, "cpu.cfs_quota_us", "1000");
        assert_int_equal(slow_set(slow, 0), 0);
        expect(dir, "cpu.cfs_period_us", "1000000");
        slow_end(slow);
        expect(dir, "cpu.cfs_quota_us", "-1");
        assert_int_equal(remove_tree(dir), 0);
}

static void test_none(void **state) {
        struct slow *slow = NULL;

        (void) state;
        assert_int_equal(slow_open("/nonexistent", 1, &slow), -ENOENT);
        assert_null(slow);
        slow_end(NULL);
}

int main(void) {
        const struct CMUnitTest tests[] = { cmocka_unit_test(test_v2), cmocka_unit_test(test_v1), cmocka_unit_test(test_none) };

        return cmocka_run_group_tests_name("mover-slow", tests, NULL, NULL);
}
