/* The steps of a capture, for a move and for a checkpoint: their order, each way in which each of
 * them fails, and answers that come too late. */
#include "tests/unit/transfer/fakes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"
#include "daemon/transfer/capture.h"

struct owner {
        struct calls calls;
        struct capture *capture;
        struct capture_ops ops;
        unsigned done[CAPTURE_DUMP + 1];
        unsigned failures;
        enum capture_failure failure;
        char text[512];
        char saved_state[64];
        uint64_t deadline_usec;
        bool without_mover;
};

static struct mover *get_mover(void *arg) {
        return ((struct owner *) arg)->without_mover ? NULL : (struct mover *) (void *) fakes;
}

static uint64_t get_leave_by_usec(void *arg) {
        return 0;
}

static void set_deadline(void *arg, uint64_t usec) {
        ((struct owner *) arg)->deadline_usec = usec;
}

static void fill_precopy(void *arg, Rm__MoverPrecopy *body) {
        body->pages = true;
}

static int get_saved_state(void *arg, struct capsule *capsule, capsule_saved_state_fn done, void *call) {
        return capsule_get_saved_state(capsule, done, call);
}

static void on_saved_state(void *arg, const void *saved_state, size_t size_bytes) {
        struct owner *owner = arg;

        assert_true(size_bytes < sizeof(owner->saved_state));
        memcpy(owner->saved_state, saved_state, size_bytes);
}

static void fill_dump_done(void *arg, Rm__MoverDumpDone *body, struct transfer_trees *trees) {
}

static void on_done(void *arg, enum capture_step step) {
        ((struct owner *) arg)->done[step]++;
}

static void on_failed(void *arg, enum capture_failure failure, const char *text) {
        struct owner *owner = arg;

        owner->failure = failure;
        owner->failures++;
        (void) snprintf(owner->text, sizeof(owner->text), "%s", text);
}

/* Both owners that there are: their captures differ in what programs are told. */
static const enum capsule_capture kinds[] = { CAPSULE_MOVE, CAPSULE_CHECKPOINT };

static void owner_init(struct owner *owner, enum capsule_capture kind) {
        *owner = (struct owner) { .ops = { kind, 5000, get_mover, get_leave_by_usec, set_deadline, fill_precopy, get_saved_state,
                                           on_saved_state, fill_dump_done, on_done, on_failed } };
        owner->capture = capture_create(&fakes->rmd, &owner->calls, &owner->ops, owner);
        capture_begin(owner->capture, 7, 1, 9);
}

static void owner_finish(struct owner *owner) {
        capture_destroy(owner->capture);
}

static void mover_says(struct owner *owner, Rm__MoverEvent__BodyCase what) {
        Rm__MoverEvent event = RM__MOVER_EVENT__INIT;

        event.body_case = what;
        assert_true(capture_on_mover_event(owner->capture, &event));
}

/* ---- as it should go ---- */

static void go_to_dump(struct owner *owner) {
        capture_precopy(owner->capture, true);
        assert_int_equal(fake_last_order(), RM__MOVER_COMMAND__BODY_PRECOPY);
        capture_freeze(owner->capture, 1000);
        fake_ends(FAKE_FREEZE, 0, "");
        assert_int_equal(owner->done[CAPTURE_FREEZE], 1);
        capture_cut(owner->capture);
        fake_ends(FAKE_CUT, 0, "");
        assert_int_equal(owner->done[CAPTURE_CUT], 1);
        capture_dump(owner->capture, "/images", true);
}

static void test_goes_from_precopy_to_the_end_of_the_dump(void **state) {
        struct owner owner;

        owner_init(&owner, CAPSULE_MOVE);
        go_to_dump(&owner);
        assert_int_equal(fake_last_order(), RM__MOVER_COMMAND__BODY_START);
        assert_true(resident_holder(fakes->resident) == RESIDENT_CAPTURED && capture_frozen_usec(owner.capture) > 0);
        assert_in_range(owner.deadline_usec, 1, fakes->config.move_timeout_usec);
        fake_saved_state_ends(0, "");
        assert_string_equal(owner.saved_state, "counters");
        fake_ends(FAKE_DUMP, 0, "");
        assert_int_equal(fake_last_order(), RM__MOVER_COMMAND__BODY_DUMP_DONE);
        assert_int_equal(fakes->trees_ordered, 3); /* of a group: a head has its spool as well */
        assert_int_equal(owner.done[CAPTURE_DUMP], 1);
        assert_int_equal(owner.failures, 0);
        capture_open(owner.capture);
        fake_ends(FAKE_OPEN, 0, "");
        assert_int_equal(resident_holder(fakes->resident), RESIDENT_FREE);
        assert_int_equal(capture_frozen_usec(owner.capture), 0);
        owner_finish(&owner);
}

