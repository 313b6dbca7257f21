/* The messages of a rank about growing and shrinking, when some are lost, repeated and late. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <string.h>

#include "rtlib/resize_state.h"

#define SECOND UINT64_C(1000000)

static void receive(struct resize *resize, Program__Resize__Step step, uint64_t epoch, uint32_t ranks) {
        Program__Resize notice = PROGRAM__RESIZE__INIT;

        notice.step = step;
        notice.rank = resize->rank;
        notice.epoch = epoch;
        notice.ranks = ranks;
        resize_state_receive(resize, &notice);
}

static void says(struct resize *resize, uint64_t now, Program__Resize__Step step, uint64_t epoch, uint32_t ranks) {
        Program__Resize request;

        assert_true(resize_state_send(resize, now, &request));
        assert_int_equal(request.step, step);
        assert_int_equal(request.rank, resize->rank);
        assert_int_equal(request.epoch, epoch);
        assert_int_equal(request.ranks, ranks);
}

static void says_nothing(struct resize *resize, uint64_t now) {
        Program__Resize request;

        assert_false(resize_state_send(resize, now, &request));
}

static void test_fixed(void **state) {
        struct resize resize;

        resize_state_init(&resize, 0, 0);
        says_nothing(&resize, SECOND);
        for (int step = 0; step <= PROGRAM__RESIZE__STEP__RECEIVED; step++)
                receive(&resize, (Program__Resize__Step) step, 1, 1);
        assert_int_equal(resize.phase, RESIZE_FIXED);
        resize_state_finish(&resize);
        says_nothing(&resize, SECOND);
}

/* Each word is lost once, and then comes twice. */
static void test_rank0_grows(void **state) {
        struct resize resize;
        struct rmrt_change change;

        resize_state_init(&resize, 0, 4);
        says(&resize, 0, PROGRAM__RESIZE__STEP__ASK, 0, 4);
        says_nothing(&resize, SECOND - 1);
        says(&resize, SECOND, PROGRAM__RESIZE__STEP__ASK, 0, 4);
        receive(&resize, PROGRAM__RESIZE__STEP__REQUESTED, 1, 8);
        says(&resize, SECOND, PROGRAM__RESIZE__STEP__BEGIN, 1, 8);
        receive(&resize, PROGRAM__RESIZE__STEP__REQUESTED, 1, 8);
        says_nothing(&resize, SECOND);
        says(&resize, 2 * SECOND, PROGRAM__RESIZE__STEP__BEGIN, 1, 8);
        receive(&resize, PROGRAM__RESIZE__STEP__BEGUN, 1, 8);
        receive(&resize, PROGRAM__RESIZE__STEP__BEGUN, 1, 8);
        receive(&resize, PROGRAM__RESIZE__STEP__REQUESTED, 2, 2);
        assert_int_equal(resize.phase, RESIZE_BEGUN);
        says_nothing(&resize, 3 * SECOND);
        change = resize.next;
        assert_int_equal(change.before, 4);
        assert_int_equal(change.now, 8);
        resize_state_made(&resize, &change);
        says(&resize, 3 * SECOND, PROGRAM__RESIZE__STEP__MADE, 1, 8);
        receive(&resize, PROGRAM__RESIZE__STEP__RECEIVED, 0, 0);
        says(&resize, 4 * SECOND, PROGRAM__RESIZE__STEP__MADE, 1, 8);
        receive(&resize, PROGRAM__RESIZE__STEP__RECEIVED, 1, 0);
        says(&resize, 4 * SECOND, PROGRAM__RESIZE__STEP__ASK, 1, 8);
        /* An old message means nothing. */
        receive(&resize, PROGRAM__RESIZE__STEP__REQUESTED, 1, 4);
        receive(&resize, PROGRAM__RESIZE__STEP__BEGUN, 1, 4);
        assert_int_equal(resize.phase, RESIZE_IDLE);
}

/* The first word that it wants another number is lost. */
static void test_begun_at_once(void **state) {
        struct resize resize;

        resize_state_init(&resize, 0, 4);
        receive(&resize, PROGRAM__RESIZE__STEP__BEGUN, 5, 2);
        assert_int_equal(resize.phase, RESIZE_BEGUN);
        assert_int_equal(resize.next.now, 2);
}

static void test_taken_back(void **state) {
        struct resize resize;

        resize_state_init(&resize, 0, 4);
        receive(&resize, PROGRAM__RESIZE__STEP__REQUESTED, 1, 8);
        receive(&resize, PROGRAM__RESIZE__STEP__REQUESTED, 2, 4);
        says(&resize, 0, PROGRAM__RESIZE__STEP__ASK, 0, 4);
        receive(&resize, PROGRAM__RESIZE__STEP__REQUESTED, 3, 6);
        says(&resize, 0, PROGRAM__RESIZE__STEP__BEGIN, 3, 6);
}

