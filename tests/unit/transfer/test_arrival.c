/* The arrival of a capsule, as of a move and as from a checkpoint: what has to be there before it
 * is restored, and each way in which it fails. */
#include "tests/unit/transfer/fakes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"
#include "daemon/transfer/arrival.h"

struct owner {
        struct calls calls;
        struct arrival *arrival;
        unsigned listening, progress, received, restored, opened, not_opened, failures;
        uint16_t port;
        int code;
        bool bad;
        char text[512];
};

static const char *get_sender(void *arg) {
        return "n2";
}

static void on_listening(void *arg, uint16_t port) {
        struct owner *owner = arg;

        owner->listening++;
        owner->port = port;
}

static void on_progress(void *arg) {
        ((struct owner *) arg)->progress++;
}

static void on_received(void *arg) {
        ((struct owner *) arg)->received++;
}

static void on_restored(void *arg, const char *text) {
        struct owner *owner = arg;

        owner->restored++;
        (void) snprintf(owner->text, sizeof(owner->text), "%s", text);
}

static void on_opened(void *arg) {
        ((struct owner *) arg)->opened++;
}

static void on_not_opened(void *arg) {
        ((struct owner *) arg)->not_opened++;
}

static void on_failed(void *arg, int code, bool bad, const char *text) {
        struct owner *owner = arg;

        owner->failures++;
        owner->code = code;
        owner->bad = bad;
        (void) snprintf(owner->text, sizeof(owner->text), "%s", text);
}

static const struct arrival_ops ops = { get_sender,  on_listening, on_progress,   on_received,
                                        on_restored, on_opened,    on_not_opened, on_failed };

static void owner_init(struct owner *owner) {
        *owner = (struct owner) { 0 };
        owner->arrival = arrival_create(&fakes->rmd, &owner->calls, NULL, "/images", &ops, owner);
        arrival_begin(owner->arrival, 7, 1, 9);
}

static void owner_finish(struct owner *owner) {
        arrival_destroy(owner->arrival);
}

static void listen_for(struct owner *owner, bool files) {
        const struct arrival_image image = { .files = files };
        struct rm_error err = { 0 };

        assert_int_equal(arrival_listen(owner->arrival, &image, &err), 0);
}

static void image_comes(bool pages, uint64_t later_bytes) {
        Rm__MoverEvent event = RM__MOVER_EVENT__INIT;
        Rm__MoverReceived body = RM__MOVER_RECEIVED__INIT;
        Rm__MoverFigures figures = RM__MOVER_FIGURES__INIT;

        figures.pages = pages;
        figures.later_bytes = later_bytes;
        body.figures = &figures;
        event.body_case = RM__MOVER_EVENT__BODY_RECEIVED;
        event.received = &body;
        fake_mover_says(&event);
}

static void image_fails(int code, bool by_peer, const char *text) {
        Rm__MoverEvent event = RM__MOVER_EVENT__INIT;
        Rm__MoverFailed body = RM__MOVER_FAILED__INIT;

        body.code = code;
        body.by_peer = by_peer;
        body.text = (char *) text;
        event.body_case = RM__MOVER_EVENT__BODY_FAILED;
        event.failed = &body;
        fake_mover_says(&event);
}

/* Image and counters come in any order; the link must be prepared as well. */
static void test_all_must_have_come(void **state) {
        for (unsigned image_last = 0; image_last < 2; image_last++) {
                struct owner owner;

                owner_init(&owner);
                listen_for(&owner, false);
                assert_int_equal(fakes->trees_ordered, 3);
                if (!image_last)
                        image_comes(true, 0);
                arrival_saved_state(owner.arrival, "counters", 8);
                arrival_saved_state(owner.arrival, "others", 6); /* the first holds */
                assert_int_equal(fakes->asked[FAKE_PREPARE], image_last + 1);
                assert_int_equal(owner.received, 0);
                fake_ends(FAKE_PREPARE, 0, "");
                if (image_last) {
                        assert_int_equal(owner.received, 0);
                        image_comes(true, 0);
                }
                assert_int_equal(owner.received, 1);
                assert_true(arrival_is_complete(owner.arrival) && arrival_has_pages(owner.arrival));
                owner_finish(&owner);
        }
}

static void test_restores_of_a_move_and_of_a_checkpoint(void **state) {
        struct owner owner;

        owner_init(&owner);
        listen_for(&owner, true);
        assert_int_equal(fakes->trees_ordered, 4); /* with copies of files */
        image_comes(true, 4096);
        assert_int_equal(arrival_later_bytes(owner.arrival), 4096);
        arrival_restore(owner.arrival, NULL);
        assert_true(fakes->pages && !fakes->back);
        fake_ends(FAKE_RESTORE, 0, "");
        assert_int_equal(owner.restored, 1);
        arrival_restore(owner.arrival, &(struct capsule_rollback) { true, 17 });
        assert_true(fakes->back && fakes->other_files && fakes->left_ago_usec == 17);
        fake_ends(FAKE_RESTORE, 0, "log data");
        assert_string_equal(owner.text, "log data"); /* files that may differ */
        owner_finish(&owner);
}

/* The image is damaged, or its sender reports that it cannot send: another node may have it whole.
 * The capsule's own errors are passed on as they are. */