/* Ranks that listen are told before the freeze, and again when it is over; rm-mover waits for them
 * in between. */
static void test_ranks_are_told(void **state) {
        for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
                struct owner owner;

                owner_init(&owner, kinds[i]);
                fakes->status.progress.listening = 2;
                capture_precopy(owner.capture, true);
                assert_true(fakes->announce_ordered);
                mover_says(&owner, RM__MOVER_EVENT__BODY_NEARLY);
                assert_int_equal(fakes->announced, kinds[i]);
                fake_ends(FAKE_ANNOUNCE, 0, "");
                assert_int_equal(fake_last_order(), RM__MOVER_COMMAND__BODY_GO_ON);
                assert_int_equal(owner.done[CAPTURE_PRECOPY], 0); /* rm-mover says when */
                capture_open(owner.capture);
                assert_int_equal(fakes->asked[FAKE_OVER], i + 1);
                assert_int_equal(fakes->asked[FAKE_OPEN], 0); /* it was never frozen */
                owner_finish(&owner);
        }
}

static void test_without_memory_ahead_ranks_are_told_too(void **state) {
        struct owner owner;

        owner_init(&owner, CAPSULE_MOVE);
        capture_precopy(owner.capture, false);
        assert_int_equal(owner.done[CAPTURE_PRECOPY], 1); /* nobody listens */
        fakes->status.progress.listening = 1;
        capture_precopy(owner.capture, false);
        assert_int_equal(owner.done[CAPTURE_PRECOPY], 1);
        fake_ends(FAKE_ANNOUNCE, 0, "");
        assert_int_equal(owner.done[CAPTURE_PRECOPY], 2);
        assert_int_equal(fakes->n_ordered, 0);
        owner_finish(&owner);
}

/* Memory that need not be carried is given up before any is read, unless there is no time to
 * ask. */
static void test_ranks_drop_memory_first(void **state) {
        struct owner owner;

        owner_init(&owner, CAPSULE_CHECKPOINT);
        fakes->status.progress.excluding = 1;
        capture_precopy(owner.capture, true);
        assert_int_equal(fakes->announced, CAPSULE_DROP);
        assert_int_equal(fakes->n_ordered, 0);
        fake_ends(FAKE_ANNOUNCE, -ETIMEDOUT, "one rank is late");
        assert_int_equal(fake_last_order(), RM__MOVER_COMMAND__BODY_PRECOPY);
        fakes->wait_usec = 0;
        capture_precopy(owner.capture, true);
        assert_int_equal(fakes->asked[FAKE_ANNOUNCE], 1);
        assert_int_equal(fakes->n_ordered, 2);
        fakes->wait_usec = 1000;
        fakes->refused[FAKE_ANNOUNCE] = -ENOTCONN; /* its PID 1 cannot be asked: nothing is dropped */
        capture_precopy(owner.capture, true);
        assert_int_equal(fakes->n_ordered, 3);
        owner_finish(&owner);
}

/* A connection that no program has accepted: the capsule runs for a moment, and is frozen and cut
 * off again. */
static void test_connections_are_let_in(void **state) {
        struct owner owner;

        owner_init(&owner, CAPSULE_CHECKPOINT);
        capture_freeze(owner.capture, 1000);
        fake_ends(FAKE_FREEZE, 0, "");
        capture_cut(owner.capture);
        fakes->inflight = 2;
        for (unsigned i = 1; i <= 2; i++) {
                fake_ends(FAKE_CUT, 0, "");
                assert_int_equal(fakes->asked[FAKE_OPEN], i);
                assert_int_equal(owner.done[CAPTURE_CUT], 0);
                fake_time_passes(30000);
                assert_int_equal(fakes->asked[FAKE_FREEZE], 1 + i);
        }
        fake_ends(FAKE_CUT, 0, "");
        assert_int_equal(owner.done[CAPTURE_CUT], 1);
        assert_int_equal(owner.failures, 0);
        owner_finish(&owner);
}

/* ---- failures ---- */

static void expect_failure(struct owner *owner, const char *text) {
        assert_int_equal(owner->failures, 1);
        assert_non_null(strstr(owner->text, text));
        owner->failures = 0;
}

/* Each operation that the capsule refuses at once, or that comes to nothing: the owner is told why,
 * once. */
