/* Every pair of phase and event of a capsule on its node, and what must be so of the table as a
 * whole. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/util.h"
#include "daemon/job/resident.h"

/* The letters of the phases, in the order of enum resident_phase; '.' = refused. */
static const char letters[RESIDENT_PHASES + 1] = "NMRLUEXAG";
/* The letters of the actions, in the order of enum resident_action; '.' = refused. */
static const char actions[RESIDENT_ACTIONS + 1] = ".-rsexl";

/* A row for each phase, a column for each event:
 *     made absent answered found launch unlaunched unstartable exited lost remake
 * and the same with what is done: - nothing, r ready is told, s sends, e tells the exit, x tells
 * the loss, l the log is told. */
static const struct {
        const char *next, *action;
} expected[RESIDENT_PHASES] = {
        [RESIDENT_NEW] = { "MA........", "-l........" },       [RESIDENT_MAKING] = { "..RL....X.", "..rr....x." },
        [RESIDENT_READY] = { "....L..EX.", "....s..ex." },     [RESIDENT_LAUNCHED] = { ".....RUEX.", ".....-lex." },
        [RESIDENT_UNSTARTED] = { ".......UX.", ".......ex." }, [RESIDENT_EXITED] = { "........X.", "........x." },
        [RESIDENT_LOST] = { ".........G", ".........-" },      [RESIDENT_MISSING] = { "..........", ".........." },
        [RESIDENT_REMAKING] = { "..........", ".........." },
};

/* The next phase, or RESIDENT_PHASES when the event is refused; nothing is written then. */
static enum resident_phase next_of(unsigned phase, unsigned event, enum resident_action *ret_action) {
        enum resident_phase next = (enum resident_phase) 77;

        *ret_action = resident_next((enum resident_phase) phase, (enum resident_event) event, &next);
        if (*ret_action != RESIDENT_REFUSED) {
                assert_true((unsigned) next < RESIDENT_PHASES);
                return next;
        }
        assert_int_equal(next, 77);
        return RESIDENT_PHASES;
}

static void test_every_pair(void **state) {
        for (unsigned p = 0; p < RESIDENT_PHASES; p++) {
                assert_int_equal(strlen(expected[p].next), RESIDENT_EVENTS);
                assert_int_equal(strlen(expected[p].action), RESIDENT_EVENTS);
                for (unsigned e = 0; e < RESIDENT_EVENTS; e++) {
                        enum resident_action action;
                        enum resident_phase next = next_of(p, e, &action);
                        char letter = next == RESIDENT_PHASES ? '.' : letters[next];

                        if (letter != expected[p].next[e] || actions[action] != expected[p].action[e])
                                fail_msg("%s in phase %s: '%c%c' instead of '%c%c'", resident_event_name((enum resident_event) e),
                                         resident_phase_name((enum resident_phase) p), letter, actions[action], expected[p].next[e],
                                         expected[p].action[e]);
                }
        }
}

/* A capsule that does not answer any more has ended, and does not come back: it is only made again
 * under another name. */
static void test_nothing_answers_again(void **state) {
        for (unsigned p = RESIDENT_MAKING + 1; p < RESIDENT_PHASES; p++)
                for (unsigned e = 0; e < RESIDENT_EVENTS; e++) {
                        enum resident_action action;
                        enum resident_phase next = next_of(p, e, &action);

                        if (next == RESIDENT_PHASES)
                                continue;
                        assert_true(resident_phase_answers((enum resident_phase) p) || !resident_phase_answers(next));
                        assert_true(resident_phase_has_capsule((enum resident_phase) p) || !resident_phase_has_capsule(next));
                        /* Only the runner begins anew with what is lost. */
                        assert_true(!resident_phase_is_lost((enum resident_phase) p) || resident_phase_is_lost(next) ||
                                    e == RESIDENT_EV_REMAKE);
                }
}

/* A module that waits for a capsule hears exactly once that it answers, and of its loss, whatever
 * happens between. */
static void test_answers_and_losses_are_told(void **state) {
        for (unsigned p = 0; p < RESIDENT_PHASES; p++)
                for (unsigned e = 0; e < RESIDENT_EVENTS; e++) {
                        enum resident_phase phase = (enum resident_phase) p;
                        enum resident_action action;
                        enum resident_phase next = next_of(p, e, &action);

                        if (next == RESIDENT_PHASES)
                                continue;
                        assert_int_equal(action == RESIDENT_REPORT_READY,
                                         !resident_phase_answers(phase) && resident_phase_answers(next));
                        assert_int_equal(action == RESIDENT_REPORT_LOST, resident_phase_has_capsule(phase) &&
                                                                                 resident_phase_has_capsule(next) &&
                                                                                 !resident_phase_answers(next));
                }
}

static void test_phases_are_what_their_names_say(void **state) {
        for (unsigned p = 0; p < RESIDENT_PHASES; p++) {
                enum resident_phase phase = (enum resident_phase) p;

                assert_true(resident_phase_name(phase)[0]);
                /* A phase without a capsule does not answer. */
                assert_true(resident_phase_has_capsule(phase) || !resident_phase_answers(phase));
                for (unsigned q = 0; q < p; q++)
                        assert_string_not_equal(resident_phase_name(phase), resident_phase_name((enum resident_phase) q));
        }
        for (unsigned e = 0; e < RESIDENT_EVENTS; e++)
                assert_string_not_equal(resident_event_name((enum resident_event) e), "?");
}

/* ---- the resident itself ---- */

