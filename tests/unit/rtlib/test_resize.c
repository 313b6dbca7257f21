/* The messages of a rank about growing and shrinking, when some are lost, repeated and late. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <string.h>

#include "rtlib/resize.h"

#define SECOND UINT64_C(1000000)

static void hear(struct resize *resize, Door__Resize__Word word, uint64_t epoch, uint32_t ranks) {
        Door__Resize notice = DOOR__RESIZE__INIT;

        notice.word = word;
        notice.rank = resize->rank;
        notice.epoch = epoch;
        notice.ranks = ranks;
        resize_hear(resize, &notice);
}

static void says(struct resize *resize, uint64_t now, Door__Resize__Word word, uint64_t epoch, uint32_t ranks) {
        Door__Resize request;

        assert_true(resize_say(resize, now, &request));
        assert_int_equal(request.word, word);
        assert_int_equal(request.rank, resize->rank);
        assert_int_equal(request.epoch, epoch);
        assert_int_equal(request.ranks, ranks);
}

static void says_nothing(struct resize *resize, uint64_t now) {
        Door__Resize request;

        assert_false(resize_say(resize, now, &request));
}

static void test_fixed(void **state) {
        struct resize resize;

        resize_init(&resize, 0, 0);
        says_nothing(&resize, SECOND);
        for (int word = 0; word <= DOOR__RESIZE__WORD__HEARD; word++)
                hear(&resize, (Door__Resize__Word) word, 1, 1);
        assert_int_equal(resize.phase, RESIZE_FIXED);
        resize_finish(&resize);
        says_nothing(&resize, SECOND);
}

/* Each word is lost once, and then comes twice. */
static void test_rank0_grows(void **state) {
        struct resize resize;
        struct rmrt_change change;

        resize_init(&resize, 0, 4);
        says(&resize, 0, DOOR__RESIZE__WORD__ASK, 0, 4);
        says_nothing(&resize, SECOND - 1);
        says(&resize, SECOND, DOOR__RESIZE__WORD__ASK, 0, 4);
        hear(&resize, DOOR__RESIZE__WORD__WANTED, 1, 8);
        says(&resize, SECOND, DOOR__RESIZE__WORD__BEGIN, 1, 8);
        hear(&resize, DOOR__RESIZE__WORD__WANTED, 1, 8);
        says_nothing(&resize, SECOND);
        says(&resize, 2 * SECOND, DOOR__RESIZE__WORD__BEGIN, 1, 8);
        hear(&resize, DOOR__RESIZE__WORD__BEGUN, 1, 8);
        hear(&resize, DOOR__RESIZE__WORD__BEGUN, 1, 8);
        hear(&resize, DOOR__RESIZE__WORD__WANTED, 2, 2);
        assert_int_equal(resize.phase, RESIZE_BEGUN);
        says_nothing(&resize, 3 * SECOND);
        change = resize.next;
        assert_int_equal(change.before, 4);
        assert_int_equal(change.now, 8);
        resize_made(&resize, &change);
        says(&resize, 3 * SECOND, DOOR__RESIZE__WORD__MADE, 1, 8);
        hear(&resize, DOOR__RESIZE__WORD__HEARD, 0, 0);
        says(&resize, 4 * SECOND, DOOR__RESIZE__WORD__MADE, 1, 8);
        hear(&resize, DOOR__RESIZE__WORD__HEARD, 1, 0);
        says(&resize, 4 * SECOND, DOOR__RESIZE__WORD__ASK, 1, 8);
        /* An old message means nothing. */
        hear(&resize, DOOR__RESIZE__WORD__WANTED, 1, 4);
        hear(&resize, DOOR__RESIZE__WORD__BEGUN, 1, 4);
        assert_int_equal(resize.phase, RESIZE_IDLE);
}

/* The first word that it wants another number is lost. */
static void test_begun_at_once(void **state) {
        struct resize resize;

        resize_init(&resize, 0, 4);
        hear(&resize, DOOR__RESIZE__WORD__BEGUN, 5, 2);
        assert_int_equal(resize.phase, RESIZE_BEGUN);
        assert_int_equal(resize.next.now, 2);
}