static void test_failures_are_told_apart(void **state) {
        struct owner owner;

        owner_init(&owner);
        listen_for(&owner, false);
        image_fails(-EBADMSG, false, "a chunk is damaged");
        assert_true(owner.bad && owner.code == 0);
        assert_string_equal(owner.text, "receiving from n2: a chunk is damaged");
        image_fails(-EIO, true, "no such checkpoint");
        assert_true(owner.bad);
        image_fails(-ENOSPC, false, "disk full");
        assert_false(owner.bad);
        fakes->mover_ops->on_gone(fakes->mover_userdata);
        assert_int_equal(owner.failures, 4);
        arrival_restore(owner.arrival, &(struct capsule_rollback) { 0 });
        fake_ends(FAKE_RESTORE, -EEXIST, "a file stands where the job had a socket");
        assert_true(!owner.bad && owner.code == -EEXIST);
        assert_string_equal(owner.text, "restoring: a file stands where the job had a socket");
        arrival_saved_state(owner.arrival, "counters", 8);
        fake_ends(FAKE_PREPARE, -EIO, "no link");
        assert_string_equal(owner.text, "preparing the link: no link");
        assert_int_equal(owner.received + owner.restored, 0);
        owner_finish(&owner);
}

static void test_what_cannot_be_asked_fails(void **state) {
        const struct arrival_image image = { .files = false };
        struct rm_error err = { 0 };
        struct owner owner;

        owner_init(&owner);
        fakes->mover_refuses = -ENOMEM;
        assert_int_equal(arrival_listen(owner.arrival, &image, &err), -ENOMEM);
        fakes->mover_refuses = 0;
        fakes->refused[FAKE_PREPARE] = -ENOTCONN;
        arrival_saved_state(owner.arrival, "counters", 8);
        fakes->refused[FAKE_RESTORE] = -ENOTCONN;
        arrival_restore(owner.arrival, NULL);
        arrival_restore(owner.arrival, &(struct capsule_rollback) { 0 });
        assert_int_equal(owner.failures, 3);
        (void) resident_lost(fakes->resident, RESIDENT_EV_LOST, "its PID 1 is dead", 0);
        error_clear(&err);
        assert_int_equal(arrival_listen(owner.arrival, &image, &err), -ECHILD);
        owner_finish(&owner);
}

/* Another sender is asked: nothing of the one before counts. */
static void test_listens_anew(void **state) {
        struct owner owner;
        uint8_t token[ARRIVAL_TOKEN_BYTES];

        owner_init(&owner);
        listen_for(&owner, false);
        memcpy(token, arrival_token(owner.arrival), sizeof(token));
        arrival_saved_state(owner.arrival, "counters", 8);
        fake_ends(FAKE_PREPARE, 0, "");
        listen_for(&owner, false);
        assert_memory_not_equal(token, arrival_token(owner.arrival), sizeof(token));
        image_comes(false, 0);
        assert_int_equal(owner.received, 0); /* the counters have not come again */
        arrival_saved_state(owner.arrival, "counters", 8);
        fake_ends(FAKE_PREPARE, 0, "");
        assert_int_equal(owner.received, 1);
        owner_finish(&owner);
}

/* The copy is opened by one call at a time. Without a lease it waits until it is asked again; after
 * another error the owner is told to ask again. */
static void test_opens_what_was_restored(void **state) {
        struct owner owner;

        owner_init(&owner);
        arrival_open(owner.arrival);
        arrival_open(owner.arrival);
        assert_int_equal(fakes->asked[FAKE_OPEN], 1);
        fake_ends(FAKE_OPEN, -ETIME, "no lease");
        assert_int_equal(owner.opened + owner.not_opened, 0);
        arrival_open(owner.arrival);
        fake_ends(FAKE_OPEN, -EIO, "no");
        assert_int_equal(owner.not_opened, 1);
        fakes->refused[FAKE_OPEN] = -ENOTCONN;
        arrival_open(owner.arrival);
        assert_int_equal(owner.not_opened, 2);
        fakes->refused[FAKE_OPEN] = 0;
        fakes->gone = true;
        arrival_open(owner.arrival);
        assert_int_equal(owner.not_opened, 3);
        fakes->gone = false;
        arrival_open(owner.arrival);
        fake_ends(FAKE_OPEN, 0, "");
        assert_int_equal(owner.opened, 1);
        assert_int_equal(owner.failures, 0);
        owner_finish(&owner);
}

static void test_answers_after_the_end_touch_nothing(void **state) {
        struct owner owner;

        owner_init(&owner);
        listen_for(&owner, false);
        arrival_saved_state(owner.arrival, "counters", 8);
        arrival_restore(owner.arrival, NULL);
        owner_finish(&owner);
        assert_null(fakes->mover_ops);
        fake_ends(FAKE_PREPARE, 0, "");
        fake_ends(FAKE_RESTORE, -ECANCELED, "");
        assert_int_equal(owner.received + owner.restored + owner.failures, 0);
}

static void test_says_where_it_listens_and_that_it_goes_on(void **state) {
        Rm__MoverEvent event = RM__MOVER_EVENT__INIT;
        Rm__MoverListening body = RM__MOVER_LISTENING__INIT;
        struct owner owner;

        owner_init(&owner);
        listen_for(&owner, false);
        body.port = 40123;
        event.body_case = RM__MOVER_EVENT__BODY_LISTENING;
        event.listening = &body;
        fake_mover_says(&event);
        assert_int_equal(owner.port, 40123);
        event.body_case = RM__MOVER_EVENT__BODY_PROGRESS;
        fake_mover_says(&event);
        assert_int_equal(owner.progress, 1);
        owner_finish(&owner);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, fakes_set_up, fakes_tear_down)
        const struct CMUnitTest tests[] = {
                TEST(test_all_must_have_come),
                TEST(test_restores_of_a_move_and_of_a_checkpoint),
                TEST(test_failures_are_told_apart),
                TEST(test_what_cannot_be_asked_fails),
                TEST(test_listens_anew),
                TEST(test_opens_what_was_restored),
                TEST(test_answers_after_the_end_touch_nothing),
                TEST(test_says_where_it_listens_and_that_it_goes_on),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
