/* The progress that programs report, and the notices that they get: any bytes may come. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "common/program_socket.h"
#include "common/util.h"
#include "daemon/capsule/init/ranks/rank_message.h"
#include "daemon/capsule/init/ranks/ranks.h"
#include "proto/program.pb-c.h"

static uint64_t said_usec = 1000000;

static int setup(void **state) {
        *state = ranks_create();
        return 0;
}

static int teardown(void **state) {
        ranks_destroy(*state);
        return 0;
}

static int take_bytes(struct ranks *ranks, const void *data, size_t size) {
        Program__Request *request;
        int r = rank_message_read(data, size, &request) == RANK_MESSAGE_STATE ? ranks_take(ranks, request, said_usec) : -EBADMSG;

        if (request)
                program__request__free_unpacked(request, NULL);
        return r;
}

static int say_with_goal(struct ranks *ranks, uint32_t rank, uint64_t done, uint64_t total, double goal_min) {
        Program__Report report = PROGRAM__REPORT__INIT;
        Program__Request request = PROGRAM__REQUEST__INIT;
        uint8_t data[PROGRAM_SOCKET_MESSAGE_BYTES];

        report.rank = rank;
        report.done = done;
        report.total = total;
        report.goal_min = goal_min;
        request.body_case = PROGRAM__REQUEST__BODY_REPORT;
        request.report = &report;
        assert_true(program__request__get_packed_size(&request) <= sizeof(data));
        return take_bytes(ranks, data, program__request__pack(&request, data));
}

static int say(struct ranks *ranks, uint32_t rank, uint64_t done, uint64_t total) {
        return say_with_goal(ranks, rank, done, total, 0);
}

static void expect(const struct ranks *ranks, uint32_t n, uint64_t done, uint64_t total) {
        Capsule__Progress progress = CAPSULE__PROGRESS__INIT;

        ranks_sum(ranks, said_usec, &progress);
        assert_int_equal(progress.ranks, n);
        assert_int_equal(progress.done, done);
        assert_int_equal(progress.total, total);
}

static uint64_t age(const struct ranks *ranks, uint64_t now_usec) {
        Capsule__Progress progress = CAPSULE__PROGRESS__INIT;

        ranks_sum(ranks, now_usec, &progress);
        return progress.age_usec;
}

static void say_at(struct ranks *ranks, uint64_t usec, uint32_t rank, uint64_t done) {
        said_usec = usec;
        assert_int_equal(say(ranks, rank, done, 100), 0);
}

/* However late rmd is told, the steps were done when the last rank had done them: a rate of what
 * was counted by then and of when it was read would be wrong by as much. */
static void test_age(void **state) {
        struct ranks *ranks = *state;

        assert_int_equal(age(ranks, 5000), 0);
        say_at(ranks, 10000, 0, 10);
        assert_int_equal(age(ranks, 10000), 0);
        assert_int_equal(age(ranks, 10900), 900);
        say_at(ranks, 11000, 1, 10);
        assert_int_equal(age(ranks, 11500), 500); /* both had done 10 only then */
        say_at(ranks, 12000, 1, 20);
        assert_int_equal(age(ranks, 12100), 2100); /* the other has done 10 since 10000 */
        say_at(ranks, 13000, 0, 10);
        assert_int_equal(age(ranks, 13000), 3000); /* it has said that again, and done no more */
        say_at(ranks, 14000, 0, 30);
        assert_int_equal(age(ranks, 14000), 2000);
        say_at(ranks, 15000, 1, 5); /* it has begun anew */
        assert_int_equal(age(ranks, 15001), 1);
        ranks_rest(ranks, 1);
        assert_int_equal(age(ranks, 15001), 1001);
        say_at(ranks, 16000, 1, 5); /* at work again */
        assert_int_equal(age(ranks, 16000), 0);
}

/* A group is as far as its last rank. */
static void test_last_rank(void **state) {
        struct ranks *ranks = *state;

        expect(ranks, 0, 0, 0);
        assert_int_equal(say(ranks, 7, 10, 100), 0);
        expect(ranks, 1, 10, 100);
        assert_int_equal(say(ranks, 3, 4, 100), 0);
        expect(ranks, 2, 4, 100);
        assert_int_equal(say(ranks, 3, 12, 100), 0);
        expect(ranks, 2, 10, 100);
        assert_int_equal(say(ranks, 7, 2, 0), 0); /* it has begun anew */
        expect(ranks, 2, 2, 0);
        assert_int_equal(say(ranks, UINT32_MAX, UINT64_MAX, UINT64_MAX), 0);
        expect(ranks, 3, 2, 0);
        ranks_rest(ranks, 7);
        ranks_rest(ranks, 8);
        expect(ranks, 2, 12, 100);
}

