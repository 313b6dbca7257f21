/* The notices to ranks of a group about growing and shrinking, and when they may be frozen. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "common/util.h"
#include "daemon/capsule/init/ranks/parking.h"
#include "daemon/capsule/init/ranks/ranks.h"

#define WORD(name) DOOR__RESIZE__WORD__##name

static int set_up(void **state) {
        *state = parking_create();
        return 0;
}

static int tear_down(void **state) {
        parking_destroy(*state);
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
static int say(struct parking *parking, Door__Resize__Word word, uint32_t rank, uint64_t epoch, uint32_t ranks, Door__Resize *ret) {
        Door__Resize said = DOOR__RESIZE__INIT;

        said.word = word;
        said.rank = rank;
        said.epoch = epoch;
        said.ranks = ranks;
        return parking_hear(parking, &said, ret) ? (int) ret->word : -1;
}

/* The number of notices that are due now, all with this word. */
static size_t told(const struct parking *parking, Door__Resize__Word word) {
        Door__Resize notice;
        size_t at = 0, n = 0;

        for (; parking_next(parking, &at, &notice); n++)
                assert_int_equal(notice.word, word);
        return n;
}

static void test_stands_still_when_all_are_parked(void **state) {
        struct parking *p = *state;
        Capsule__ResizeOrder o = order(4, 4, 1);
        Door__Resize heard;

        parking_order(p, &o);
        assert_false(parking_is_quiet(p));
        assert_int_equal(say(p, WORD(PARKED), 4, 0, 0, &heard), WORD(HEARD));
        assert_int_equal(heard.rank, 4);
        assert_false(parking_is_quiet(p));
        assert_int_equal(say(p, WORD(PARKED), 5, 0, 0, &heard), WORD(HEARD));
        assert_true(parking_is_quiet(p));
        assert_int_equal(told(p, WORD(WAKE)), 0);
        /* These ranks are of the next group, and of none. */
        assert_int_equal(say(p, WORD(PARKED), 6, 0, 0, &heard), -1);
        assert_int_equal(say(p, WORD(PARKED), 3, 0, 0, &heard), -1);
        assert_int_equal(say(p, WORD(PARKED), UINT32_MAX, 0, 0, &heard), -1);
        assert_true(parking_is_quiet(p));
}

/* The reports to rmd of groups that run though they are parked. */
static void test_awake_until_all_are_parked(void **state) {
        struct parking *p = *state;
        Capsule__ResizeOrder o = order(4, 4, 1);
        Capsule__Parking *carry;
        Door__Resize heard;

        assert_false(parking_is_awake(p));
        parking_order(p, &o);
        assert_true(parking_is_awake(p));
        assert_true(parking_set_awake(p, true));
        assert_false(parking_set_awake(p, true));
        assert_true(parking_said(p)->awake);
        (void) say(p, WORD(PARKED), 4, 0, 0, &heard);
        assert_true(parking_is_awake(p));
        carry = parking_carry(p);
        assert_true(carry->said->awake);
        capsule__parking__free_unpacked(carry, NULL);
        (void) say(p, WORD(PARKED), 5, 0, 0, &heard);
        assert_false(parking_is_awake(p));
        assert_true(parking_set_awake(p, false));
        o.end = true;
        parking_order(p, &o);
        assert_false(parking_is_awake(p));
}

static void test_active_ones_never_stand_still(void **state) {
        struct parking *p = *state;
        Capsule__ResizeOrder o = order(2, 4, 1);
        Door__Resize heard;

        parking_order(p, &o);
        (void) say(p, WORD(PARKED), 2, 0, 0, &heard);
        (void) say(p, WORD(PARKED), 3, 0, 0, &heard);
        assert_false(parking_is_quiet(p));
        assert_int_equal(told(p, WORD(WAKE)), 0);
}

static void park_both(struct parking *p, uint64_t epoch) {
        Door__Resize heard;

        assert_int_equal(say(p, WORD(PARKED), 4, epoch, 0, &heard), WORD(HEARD));
        assert_int_equal(say(p, WORD(PARKED), 5, epoch, 0, &heard), WORD(HEARD));
        assert_int_equal(heard.epoch, epoch);
}

