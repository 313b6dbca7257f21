/* Which checkpoint goes when there is no room. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "common/util.h"
#include "daemon/checkpoint/checkpoints_internal.h"

enum {
        CAPTURING = RM__CHECKPOINT_STATE__CHECKPOINT_CAPTURING,
        STORING = RM__CHECKPOINT_STATE__CHECKPOINT_STORING,
        DONE = RM__CHECKPOINT_STATE__CHECKPOINT_DONE,
        NONE,
};

/* The number of the checkpoint that may go, of a job with checkpoints 1, 2, 3 in these states,
 * oldest first; 0: none. */
static uint64_t spare(int first, int second, int third) {
        const int states[] = { first, second, third };
        Rm__Checkpoint checkpoints[ARRAY_SIZE(states)];
        Rm__Checkpoint *list[ARRAY_SIZE(states)];
        Rm__Job job = RM__JOB__INIT;
        const Rm__Checkpoint *found;

        job.checkpoints = list;
        for (size_t i = 0; i < ARRAY_SIZE(states) && states[i] != NONE; i++) {
                rm__checkpoint__init(&checkpoints[i]);
                checkpoints[i].id = i + 1;
                checkpoints[i].state = (Rm__CheckpointState) states[i];
                list[job.n_checkpoints++] = &checkpoints[i];
        }
        found = space_spare(&job);
        return found ? found->id : 0;
}

/* The last one that a job can go on from stays, whatever is being made. */
static void the_last_one_stays(void **state) {
        (void) state;
        assert_int_equal(spare(NONE, NONE, NONE), 0);
        assert_int_equal(spare(DONE, NONE, NONE), 0);
        assert_int_equal(spare(CAPTURING, STORING, NONE), 0);
        assert_int_equal(spare(DONE, CAPTURING, NONE), 0);
        assert_int_equal(spare(DONE, STORING, CAPTURING), 0);
        assert_int_equal(spare(STORING, DONE, NONE), 0);
}

static void the_oldest_goes(void **state) {
        (void) state;
        assert_int_equal(spare(DONE, DONE, NONE), 1);
        assert_int_equal(spare(DONE, DONE, DONE), 1);
        assert_int_equal(spare(DONE, STORING, DONE), 1);
        assert_int_equal(spare(STORING, DONE, DONE), 2);
}

/* Each one takes what he gets, again and again. */
static uint64_t fill(uint64_t *has, uint64_t *free_bytes) {
        uint64_t before = *has;

        for (int i = 0; i < 100; i++) {
                uint64_t left = space_of_user(0, *has, *free_bytes);

                left = left < *free_bytes ? left : *free_bytes;
                if (left <= 1)
                        break;
                *has += left;
                *free_bytes -= left;
        }
        return *has - before;
}

static void some_is_left_for_the_next_user(void **state) {
        const uint64_t disk = UINT64_C(1) << 40;
        uint64_t has[10] = { 0 }, free_bytes = disk;

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(has); i++) {
                assert_true(fill(&has[i], &free_bytes) >= disk >> (i + 2));
                assert_true(free_bytes >= disk >> (i + 2));
        }
        /* The first ones get no more by coming again, and more than half of it nobody. */
        for (size_t i = 0; i < ARRAY_SIZE(has); i++)
                assert_int_equal(fill(&has[i], &free_bytes), 0);
        assert_true(has[0] <= disk / 2);
}

static void a_limit_that_is_set_holds(void **state) {
        (void) state;
        assert_int_equal(space_of_user(1000, 0, 10000), 1000);
        assert_int_equal(space_of_user(1000, 400, 10000), 600);
        assert_int_equal(space_of_user(1000, 400, 100), 100);
        assert_int_equal(space_of_user(1000, 2000, 10000), 1);
        assert_int_equal(space_of_user(1000, 0, 0), 1);
        assert_int_equal(space_of_user(0, 0, 0), 1);
        assert_int_equal(space_of_user(0, UINT64_MAX, 100), 1);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(the_last_one_stays),
                cmocka_unit_test(the_oldest_goes),
                cmocka_unit_test(some_is_left_for_the_next_user),
                cmocka_unit_test(a_limit_that_is_set_holds),
        };

        return cmocka_run_group_tests_name("space", tests, NULL, NULL);
}