static void test_nonsense(void **state) {
        struct ranks *ranks = *state;
        uint8_t bytes[PROGRAM_SOCKET_MESSAGE_BYTES + 1] = { 0 };

        assert_int_equal(take_bytes(ranks, bytes, 0), -EBADMSG);
        for (size_t i = 0; i <= sizeof(bytes); i++)
                assert_int_equal(take_bytes(ranks, bytes, i), -EBADMSG);
        memset(bytes, 0xff, sizeof(bytes));
        for (size_t i = 0; i <= sizeof(bytes); i++)
                assert_int_equal(take_bytes(ranks, bytes, i), -EBADMSG);
        assert_int_equal(say(ranks, 0, 11, 10), -EBADMSG);
        assert_int_equal(say_with_goal(ranks, 0, 1, 10, NAN), -EBADMSG);
        assert_int_equal(say_with_goal(ranks, 0, 1, 10, INFINITY), -EBADMSG);
        assert_int_equal(say_with_goal(ranks, 0, 1, 10, -1), -EBADMSG);
        expect(ranks, 0, 0, 0);
}

static enum rank_message_kind kind_of(const Program__Request *sent) {
        uint8_t data[PROGRAM_SOCKET_MESSAGE_BYTES];
        Program__Request *request;
        enum rank_message_kind kind = rank_message_read(data, program__request__pack(sent, data), &request);

        if (request) {
                assert_int_equal(request->body_case, sent->body_case);
                program__request__free_unpacked(request, NULL);
        }
        return kind;
}

/* A message whose numbers no rank can have has its kind, too: it goes to no other part. */
static void test_kinds(void **state) {
        Program__Report report = PROGRAM__REPORT__INIT;
        Program__Listen listen = PROGRAM__LISTEN__INIT;
        Program__Answer answer = PROGRAM__ANSWER__INIT;
        Program__OwnState own_state = PROGRAM__OWN_STATE__INIT;
        Program__Resize resize = PROGRAM__RESIZE__INIT;
        Program__Loss loss = PROGRAM__LOSS__INIT;
        Program__Request request = PROGRAM__REQUEST__INIT;

        assert_int_equal(kind_of(&request), RANK_MESSAGE_NONE);
        report.done = 11;
        report.total = 10;
        request.body_case = PROGRAM__REQUEST__BODY_REPORT;
        request.report = &report;
        assert_int_equal(kind_of(&request), RANK_MESSAGE_STATE);
        request.body_case = PROGRAM__REQUEST__BODY_LISTEN;
        request.listen = &listen;
        assert_int_equal(kind_of(&request), RANK_MESSAGE_STATE);
        request.body_case = PROGRAM__REQUEST__BODY_ANSWER;
        request.answer = &answer;
        assert_int_equal(kind_of(&request), RANK_MESSAGE_STATE);
        own_state.rank = 7;
        request.body_case = PROGRAM__REQUEST__BODY_OWN_STATE;
        request.own_state = &own_state;
        assert_int_equal(kind_of(&request), RANK_MESSAGE_STATE);
        request.body_case = PROGRAM__REQUEST__BODY_RESIZE;
        request.resize = &resize;
        assert_int_equal(kind_of(&request), RANK_MESSAGE_RESIZE);
        request.body_case = PROGRAM__REQUEST__BODY_LOSS;
        request.loss = &loss;
        assert_int_equal(kind_of(&request), RANK_MESSAGE_LOSS);
}

static int listens(struct ranks *ranks, uint32_t rank, uint32_t events);

static void test_too_many(void **state) {
        struct ranks *ranks = *state;

        for (uint32_t i = 0; i < RANKS_MAX; i++)
                assert_int_equal(say(ranks, i * 1000003U, 5, 10), 0);
        assert_int_equal(say(ranks, 1, 1, 10), -EUSERS);
        assert_int_equal(listens(ranks, 1, UINT32_MAX), -EUSERS);
        assert_int_equal(say(ranks, 0, 6, 10), 0);
        expect(ranks, RANKS_MAX, 5, 10);
}

