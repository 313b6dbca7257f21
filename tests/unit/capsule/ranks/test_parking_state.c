/* The notices to ranks of a group about growing and shrinking, and when they may be frozen. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "common/util.h"
#include "daemon/capsule/init/ranks/parking_state.h"
#include "daemon/capsule/init/ranks/ranks.h"

#define WORD(name) PROGRAM__RESIZE__STEP__##name

static int set_up(void **state) {
        *state = parking_state_create();
        return 0;
}

static int tear_down(void **state) {
        parking_state_destroy(*state);
        return 0;
}

static Capsule__ResizeOrder order(uint32_t first, uint32_t active, uint64_t epoch) {
        Capsule__ResizeOrder order = CAPSULE__RESIZE_ORDER__INIT;

        order.first = first;
        order.ranks = 2;
        order.active = active;
        order.epoch = epoch;
        order.freeze = first >= active;
        return order;
}

/* The answer, -1: none. */
static int say(struct parking *parking, Program__Resize__Step step, uint32_t rank, uint64_t epoch, uint32_t ranks,
               Program__Resize *ret) {
        Program__Resize said = PROGRAM__RESIZE__INIT;

        said.step = step;
        said.rank = rank;
        said.epoch = epoch;
        said.ranks = ranks;
        return parking_state_receive(parking, &said, ret) ? (int) ret->step : -1;
}

/* The number of notices that are due now, all with this word. */
static size_t reported(const struct parking *parking, Program__Resize__Step step) {
        Program__Resize notice;
        size_t at = 0, n = 0;

        for (; parking_state_next(parking, &at, &notice); n++)
                assert_int_equal(notice.step, step);
        return n;
}

static void test_stands_still_when_all_are_parked(void **state) {
        struct parking *p = *state;
        Capsule__ResizeOrder o = order(4, 4, 1);
        Program__Resize received;

        parking_state_order(p, &o);
        assert_false(parking_state_is_quiet(p));
        assert_int_equal(say(p, WORD(PARKED), 4, 0, 0, &received), WORD(RECEIVED));
        assert_int_equal(received.rank, 4);
        assert_false(parking_state_is_quiet(p));
        assert_int_equal(say(p, WORD(PARKED), 5, 0, 0, &received), WORD(RECEIVED));
        assert_true(parking_state_is_quiet(p));
        assert_int_equal(reported(p, WORD(WAKE)), 0);
        /* These ranks are of the next group, and of none. */
        assert_int_equal(say(p, WORD(PARKED), 6, 0, 0, &received), -1);
        assert_int_equal(say(p, WORD(PARKED), 3, 0, 0, &received), -1);
        assert_int_equal(say(p, WORD(PARKED), UINT32_MAX, 0, 0, &received), -1);
        assert_true(parking_state_is_quiet(p));
}

/* The reports to rmd of groups that run though they are parked. */
static void test_awake_until_all_are_parked(void **state) {
        struct parking *p = *state;
        Capsule__ResizeOrder o = order(4, 4, 1);
        Capsule__Parking *saved_state;
        Program__Resize received;

        assert_false(parking_state_is_awake(p));
        parking_state_order(p, &o);
        assert_true(parking_state_is_awake(p));
        assert_true(parking_state_set_awake(p, true));
        assert_false(parking_state_set_awake(p, true));
        assert_true(parking_state_reported(p)->awake);
        (void) say(p, WORD(PARKED), 4, 0, 0, &received);
        assert_true(parking_state_is_awake(p));
        saved_state = parking_state_save(p);
        assert_true(saved_state->said->awake);
        capsule__parking__free_unpacked(saved_state, NULL);
        (void) say(p, WORD(PARKED), 5, 0, 0, &received);
        assert_false(parking_state_is_awake(p));
        assert_true(parking_state_set_awake(p, false));
        o.end = true;
        parking_state_order(p, &o);
        assert_false(parking_state_is_awake(p));
}

