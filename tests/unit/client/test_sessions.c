/* Links that begin a session at the page: for one use, for a short time, of one user each. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/util.h"
#include "daemon/client/sessions.h"

#define ALICE 1000U
#define BOB 1001U

typedef char secret[SESSIONS_SECRET_BYTES];

static void test_one_use(void **state) {
        struct sessions *s = sessions_create();
        secret token, other, value, again;
        uint64_t end_usec = 0;
        uid_t uid = 0;

        assert_int_equal(sessions_offer(s, ALICE, 5, token), 0);
        assert_int_equal(sessions_offer(s, BOB, 5, other), 0);
        assert_int_equal(strlen(token), 64);
        assert_string_not_equal(token, other);
        assert_int_equal(sessions_begin(s, token, 6, value), 0);
        assert_int_equal(sessions_begin(s, token, 6, again), -EACCES);
        assert_int_equal(sessions_find(s, value, 7, &uid, &end_usec), 0);
        assert_int_equal(uid, ALICE);
        assert_int_equal(end_usec, 6 + SESSIONS_USEC);
        /* Each is only what it is. */
        assert_int_equal(sessions_find(s, other, 7, &uid, &end_usec), -EACCES);
        assert_int_equal(sessions_begin(s, value, 7, again), -EACCES);
        assert_int_equal(sessions_begin(s, other, 7, again), 0);
        assert_int_equal(sessions_find(s, again, 7, &uid, &end_usec), 0);
        assert_int_equal(uid, BOB);
        sessions_destroy(s);
        sessions_destroy(NULL);
}

static void test_time(void **state) {
        struct sessions *s = sessions_create();
        secret token, value;
        uint64_t end_usec = 0;
        uid_t uid = 0;

        assert_int_equal(sessions_offer(s, ALICE, 0, token), 0);
        assert_int_equal(sessions_begin(s, token, SESSIONS_TOKEN_USEC, value), -EACCES);
        assert_int_equal(sessions_offer(s, ALICE, 0, token), 0);
        assert_int_equal(sessions_begin(s, token, SESSIONS_TOKEN_USEC - 1, value), 0);
        end_usec = SESSIONS_TOKEN_USEC - 1 + SESSIONS_USEC;
        assert_int_equal(sessions_find(s, value, end_usec - 1, &uid, &end_usec), 0);
        assert_int_equal(sessions_find(s, value, end_usec, &uid, &end_usec), -EACCES);
        sessions_destroy(s);
}

static void test_what_is_no_secret(void **state) {
        struct sessions *s = sessions_create();
        secret token, value;
        uint64_t end_usec;
        uid_t uid;

        assert_int_equal(sessions_offer(s, 0, 0, token), 0);
        assert_int_equal(sessions_begin(s, "", 0, value), -EACCES);
        token[63] ^= 1;
        assert_int_equal(sessions_begin(s, token, 0, value), -EACCES);
        token[63] ^= 1;
        token[62] = 0;
        assert_int_equal(sessions_begin(s, token, 0, value), -EACCES);
        assert_int_equal(sessions_find(s, "0", 0, &uid, &end_usec), -EACCES);
        sessions_destroy(s);
}

/* A user who asks for many loses his own oldest ones; all users together have a bound, and root is
 * outside of it. */
static void test_bounds(void **state) {
        struct sessions *s = sessions_create();
        secret first, second, token, value;

        assert_int_equal(sessions_offer(s, ALICE, 0, first), 0);
        assert_int_equal(sessions_offer(s, ALICE, 0, second), 0);
        for (unsigned i = 1; i < SESSIONS_OF_USER; i++)
                assert_int_equal(sessions_offer(s, ALICE, 0, token), 0);
        assert_int_equal(sessions_begin(s, first, 0, value), -EACCES);
        assert_int_equal(sessions_begin(s, second, 0, value), 0);
        for (uid_t uid = 2000; uid < 2000 + SESSIONS_ALL - SESSIONS_OF_USER; uid++)
                assert_int_equal(sessions_offer(s, uid, 0, token), 0);
        assert_int_equal(sessions_offer(s, BOB, 0, token), -EUSERS);
        assert_int_equal(sessions_offer(s, 0, 0, token), 0);
        assert_int_equal(sessions_begin(s, token, 0, value), 0);
        /* Tokens and sessions that have ended make room. */
        assert_int_equal(sessions_offer(s, BOB, SESSIONS_TOKEN_USEC, token), 0);
        sessions_destroy(s);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_one_use),
                cmocka_unit_test(test_time),
                cmocka_unit_test(test_what_is_no_secret),
                cmocka_unit_test(test_bounds),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
