/* Which processes may be ranks that have not come to MPI_Init yet. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <unistd.h>

#include "common/util.h"
#include "daemon/capsule/init/ranks/launched.h"

/* A shell, its daemon, that of which this is the beginning, and two of that: a rank in a shell of
 * its own, and another. */
static const struct launched_process four[] = { { 22, 21, false }, { 10, 1, false }, { 20, 12, false },
                                                { 11, 10, true },  { 12, 11, true }, { 21, 12, false } };

static int count_of(const struct launched_process *processes, size_t n, const pid_t *known, size_t n_known) {
        struct launched_process all[8];

        assert_true(n <= ARRAY_SIZE(all));
        for (size_t i = 0; i < n; i++)
                all[i] = processes[i];
        return launched_count_unknown(all, n, known, n_known);
}

static void test_known_by_descent(void **state) {
        const pid_t rank = 20, in_shell = 22, both[] = { 22, 20 }, other = 10, gone = 99;

        assert_int_equal(count_of(four, ARRAY_SIZE(four), NULL, 0), 2);
        assert_int_equal(count_of(four, ARRAY_SIZE(four), &rank, 1), 1);
        assert_int_equal(count_of(four, ARRAY_SIZE(four), &in_shell, 1), 1);
        assert_int_equal(count_of(four, ARRAY_SIZE(four), both, 2), 0);
        assert_int_equal(count_of(four, ARRAY_SIZE(four), &other, 1), 2);
        assert_int_equal(count_of(four, ARRAY_SIZE(four), &gone, 1), 2);
}

static void test_without_daemon(void **state) {
        static const struct launched_process none[] = { { 10, 1, false }, { 11, 10, false } };
        static const struct launched_process alone[] = { { 10, 1, false }, { 11, 10, true } };

        assert_int_equal(count_of(none, ARRAY_SIZE(none), NULL, 0), -1);
        assert_int_equal(count_of(NULL, 0, NULL, 0), -1);
        assert_int_equal(count_of(alone, ARRAY_SIZE(alone), NULL, 0), 0);
}

/* As a table that changes while it is read may show it. */
static void test_circle(void **state) {
        static const struct launched_process circle[] = {
                { 10, 12, false }, { 11, 10, false }, { 12, 11, false }, { 13, 1, true }
        };
        const pid_t rank = 12;

        assert_int_equal(count_of(circle, ARRAY_SIZE(circle), &rank, 1), 0);
}

/* A rank that has ended, one of a daemon elsewhere, and what a rank has started are none. */
static void test_ranks(void **state) {
        struct launched_process all[] = { { 30, 12, false, true }, { 22, 21, false },
                                          { 10, 1, false },        { 20, 12, false, false, 20, 3 },
                                          { 11, 10, true },        { 12, 11, true },
                                          { 21, 12, false },       { 40, 2, true },
                                          { 41, 40, false } };

        assert_int_equal(launched_ranks(all, ARRAY_SIZE(all), 1), 2);
        assert_int_equal(all[0].pid, 20);
        assert_int_equal(all[0].group, 20);
        assert_int_equal(all[0].threads, 3);
        assert_int_equal(all[1].pid, 21);
        assert_int_equal(launched_ranks(all, ARRAY_SIZE(all), 2), 1);
        assert_int_equal(all[0].pid, 41);
        assert_int_equal(launched_ranks(NULL, 0, 1), 0);
}

/* The list of processes has this one. */
static void test_read(void **state) {
        cleanup_free struct launched_process *all = NULL;
        size_t n = launched_read(&all), found = 0;

        for (size_t i = 0; i < n; i++) {
                if (all[i].pid != getpid())
                        continue;
                found++;
                assert_int_equal(all[i].parent, getppid());
                assert_int_equal(all[i].group, getpgrp());
                assert_int_equal(all[i].threads, 1);
                assert_false(all[i].daemon);
                assert_false(all[i].ended);
        }
        assert_int_equal(found, 1);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_known_by_descent),
                cmocka_unit_test(test_without_daemon),
                cmocka_unit_test(test_circle),
                cmocka_unit_test(test_ranks),
                cmocka_unit_test(test_read),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
