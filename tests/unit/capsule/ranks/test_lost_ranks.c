/* Which ranks of a group are lost, whose word counts, and what the others are told. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "common/program_socket.h"
#include "common/util.h"
#include "daemon/capsule/init/ranks/lost_ranks.h"
#include "daemon/capsule/init/ranks/ranks.h"

#define WORD(name) PROGRAM__LOSS__STEP__##name

enum { FIRST = 4, RANKS = 3 };

static bool give_order(struct lost_ranks *l, const uint32_t *lost, size_t n) {
        Capsule__RankOrder order = CAPSULE__RANK_ORDER__INIT;

        order.first = FIRST;
        order.ranks = RANKS;
        order.lost = (uint32_t *) lost;
        order.n_lost = n;
        return lost_ranks_order(l, &order);
}

static int set_up(void **state) {
        *state = lost_ranks_create();
        assert_true(give_order(*state, NULL, 0));
        return 0;
}

static int tear_down(void **state) {
        lost_ranks_destroy(*state);
        return 0;
}

/* The answer, -1: none. */
static int say_count(struct lost_ranks *l, pid_t pid, Program__Loss__Step step, uint32_t rank, uint32_t count, Program__Loss *ret) {
        Program__Loss said = PROGRAM__LOSS__INIT;

        said.step = step;
        said.rank = rank;
        said.count = count;
        if (!lost_ranks_receive(l, pid, &said, ret))
                return -1;
        assert_int_equal(ret->rank, rank);
        return (int) ret->step;
}

static int say(struct lost_ranks *l, pid_t pid, Program__Loss__Step step, uint32_t rank) {
        Program__Loss ret;

        return say_count(l, pid, step, rank, 0, &ret);
}

/* All three have a process: 100, 101, 102. */
static void resync_all(struct lost_ranks *l) {
        for (uint32_t i = 0; i < RANKS; i++)
                assert_int_equal(say(l, 100 + (pid_t) i, WORD(HELLO), FIRST + i), WORD(RECEIVED));
}

static void expect_said(const struct lost_ranks *l, bool speaks, bool finished, size_t n, uint32_t first_lost) {
        Capsule__RanksSaid said;

        lost_ranks_said(l, &said);
        assert_int_equal(said.speaks, speaks);
        assert_int_equal(said.finished, finished);
        assert_int_equal(said.n_lost, n);
        if (n > 0)
                assert_int_equal(said.lost[0], first_lost);
        free(said.lost);
}

static void test_first_process_is_the_rank(void **state) {
        struct lost_ranks *l = *state;

        expect_said(l, false, false, 0, 0);
        assert_int_equal(say(l, 100, WORD(HELLO), FIRST), WORD(RECEIVED));
        assert_int_equal(say(l, 100, WORD(HELLO), FIRST), WORD(RECEIVED));
        assert_int_equal(say(l, 101, WORD(HELLO), FIRST), -1);
        assert_int_equal(say(l, 101, WORD(FINISHED), FIRST), -1);
        assert_int_equal(lost_ranks_pid(l, 0), 100);
        assert_int_equal(lost_ranks_pid(l, 1), 0);
        expect_said(l, true, false, 0, 0);
}

static void test_strangers_are_not_heard(void **state) {
        struct lost_ranks *l = *state, *none = lost_ranks_create();

        assert_int_equal(say(l, 100, WORD(HELLO), FIRST - 1), -1);
        assert_int_equal(say(l, 100, WORD(HELLO), FIRST + RANKS), -1);
        assert_int_equal(say(l, 100, WORD(HELLO), UINT32_MAX), -1);
        assert_int_equal(say(l, 0, WORD(HELLO), FIRST), -1); /* of no known process */
        assert_int_equal(say(l, 1, WORD(HELLO), FIRST), -1);
        assert_int_equal(say(l, 100, WORD(KNOWN), FIRST), -1);
        assert_int_equal(say(l, 100, WORD(LOST), FIRST), -1);
        assert_int_equal(say(l, 100, (Program__Loss__Step) 77, FIRST), -1);
        expect_said(l, false, false, 0, 0);
        assert_int_equal(say(none, 100, WORD(HELLO), 0), -1); /* of another kind of job */
        lost_ranks_destroy(none);
}

