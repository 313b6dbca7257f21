/* Every pair of state and event of both ends of a move, and what must be so of the machines as a
 * whole. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/util.h"
#include "daemon/move/machine.h"

/* In the order of enum move_state: one letter each, '.' = refused; Y is PRECOPY, I is FILL. */
static const char letters[MOVE_STATES + 1] = "NPYFCTRMOILUE";

/* A row for each state, a column for each event:
 *     start ready copied frozen cut sent restored committed opened filled released failed aborted
 */
static const char *const expected[2][MOVE_STATES] = {
        [MOVE_SOURCE] = {
                [MOVE_NEW]      = "P............",
                [MOVE_PREPARE]  = ".Y.........UE",
                [MOVE_PRECOPY]  = "..F........UE",
                [MOVE_FREEZE]   = "...C.......UE",
                [MOVE_CUT]      = "....T......UE",
                [MOVE_TRANSFER] = ".....R.L...UE", /* the destination may be done before we hear that it has all */
                [MOVE_RESTORE]  = ".......L...UE",
                [MOVE_COMMIT]   = ".............",
                [MOVE_OPEN]     = ".............",
                [MOVE_FILL]     = ".............",
                [MOVE_RELEASE]  = "..........E..",
                [MOVE_UNDO]     = ".......L....E", /* what the log says first holds */
                [MOVE_END]      = ".............",
        },
        [MOVE_DESTINATION] = {
                [MOVE_NEW]      = "P.......I....",
                [MOVE_PREPARE]  = ".T.........UE",
                [MOVE_PRECOPY]  = ".............",
                [MOVE_FREEZE]   = ".............",
                [MOVE_CUT]      = ".............",
                [MOVE_TRANSFER] = ".....R.....UE",
                [MOVE_RESTORE]  = "......M....UE",
                [MOVE_COMMIT]   = ".......O....E", /* proposed: only the log can undo it */
                [MOVE_OPEN]     = "........I....",
                [MOVE_FILL]     = ".........E.E.", /* the group has ended: nothing is undone */
                [MOVE_RELEASE]  = ".............",
                [MOVE_UNDO]     = "............E",
                [MOVE_END]      = ".............",
        },
};

/* The next state, or MOVE_STATES when the event is refused; nothing is written then. */
static enum move_state next_of(unsigned role, unsigned state, unsigned event) {
        enum move_state next = (enum move_state) 77;

        if (machine_next((enum move_role) role, (enum move_state) state, (enum move_event) event, &next)) {
                assert_true((unsigned) next < MOVE_STATES);
                return next;
        }
        assert_int_equal(next, 77);
        return MOVE_STATES;
}

static void test_every_pair(void **state) {
        for (unsigned r = 0; r < 2; r++)
                for (unsigned s = 0; s < MOVE_STATES; s++) {
                        assert_int_equal(strlen(expected[r][s]), MOVE_EVENTS);
                        for (unsigned e = 0; e < MOVE_EVENTS; e++) {
                                enum move_state next = next_of(r, s, e);
                                char letter = next == MOVE_STATES ? '.' : letters[next];

                                if (letter != expected[r][s][e])
                                        fail_msg("%s, %s in state %s: '%c' instead of '%c'", machine_role_name((enum move_role) r),
                                                 machine_event_name((enum move_event) e), machine_state_name((enum move_state) s),
                                                 letter, expected[r][s][e]);
                        }
                }
}