#define CAPSULE ((struct capsule *) (void *) &letters)
static struct calls calls;

static struct resident *make(enum resident_event answer) {
        struct resident *resident = resident_create(NULL, &calls, 7, 1, 9);

        assert_null(resident_capsule(resident));
        (void) resident_made(resident, CAPSULE, RESIDENT_ADOPTED);
        assert_int_equal(resident_event(resident, answer), RESIDENT_REPORT_READY);
        return resident;
}

/* A lease may come while the command that was sent before is under way. */
static void test_one_command_at_a_time(void **state) {
        struct resident *group = make(RESIDENT_EV_ANSWERED);

        assert_int_equal(resident_event(group, RESIDENT_EV_LAUNCH), RESIDENT_SEND);
        assert_int_equal(resident_event(group, RESIDENT_EV_LAUNCH), RESIDENT_REFUSED);
        assert_int_equal(resident_event(group, RESIDENT_EV_UNLAUNCHED), RESIDENT_NOTHING);
        assert_int_equal(resident_event(group, RESIDENT_EV_LAUNCH), RESIDENT_SEND);
        resident_destroy(group);
        /* An adopted one that runs is sent none. */
        group = make(RESIDENT_EV_FOUND);
        assert_int_equal(resident_event(group, RESIDENT_EV_LAUNCH), RESIDENT_REFUSED);
        resident_destroy(group);
}

static void test_refused_events_change_nothing(void **state) {
        struct resident *head = make(RESIDENT_EV_FOUND);

        assert_int_equal(resident_exited(head, 256, 5), RESIDENT_REPORT_EXITED);
        assert_int_equal(resident_exited(head, 0, 6), RESIDENT_REFUSED);
        assert_int_equal(resident_lost(head, RESIDENT_EV_UNSTARTABLE, "no such file", 7), RESIDENT_REFUSED);
        assert_null(resident_remake(head));
        assert_int_equal(resident_wait_status(head), 256);
        assert_int_equal(resident_end_real_usec(head), 5);
        assert_null(resident_why_lost(head));
        assert_ptr_equal(resident_capsule(head), CAPSULE);
        assert_true(resident_answers(head) && !resident_is_live(head) && !resident_is_lost(head));
        resident_destroy(head);
}

static void test_lost_capsule_is_made_anew(void **state) {
        struct resident *group = resident_create(NULL, &calls, 7, 1, 9);

        (void) resident_made(group, CAPSULE, RESIDENT_ADOPTED);
        assert_int_equal(resident_lost(group, RESIDENT_EV_LOST, "no answer", 0), RESIDENT_REPORT_LOST);
        assert_string_equal(resident_why_lost(group), "no answer");
        assert_ptr_equal(resident_remake(group), CAPSULE);
        assert_null(resident_capsule(group));
        assert_false(resident_is_lost(group));
        resident_destroy(group);
}

/* A restart that could not open its copy yet does not take it from the capture that came next. */
static void test_only_the_holder_releases(void **state) {
        struct resident *group = make(RESIDENT_EV_ANSWERED);

        resident_hold(group, RESIDENT_RESTORED);
        resident_release(group, RESIDENT_CAPTURED);
        assert_int_equal(resident_holder(group), RESIDENT_RESTORED);
        resident_hold(group, RESIDENT_CAPTURED);
        resident_release(group, RESIDENT_RESTORED);
        assert_int_equal(resident_holder(group), RESIDENT_CAPTURED);
        (void) resident_lost(group, RESIDENT_EV_LOST, "its PID 1 is dead", 5);
        resident_release(group, RESIDENT_CAPTURED);
        assert_int_equal(resident_holder(group), RESIDENT_FREE);
        resident_destroy(group);
}

/* A call that ends after its resident finds nobody, and nothing of another one of the same name. */
static void test_calls_find_their_resident(void **state) {
        struct resident *group = make(RESIDENT_EV_ANSWERED), *next = make(RESIDENT_EV_ANSWERED);
        struct call *first = resident_call(group), *second = resident_call(group), *late = resident_call(group);

        assert_ptr_equal(call_done(first, -EIO), group);
        assert_null(call_done(second, -ECANCELED));
        resident_destroy(group);
        assert_null(call_done(late, 0));
        assert_ptr_equal(call_done(resident_call(next), 0), next);
        resident_destroy(next);
}

/* The part of one file is its own, and is empty at first. */
static void test_parts_are_apart(void **state) {
        struct resident *group = make(RESIDENT_EV_ANSWERED);

        for (unsigned i = 0; i < RESIDENT_PARTS; i++) {
                uint64_t *part = resident_part(group, (enum resident_part) i, sizeof(*part));

                assert_int_equal(*part, 0);
                *part = i + 1;
        }
        for (unsigned i = 0; i < RESIDENT_PARTS; i++)
                assert_int_equal(*(uint64_t *) resident_part(group, (enum resident_part) i, sizeof(uint64_t)), i + 1);
        resident_destroy(group);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_every_pair),
                cmocka_unit_test(test_nothing_answers_again),
                cmocka_unit_test(test_answers_and_losses_are_told),
                cmocka_unit_test(test_phases_are_what_their_names_say),
                cmocka_unit_test(test_one_command_at_a_time),
                cmocka_unit_test(test_refused_events_change_nothing),
                cmocka_unit_test(test_lost_capsule_is_made_anew),
                cmocka_unit_test(test_only_the_holder_releases),
                cmocka_unit_test(test_calls_find_their_resident),
                cmocka_unit_test(test_parts_are_apart),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
