/* PID 1 judges by a daemon's records how its ranks have ended. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/util.h"
#include "daemon/capsule/init/ranks/rank_ends.h"

#define CODE(code) ((code) << 8)

static Capsule__RankEnds sum(const struct rank_end_record *records, size_t n) {
        Capsule__RankEnds ends;

        rank_ends_sum(records, n, &ends);
        return ends;
}

static void test_first_of_each_kind(void **state) {
        static const struct rank_end_record records[] = {
                { RANK_BEGUN, 10, 0, 0, 1 },        { RANK_BEGUN, 11, 0, 0, 2 },      { RANK_BEGUN, 12, 0, 0, 3 },
                { RANK_BEGUN, 13, 0, 0, 4 },        { RANK_ENDED, 9, CODE(1), 0, 5 }, /* no rank */
                { RANK_ENDED, 10, CODE(14), 0, 6 }, { RANK_ENDED, 11, 11, 0, 7 },     { RANK_ENDED, 12, CODE(3), 0, 8 },
                { RANK_KILLED, 13, 9, 0, 9 },
        };
        Capsule__RankEnds ends = sum(records, ARRAY_SIZE(records));

        assert_int_equal(ends.exit_code, 14);
        assert_int_equal(ends.exit_usec, 6);
        assert_int_equal(ends.signal, 11);
        assert_int_equal(ends.signal_usec, 7);
        assert_false(ends.all_well);
}

static void test_killed_is_no_cause(void **state) {
        static const struct rank_end_record records[] = { { RANK_BEGUN, 10, 0, 0, 1 }, { RANK_KILLED, 10, 15, 0, 2 } };
        Capsule__RankEnds ends = sum(records, ARRAY_SIZE(records));

        assert_int_equal(ends.signal_usec, 0);
        assert_int_equal(ends.exit_usec, 0);
        assert_false(ends.all_well);
}

static void test_all_well(void **state) {
        static const struct rank_end_record records[] = { { RANK_BEGUN, 10, 0, 0, 1 },
                                                          { RANK_BEGUN, 11, 0, 0, 2 },
                                                          { RANK_ENDED, 10, 0, 0, 3 },
                                                          { RANK_ENDED, 11, 0, 0, 4 },
                                                          { RANK_BEGUN, 12, 0, 0, 5 } };

        assert_false(sum(records, 0).all_well);
        assert_false(sum(records, 3).all_well);
        assert_true(sum(records, 4).all_well);
        assert_false(sum(records, 5).all_well); /* one that was spawned runs */
}

static void test_files(void **state) {
        static const struct rank_end_record one[] = { { RANK_BEGUN, 10, 0, 0, 1 }, { RANK_ENDED, 10, CODE(3), 0, 2 } };
        char directory[] = "/tmp/rm-rank-ends-XXXXXX";
        cleanup_free char *path = NULL, *link = NULL;
        Capsule__RankEnds ends;

        assert_non_null(mkdtemp(directory));
        path = xasprintf("%s/ends", directory);
        link = xasprintf("%s/link", directory);
        rank_ends_read(path, &ends);
        assert_int_equal(ends.exit_usec, 0);
        assert_int_equal(write_file_atomic(path, one, sizeof(one), 0600, false), 0);
        rank_ends_read(path, &ends);
        assert_int_equal(ends.exit_code, 3);
        /* Half a record, a link, no file, and one that is too long. */
        assert_int_equal(truncate(path, sizeof(one) - 1), 0);
        rank_ends_read(path, &ends);
        assert_int_equal(ends.exit_usec, 0);
        assert_int_equal(write_file_atomic(path, one, sizeof(one), 0600, false), 0);
        assert_int_equal(symlink(path, link), 0);
        rank_ends_read(link, &ends);
        assert_int_equal(ends.exit_usec, 0);
        assert_int_equal(truncate(path, RANK_END_MAX_BYTES + 1), 0);
        rank_ends_read(path, &ends);
        assert_int_equal(ends.exit_usec, 0);
        assert_int_equal(unlink(path), 0);
        assert_int_equal(mkfifo(path, 0600), 0);
        rank_ends_read(path, &ends);
        assert_int_equal(ends.exit_usec, 0);
        (void) unlink(path);
        (void) unlink(link);
        (void) rmdir(directory);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_first_of_each_kind),
                cmocka_unit_test(test_killed_is_no_cause),
                cmocka_unit_test(test_all_well),
                cmocka_unit_test(test_files),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
