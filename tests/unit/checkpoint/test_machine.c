/* How capsules are captured and come back: the way without a failure, and that no state is left for
 * ever or by what does not belong to it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "common/util.h"
#include "daemon/checkpoint/machine.h"

static void save_goes(enum save_state *state, enum save_event event, enum save_state expected) {
        assert_true(save_next(*state, event, state));
        assert_int_equal(*state, expected);
}

static void test_save(void **unused) {
        static const struct {
                enum save_event event;
                enum save_state next;
        } way[] = {
                { SAVE_EV_START, SAVE_PREPARE },     { SAVE_EV_READY, SAVE_PRECOPY },  { SAVE_EV_COPIED, SAVE_COPIED },
                { SAVE_EV_ALL_COPIED, SAVE_FREEZE }, { SAVE_EV_FROZEN, SAVE_CUT },     { SAVE_EV_CUT, SAVE_HELD },
                { SAVE_EV_ALL_CUT, SAVE_DUMP },      { SAVE_EV_CAPTURED, SAVE_STORE }, { SAVE_EV_STORED, SAVE_COPY },
                { SAVE_EV_COPIED_OUT, SAVE_IDLE },
        };
        enum save_state state = SAVE_IDLE, other;

        for (size_t i = 0; i < ARRAY_SIZE(way); i++) {
                /* Only the next event, or a failure, leads on: none is frozen before all have sent
                 * their memory ahead, none dumped before all are cut off. */
                for (enum save_event e = 0; e < SAVE_EVENTS; e++)
                        if (e != way[i].event && e != SAVE_EV_FAILED && e != SAVE_EV_OVER)
                                assert_false(save_next(state, e, &other));
                save_goes(&state, way[i].event, way[i].next);
        }
}

/* A save that was begun is undone, or goes on by itself: the job runs in the end. */
static void test_save_fails(void **unused) {
        for (enum save_state s = 0; s < SAVE_STATES; s++) {
                enum save_state state = s;

                if (s == SAVE_IDLE) {
                        assert_false(save_next(s, SAVE_EV_FAILED, &state));
                        assert_false(save_next(s, SAVE_EV_OVER, &state));
                        continue;
                }
                if (s == SAVE_COPY || s == SAVE_UNDO) {
                        assert_false(save_next(s, SAVE_EV_FAILED, &state)); /* it is stored; or has failed already */
                        save_goes(&state, SAVE_EV_OVER, SAVE_IDLE);
                        continue;
                }
                save_goes(&state, SAVE_EV_FAILED, SAVE_UNDO);
                save_goes(&state, SAVE_EV_OVER, SAVE_IDLE);
                state = s;
                save_goes(&state, SAVE_EV_OVER, SAVE_UNDO); /* the state has forgotten it */
                save_goes(&state, SAVE_EV_OVER, SAVE_IDLE);
        }
}

static void restore_goes(enum restore_state *state, enum restore_event event, enum restore_state expected) {
        assert_true(restore_next(*state, event, state));
        assert_int_equal(*state, expected);
}

static void test_restore(void **unused) {
        enum restore_state state = RESTORE_NEW;

        restore_goes(&state, RESTORE_EV_START, RESTORE_PREPARE);
        restore_goes(&state, RESTORE_EV_LISTENING, RESTORE_TRANSFER);
        restore_goes(&state, RESTORE_EV_RETRY, RESTORE_PREPARE); /* another node */
        restore_goes(&state, RESTORE_EV_LISTENING, RESTORE_TRANSFER);
        restore_goes(&state, RESTORE_EV_RECEIVED, RESTORE_RESTORE);
        assert_false(restore_next(RESTORE_RESTORE, RESTORE_EV_RETRY, &state)); /* what came was whole */
        restore_goes(&state, RESTORE_EV_RESTORED, RESTORE_DONE);
        restore_goes(&state, RESTORE_EV_RUNNING, RESTORE_OPEN);
        restore_goes(&state, RESTORE_EV_OPENED, RESTORE_END);
        state = RESTORE_NEW;
        restore_goes(&state, RESTORE_EV_ADOPTED, RESTORE_DONE);
        for (enum restore_event e = 0; e < RESTORE_EVENTS; e++) {
                assert_int_equal(restore_next(RESTORE_DONE, e, &state), e == RESTORE_EV_RUNNING);
                assert_int_equal(restore_next(RESTORE_OPEN, e, &state), e == RESTORE_EV_OPENED);
                assert_false(restore_next(RESTORE_END, e, &state));
                assert_false(restore_next(RESTORE_FAILED, e, &state));
        }
        for (enum restore_state s = RESTORE_NEW; s < RESTORE_DONE; s++) {
                state = s;
                restore_goes(&state, RESTORE_EV_FAILED, RESTORE_FAILED);
        }
}

/* The names are in fault points and messages. */
static void test_names(void **unused) {
        for (enum save_state s = 0; s < SAVE_STATES; s++)
                for (enum save_state t = 0; t < s; t++)
                        assert_string_not_equal(save_state_name(s), save_state_name(t));
        for (enum save_event e = 0; e < SAVE_EVENTS; e++)
                for (enum save_event f = 0; f < e; f++)
                        assert_string_not_equal(save_event_name(e), save_event_name(f));
        for (enum restore_state s = 0; s < RESTORE_STATES; s++)
                for (enum restore_state t = 0; t < s; t++)
                        assert_string_not_equal(restore_state_name(s), restore_state_name(t));
        assert_string_equal(save_state_name(SAVE_UNDO), "undo");
        assert_string_equal(save_event_name(SAVE_EV_OVER), "over");
        assert_string_equal(restore_state_name(RESTORE_FAILED), "failed");
        assert_string_equal(save_state_name(SAVE_STATES), "?");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_save),
                cmocka_unit_test(test_save_fails),
                cmocka_unit_test(test_restore),
                cmocka_unit_test(test_names),
        };

        return cmocka_run_group_tests_name("checkpoint-machine", tests, NULL, NULL);
}