static void test_nonsense(void **state) {
        struct resize resize;

        resize_state_init(&resize, 0, 4);
        receive(&resize, PROGRAM__RESIZE__STEP__REQUESTED, 1, 0);
        receive(&resize, PROGRAM__RESIZE__STEP__BEGUN, 1, 0);
        receive(&resize, PROGRAM__RESIZE__STEP__WAKE, 1, 8);
        receive(&resize, PROGRAM__RESIZE__STEP__END, 1, 8);
        receive(&resize, PROGRAM__RESIZE__STEP__RECEIVED, 0, 0);
        receive(&resize, (Program__Resize__Step) 77, 1, 8);
        assert_int_equal(resize.phase, RESIZE_IDLE);
        /* A member speaks with nobody. */
        resize_state_init(&resize, 1, 4);
        for (int step = 0; step <= PROGRAM__RESIZE__STEP__RECEIVED; step++)
                receive(&resize, (Program__Resize__Step) step, 1, 8);
        assert_int_equal(resize.phase, RESIZE_MEMBER);
        says_nothing(&resize, SECOND);
}

static void test_parked(void **state) {
        struct rmrt_change shrink = { .epoch = 2, .before = 8, .now = 4 };
        struct resize resize;

        resize_state_init(&resize, 6, 4);
        says(&resize, 0, PROGRAM__RESIZE__STEP__PARKED, 0, 4);
        says(&resize, SECOND, PROGRAM__RESIZE__STEP__PARKED, 0, 4);
        receive(&resize, PROGRAM__RESIZE__STEP__RECEIVED, 9, 0);
        says(&resize, 2 * SECOND, PROGRAM__RESIZE__STEP__PARKED, 0, 4);
        receive(&resize, PROGRAM__RESIZE__STEP__RECEIVED, 0, 0);
        says_nothing(&resize, 100 * SECOND);
        receive(&resize, PROGRAM__RESIZE__STEP__WAKE, 1, 6); /* without it */
        assert_int_equal(resize.phase, RESIZE_PARKED);
        receive(&resize, PROGRAM__RESIZE__STEP__WAKE, 1, 7);
        receive(&resize, PROGRAM__RESIZE__STEP__WAKE, 1, 7);
        says(&resize, 100 * SECOND, PROGRAM__RESIZE__STEP__AWAKE, 1, 7);
        says_nothing(&resize, 200 * SECOND);
        resize_state_made(&resize, &resize.next);
        says_nothing(&resize, 200 * SECOND);
        /* The rank is parked again, by another change; the WAKE of the first is old. */
        resize_state_made(&resize, &shrink);
        resize_state_park(&resize);
        receive(&resize, PROGRAM__RESIZE__STEP__WAKE, 1, 7);
        says(&resize, 200 * SECOND, PROGRAM__RESIZE__STEP__PARKED, 2, 4);
        receive(&resize, PROGRAM__RESIZE__STEP__WAKE, 3, 8);
        assert_int_equal(resize.phase, RESIZE_WOKEN);
}

static void test_end(void **state) {
        struct resize resize;

        resize_state_init(&resize, 6, 4);
        receive(&resize, PROGRAM__RESIZE__STEP__END, 0, 0);
        assert_int_equal(resize.phase, RESIZE_ENDED);
        says(&resize, 0, PROGRAM__RESIZE__STEP__AWAKE, 0, 4);
        says_nothing(&resize, SECOND);
        /* The rank was woken, and rank 0 had its last step. */
        resize_state_init(&resize, 6, 4);
        receive(&resize, PROGRAM__RESIZE__STEP__WAKE, 1, 8);
        receive(&resize, PROGRAM__RESIZE__STEP__END, 1, 0);
        assert_int_equal(resize.phase, RESIZE_ENDED);

        resize_state_init(&resize, 0, 4);
        resize_state_finish(&resize);
        says(&resize, 0, PROGRAM__RESIZE__STEP__FINISH, 0, 4);
        says(&resize, SECOND, PROGRAM__RESIZE__STEP__FINISH, 0, 4);
        receive(&resize, PROGRAM__RESIZE__STEP__RECEIVED, 0, 0);
        assert_int_equal(resize.phase, RESIZE_FINISHED);
        says_nothing(&resize, 2 * SECOND);

        resize_state_init(&resize, 1, 4);
        resize_state_finish(&resize);
        says_nothing(&resize, SECOND);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_fixed),      cmocka_unit_test(test_rank0_grows), cmocka_unit_test(test_begun_at_once),
                cmocka_unit_test(test_taken_back), cmocka_unit_test(test_nonsense),    cmocka_unit_test(test_parked),
                cmocka_unit_test(test_end),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