static void test_is_woken_until_it_answers(void **state) {
        struct parking *p = *state;
        Capsule__ResizeOrder o = order(4, 4, 1);
        Door__Resize notice;
        size_t at = 0;

        parking_order(p, &o);
        park_both(p, 0);
        o.epoch = 2;
        o.wanted = 5;
        parking_order(p, &o);
        assert_int_equal(told(p, WORD(WAKE)), 0); /* rank 0 has not begun */
        assert_true(parking_is_quiet(p));
        o.begun = true;
        o.active = 5;
        o.freeze = false;
        parking_order(p, &o);
        assert_false(parking_is_quiet(p));
        assert_true(parking_next(p, &at, &notice));
        assert_int_equal(notice.rank, 4);
        assert_int_equal(notice.ranks, 5);
        assert_int_equal(notice.epoch, 2);
        assert_int_equal(told(p, WORD(WAKE)), 1);
        assert_int_equal(say(p, WORD(PARKED), 4, 0, 0, &notice), WORD(HEARD)); /* it was on its way */
        assert_int_equal(told(p, WORD(WAKE)), 1);
        assert_int_equal(say(p, WORD(AWAKE), 4, 2, 0, &notice), -1);
        assert_int_equal(told(p, WORD(WAKE)), 0);
}

/* The answer was lost, and the change is over: what it said before that does not make it parked in
 * the next one. */
static void test_old_words_do_not_park(void **state) {
        struct parking *p = *state;
        Capsule__ResizeOrder o = order(4, 6, 2);

        parking_order(p, &o);
        park_both(p, 0);
        o.wanted = 6;
        o.begun = true;
        parking_order(p, &o);
        assert_int_equal(told(p, WORD(WAKE)), 2);
        o.wanted = 0;
        o.begun = false;
        parking_order(p, &o);
        assert_int_equal(told(p, WORD(WAKE)), 0);
        /* Smaller again: they have not said so yet. */
        o = order(4, 4, 3);
        parking_order(p, &o);
        assert_false(parking_is_quiet(p));
        park_both(p, 3);
        assert_true(parking_is_quiet(p));
}

/* Ranks leave before the log says so, and are not woken for the change that they left in. */
static void test_leavers_are_not_woken(void **state) {
        struct parking *p = *state;
        Capsule__ResizeOrder o = order(4, 6, 2);

        o.wanted = 4;
        o.begun = true;
        parking_order(p, &o);
        park_both(p, 2);
        assert_int_equal(told(p, WORD(WAKE)), 0);
        assert_false(parking_is_quiet(p));
        o = order(4, 4, 2);
        parking_order(p, &o);
        assert_true(parking_is_quiet(p));
}

static void test_end_is_told(void **state) {
        struct parking *p = *state;
        Capsule__ResizeOrder o = order(4, 4, 1);
        Door__Resize notice;

        parking_order(p, &o);
        park_both(p, 0);
        o.end = true;
        o.freeze = false;
        parking_order(p, &o);
        assert_false(parking_is_quiet(p));
        assert_int_equal(told(p, WORD(END)), 2);
        (void) say(p, WORD(AWAKE), 5, 1, 0, &notice);
        assert_int_equal(told(p, WORD(END)), 1);
}

static void test_rank_0_changes(void **state) {
        struct parking *p = *state;
        Capsule__ResizeOrder o = order(0, 4, 1);
        Door__Resize notice;

        parking_order(p, &o);
        assert_int_equal(say(p, WORD(ASK), 0, 0, 4, &notice), -1);
        assert_true(parking_said(p)->listens);
        o.wanted = 8;
        o.epoch = 2;
        parking_order(p, &o);
        assert_int_equal(told(p, WORD(WANTED)), 1);
        assert_int_equal(say(p, WORD(ASK), 0, 0, 4, &notice), WORD(WANTED));
        assert_int_equal(notice.ranks, 8);
        assert_int_equal(say(p, WORD(BEGIN), 0, 7, 8, &notice), WORD(WANTED)); /* of no change that there is */
        assert_int_equal(parking_said(p)->begun, 0);
        assert_int_equal(say(p, WORD(BEGIN), 0, 2, 8, &notice), -1); /* not in the log yet */
        assert_int_equal(parking_said(p)->begun, 2);
        assert_int_equal(say(p, WORD(MADE), 0, 2, 8, &notice), WORD(HEARD));
        assert_int_equal(parking_said(p)->done, 0); /* it cannot have */
        o.begun = true;
        o.active = 8;
        parking_order(p, &o);
        assert_int_equal(told(p, WORD(BEGUN)), 1);
        assert_int_equal(say(p, WORD(BEGIN), 0, 2, 8, &notice), WORD(BEGUN));
        assert_int_equal(say(p, WORD(MADE), 0, 2, 8, &notice), WORD(HEARD));
        assert_int_equal(notice.epoch, 2);
        assert_int_equal(parking_said(p)->done, 2);
        assert_int_equal(parking_said(p)->ranks, 8);
        assert_int_equal(say(p, WORD(MADE), 0, 2, 5, &notice), WORD(HEARD)); /* the first word counts */
        assert_int_equal(parking_said(p)->ranks, 8);
        assert_int_equal(say(p, WORD(ASK), 0, 2, 8, &notice), -1);
        assert_int_equal(say(p, WORD(MADE), 0, 9, 8, &notice), -1); /* of one that is to come */
        assert_int_equal(say(p, WORD(FINISH), 0, 2, 8, &notice), WORD(HEARD));
        assert_true(parking_said(p)->ending);
}