static void test_active_ones_never_stand_still(void **state) {
        struct parking *p = *state;
        Capsule__ResizeOrder o = order(2, 4, 1);
        Program__Resize received;

        parking_state_order(p, &o);
        (void) say(p, WORD(PARKED), 2, 0, 0, &received);
        (void) say(p, WORD(PARKED), 3, 0, 0, &received);
        assert_false(parking_state_is_quiet(p));
        assert_int_equal(reported(p, WORD(WAKE)), 0);
}

static void park_both(struct parking *p, uint64_t epoch) {
        Program__Resize received;

        assert_int_equal(say(p, WORD(PARKED), 4, epoch, 0, &received), WORD(RECEIVED));
        assert_int_equal(say(p, WORD(PARKED), 5, epoch, 0, &received), WORD(RECEIVED));
        assert_int_equal(received.epoch, epoch);
}

static void test_is_woken_until_it_answers(void **state) {
        struct parking *p = *state;
        Capsule__ResizeOrder o = order(4, 4, 1);
        Program__Resize notice;
        size_t at = 0;

        parking_state_order(p, &o);
        park_both(p, 0);
        o.epoch = 2;
        o.requested = 5;
        parking_state_order(p, &o);
        assert_int_equal(reported(p, WORD(WAKE)), 0); /* rank 0 has not begun */
        assert_true(parking_state_is_quiet(p));
        o.begun = true;
        o.active = 5;
        o.freeze = false;
        parking_state_order(p, &o);
        assert_false(parking_state_is_quiet(p));
        assert_true(parking_state_next(p, &at, &notice));
        assert_int_equal(notice.rank, 4);
        assert_int_equal(notice.ranks, 5);
        assert_int_equal(notice.epoch, 2);
        assert_int_equal(reported(p, WORD(WAKE)), 1);
        assert_int_equal(say(p, WORD(PARKED), 4, 0, 0, &notice), WORD(RECEIVED)); /* it was on its way */
        assert_int_equal(reported(p, WORD(WAKE)), 1);
        assert_int_equal(say(p, WORD(AWAKE), 4, 2, 0, &notice), -1);
        assert_int_equal(reported(p, WORD(WAKE)), 0);
}

/* The answer was lost, and the change is over: what it said before that does not make it parked in
 * the next one. */
static void test_old_words_do_not_park(void **state) {
        struct parking *p = *state;
        Capsule__ResizeOrder o = order(4, 6, 2);

        parking_state_order(p, &o);
        park_both(p, 0);
        o.requested = 6;
        o.begun = true;
        parking_state_order(p, &o);
        assert_int_equal(reported(p, WORD(WAKE)), 2);
        o.requested = 0;
        o.begun = false;
        parking_state_order(p, &o);
        assert_int_equal(reported(p, WORD(WAKE)), 0);
        /* Smaller again: they have not said so yet. */
        o = order(4, 4, 3);
        parking_state_order(p, &o);
        assert_false(parking_state_is_quiet(p));
        park_both(p, 3);
        assert_true(parking_state_is_quiet(p));
}

/* Ranks leave before the log says so, and are not woken for the change that they left in. */
static void test_leavers_are_not_woken(void **state) {
        struct parking *p = *state;
        Capsule__ResizeOrder o = order(4, 6, 2);

        o.requested = 4;
        o.begun = true;
        parking_state_order(p, &o);
        park_both(p, 2);
        assert_int_equal(reported(p, WORD(WAKE)), 0);
        assert_false(parking_state_is_quiet(p));
        o = order(4, 4, 2);
        parking_state_order(p, &o);
        assert_true(parking_state_is_quiet(p));
}

static void test_end_is_told(void **state) {
        struct parking *p = *state;
        Capsule__ResizeOrder o = order(4, 4, 1);
        Program__Resize notice;

        parking_state_order(p, &o);
        park_both(p, 0);
        o.end = true;
        o.freeze = false;
        parking_state_order(p, &o);
        assert_false(parking_state_is_quiet(p));
        assert_int_equal(reported(p, WORD(END)), 2);
        (void) say(p, WORD(AWAKE), 5, 1, 0, &notice);
        assert_int_equal(reported(p, WORD(END)), 1);
}

