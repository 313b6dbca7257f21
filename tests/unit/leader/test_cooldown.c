/* Which moves wait, and for how long: by the causes of those before, whatever their texts say. */
#include "daemon/leader/cooldown.h"
#include "tests/unit/leader/leader_test.h"

#define NEEDED RM__MOVE_CAUSE__MOVE_CAUSE_NEEDED
#define RETURN RM__MOVE_CAUSE__MOVE_CAUSE_RETURN
#define CHOICE RM__MOVE_CAUSE__MOVE_CAUSE_CHOICE
#define ASKED RM__MOVE_CAUSE__MOVE_CAUSE_ASKED
#define SEC UINT64_C(1000000)
#define HORIZON (600 * SEC)

static uint64_t move(struct world *w, uint64_t job, int32_t capsule, const char *to, Rm__MoveCause cause, const char *reason) {
        Rm__CmdMoveStart body = RM__CMD_MOVE_START__INIT;
        Rm__Command command = RM__COMMAND__INIT;

        body.job = job;
        body.capsule = capsule;
        body.to = (char *) to;
        body.cause = cause;
        body.reason = (char *) reason;
        command.body_case = RM__COMMAND__BODY_MOVE_START;
        command.move_start = &body;
        assert_int_equal(apply_command(w, &command), 0);
        return w->created;
}

static uint64_t arrive(struct world *w, uint64_t job, int32_t capsule, const char *to, Rm__MoveCause cause, const char *reason) {
        uint64_t id = move(w, job, capsule, to, cause, reason);

        assert_int_equal(move_commit(w, id), 0);
        assert_int_equal(move_done(w, id, 1, 1), 0);
        return state_move(w->state, id)->start_usec;
}

static uint64_t fail_once(struct world *w, uint64_t job, int32_t capsule, const char *to) {
        uint64_t id = move(w, job, capsule, to, NEEDED, "");

        assert_int_equal(move_abort(w, id, "criu dump: no"), 0);
        return state_move(w->state, id)->end_usec;
}

static enum cooldown ask(const struct world *w, uint64_t job, int32_t capsule, Rm__MoveCause cause, uint64_t now) {
        return cooldown_of(w->state, job, capsule, cause, HORIZON, now);
}

static void test_first_move_goes_at_once(void **state) {
        struct world *w = *state;
        uint64_t job = run_job(w, "n1", "n2");

        assert_int_equal(ask(w, job, 0, CHOICE, w->time_usec), COOLDOWN_NONE);
        assert_int_equal(ask(w, job, 0, NEEDED, w->time_usec), COOLDOWN_NONE);
        assert_null(cooldown_text(COOLDOWN_NONE));
}

/* For a minute, and all of its job; what is needed is done all the same. */
static void test_request(void **state) {
        struct world *w = *state;
        uint64_t job = run_job(w, "n1", "n2"), other = run_job(w, "n1", "n2");
        uint64_t at = arrive(w, job, 1, "n3", ASKED, "a better place than 'n2'"); /* the text decides nothing */

        assert_int_equal(ask(w, job, 1, CHOICE, at + 59 * SEC), COOLDOWN_REQUEST);
        assert_int_equal(ask(w, job, 0, CHOICE, at + 59 * SEC), COOLDOWN_REQUEST);
        assert_int_equal(ask(w, job, 0, CHOICE, at + 60 * SEC), COOLDOWN_NONE);
        assert_int_equal(ask(w, job, 1, NEEDED, at + SEC), COOLDOWN_NONE);
        assert_int_equal(ask(w, job, 1, RETURN, at + SEC), COOLDOWN_NONE);
        assert_int_equal(ask(w, other, 1, CHOICE, at + SEC), COOLDOWN_NONE);
        assert_non_null(strstr(cooldown_text(COOLDOWN_REQUEST), "on request"));
}

/* Until it has paid, and only this capsule. */
static void test_choice(void **state) {
        struct world *w = *state;
        uint64_t job = run_job(w, "n1", "n2");
        uint64_t at = arrive(w, job, 1, "n3", CHOICE, "asked for by root");

        assert_int_equal(ask(w, job, 1, CHOICE, at + HORIZON - 1), COOLDOWN_CHOICE);
        assert_int_equal(ask(w, job, 1, CHOICE, at + HORIZON), COOLDOWN_NONE);
        assert_int_equal(ask(w, job, 0, CHOICE, at + SEC), COOLDOWN_NONE);
        assert_int_equal(ask(w, job, 1, RETURN, at + SEC), COOLDOWN_NONE);
        /* A needed move came after it. */
        (void) arrive(w, job, 1, "n2", NEEDED, "");
        assert_int_equal(ask(w, job, 1, CHOICE, at + SEC), COOLDOWN_NONE);
        assert_non_null(strstr(cooldown_text(COOLDOWN_CHOICE), "horizon"));
}