static void test_each_step_fails_with_its_reason(void **state) {
        struct owner owner;

        owner_init(&owner, CAPSULE_MOVE);
        fakes->refused[FAKE_FREEZE] = -ENOTCONN;
        capture_freeze(owner.capture, 1000);
        expect_failure(&owner, "cannot freeze");
        fakes->refused[FAKE_FREEZE] = 0;
        capture_freeze(owner.capture, 1000);
        fake_ends(FAKE_FREEZE, -ETIMEDOUT, "process 8 does not stop");
        expect_failure(&owner, "freezing: process 8 does not stop");
        fakes->refused[FAKE_CUT] = -ENOTCONN;
        capture_cut(owner.capture);
        expect_failure(&owner, "cannot cut");
        fakes->refused[FAKE_CUT] = 0;
        capture_cut(owner.capture);
        fake_ends(FAKE_CUT, -EOPNOTSUPP, "process 8 uses io_uring");
        expect_failure(&owner, "process 8 uses io_uring");
        assert_int_equal(owner.failure, CAPTURE_FAILURE_GROUP);
        capture_cut(owner.capture);
        fake_ends(FAKE_CUT, -EIO, "tc");
        expect_failure(&owner, "cutting the link: tc");
        assert_int_equal(owner.failure, CAPTURE_FAILURE_OTHER);
        fakes->refused[FAKE_SAVED_STATE] = -ENOTCONN;
        capture_dump(owner.capture, "/images", false);
        expect_failure(&owner, "cannot start the dump");
        fakes->refused[FAKE_SAVED_STATE] = 0;
        fakes->refused[FAKE_DUMP] = -ENOTCONN;
        capture_dump(owner.capture, "/images", false);
        expect_failure(&owner, "cannot start the dump");
        fake_saved_state_ends(-ECANCELED, "");
        fakes->refused[FAKE_DUMP] = 0;
        capture_dump(owner.capture, "/images", false);
        fake_saved_state_ends(-EFBIG, "files are too large");
        expect_failure(&owner, "reading the capsule's counters: files are too large");
        fake_ends(FAKE_DUMP, -EIO, "unsupported socket");
        expect_failure(&owner, "criu dump: unsupported socket");
        assert_int_equal(owner.failure, CAPTURE_FAILURE_GROUP);
        owner_finish(&owner);
}

static void test_lost_mover_fails_each_order(void **state) {
        struct owner owner;

        owner_init(&owner, CAPSULE_CHECKPOINT);
        owner.without_mover = true;
        capture_precopy(owner.capture, true);
        expect_failure(&owner, "cannot send to rm-mover");
        capture_dump(owner.capture, "/images", true);
        expect_failure(&owner, "cannot send to rm-mover");
        assert_int_equal(fakes->asked[FAKE_DUMP], 0);
        owner.without_mover = false;
        fakes->status.progress.listening = 1;
        capture_precopy(owner.capture, true);
        mover_says(&owner, RM__MOVER_EVENT__BODY_NEARLY);
        fakes->mover_refuses = -EPIPE;
        fake_ends(FAKE_ANNOUNCE, 0, "");
        expect_failure(&owner, "cannot send to rm-mover");
        owner_finish(&owner);
}

/* A capsule that has ended fails every step, and nothing is asked of it. */
static void test_ended_capsule_fails_each_step(void **state) {
        struct owner owner;

        owner_init(&owner, CAPSULE_MOVE);
        for (unsigned how = 0; how < 3; how++) {
                fakes->gone = how == 0;
                if (how == 1)
                        (void) resident_exited(fakes->resident, 0, 1);
                if (how == 2)
                        (void) resident_lost(fakes->resident, RESIDENT_EV_LOST, "its PID 1 is dead", 2);
                assert_null(capture_running(owner.capture));
                capture_precopy(owner.capture, true);
                expect_failure(&owner, "has ended");
                capture_freeze(owner.capture, 1000);
                expect_failure(&owner, "has ended");
                capture_cut(owner.capture);
                expect_failure(&owner, "has ended");
                capture_dump(owner.capture, "/images", true);
                expect_failure(&owner, "has ended");
                capture_open(owner.capture);
        }
        for (enum fake_op op = 0; op < FAKE_OPS; op++)
                assert_int_equal(fakes->asked[op], 0);
        owner_finish(&owner);
}

/* A blocker that PID 1 sees while CRIU is started ends the capture before any process is frozen,
 * and not after that. */