static void test_rank_0_changes(void **state) {
        struct parking *p = *state;
        Capsule__ResizeOrder o = order(0, 4, 1);
        Program__Resize notice;

        parking_state_order(p, &o);
        assert_int_equal(say(p, WORD(ASK), 0, 0, 4, &notice), -1);
        assert_true(parking_state_reported(p)->listens);
        o.requested = 8;
        o.epoch = 2;
        parking_state_order(p, &o);
        assert_int_equal(reported(p, WORD(REQUESTED)), 1);
        assert_int_equal(say(p, WORD(ASK), 0, 0, 4, &notice), WORD(REQUESTED));
        assert_int_equal(notice.ranks, 8);
        assert_int_equal(say(p, WORD(BEGIN), 0, 7, 8, &notice), WORD(REQUESTED)); /* of no change that there is */
        assert_int_equal(parking_state_reported(p)->begun, 0);
        assert_int_equal(say(p, WORD(BEGIN), 0, 2, 8, &notice), -1); /* not in the log yet */
        assert_int_equal(parking_state_reported(p)->begun, 2);
        assert_int_equal(say(p, WORD(MADE), 0, 2, 8, &notice), WORD(RECEIVED));
        assert_int_equal(parking_state_reported(p)->done, 0); /* it cannot have */
        o.begun = true;
        o.active = 8;
        parking_state_order(p, &o);
        assert_int_equal(reported(p, WORD(BEGUN)), 1);
        assert_int_equal(say(p, WORD(BEGIN), 0, 2, 8, &notice), WORD(BEGUN));
        assert_int_equal(say(p, WORD(MADE), 0, 2, 8, &notice), WORD(RECEIVED));
        assert_int_equal(notice.epoch, 2);
        assert_int_equal(parking_state_reported(p)->done, 2);
        assert_int_equal(parking_state_reported(p)->ranks, 8);
        assert_int_equal(say(p, WORD(MADE), 0, 2, 5, &notice), WORD(RECEIVED)); /* the first word counts */
        assert_int_equal(parking_state_reported(p)->ranks, 8);
        assert_int_equal(say(p, WORD(ASK), 0, 2, 8, &notice), -1);
        assert_int_equal(say(p, WORD(MADE), 0, 9, 8, &notice), -1); /* of one that is to come */
        assert_int_equal(say(p, WORD(FINISH), 0, 2, 8, &notice), WORD(RECEIVED));
        assert_true(parking_state_reported(p)->ending);
}

static void test_taken_back(void **state) {
        struct parking *p = *state;
        Capsule__ResizeOrder o = order(0, 4, 2);
        Program__Resize notice;

        o.requested = 8;
        parking_state_order(p, &o);
        (void) say(p, WORD(BEGIN), 0, 2, 8, &notice);
        o.requested = 0;
        o.epoch = 3;
        parking_state_order(p, &o);
        assert_int_equal(say(p, WORD(BEGIN), 0, 2, 8, &notice), WORD(REQUESTED));
        assert_int_equal(notice.ranks, 4);
        assert_int_equal(notice.epoch, 3);
}

static void test_goes_with_the_capsule(void **state) {
        struct parking *p = *state, *there = parking_state_create();
        Capsule__ResizeOrder o = order(4, 4, 5);
        Capsule__Parking *saved_state;

        assert_null(parking_state_save(p));
        parking_state_order(p, &o);
        park_both(p, 3);
        saved_state = parking_state_save(p);
        parking_state_load(there, saved_state);
        assert_true(parking_state_is_quiet(there));
        o.epoch = 6;
        o.requested = o.active = 6;
        o.begun = true;
        o.freeze = false;
        parking_state_order(there, &o);
        assert_int_equal(reported(there, WORD(WAKE)), 2);
        /* A carried state that does not fit is not taken. */
        saved_state->order->ranks = 3;
        parking_state_load(there, saved_state);
        assert_int_equal(reported(there, WORD(WAKE)), 2);
        saved_state->order->ranks = 2;
        capsule__parking__free_unpacked(saved_state, NULL);
        parking_state_destroy(there);
}