/* Twice as long after each failure in a row, at most 30 s; also for what is needed. */
static void test_failures(void **state) {
        struct world *w = *state;
        uint64_t job = run_job(w, "n1", "n2");
        uint64_t wait = SEC / 2, at;

        for (int i = 0; i < 12; i++) {
                at = fail_once(w, job, 1, "n3");
                assert_int_equal(ask(w, job, 1, NEEDED, at + wait - 1), COOLDOWN_FAILURE);
                assert_int_equal(ask(w, job, 1, CHOICE, at + wait - 1), COOLDOWN_FAILURE);
                assert_int_equal(ask(w, job, 1, NEEDED, at + wait), COOLDOWN_NONE);
                assert_int_equal(ask(w, job, 0, NEEDED, at), COOLDOWN_NONE);
                wait = 2 * wait > 30 * SEC ? 30 * SEC : 2 * wait;
        }
        assert_int_equal(wait, 30 * SEC);
        at = arrive(w, job, 1, "n3", NEEDED, "");
        assert_int_equal(ask(w, job, 1, NEEDED, at), COOLDOWN_NONE);
        at = fail_once(w, job, 1, "n2");
        assert_int_equal(ask(w, job, 1, NEEDED, at + SEC / 2), COOLDOWN_NONE); /* the row began anew */
        assert_non_null(strstr(cooldown_text(COOLDOWN_FAILURE), "failed"));
}

static uint64_t avoided(const struct world *w, uint64_t job, const char *node) {
        return cooldown_destination_until(w->state, job, node);
}

/* From the second failure in a row on, whichever group it was; other jobs and other nodes do not
 * count. */
static void test_destination(void **state) {
        struct world *w = *state;
        uint64_t job = run_job(w, "n1", "n2"), other = run_job(w, "n1", "n2");
        uint64_t wait = 2 * SEC;

        (void) fail_once(w, job, 1, "n3");
        assert_int_equal(avoided(w, job, "n3"), 0);
        (void) fail_once(w, job, 1, "n1");
        for (int i = 0; i < 8; i++) {
                uint64_t at = fail_once(w, job, i % 2, "n3");

                assert_int_equal(avoided(w, job, "n3"), at + wait);
                assert_int_equal(avoided(w, job, "n1"), 0);
                assert_int_equal(avoided(w, other, "n3"), 0);
                wait = 2 * wait > COOLDOWN_DESTINATION_MAX_USEC ? COOLDOWN_DESTINATION_MAX_USEC : 2 * wait;
        }
        assert_int_equal(wait, COOLDOWN_DESTINATION_MAX_USEC);
        (void) arrive(w, job, 1, "n3", NEEDED, "");
        (void) fail_once(w, job, 0, "n3");
        assert_int_equal(avoided(w, job, "n3"), 0); /* the row began anew */
}

static uint64_t refuse(struct world *w, uint64_t job, Rm__MoveFailure failure) {
        Rm__CmdMoveAbort body = RM__CMD_MOVE_ABORT__INIT;
        Rm__Command command = RM__COMMAND__INIT;

        body.move = move(w, job, 1, "n3", NEEDED, "");
        body.error = (char *) "criu dump: no";
        body.failure = failure;
        command.body_case = RM__COMMAND__BODY_MOVE_ABORT;
        command.move_abort = &body;
        assert_int_equal(apply_command(w, &command), 0);
        return state_move(w->state, body.move)->end_usec;
}

static void change(struct world *w, uint64_t job, const char *text, bool changed) {
        Rm__CmdCapsuleBlocker body = RM__CMD_CAPSULE_BLOCKER__INIT;
        Rm__Command command = RM__COMMAND__INIT;

        body.job = job;
        body.capsule = 1;
        body.node = (char *) "n2";
        body.text = (char *) text;
        body.changed = changed;
        command.body_case = RM__COMMAND__BODY_CAPSULE_BLOCKER;
        command.capsule_blocker = &body;
        assert_int_equal(apply_command(w, &command), 0);
}

static const Rm__Refusal *refusal(const struct world *w, uint64_t job) {
        return job_capsule(state_job(w->state, job), 1)->refusal;
}

