/* Which end of a rank ended the job. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/util.h"
#include "daemon/job/rank_ends.h"

enum { SECOND = 1000000, NOON = 1000 * SECOND };

static const struct {
        const char *what;
        int mpirun;
        struct capsule_rank_ends groups[3];
        struct rank_ends_first want;
} cases[] = {
        { "nothing is known", 7, { { 0 } }, { 7, 0, -1 } },
        { "a crash, and one that aborts since", 14, { { .exit_code = 14, .exit_usec = NOON + 1 }, { 11, NOON } }, { 139, 11, 1 } },
        { "and by its clock it was the first",
          14,
          { { .exit_code = 14, .exit_usec = NOON - SECOND / 2 }, { 6, NOON } },
          { 134, 6, 1 } },
        { "two crashes", 139, { { 6, NOON + 1 }, { 11, NOON }, { 9, NOON + 2 } }, { 139, 11, 1 } },
        { "a code, and one that aborts since",
          14,
          { { .exit_code = 14, .exit_usec = NOON + 1 }, { 0 }, { .exit_code = 3, .exit_usec = NOON } },
          { 3, 0, 2 } },
        { "and by its clock that was the first",
          14,
          { { .exit_code = 14, .exit_usec = NOON }, { .exit_code = 3, .exit_usec = NOON + SECOND / 2 } },
          { 3, 0, 1 } },
        { "only that", 14, { { .exit_code = 14, .exit_usec = NOON } }, { 14, 0, 0 } },
        { "two codes", 7, { { .exit_code = 7, .exit_usec = NOON + 1 }, { .exit_code = 3, .exit_usec = NOON } }, { 3, 0, 1 } },
        { "a code, and much later a crash", 3, { { .exit_code = 3, .exit_usec = NOON }, { 11, NOON + 2 * SECOND } }, { 3, 0, 0 } },
        { "0 without MPI_Finalize, and one that aborts since", 1, { { .exit_code = 14, .exit_usec = NOON } }, { 1, 0, -1 } },
        { "a crash, and mpirun knows none", 1, { { 9, NOON } }, { 137, 9, 0 } },
};

static void test_choose(void **state) {
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct rank_ends_first have = rank_ends_choose(cases[i].mpirun, cases[i].groups, ARRAY_SIZE(cases[i].groups));

                print_message("%s\n", cases[i].what);
                assert_int_equal(have.exit_code, cases[i].want.exit_code);
                assert_int_equal(have.signal, cases[i].want.signal);
                assert_int_equal(have.group, cases[i].want.group);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_choose),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