/* The ways that the head of machine.h draws. */
static void test_straight_way(void **state) {
        static const struct {
                enum move_role role;
                enum move_event events[8];
                enum move_state states[9];
        } ways[] = {
                { MOVE_SOURCE,
                  { MOVE_EV_START, MOVE_EV_READY, MOVE_EV_COPIED, MOVE_EV_FROZEN, MOVE_EV_CUT, MOVE_EV_SENT, MOVE_EV_COMMITTED,
                    MOVE_EV_RELEASED },
                  { MOVE_NEW, MOVE_PREPARE, MOVE_PRECOPY, MOVE_FREEZE, MOVE_CUT, MOVE_TRANSFER, MOVE_RESTORE, MOVE_RELEASE,
                    MOVE_END } },
                { MOVE_DESTINATION,
                  { MOVE_EV_START, MOVE_EV_READY, MOVE_EV_SENT, MOVE_EV_RESTORED, MOVE_EV_COMMITTED, MOVE_EV_OPENED, MOVE_EV_FILLED,
                    MOVE_EVENTS },
                  { MOVE_NEW, MOVE_PREPARE, MOVE_TRANSFER, MOVE_RESTORE, MOVE_COMMIT, MOVE_OPEN, MOVE_FILL, MOVE_END } },
                /* The copy runs already: a previous rmd has opened it. */
                { MOVE_DESTINATION, { MOVE_EV_OPENED, MOVE_EV_FILLED, MOVE_EVENTS }, { MOVE_NEW, MOVE_FILL, MOVE_END } },
        };

        for (size_t w = 0; w < ARRAY_SIZE(ways); w++)
                for (size_t i = 0; i < ARRAY_SIZE(ways[w].events) && ways[w].events[i] != MOVE_EVENTS; i++)
                        assert_int_equal(next_of(ways[w].role, ways[w].states[i], ways[w].events[i]), ways[w].states[i + 1]);
}

static void test_before_the_commit_all_is_undone(void **state) {
        static const enum move_state source[] = { MOVE_PREPARE, MOVE_PRECOPY, MOVE_FREEZE, MOVE_CUT, MOVE_TRANSFER, MOVE_RESTORE };
        static const enum move_state destination[] = { MOVE_PREPARE, MOVE_TRANSFER, MOVE_RESTORE };

        for (size_t i = 0; i < ARRAY_SIZE(source); i++) {
                assert_int_equal(next_of(MOVE_SOURCE, source[i], MOVE_EV_FAILED), MOVE_UNDO);
                assert_int_equal(next_of(MOVE_SOURCE, source[i], MOVE_EV_ABORTED), MOVE_END);
        }
        for (size_t i = 0; i < ARRAY_SIZE(destination); i++) {
                assert_int_equal(next_of(MOVE_DESTINATION, destination[i], MOVE_EV_FAILED), MOVE_UNDO);
                assert_int_equal(next_of(MOVE_DESTINATION, destination[i], MOVE_EV_ABORTED), MOVE_END);
        }
        /* The commit is proposed: a failure at this end does not decide any more, the log does. */
        assert_int_equal(next_of(MOVE_DESTINATION, MOVE_COMMIT, MOVE_EV_FAILED), MOVE_STATES);
        assert_int_equal(next_of(MOVE_DESTINATION, MOVE_COMMIT, MOVE_EV_ABORTED), MOVE_END);
        /* An abort that was proposed is not the log's yet: the commit may have come first. */
        assert_int_equal(next_of(MOVE_SOURCE, MOVE_UNDO, MOVE_EV_COMMITTED), MOVE_RELEASE);
        assert_int_equal(next_of(MOVE_SOURCE, MOVE_UNDO, MOVE_EV_FAILED), MOVE_STATES);
        assert_int_equal(next_of(MOVE_DESTINATION, MOVE_UNDO, MOVE_EV_FAILED), MOVE_STATES);
}

/* After the commit there is one way, and it leads on. */
static void test_after_the_commit_there_is_no_way_back(void **state) {
        for (unsigned e = 0; e < MOVE_EVENTS; e++) {
                assert_int_equal(next_of(MOVE_SOURCE, MOVE_RELEASE, e), e == MOVE_EV_RELEASED ? MOVE_END : MOVE_STATES);
                assert_int_equal(next_of(MOVE_DESTINATION, MOVE_OPEN, e), e == MOVE_EV_OPENED ? MOVE_FILL : MOVE_STATES);
                assert_int_equal(next_of(MOVE_DESTINATION, MOVE_FILL, e),
                                 e == MOVE_EV_FILLED || e == MOVE_EV_FAILED ? MOVE_END : MOVE_STATES);
                assert_int_equal(next_of(MOVE_SOURCE, MOVE_END, e), MOVE_STATES);
                assert_int_equal(next_of(MOVE_DESTINATION, MOVE_END, e), MOVE_STATES);
        }
}