static void test_end_without_finish_is_a_loss(void **state) {
        struct lost_ranks *l = *state;

        resync_all(l);
        assert_false(lost_ranks_judge(l));
        lost_ranks_gone(l, 1);
        assert_true(lost_ranks_unjudged(l));
        expect_said(l, true, false, 0, 0);
        assert_true(lost_ranks_judge(l));
        assert_false(lost_ranks_judge(l));
        assert_false(lost_ranks_unjudged(l));
        expect_said(l, true, false, 1, FIRST + 1);
        /* The rank has no process any more. */
        assert_int_equal(lost_ranks_pid(l, 1), 0);
        assert_int_equal(say(l, 101, WORD(FINISHED), FIRST + 1), -1);
        assert_int_equal(say(l, 200, WORD(HELLO), FIRST + 1), -1);
        assert_int_equal(say(l, 100, WORD(FINISHED), FIRST), WORD(RECEIVED));
        expect_said(l, true, false, 1, FIRST + 1);
        assert_int_equal(say(l, 102, WORD(FINISHED), FIRST + 2), WORD(RECEIVED));
        expect_said(l, true, true, 1, FIRST + 1);
}

static void test_end_after_finish_is_none(void **state) {
        struct lost_ranks *l = *state;

        resync_all(l);
        for (uint32_t i = 0; i < RANKS; i++) {
                expect_said(l, true, false, 0, 0);
                assert_int_equal(say(l, 100 + (pid_t) i, WORD(FINISHED), FIRST + i), WORD(RECEIVED));
                assert_int_equal(say(l, 100 + (pid_t) i, WORD(FINISHED), FIRST + i), WORD(RECEIVED)); /* the answer was lost */
                assert_int_equal(lost_ranks_pid(l, i), 0);
                lost_ranks_gone(l, i);
        }
        assert_false(lost_ranks_judge(l));
        expect_said(l, true, true, 0, 0);
}

/* The first message of a rank may be its last one. */
static void test_finish_alone_counts(void **state) {
        struct lost_ranks *l = *state;

        assert_int_equal(say(l, 100, WORD(FINISHED), FIRST), WORD(RECEIVED));
        lost_ranks_gone(l, 0);
        assert_false(lost_ranks_judge(l));
        expect_said(l, true, false, 0, 0);
}

static void test_is_told_until_it_knows(void **state) {
        struct lost_ranks *l = *state;
        const uint32_t lost[] = { 9, FIRST + 1 };
        Program__Loss step;
        size_t at = 0;

        resync_all(l);
        lost_ranks_gone(l, 1);
        assert_true(lost_ranks_judge(l));
        assert_false(lost_ranks_next(l, &at, &step));
        assert_true(give_order(l, lost, 2));
        assert_int_equal(say(l, 102, WORD(FINISHED), FIRST + 2), WORD(RECEIVED)); /* it needs none any more */
        for (int again = 0; again < 2; again++) {
                at = 0;
                assert_true(lost_ranks_next(l, &at, &step));
                assert_int_equal(step.rank, FIRST);
                assert_int_equal(step.count, 2);
                assert_int_equal(step.from, 0);
                assert_int_equal(step.n_lost, 2);
                assert_int_equal(step.lost[1], FIRST + 1);
                assert_false(lost_ranks_next(l, &at, &step));
        }
        assert_int_equal(say_count(l, 100, WORD(KNOWN), FIRST, 3, &step), -1); /* more than there are */
        assert_int_equal(say_count(l, 101, WORD(KNOWN), FIRST, 2, &step), -1); /* of another process */
        at = 0;
        assert_true(lost_ranks_next(l, &at, &step));
        assert_int_equal(say_count(l, 100, WORD(KNOWN), FIRST, 2, &step), -1);
        at = 0;
        assert_false(lost_ranks_next(l, &at, &step));
}