static void test_blockers_are_told_before_the_freeze(void **state) {
        static const int errors[] = { -EOPNOTSUPP, -EBUSY, -EIO };

        for (size_t i = 0; i < ARRAY_SIZE(errors); i++) {
                bool counts = errors[i] != -EIO; /* CRIU is started later then */
                struct owner owner;

                owner_init(&owner, kinds[i % 2]);
                capture_preload(owner.capture);
                fake_ends(FAKE_PRELOAD, errors[i], "a process holds a lease");
                assert_int_equal(owner.failures, counts);
                owner.failures = 0;
                capture_preload(owner.capture);
                capture_cut(owner.capture);
                fake_ends(FAKE_PRELOAD, errors[i], "a process holds a lease");
                assert_int_equal(owner.failures, 0); /* the cut looks itself */
                fake_ends(FAKE_CUT, 0, "");
                owner_finish(&owner);
        }
}

/* The pre-copy goes on as long as rm-mover says so, and not for ever. */
static void test_precopy_has_an_end(void **state) {
        struct memory_report_use use;
        struct owner owner;

        owner_init(&owner, CAPSULE_CHECKPOINT);
        capture_measure(owner.capture, 10, &use);
        assert_int_equal(use.memory_bytes, fakes->memory_bytes);
        assert_int_equal(fakes->measured_processes, 10);
        capture_precopy(owner.capture, true);
        owner.deadline_usec = 0;
        mover_says(&owner, RM__MOVER_EVENT__BODY_PROGRESS);
        assert_int_equal(owner.deadline_usec, owner.ops.silence_usec);
        assert_int_equal(owner.failures, 0);
        capture_freeze(owner.capture, 1000);
        owner.deadline_usec = 0;
        mover_says(&owner, RM__MOVER_EVENT__BODY_PROGRESS); /* which came late */
        assert_int_equal(owner.deadline_usec, 0);
        fake_ends(FAKE_FREEZE, 0, "");
        owner_finish(&owner);
}

/* ---- undoing ---- */

static void test_open_after_each_step(void **state) {
        struct owner owner;

        owner_init(&owner, CAPSULE_MOVE);
        capture_freeze(owner.capture, 1000);
        capture_open(owner.capture);
        assert_int_equal(fakes->asked[FAKE_OPEN], 1); /* though nobody knows yet whether it is frozen */
        assert_int_equal(resident_holder(fakes->resident), RESIDENT_CAPTURED); /* until it runs */
        fake_ends(FAKE_FREEZE, 0, "");
        assert_int_equal(owner.done[CAPTURE_FREEZE], 0);
        fake_ends(FAKE_OPEN, 0, "");
        assert_int_equal(resident_holder(fakes->resident), RESIDENT_FREE);
        capture_open(owner.capture); /* once is enough */
        assert_int_equal(fakes->asked[FAKE_OPEN], 1);
        owner_finish(&owner);
}

/* Without a lease the runner opens it when there is one; after another error it tries again
 * soon. */
static void test_capsule_that_cannot_be_opened_is_left_to_the_runner(void **state) {
        static const struct {
                int error;
                unsigned retries;
        } cases[] = { { -ETIME, 0 }, { -EIO, 1 }, { -ENOTCONN, 2 } };
        struct owner owner;

        owner_init(&owner, CAPSULE_CHECKPOINT);
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                capture_freeze(owner.capture, 1000);
                fake_ends(FAKE_FREEZE, 0, "");
                capture_open(owner.capture);
                fake_ends(FAKE_OPEN, cases[i].error, "no");
                assert_int_equal(resident_holder(fakes->resident), RESIDENT_FREE);
                assert_int_equal(fakes->retries, cases[i].retries);
        }
        fakes->refused[FAKE_OPEN] = -ENOTCONN;
        capture_freeze(owner.capture, 1000);
        capture_open(owner.capture);
        assert_int_equal(resident_holder(fakes->resident), RESIDENT_FREE);
        fake_ends(FAKE_FREEZE, -ENOTCONN, "");
        owner_finish(&owner);
}

static void test_destroyed_capture_leaves_the_capsule_to_the_runner(void **state) {
        struct owner owner;

        owner_init(&owner, CAPSULE_MOVE);
        capture_freeze(owner.capture, 1000);
        owner_finish(&owner);
        assert_int_equal(resident_holder(fakes->resident), RESIDENT_FREE);
        fake_ends(FAKE_FREEZE, 0, ""); /* nobody hears it */
        assert_int_equal(fakes->asked[FAKE_OPEN], 0);
}

