/* The next step of a head's node: each phase with each combination of facts, and what must be so of
 * all of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/util.h"
#include "daemon/job/head_step.h"

static const enum resident_phase phases[] = { RESIDENT_MAKING,    RESIDENT_READY,  RESIDENT_LAUNCHED,
                                              RESIDENT_UNSTARTED, RESIDENT_EXITED, RESIDENT_LOST };

static bool has(unsigned facts, unsigned all) {
        return (facts & all) == all;
}

/* The same decision said in another way: by what each phase may lead to. */
static enum head_step expected(enum resident_phase phase, unsigned facts) {
        bool starting = has(facts, HEAD_STARTING);
        bool comes_back = has(facts, HEAD_FROM_CHECKPOINT);
        bool runs =
                starting && has(facts, HEAD_OCCUPIED) && !has(facts, HEAD_CANCELLED) && (!comes_back || has(facts, HEAD_ALL_READY));

        if (phase == RESIDENT_LOST || phase == RESIDENT_UNSTARTED) {
                if (starting && comes_back && has(facts, HEAD_MAY_RESTART))
                        return HEAD_RESTART_JOB;
                return phase == RESIDENT_LOST ? HEAD_REPORT_LOST : HEAD_REPORT_UNSTARTED;
        }
        if (phase != RESIDENT_MAKING && has(facts, HEAD_PLACED))
                return HEAD_REPORT_PLACED;
        if (runs)
                return HEAD_REPORT_RUNNING;
        if (phase == RESIDENT_EXITED)
                return HEAD_REPORT_EXIT;
        if (has(facts, HEAD_ENDING))
                return HEAD_END_JOB;
        if (has(facts, HEAD_NO_RANKS))
                return HEAD_AWAIT_MPIRUN;
        return phase == RESIDENT_READY && starting && !comes_back && has(facts, HEAD_ALL_READY) ? HEAD_LAUNCH : HEAD_WAIT;
}

static void test_every_cell(void **state) {
        for (size_t p = 0; p < ARRAY_SIZE(phases); p++)
                for (unsigned facts = 0; facts < HEAD_FACTS; facts++)
                        if (head_step(phases[p], facts) != expected(phases[p], facts))
                                fail_msg("%s with facts %#x: step %d instead of %d", resident_phase_name(phases[p]), facts,
                                         (int) head_step(phases[p], facts), (int) expected(phases[p], facts));
}

/* The life of a job, from one step to the next. */
static void test_straight_way(void **state) {
        unsigned made = HEAD_PLACED | HEAD_STARTING;

        assert_int_equal(head_step(RESIDENT_MAKING, made), HEAD_WAIT);
        assert_int_equal(head_step(RESIDENT_READY, made), HEAD_REPORT_PLACED);
        assert_int_equal(head_step(RESIDENT_READY, HEAD_STARTING), HEAD_WAIT); /* for the groups */
        assert_int_equal(head_step(RESIDENT_READY, HEAD_STARTING | HEAD_ALL_READY), HEAD_LAUNCH);
        assert_int_equal(head_step(RESIDENT_LAUNCHED, HEAD_STARTING | HEAD_ALL_READY), HEAD_WAIT); /* for PID 1's answer */
        assert_int_equal(head_step(RESIDENT_LAUNCHED, HEAD_STARTING | HEAD_ALL_READY | HEAD_OCCUPIED), HEAD_REPORT_RUNNING);
        assert_int_equal(head_step(RESIDENT_LAUNCHED, HEAD_ALL_READY | HEAD_OCCUPIED), HEAD_WAIT);
        assert_int_equal(head_step(RESIDENT_EXITED, HEAD_ALL_READY | HEAD_OCCUPIED), HEAD_REPORT_EXIT);
}

/* A job is launched only once, only whole, and never over what a checkpoint brings back, whatever
 * else is so. */
static void test_launches_only_what_is_ready(void **state) {
        for (size_t p = 0; p < ARRAY_SIZE(phases); p++)
                for (unsigned facts = 0; facts < HEAD_FACTS; facts++)
                        if (head_step(phases[p], facts) == HEAD_LAUNCH) {
                                assert_int_equal(phases[p], RESIDENT_READY);
                                assert_true(has(facts, HEAD_STARTING | HEAD_ALL_READY));
                                assert_false(facts & (HEAD_FROM_CHECKPOINT | HEAD_ENDING | HEAD_PLACED));
                        }
}

/* The loss of a head is told, also when the job is to end: nobody is left to be signalled. */
static void test_lost_head_is_always_told(void **state) {
        for (unsigned facts = 0; facts < HEAD_FACTS; facts++) {
                enum head_step lost = head_step(RESIDENT_LOST, facts), unstarted = head_step(RESIDENT_UNSTARTED, facts);

                assert_true(lost == HEAD_REPORT_LOST || lost == HEAD_RESTART_JOB);
                assert_true(unstarted == HEAD_REPORT_UNSTARTED || unstarted == HEAD_RESTART_JOB);
                assert_int_equal(lost == HEAD_RESTART_JOB, unstarted == HEAD_RESTART_JOB);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_every_cell),
                cmocka_unit_test(test_straight_way),
                cmocka_unit_test(test_launches_only_what_is_ready),
                cmocka_unit_test(test_lost_head_is_always_told),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