static void test_long_lists_come_in_parts(void **state) {
        struct lost_ranks *l = *state;
        uint32_t lost[100];
        Program__Loss step;
        Program__Notice notice = PROGRAM__NOTICE__INIT;
        size_t at = 0;

        for (uint32_t i = 0; i < ARRAY_SIZE(lost); i++)
                lost[i] = UINT32_MAX - i;
        resync_all(l);
        assert_true(give_order(l, lost, ARRAY_SIZE(lost)));
        assert_true(lost_ranks_next(l, &at, &step));
        assert_int_equal(step.n_lost, LOST_RANKS_REPORTED_MAX);
        assert_int_equal(say_count(l, 100, WORD(KNOWN), FIRST, 48, &step), WORD(LOST));
        assert_int_equal(step.from, 48);
        assert_int_equal(step.lost[0], lost[48]);
        assert_int_equal(say_count(l, 100, WORD(KNOWN), FIRST, 48, &step), -1); /* is not asked for at will */
        assert_int_equal(say_count(l, 100, WORD(KNOWN), FIRST, 96, &step), WORD(LOST));
        assert_int_equal(step.n_lost, 4);
        assert_int_equal(say_count(l, 100, WORD(KNOWN), FIRST, 100, &step), -1);
        /* The longest of ranks that there are. */
        for (uint32_t i = 0; i < ARRAY_SIZE(lost); i++)
                lost[i] = LOST_RANKS_MAX - 1;
        step.step = WORD(LOST);
        step.rank = step.count = step.from = LOST_RANKS_MAX;
        step.lost = lost;
        step.n_lost = LOST_RANKS_REPORTED_MAX;
        notice.body_case = PROGRAM__NOTICE__BODY_LOSS;
        notice.loss = &step;
        assert_true(program__notice__get_packed_size(&notice) <= PROGRAM_SOCKET_MESSAGE_BYTES);
}

static void test_list_only_grows(void **state) {
        struct lost_ranks *l = *state;
        const uint32_t lost[] = { 9, 8 }, other[] = { 7, 6, 5 };
        Program__Loss step;
        size_t at = 0;

        resync_all(l);
        assert_true(give_order(l, lost, 2));
        assert_false(give_order(l, lost, 1));
        assert_false(give_order(l, lost, 2));
        assert_true(give_order(l, other, 3));
        assert_true(lost_ranks_next(l, &at, &step));
        assert_int_equal(step.n_lost, 3);
        assert_int_equal(step.lost[0], 9);
        assert_int_equal(step.lost[2], 5);
}

static void test_impossible_orders_are_not_taken(void **state) {
        struct lost_ranks *l = *state;
        Capsule__RankOrder order = CAPSULE__RANK_ORDER__INIT;

        order.ranks = RANKS_MAX + 1;
        assert_false(lost_ranks_order(l, &order));
        order.ranks = 2;
        order.first = UINT32_MAX;
        assert_false(lost_ranks_order(l, &order));
        order.first = 0;
        order.n_lost = LOST_RANKS_MAX + 1;
        assert_false(lost_ranks_order(l, &order));
        assert_int_equal(lost_ranks_count(l), RANKS);
}