/* ---- what they are told ---- */

static int take(struct ranks *ranks, const Program__Request *request) {
        uint8_t data[PROGRAM_SOCKET_MESSAGE_BYTES];

        assert_true(program__request__get_packed_size(request) <= sizeof(data));
        return take_bytes(ranks, data, program__request__pack(request, data));
}

static int listens(struct ranks *ranks, uint32_t rank, uint32_t events) {
        Program__Listen listen = PROGRAM__LISTEN__INIT;
        Program__Request request = PROGRAM__REQUEST__INIT;

        listen.rank = rank;
        listen.events = events;
        request.body_case = PROGRAM__REQUEST__BODY_LISTEN;
        request.listen = &listen;
        return take(ranks, &request);
}

static int answers(struct ranks *ranks, uint32_t rank, uint64_t serial) {
        Program__Answer answer = PROGRAM__ANSWER__INIT;
        Program__Request request = PROGRAM__REQUEST__INIT;

        answer.rank = rank;
        answer.serial = serial;
        request.body_case = PROGRAM__REQUEST__BODY_ANSWER;
        request.answer = &answer;
        return take(ranks, &request);
}

static uint32_t listening(const struct ranks *ranks) {
        Capsule__Progress progress = CAPSULE__PROGRESS__INIT;

        ranks_sum(ranks, said_usec, &progress);
        return progress.listening;
}

static uint32_t placing(const struct ranks *ranks) {
        Capsule__Progress progress = CAPSULE__PROGRESS__INIT;

        ranks_sum(ranks, said_usec, &progress);
        return progress.placing;
}

/* The messages that were sent. */
struct post {
        size_t n;
        uint32_t deaf; /* who does not read */
        uint64_t serial;
        Program__Event event;
        uint64_t hold_usec;
};

static bool deliver(void *ctx, uint32_t rank, const void *data, size_t size) {
        struct post *post = ctx;
        Program__Notice *notice = program__notice__unpack(NULL, size, data);

        assert_non_null(notice);
        assert_int_equal(notice->body_case, PROGRAM__NOTICE__BODY_HAPPENS);
        post->serial = notice->serial;
        post->event = notice->happens->event;
        post->hold_usec = notice->happens->hold_usec;
        post->n++;
        program__notice__free_unpacked(notice, NULL);
        return rank != post->deaf;
}

#define BEFORE_MOVE (1U << PROGRAM__EVENT__EVENT_BEFORE_MOVE)
#define AFTER_MOVE (1U << PROGRAM__EVENT__EVENT_AFTER_MOVE)
#define PLACE (1U << PROGRAM__EVENT__EVENT_PLACE)

static size_t ask(struct ranks *ranks, struct post *post) {
        const struct ranks_news news = { .event = PROGRAM__EVENT__EVENT_BEFORE_MOVE, .ask = true };

        post->n = 0;
        return ranks_report(ranks, &news, deliver, post);
}

static void test_answers(void **state) {
        struct ranks *ranks = *state;
        const struct ranks_news after = { .event = PROGRAM__EVENT__EVENT_AFTER_MOVE };
        struct post post = { .deaf = UINT32_MAX };
        uint64_t first;

        assert_int_equal(listens(ranks, 1, BEFORE_MOVE | AFTER_MOVE), 0);
        assert_int_equal(listens(ranks, 2, BEFORE_MOVE), 0);
        assert_int_equal(listens(ranks, 3, AFTER_MOVE), 0);
        expect(ranks, 0, 0, 0); /* they have done nothing yet */
        assert_int_equal(listening(ranks), 3);
        assert_int_equal(ask(ranks, &post), 2);
        assert_int_equal(post.n, 2);
        assert_int_equal(post.event, PROGRAM__EVENT__EVENT_BEFORE_MOVE);
        first = post.serial;
        assert_int_equal(answers(ranks, 1, first), 0);
        assert_int_equal(ranks_awaited(ranks), 1);
        assert_int_equal(listens(ranks, 2, 0), 0); /* it says that it listens no more */
        assert_int_equal(ranks_awaited(ranks), 0);
        assert_int_equal(listening(ranks), 2);
        assert_int_equal(ranks_report(ranks, &after, deliver, &post), 0);
        assert_int_equal(post.n, 4);
        assert_true(post.serial > first);
}

