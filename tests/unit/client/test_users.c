/* The user data base, asked beside the loop: also when it hangs. getpwuid_r(), getgrnam_r() and the
 * clock here are the test's own. */
#include <errno.h>
#include <grp.h>
#include <pthread.h>
#include <pwd.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/util.h"
#include "daemon/client/users.h"

#define HANGS 4242

static atomic_bool hang;
static atomic_bool is_member = true; /* u1000, of the group admins */
static atomic_long passed_sec; /* by which the clock is ahead */

int getpwuid_r(uid_t uid, struct passwd *entry, char *buffer, size_t bytes, struct passwd **ret) {
        while (uid == HANGS && atomic_load(&hang))
                (void) usleep(1000);
        *ret = NULL;
        if (uid > 5000)
                return 0;
        (void) snprintf(buffer, bytes, "u%u", (unsigned) uid);
        *entry = (struct passwd) { .pw_name = buffer, .pw_uid = uid, .pw_gid = 500 };
        *ret = entry;
        return 0;
}

int getgrnam_r(const char *name, struct group *entry, char *buffer, size_t bytes, struct group **ret) {
        static char *members[] = { (char *) "u999", (char *) "u1000", NULL };
        static char *others[] = { (char *) "u999", (char *) "u10", NULL };

        (void) bytes;
        *ret = NULL;
        if (strcmp(name, "daemon") != 0 && strcmp(name, "admins") != 0)
                return 0;
        *entry = (struct group) { .gr_name = buffer, .gr_gid = *name == 'd' ? 1 : 77 };
        entry->gr_mem = *name == 'a' && atomic_load(&is_member) ? members : others;
        *ret = entry;
        return 0;
}

int clock_gettime(clockid_t clock, struct timespec *ret) {
        int r = (int) syscall(SYS_clock_gettime, clock, ret);

        if (clock == CLOCK_MONOTONIC)
                ret->tv_sec += atomic_load(&passed_sec);
        return r;
}

struct reported {
        struct event_base *base;
        unsigned times;
};

static void on_changed(void *userdata) {
        struct reported *reported = userdata;

        reported->times++;
        (void) event_base_loopbreak(reported->base);
}

static void wait_reported(struct reported *reported) {
        unsigned before = reported->times;

        while (reported->times == before)
                (void) event_base_loop(reported->base, EVLOOP_ONCE);
}

static void test_known_after_a_while(void **state) {
        struct reported reported = { .base = event_base_new() };
        struct users *users = users_create(reported.base, "", on_changed, &reported);
        const struct user *user = NULL;

        assert_int_equal(users_find(users, 1000, 1000, &user), -EAGAIN);
        assert_int_equal(users_find(users, 1000, 1000, &user), -EAGAIN); /* asked once */
        wait_reported(&reported);
        assert_int_equal(users_find(users, 1000, 1000, &user), 0);
        assert_string_equal(user->name, "u1000");
        assert_false(user->admin);
        assert_true(user->n_groups >= 1);
        assert_int_equal(user->groups[0], 1000);
        /* A user whom it does not know is a number, and that is an answer. */
        assert_int_equal(users_find(users, 20000, 7, &user), -EAGAIN);
        wait_reported(&reported);
        assert_int_equal(users_find(users, 20000, 7, &user), 0);
        assert_string_equal(user->name, "20000");
        assert_int_equal(user->n_groups, 1);
        assert_int_equal(user->groups[0], 7);
        users_destroy(users);
        event_base_free(reported.base);
}

/* A user who is looked up without a process has the groups of the data base and no others. */
static void test_without_a_process(void **state) {
        struct reported reported = { .base = event_base_new() };
        struct users *users = users_create(reported.base, "", on_changed, &reported);
        const struct user *user = NULL;

        (void) state;
        assert_int_equal(users_find(users, 1000, USERS_PRIMARY_GROUP, &user), -EAGAIN);
        wait_reported(&reported);
        assert_int_equal(users_find(users, 1000, USERS_PRIMARY_GROUP, &user), 0);
        assert_string_equal(user->name, "u1000");
        assert_int_equal(user->n_groups, 1);
        assert_int_equal(user->groups[0], 500);
        assert_int_equal(users_find(users, 20000, USERS_PRIMARY_GROUP, &user), -EAGAIN);
        wait_reported(&reported);
        assert_int_equal(users_find(users, 20000, USERS_PRIMARY_GROUP, &user), 0);
        assert_string_equal(user->name, "20000");
        assert_int_equal(user->n_groups, 0);
        users_destroy(users);
        event_base_free(reported.base);
}

static void test_administrators_by_group(void **state) {
        struct reported reported = { .base = event_base_new() };
        struct users *users = users_create(reported.base, "daemon", on_changed, &reported);
        const struct user *user = NULL;

        assert_int_equal(users_find(users, 1000, 1, &user), -EAGAIN); /* group 1 is daemon everywhere */
        wait_reported(&reported);
        assert_int_equal(users_find(users, 1000, 1, &user), 0);
        assert_true(user->admin);
        assert_int_equal(users_find(users, 1000, 1000, &user), -EAGAIN);
        wait_reported(&reported);
        assert_int_equal(users_find(users, 1000, 1000, &user), 0);
        assert_false(user->admin);
        users_destroy(users);
        event_base_free(reported.base);
}

/* A user who leaves the group is no administrator a minute later, without a message to rmd. */
static void test_administrator_no_more(void **state) {
        struct reported reported = { .base = event_base_new() };
        struct users *users = users_create(reported.base, "admins", on_changed, &reported);
        const struct user *user = NULL;

        (void) state;
        assert_int_equal(users_find(users, 1000, 1000, &user), -EAGAIN);
        wait_reported(&reported);
        assert_int_equal(users_find(users, 1000, 1000, &user), 0);
        assert_true(user->admin);
        atomic_store(&is_member, false);
        atomic_fetch_add(&passed_sec, 50);
        assert_int_equal(users_find(users, 1000, 1000, &user), 0);
        assert_true(user->admin);
        atomic_fetch_add(&passed_sec, 11);
        assert_int_equal(users_find(users, 1000, 1000, &user), -EAGAIN);
        wait_reported(&reported);
        assert_int_equal(users_find(users, 1000, 1000, &user), 0);
        assert_false(user->admin);
        users_destroy(users);
        event_base_free(reported.base);
}

static void test_hangs(void **state) {
        struct reported reported = { .base = event_base_new() };
        struct users *users = users_create(reported.base, "", on_changed, &reported);
        const struct user *user = NULL;
        uint64_t began = now_usec();

        atomic_store(&hang, true);
        assert_int_equal(users_find(users, HANGS, 1, &user), -EAGAIN);
        wait_reported(&reported);
        assert_in_range(now_usec() - began, 1900000, 20000000);
        assert_int_equal(users_find(users, HANGS, 1, &user), -ETIMEDOUT);
        /* A late answer is taken all the same. */
        atomic_store(&hang, false);
        wait_reported(&reported);
        assert_int_equal(users_find(users, HANGS, 1, &user), 0);
        assert_string_equal(user->name, "u4242");
        /* The end does not wait for a look-up that hangs. */
        atomic_store(&hang, true);
        assert_int_equal(users_find(users, HANGS, 2, &user), -EAGAIN);
        users_destroy(users);
        atomic_store(&hang, false);
        (void) usleep(50000);
        event_base_free(reported.base);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_known_after_a_while),
                cmocka_unit_test(test_without_a_process),
                cmocka_unit_test(test_administrators_by_group),
                cmocka_unit_test(test_administrator_no_more),
                cmocka_unit_test(test_hangs),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