/* As a newer rmd or PID 1 sends it: with a field that is not known here, which the message owns. */
static void *sent_by_newer(const ProtobufCMessage *message) {
        size_t size = protobuf_c_message_get_packed_size(message);
        uint8_t data[256];
        void *newer;

        assert_true(size + 3 <= sizeof(data));
        (void) protobuf_c_message_pack(message, data);
        data[size] = 0xf8; /* field 127, a varint */
        data[size + 1] = 0x07;
        data[size + 2] = 1;
        newer = protobuf_c_message_unpack(message->descriptor, NULL, size + 3, data);
        assert_non_null(newer);
        assert_int_equal(((ProtobufCMessage *) newer)->n_unknown_fields, 1);
        return newer;
}

static void test_newer_messages(void **state) {
        struct parking *p = *state, *there = parking_state_create();
        Capsule__ResizeOrder o = order(4, 4, 5), *newer = sent_by_newer(&o.base);
        Capsule__ResizeSaid said = CAPSULE__RESIZE_SAID__INIT;
        Capsule__ParkedRank *rank;
        Capsule__Parking *saved_state;

        parking_state_order(p, newer);
        capsule__resize_order__free_unpacked(newer, NULL);
        saved_state = parking_state_save(p);
        assert_int_equal(saved_state->order->base.n_unknown_fields, 0);
        capsule__resize_order__free_unpacked(saved_state->order, NULL);
        capsule__resize_said__free_unpacked(saved_state->said, NULL);
        said.begun = 4;
        saved_state->order = sent_by_newer(&o.base);
        saved_state->said = sent_by_newer(&said.base);
        rank = saved_state->ranks[1];
        saved_state->ranks[1] = sent_by_newer(&rank->base);
        capsule__parked_rank__free_unpacked(rank, NULL);
        parking_state_load(there, saved_state);
        capsule__parking__free_unpacked(saved_state, NULL);
        assert_int_equal(parking_state_reported(there)->begun, 4);
        assert_int_equal(parking_state_reported(there)->base.n_unknown_fields, 0);
        saved_state = parking_state_save(there);
        assert_int_equal(saved_state->order->base.n_unknown_fields + saved_state->said->base.n_unknown_fields, 0);
        assert_int_equal(saved_state->ranks[1]->base.n_unknown_fields, 0);
        capsule__parking__free_unpacked(saved_state, NULL);
        parking_state_destroy(there);
}

static void test_too_many_ranks(void **state) {
        struct parking *p = *state;
        Capsule__ResizeOrder o = order(4, 4, 1);
        Program__Resize received;

        o.ranks = RANKS_MAX + 1;
        parking_state_order(p, &o);
        assert_int_equal(say(p, WORD(PARKED), 4, 0, 0, &received), -1);
        o.ranks = 2;
        o.first = UINT32_MAX;
        parking_state_order(p, &o);
        assert_int_equal(say(p, WORD(PARKED), UINT32_MAX, 0, 0, &received), -1);
        assert_false(parking_state_is_quiet(p));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_stands_still_when_all_are_parked, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_awake_until_all_are_parked, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_active_ones_never_stand_still, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_is_woken_until_it_answers, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_old_words_do_not_park, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_leavers_are_not_woken, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_end_is_told, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_rank_0_changes, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_taken_back, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_goes_with_the_capsule, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_newer_messages, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_too_many_ranks, set_up, tear_down),
        };

        return cmocka_run_group_tests_name("parking", tests, NULL, NULL);
}