/* Twice as long each time, up to ten minutes, as long as the group is as it was. */
static void test_refused(void **state) {
        struct world *w = *state;
        uint64_t job = run_job(w, "n1", "n2");
        uint64_t wait = 4 * SEC, at;

        for (int i = 0; i < 10; i++) {
                at = refuse(w, job, RM__MOVE_FAILURE__MOVE_FAILURE_GROUP);
                assert_int_equal(refusal(w, job)->times, i + 1);
                assert_string_equal(refusal(w, job)->text, "criu dump: no");
                assert_int_equal(cooldown_refused_until(refusal(w, job)), at + wait);
                assert_int_equal(ask(w, job, 1, NEEDED, at + wait - 1), COOLDOWN_REFUSED);
                assert_int_not_equal(ask(w, job, 1, NEEDED, at + wait), COOLDOWN_REFUSED);
                assert_int_equal(ask(w, job, 0, NEEDED, at), COOLDOWN_NONE);
                wait = 2 * wait > 600 * SEC ? 600 * SEC : 2 * wait;
        }
        assert_int_equal(wait, 600 * SEC);
        /* A failure that is not for a reason of the group changes nothing. */
        (void) fail_once(w, job, 1, "n3");
        assert_int_equal(refusal(w, job)->times, 10);
        assert_non_null(strstr(cooldown_text(COOLDOWN_REFUSED), "show-job"));
}

static void test_refused_begins_anew(void **state) {
        struct world *w = *state;
        uint64_t job = run_job(w, "n1", "n2"), at = 0;

        for (int i = 0; i < 5; i++)
                (void) refuse(w, job, RM__MOVE_FAILURE__MOVE_FAILURE_GROUP);
        change(w, job, "", false); /* nothing is new */
        assert_int_equal(refusal(w, job)->times, 5);
        change(w, job, "", true); /* other processes */
        assert_int_equal(cooldown_refused_until(refusal(w, job)), 0);
        assert_string_equal(refusal(w, job)->text, "criu dump: no"); /* still told */
        for (int i = 0; i < 5; i++)
                at = refuse(w, job, RM__MOVE_FAILURE__MOVE_FAILURE_GROUP);
        assert_int_equal(cooldown_refused_until(refusal(w, job)), at + 64 * SEC);
        change(w, job, "uses io_uring", false);
        assert_int_equal(refusal(w, job)->times, 0);
        at = refuse(w, job, RM__MOVE_FAILURE__MOVE_FAILURE_GROUP);
        assert_int_equal(cooldown_refused_until(refusal(w, job)), at + 4 * SEC);
        change(w, job, "", false); /* what was the matter is over */
        assert_null(refusal(w, job));
        at = refuse(w, job, RM__MOVE_FAILURE__MOVE_FAILURE_GROUP);
        (void) refuse(w, job, RM__MOVE_FAILURE__MOVE_FAILURE_GROUP);
        (void) move(w, job, 1, "n3", ASKED, ""); /* somebody asks for it */
        assert_int_equal(refusal(w, job)->times, 0);
        assert_int_equal(move_commit(w, w->created), 0);
        assert_null(refusal(w, job));
}

/* A move that was refused for a passing reason is tried as often as before, and a failed restore
 * elsewhere first. */
static void test_refused_for_other_reasons(void **state) {
        struct world *w = *state;
        uint64_t job = run_job(w, "n1", "n2"), at = 0;

        for (int i = 0; i < 9; i++)
                (void) refuse(w, job, RM__MOVE_FAILURE__MOVE_FAILURE_PASSING);
        assert_int_equal(cooldown_refused_until(refusal(w, job)), 0);
        change(w, job, "", true);
        for (int i = 0; i < 3; i++)
                at = refuse(w, job, RM__MOVE_FAILURE__MOVE_FAILURE_THERE);
        assert_int_equal(cooldown_refused_until(refusal(w, job)), 0);
        at = refuse(w, job, RM__MOVE_FAILURE__MOVE_FAILURE_THERE);
        assert_int_equal(cooldown_refused_until(refusal(w, job)), at + 4 * SEC);
        at = refuse(w, job, RM__MOVE_FAILURE__MOVE_FAILURE_THERE);
        assert_int_equal(cooldown_refused_until(refusal(w, job)), at + 8 * SEC);
        assert_int_equal(cooldown_refused_until(NULL), 0);
}

#define T(test) cmocka_unit_test_setup_teardown(test, leader_set_up, leader_tear_down)

int main(void) {
        const struct CMUnitTest tests[] = { T(test_first_move_goes_at_once),
                                            T(test_request),
                                            T(test_choice),
                                            T(test_failures),
                                            T(test_destination),
                                            T(test_refused),
                                            T(test_refused_begins_anew),
                                            T(test_refused_for_other_reasons) };

        return cmocka_run_group_tests_name("cooldown", tests, NULL, NULL);
}