/* Answers to what an earlier capture has asked come to nobody, at each step. */
static void test_late_answers_are_dropped(void **state) {
        static const enum fake_op late[] = { FAKE_PRELOAD, FAKE_ANNOUNCE, FAKE_FREEZE, FAKE_CUT, FAKE_DUMP };
        struct owner owner;

        owner_init(&owner, CAPSULE_CHECKPOINT);
        fakes->status.progress.listening = 1;
        capture_preload(owner.capture);
        capture_precopy(owner.capture, false);
        capture_freeze(owner.capture, 1000);
        capture_cut(owner.capture);
        capture_dump(owner.capture, "/images", true);
        capture_begin(owner.capture, 7, 1, 9);
        for (size_t i = 0; i < ARRAY_SIZE(late); i++)
                fake_ends(late[i], i % 2 ? -EOPNOTSUPP : 0, "late");
        fake_saved_state_ends(0, "");
        assert_int_equal(owner.failures, 0);
        for (enum capture_step step = CAPTURE_NONE; step <= CAPTURE_DUMP; step++)
                assert_int_equal(owner.done[step], 0);
        assert_string_equal(owner.saved_state, "");
        owner_finish(&owner);
}

/* rmd ends: what the calls belong to may be gone already. */
static void test_answers_after_the_end_touch_nothing(void **state) {
        struct owner *owner = xcalloc(1, sizeof(*owner));

        owner_init(owner, CAPSULE_MOVE);
        capture_freeze(owner->capture, 1000);
        capture_open(owner->capture);
        owner_finish(owner);
        free(owner);
        fake_ends(FAKE_FREEZE, -ECANCELED, "");
        fake_ends(FAKE_OPEN, -ECANCELED, "");
        assert_int_equal(fakes->retries, 0);
}

/* ---- what is asked before ---- */

static void test_waits_for_ranks_memory_and_the_test(void **state) {
        struct owner owner;

        owner_init(&owner, CAPSULE_MOVE);
        assert_int_equal(capture_waits(owner.capture, true), CAPTURE_READY);
        fakes->status.filling = true;
        assert_int_equal(capture_waits(owner.capture, false), CAPTURE_AWAITS_MEMORY);
        fakes->test_runs = true;
        assert_int_equal(capture_waits(owner.capture, true), CAPTURE_AWAITS_TEST);
        assert_int_equal(capture_waits(owner.capture, false), CAPTURE_AWAITS_MEMORY); /* it is not to be tracked */
        fakes->phase = CAPSULE_EMPTY;
        assert_int_equal(capture_waits(owner.capture, true), CAPTURE_AWAITS_START);
        assert_int_equal(capture_waits(owner.capture, false), CAPTURE_AWAITS_START);
        fakes->phase = CAPSULE_EXITED; /* which the steps find */
        fakes->status.filling = fakes->test_runs = false;
        assert_int_equal(capture_waits(owner.capture, true), CAPTURE_READY);
        fakes->phase = CAPSULE_EMPTY;
        fakes->gone = true;
        assert_int_equal(capture_waits(owner.capture, true), CAPTURE_READY);
        owner_finish(&owner);
}

static void test_says_why_memory_is_not_tracked(void **state) {
        struct owner owner;
        char text[256] = "";

        owner_init(&owner, CAPSULE_MOVE);
        assert_true(capture_may_track(owner.capture, text, sizeof(text)));
        assert_string_equal(text, "");
        fakes->test_passed = false;
        assert_false(capture_may_track(owner.capture, text, sizeof(text)));
        assert_string_equal(text, "n1: the kernel cannot");
        fakes->config.move_tracking = false;
        assert_false(capture_may_track(owner.capture, text, sizeof(text)));
        assert_non_null(strstr(text, "tracking = no"));
        owner_finish(&owner);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, fakes_set_up, fakes_tear_down)
        const struct CMUnitTest tests[] = {
                TEST(test_goes_from_precopy_to_the_end_of_the_dump),
                TEST(test_ranks_are_told),
                TEST(test_without_memory_ahead_ranks_are_told_too),
                TEST(test_ranks_drop_memory_first),
                TEST(test_connections_are_let_in),
                TEST(test_each_step_fails_with_its_reason),
                TEST(test_lost_mover_fails_each_order),
                TEST(test_ended_capsule_fails_each_step),
                TEST(test_blockers_are_told_before_the_freeze),
                TEST(test_precopy_has_an_end),
                TEST(test_open_after_each_step),
                TEST(test_capsule_that_cannot_be_opened_is_left_to_the_runner),
                TEST(test_destroyed_capture_leaves_the_capsule_to_the_runner),
                TEST(test_late_answers_are_dropped),
                TEST(test_answers_after_the_end_touch_nothing),
                TEST(test_waits_for_ranks_memory_and_the_test),
                TEST(test_says_why_memory_is_not_tracked),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
