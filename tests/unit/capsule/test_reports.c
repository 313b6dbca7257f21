/* What programs say of their progress: any bytes may come. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "common/door.h"
#include "common/util.h"
#include "daemon/capsule/init/reports.h"
#include "proto/door.pb-c.h"

static int setup(void **state) {
        *state = reports_create();
        return 0;
}

static int teardown(void **state) {
        reports_destroy(*state);
        return 0;
}

static int say_with_goal(struct reports *reports, uint32_t rank, uint64_t done, uint64_t total, double goal_min) {
        Door__Report report = DOOR__REPORT__INIT;
        Door__Request request = DOOR__REQUEST__INIT;
        uint8_t data[DOOR_MESSAGE_BYTES];

        report.rank = rank;
        report.done = done;
        report.total = total;
        report.goal_min = goal_min;
        request.body_case = DOOR__REQUEST__BODY_REPORT;
        request.report = &report;
        assert_true(door__request__get_packed_size(&request) <= sizeof(data));
        return reports_take(reports, data, door__request__pack(&request, data));
}

static int say(struct reports *reports, uint32_t rank, uint64_t done, uint64_t total) {
        return say_with_goal(reports, rank, done, total, 0);
}

static void expect(const struct reports *reports, uint32_t ranks, uint64_t done, uint64_t total) {
        Capsule__Progress progress = CAPSULE__PROGRESS__INIT;

        reports_sum(reports, &progress);
        assert_int_equal(progress.ranks, ranks);
        assert_int_equal(progress.done, done);
        assert_int_equal(progress.total, total);
}

/* It is as far as its last rank. */
static void test_last_rank(void **state) {
        struct reports *reports = *state;

        expect(reports, 0, 0, 0);
        assert_int_equal(say(reports, 7, 10, 100), 0);
        expect(reports, 1, 10, 100);
        assert_int_equal(say(reports, 3, 4, 100), 0);
        expect(reports, 2, 4, 100);
        assert_int_equal(say(reports, 3, 12, 100), 0);
        expect(reports, 2, 10, 100);
        assert_int_equal(say(reports, 7, 2, 0), 0); /* it has begun anew */
        expect(reports, 2, 2, 0);
        assert_int_equal(say(reports, UINT32_MAX, UINT64_MAX, UINT64_MAX), 0);
        expect(reports, 3, 2, 0);
}

static void test_nonsense(void **state) {
        struct reports *reports = *state;
        uint8_t bytes[DOOR_MESSAGE_BYTES + 1] = { 0 };

        assert_int_equal(reports_take(reports, bytes, 0), -EBADMSG);
        for (size_t i = 0; i <= sizeof(bytes); i++)
                assert_int_equal(reports_take(reports, bytes, i), -EBADMSG);
        memset(bytes, 0xff, sizeof(bytes));
        for (size_t i = 0; i <= sizeof(bytes); i++)
                assert_int_equal(reports_take(reports, bytes, i), -EBADMSG);
        assert_int_equal(say(reports, 0, 11, 10), -EBADMSG);
        assert_int_equal(say_with_goal(reports, 0, 1, 10, NAN), -EBADMSG);
        assert_int_equal(say_with_goal(reports, 0, 1, 10, INFINITY), -EBADMSG);
        assert_int_equal(say_with_goal(reports, 0, 1, 10, -1), -EBADMSG);
        expect(reports, 0, 0, 0);
}

static void test_too_many(void **state) {
        struct reports *reports = *state;

        for (uint32_t i = 0; i < REPORTS_RANKS_MAX; i++)
                assert_int_equal(say(reports, i * 1000003U, 5, 10), 0);
        assert_int_equal(say(reports, 1, 1, 10), -EUSERS);
        assert_int_equal(say(reports, 0, 6, 10), 0);
        expect(reports, REPORTS_RANKS_MAX, 5, 10);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_last_rank, setup, teardown),
                cmocka_unit_test_setup_teardown(test_nonsense, setup, teardown),
                cmocka_unit_test_setup_teardown(test_too_many, setup, teardown),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