/* Goes with the group: who is there no more at the other end is lost, who has finished is not. */
static void test_goes_with_the_group(void **state) {
        struct lost_ranks *l = *state, *there = lost_ranks_create();
        const uint32_t lost[] = { 9, 8 };
        Capsule__RankWatch *saved_state;
        Program__Loss step;
        size_t at = 0;

        assert_null(lost_ranks_saved_state(there));
        resync_all(l);
        assert_true(give_order(l, lost, 1));
        assert_int_equal(say_count(l, 100, WORD(KNOWN), FIRST, 1, &step), -1);
        assert_int_equal(say(l, 102, WORD(FINISHED), FIRST + 2), WORD(RECEIVED));
        lost_ranks_gone(l, 1); /* not judged: it stands still */
        saved_state = lost_ranks_saved_state(l);
        lost_ranks_set_saved_state(there, saved_state);
        assert_int_equal(lost_ranks_first(there), FIRST);
        assert_int_equal(lost_ranks_pid(there, 0), 100);
        assert_int_equal(lost_ranks_pid(there, 1), 101);
        assert_int_equal(lost_ranks_pid(there, 2), 0);
        expect_said(there, true, false, 0, 0);
        assert_false(lost_ranks_judge(there));
        lost_ranks_gone(there, 1);
        assert_true(lost_ranks_judge(there));
        expect_said(there, true, false, 1, FIRST + 1);
        assert_true(give_order(there, lost, 2));
        assert_true(lost_ranks_next(there, &at, &step));
        assert_int_equal(step.from, 1);
        assert_false(lost_ranks_next(there, &at, &step));
        lost_ranks_destroy(there);
        /* A carried state that does not fit is not taken. */
        there = lost_ranks_create();
        saved_state->order->ranks++;
        lost_ranks_set_saved_state(there, saved_state);
        assert_int_equal(lost_ranks_count(there), 0);
        saved_state->order->ranks--;
        capsule__rank_watch__free_unpacked(saved_state, NULL);
        lost_ranks_destroy(there);
}

static void speak(struct lost_ranks *l, bool speaks) {
        Capsule__RankOrder order = CAPSULE__RANK_ORDER__INIT;

        order.first = FIRST;
        order.ranks = RANKS;
        order.speaks = speaks;
        assert_true(lost_ranks_order(l, &order));
        assert_false(lost_ranks_order(l, &order));
}

/* A rank that has said nothing, while the others wait for it in MPI_Init, has ended if there is no
 * process that it could be, for long enough. */
static void test_who_never_spoke_is_sought(void **state) {
        struct lost_ranks *l = *state;
        Capsule__RanksSaid said;
        pid_t pids[RANKS];

        assert_int_equal(say(l, 100, WORD(HELLO), FIRST), WORD(RECEIVED));
        assert_int_equal(say(l, 102, WORD(HELLO), FIRST + 2), WORD(RECEIVED));
        assert_false(lost_ranks_seek(l));
        speak(l, true);
        assert_true(lost_ranks_seek(l));
        assert_int_equal(lost_ranks_pids(l, pids), 2);
        assert_true(pids[0] == 100 && pids[1] == 102);
        for (int round = 0; round < 2; round++) {
                for (int i = 1; i < LOST_RANKS_SOUGHT_MAX; i++)
                        lost_ranks_sought(l, false);
                assert_false(lost_ranks_judge(l));
                if (round == 0)
                        lost_ranks_sought(l, true);
        }
        lost_ranks_sought(l, false);
        assert_true(lost_ranks_judge(l));
        assert_false(lost_ranks_seek(l));
        lost_ranks_said(l, &said);
        assert_int_equal(said.n_lost, 1);
        assert_int_equal(said.lost[0], FIRST + 1);
        free(said.lost);
        assert_int_equal(say(l, 101, WORD(HELLO), FIRST + 1), -1);
}

static void test_who_has_spoken_is_not_sought(void **state) {
        struct lost_ranks *l = *state;

        resync_all(l);
        speak(l, true);
        assert_false(lost_ranks_seek(l));
        for (int i = 0; i < 2 * LOST_RANKS_SOUGHT_MAX; i++)
                lost_ranks_sought(l, false);
        assert_false(lost_ranks_judge(l));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_who_never_spoke_is_sought, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_who_has_spoken_is_not_sought, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_first_process_is_the_rank, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_strangers_are_not_heard, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_end_without_finish_is_a_loss, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_end_after_finish_is_none, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_finish_alone_counts, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_is_told_until_it_knows, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_long_lists_come_in_parts, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_list_only_grows, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_impossible_orders_are_not_taken, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_goes_with_the_group, set_up, tear_down),
        };

        return cmocka_run_group_tests_name("lost_ranks", tests, NULL, NULL);
}