/* The states that can be come to from `from`, as a set of bits; fails when a way leads in a
 * circle. */
static unsigned reachable(unsigned role, unsigned from, unsigned on_the_way) {
        unsigned set = 1U << from;

        assert_int_equal(on_the_way & set, 0);
        for (unsigned e = 0; e < MOVE_EVENTS; e++) {
                enum move_state next = next_of(role, from, e);

                if (next != MOVE_STATES)
                        set |= reachable(role, next, on_the_way | 1U << from);
        }
        return set;
}

static unsigned bit(enum move_state state) {
        return 1U << state;
}

static void test_every_move_comes_to_its_end(void **state) {
        for (unsigned r = 0; r < 2; r++)
                for (unsigned s = 0; s < MOVE_STATES; s++)
                        if (reachable(r, MOVE_NEW, 0) & bit((enum move_state) s))
                                assert_true(reachable(r, s, 0) & bit(MOVE_END));
        /* Each end knows its own states only. */
        assert_int_equal(reachable(MOVE_SOURCE, MOVE_NEW, 0),
                         bit(MOVE_NEW) | bit(MOVE_PREPARE) | bit(MOVE_PRECOPY) | bit(MOVE_FREEZE) | bit(MOVE_CUT) |
                                 bit(MOVE_TRANSFER) | bit(MOVE_RESTORE) | bit(MOVE_RELEASE) | bit(MOVE_UNDO) | bit(MOVE_END));
        assert_int_equal(reachable(MOVE_DESTINATION, MOVE_NEW, 0), bit(MOVE_NEW) | bit(MOVE_PREPARE) | bit(MOVE_TRANSFER) |
                                                                           bit(MOVE_RESTORE) | bit(MOVE_COMMIT) | bit(MOVE_OPEN) |
                                                                           bit(MOVE_FILL) | bit(MOVE_UNDO) | bit(MOVE_END));
}

/* The copy at the destination may run, and the one at the source go, only when the log has said
 * so. */
static void test_only_the_log_commits(void **state) {
        for (unsigned s = 0; s < MOVE_STATES; s++)
                for (unsigned e = 0; e < MOVE_EVENTS; e++) {
                        if (next_of(MOVE_SOURCE, s, e) == MOVE_RELEASE)
                                assert_int_equal(e, MOVE_EV_COMMITTED);
                        if (next_of(MOVE_DESTINATION, s, e) == MOVE_OPEN)
                                assert_int_equal(e, MOVE_EV_COMMITTED);
                }
}

static void test_names(void **state) {
        /* Fault points and tests call them so. */
        static const char *const states[] = { "new",    "prepare", "precopy", "freeze",  "cut",  "transfer", "restore",
                                              "commit", "open",    "fill",    "release", "undo", "end" };
        static const char *const events[] = { "start",     "ready",  "copied", "frozen",   "cut",    "sent",   "restored",
                                              "committed", "opened", "filled", "released", "failed", "aborted" };

        assert_int_equal(ARRAY_SIZE(states), MOVE_STATES);
        assert_int_equal(ARRAY_SIZE(events), MOVE_EVENTS);
        for (unsigned s = 0; s < MOVE_STATES; s++)
                assert_string_equal(machine_state_name((enum move_state) s), states[s]);
        for (unsigned e = 0; e < MOVE_EVENTS; e++)
                assert_string_equal(machine_event_name((enum move_event) e), events[e]);
        assert_string_equal(machine_state_name(MOVE_STATES), "?");
        assert_string_equal(machine_event_name(MOVE_EVENTS), "?");
        assert_string_equal(machine_role_name(MOVE_SOURCE), "source");
        assert_string_equal(machine_role_name(MOVE_DESTINATION), "destination");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_every_pair),
                cmocka_unit_test(test_straight_way),
                cmocka_unit_test(test_before_the_commit_all_is_undone),
                cmocka_unit_test(test_after_the_commit_there_is_no_way_back),
                cmocka_unit_test(test_every_move_comes_to_its_end),
                cmocka_unit_test(test_only_the_log_commits),
                cmocka_unit_test(test_names),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