static void test_taken_back(void **state) {
        struct parking *p = *state;
        Capsule__ResizeOrder o = order(0, 4, 2);
        Door__Resize notice;

        o.wanted = 8;
        parking_order(p, &o);
        (void) say(p, WORD(BEGIN), 0, 2, 8, &notice);
        o.wanted = 0;
        o.epoch = 3;
        parking_order(p, &o);
        assert_int_equal(say(p, WORD(BEGIN), 0, 2, 8, &notice), WORD(WANTED));
        assert_int_equal(notice.ranks, 4);
        assert_int_equal(notice.epoch, 3);
}

static void test_goes_with_the_capsule(void **state) {
        struct parking *p = *state, *there = parking_create();
        Capsule__ResizeOrder o = order(4, 4, 5);
        Capsule__Parking *carry;

        assert_null(parking_carry(p));
        parking_order(p, &o);
        park_both(p, 3);
        carry = parking_carry(p);
        parking_set_carry(there, carry);
        assert_true(parking_is_quiet(there));
        o.epoch = 6;
        o.wanted = o.active = 6;
        o.begun = true;
        o.freeze = false;
        parking_order(there, &o);
        assert_int_equal(told(there, WORD(WAKE)), 2);
        /* A carried state that does not fit is not taken. */
        carry->order->ranks = 3;
        parking_set_carry(there, carry);
        assert_int_equal(told(there, WORD(WAKE)), 2);
        carry->order->ranks = 2;
        capsule__parking__free_unpacked(carry, NULL);
        parking_destroy(there);
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
        struct parking *p = *state, *there = parking_create();
        Capsule__ResizeOrder o = order(4, 4, 5), *newer = sent_by_newer(&o.base);
        Capsule__ResizeSaid said = CAPSULE__RESIZE_SAID__INIT;
        Capsule__ParkedRank *rank;
        Capsule__Parking *carry;

        parking_order(p, newer);
        capsule__resize_order__free_unpacked(newer, NULL);
        carry = parking_carry(p);
        assert_int_equal(carry->order->base.n_unknown_fields, 0);
        capsule__resize_order__free_unpacked(carry->order, NULL);
        capsule__resize_said__free_unpacked(carry->said, NULL);
        said.begun = 4;
        carry->order = sent_by_newer(&o.base);
        carry->said = sent_by_newer(&said.base);
        rank = carry->ranks[1];
        carry->ranks[1] = sent_by_newer(&rank->base);
        capsule__parked_rank__free_unpacked(rank, NULL);
        parking_set_carry(there, carry);
        capsule__parking__free_unpacked(carry, NULL);
        assert_int_equal(parking_said(there)->begun, 4);
        assert_int_equal(parking_said(there)->base.n_unknown_fields, 0);
        carry = parking_carry(there);
        assert_int_equal(carry->order->base.n_unknown_fields + carry->said->base.n_unknown_fields, 0);
        assert_int_equal(carry->ranks[1]->base.n_unknown_fields, 0);
        capsule__parking__free_unpacked(carry, NULL);
        parking_destroy(there);
}

static void test_too_many_ranks(void **state) {
        struct parking *p = *state;
        Capsule__ResizeOrder o = order(4, 4, 1);
        Door__Resize heard;

        o.ranks = RANKS_MAX + 1;
        parking_order(p, &o);
        assert_int_equal(say(p, WORD(PARKED), 4, 0, 0, &heard), -1);
        o.ranks = 2;
        o.first = UINT32_MAX;
        parking_order(p, &o);
        assert_int_equal(say(p, WORD(PARKED), UINT32_MAX, 0, 0, &heard), -1);
        assert_false(parking_is_quiet(p));
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