/* Serials that nobody sent, those of others, answers given twice or late: all is as without
 * them. */
static void test_false_answers(void **state) {
        struct ranks *ranks = *state;
        struct post post = { .deaf = UINT32_MAX };
        uint64_t late;

        assert_int_equal(answers(ranks, 1, 0), -ESTALE);
        assert_int_equal(listens(ranks, 1, BEFORE_MOVE), 0);
        assert_int_equal(listens(ranks, 2, BEFORE_MOVE), 0);
        assert_int_equal(answers(ranks, 1, 0), -ESTALE);
        assert_int_equal(ask(ranks, &post), 2);
        assert_int_equal(answers(ranks, 1, post.serial + 1), -ESTALE);
        assert_int_equal(answers(ranks, 1, 0), -ESTALE);
        assert_int_equal(answers(ranks, 7, post.serial), -ESTALE);
        assert_int_equal(answers(ranks, 1, post.serial), 0);
        assert_int_equal(answers(ranks, 1, post.serial), -ESTALE);
        assert_int_equal(ranks_awaited(ranks), 1);
        late = post.serial;
        assert_int_equal(ask(ranks, &post), 2); /* of all again */
        assert_int_equal(answers(ranks, 2, late), -ESTALE);
        ranks_stop_waiting(ranks);
        assert_int_equal(ranks_awaited(ranks), 0);
        assert_int_equal(answers(ranks, 2, post.serial), -ESTALE);
        assert_int_equal(answers(ranks, 2, 0), -ESTALE);
}

static void test_deaf(void **state) {
        struct ranks *ranks = *state;
        struct post post = { .deaf = 5 };

        assert_int_equal(listens(ranks, 5, BEFORE_MOVE), 0);
        assert_int_equal(ask(ranks, &post), 0);
        assert_int_equal(answers(ranks, 5, post.serial), -ESTALE);
        assert_int_equal(listens(ranks, 6, UINT32_MAX), 0);
        assert_int_equal(ask(ranks, &post), 1);
        assert_int_equal(listens(ranks, 7, 1), 0); /* no event that there is */
        assert_int_equal(listening(ranks), 2);
        assert_int_equal(ask(ranks, &post), 1);
}

/* A parked rank comes to no places, and is not waited for; until it says again that it has some. */
static void test_places(void **state) {
        const struct ranks_news place = { .event = PROGRAM__EVENT__EVENT_PLACE, .ask = true, .hold_usec = 7 };
        struct ranks *ranks = *state;
        struct post post = { .deaf = UINT32_MAX };
        uint64_t first;

        assert_int_equal(listens(ranks, 1, PLACE | AFTER_MOVE), 0);
        assert_int_equal(listens(ranks, 2, PLACE | AFTER_MOVE), 0);
        assert_int_equal(listens(ranks, 3, AFTER_MOVE), 0);
        assert_int_equal(placing(ranks), 2);
        assert_int_equal(ranks_report(ranks, &place, deliver, &post), 2);
        assert_int_equal(post.n, 2);
        assert_int_equal(post.hold_usec, 7);
        first = post.serial;
        assert_int_equal(answers(ranks, 1, first), 0);
        assert_int_equal(ranks_report(ranks, &place, deliver, &post), 2); /* to their next ones */
        assert_int_equal(answers(ranks, 2, first), -ESTALE);
        assert_int_equal(answers(ranks, 2, post.serial), 0);
        assert_int_equal(answers(ranks, 1, post.serial), 0);
        assert_int_equal(ranks_awaited(ranks), 0);
        ranks_rest(ranks, 1);
        assert_int_equal(placing(ranks), 1);
        assert_int_equal(ranks_report(ranks, &place, deliver, &post), 1);
        assert_int_equal(listens(ranks, 1, PLACE | AFTER_MOVE), 0);
        assert_int_equal(placing(ranks), 2);
}

static int says_own_state(struct ranks *ranks, uint32_t rank, bool own) {
        Program__OwnState said = PROGRAM__OWN_STATE__INIT;
        Program__Request request = PROGRAM__REQUEST__INIT;

        said.rank = rank;
        said.own_state = own;
        request.body_case = PROGRAM__REQUEST__BODY_OWN_STATE;
        request.own_state = &said;
        return take(ranks, &request);
}