static void test_taken_back(void **state) {
        struct resize resize;

        resize_init(&resize, 0, 4);
        hear(&resize, DOOR__RESIZE__WORD__WANTED, 1, 8);
        hear(&resize, DOOR__RESIZE__WORD__WANTED, 2, 4);
        says(&resize, 0, DOOR__RESIZE__WORD__ASK, 0, 4);
        hear(&resize, DOOR__RESIZE__WORD__WANTED, 3, 6);
        says(&resize, 0, DOOR__RESIZE__WORD__BEGIN, 3, 6);
}

static void test_nonsense(void **state) {
        struct resize resize;

        resize_init(&resize, 0, 4);
        hear(&resize, DOOR__RESIZE__WORD__WANTED, 1, 0);
        hear(&resize, DOOR__RESIZE__WORD__BEGUN, 1, 0);
        hear(&resize, DOOR__RESIZE__WORD__WAKE, 1, 8);
        hear(&resize, DOOR__RESIZE__WORD__END, 1, 8);
        hear(&resize, DOOR__RESIZE__WORD__HEARD, 0, 0);
        hear(&resize, (Door__Resize__Word) 77, 1, 8);
        assert_int_equal(resize.phase, RESIZE_IDLE);
        /* A member speaks with nobody. */
        resize_init(&resize, 1, 4);
        for (int word = 0; word <= DOOR__RESIZE__WORD__HEARD; word++)
                hear(&resize, (Door__Resize__Word) word, 1, 8);
        assert_int_equal(resize.phase, RESIZE_MEMBER);
        says_nothing(&resize, SECOND);
}

static void test_parked(void **state) {
        struct rmrt_change shrink = { .epoch = 2, .before = 8, .now = 4 };
        struct resize resize;

        resize_init(&resize, 6, 4);
        says(&resize, 0, DOOR__RESIZE__WORD__PARKED, 0, 4);
        says(&resize, SECOND, DOOR__RESIZE__WORD__PARKED, 0, 4);
        hear(&resize, DOOR__RESIZE__WORD__HEARD, 9, 0);
        says(&resize, 2 * SECOND, DOOR__RESIZE__WORD__PARKED, 0, 4);
        hear(&resize, DOOR__RESIZE__WORD__HEARD, 0, 0);
        says_nothing(&resize, 100 * SECOND);
        hear(&resize, DOOR__RESIZE__WORD__WAKE, 1, 6); /* without it */
        assert_int_equal(resize.phase, RESIZE_PARKED);
        hear(&resize, DOOR__RESIZE__WORD__WAKE, 1, 7);
        hear(&resize, DOOR__RESIZE__WORD__WAKE, 1, 7);
        says(&resize, 100 * SECOND, DOOR__RESIZE__WORD__AWAKE, 1, 7);
        says_nothing(&resize, 200 * SECOND);
        resize_made(&resize, &resize.next);
        says_nothing(&resize, 200 * SECOND);
        /* The rank is parked again, by another change; the WAKE of the first is old. */
        resize_made(&resize, &shrink);
        resize_park(&resize);
        hear(&resize, DOOR__RESIZE__WORD__WAKE, 1, 7);
        says(&resize, 200 * SECOND, DOOR__RESIZE__WORD__PARKED, 2, 4);
        hear(&resize, DOOR__RESIZE__WORD__WAKE, 3, 8);
        assert_int_equal(resize.phase, RESIZE_WOKEN);
}

static void test_end(void **state) {
        struct resize resize;

        resize_init(&resize, 6, 4);
        hear(&resize, DOOR__RESIZE__WORD__END, 0, 0);
        assert_int_equal(resize.phase, RESIZE_ENDED);
        says(&resize, 0, DOOR__RESIZE__WORD__AWAKE, 0, 4);
        says_nothing(&resize, SECOND);
        /* The rank was woken, and rank 0 had its last step. */
        resize_init(&resize, 6, 4);
        hear(&resize, DOOR__RESIZE__WORD__WAKE, 1, 8);
        hear(&resize, DOOR__RESIZE__WORD__END, 1, 0);
        assert_int_equal(resize.phase, RESIZE_ENDED);

        resize_init(&resize, 0, 4);
        resize_finish(&resize);
        says(&resize, 0, DOOR__RESIZE__WORD__FINISH, 0, 4);
        says(&resize, SECOND, DOOR__RESIZE__WORD__FINISH, 0, 4);
        hear(&resize, DOOR__RESIZE__WORD__HEARD, 0, 0);
        assert_int_equal(resize.phase, RESIZE_FINISHED);
        says_nothing(&resize, 2 * SECOND);

        resize_init(&resize, 1, 4);
        resize_finish(&resize);
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