/* Only rank 0 says so, and where it is, it is known. */
static void test_own_state(void **state) {
        struct ranks *ranks = *state, *there = ranks_create();
        Capsule__SavedState saved_state = CAPSULE__SAVED_STATE__INIT;
        Capsule__Progress progress = CAPSULE__PROGRESS__INIT;

        assert_int_equal(says_own_state(ranks, 1, true), -EBADMSG);
        ranks_sum(ranks, said_usec, &progress);
        assert_false(progress.own_state_said);
        assert_int_equal(says_own_state(ranks, 0, true), 0);
        ranks_saved_state(ranks, &saved_state);
        ranks_set_saved_state(there, &saved_state);
        ranks_saved_state_finish(&saved_state);
        ranks_sum(there, said_usec, &progress);
        assert_true(progress.own_state_said && progress.own_state);
        assert_int_equal(says_own_state(there, 0, false), 0);
        ranks_sum(there, said_usec, &progress);
        assert_true(progress.own_state_said && !progress.own_state);
        ranks_destroy(there);
}

/* A report that is repeated every second is no news. */
static void test_news(void **state) {
        struct ranks *ranks = *state;

        assert_false(ranks_take_news(ranks));
        assert_int_equal(say(ranks, 1, 1, 2), 0);
        assert_false(ranks_take_news(ranks));
        assert_int_equal(listens(ranks, 1, BEFORE_MOVE), 0);
        assert_true(ranks_take_news(ranks));
        assert_false(ranks_take_news(ranks));
        assert_int_equal(listens(ranks, 1, BEFORE_MOVE), 0);
        assert_false(ranks_take_news(ranks));
        assert_int_equal(listens(ranks, 1, BEFORE_MOVE | PLACE), 0);
        assert_true(ranks_take_news(ranks));
        assert_int_equal(says_own_state(ranks, 0, false), 0);
        assert_true(ranks_take_news(ranks));
        assert_int_equal(says_own_state(ranks, 0, false), 0);
        assert_false(ranks_take_news(ranks));
}

static void test_carried(void **state) {
        struct ranks *ranks = *state, *there = ranks_create();
        struct post post = { .deaf = UINT32_MAX };
        Capsule__SavedState saved_state = CAPSULE__SAVED_STATE__INIT;
        uint64_t before;

        assert_int_equal(listens(ranks, 4, BEFORE_MOVE), 0);
        assert_int_equal(say(ranks, 4, 1, 2), 0);
        assert_int_equal(say(ranks, 9, 1, 2), 0);
        assert_int_equal(ask(ranks, &post), 1);
        before = post.serial;
        ranks_saved_state(ranks, &saved_state);
        assert_int_equal(saved_state.n_listeners, 1);
        ranks_set_saved_state(there, &saved_state);
        ranks_saved_state_finish(&saved_state);
        assert_int_equal(listening(there), 1);
        expect(there, 0, 0, 0);
        assert_int_equal(ranks_awaited(there), 0);
        assert_int_equal(ask(there, &post), 1);
        assert_true(post.serial > before);
        assert_int_equal(answers(there, 4, before), -ESTALE);
        assert_int_equal(answers(there, 4, post.serial), 0);
        ranks_destroy(there);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_age, setup, teardown),
                cmocka_unit_test_setup_teardown(test_last_rank, setup, teardown),
                cmocka_unit_test_setup_teardown(test_nonsense, setup, teardown),
                cmocka_unit_test(test_kinds),
                cmocka_unit_test_setup_teardown(test_too_many, setup, teardown),
                cmocka_unit_test_setup_teardown(test_answers, setup, teardown),
                cmocka_unit_test_setup_teardown(test_false_answers, setup, teardown),
                cmocka_unit_test_setup_teardown(test_deaf, setup, teardown),
                cmocka_unit_test_setup_teardown(test_places, setup, teardown),
                cmocka_unit_test_setup_teardown(test_own_state, setup, teardown),
                cmocka_unit_test_setup_teardown(test_news, setup, teardown),
                cmocka_unit_test_setup_teardown(test_carried, setup, teardown),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
