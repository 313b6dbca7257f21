/* How often a line of the log is written, whoever causes it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/log.h"
#include "common/rate.h"
#include "common/util.h"

#define SECOND UINT64_C(1000000)

static void test_rate_allows_a_burst_and_then_a_trickle(void **state) {
        static const struct rate_limit limit = { .usec_each = 500000, .burst = 20 };
        struct rate rate = { 0 };
        uint64_t now = 100 * SECOND;
        unsigned taken = 0;

        assert_true(rate_is_full(&rate, now));
        for (unsigned i = 0; i < 1000; i++)
                if (rate_wait_usec(&rate, &limit, now) == 0) {
                        rate_take(&rate, &limit, now, 1);
                        taken++;
                }
        assert_int_equal(taken, 20);
        assert_int_equal(rate_wait_usec(&rate, &limit, now), 500000);
        /* Asked all the time for a minute, it gives two a second. */
        for (unsigned i = 0; i < 60000; i++, now += 1000)
                if (rate_wait_usec(&rate, &limit, now) == 0) {
                        rate_take(&rate, &limit, now, 1);
                        taken++;
                }
        assert_in_range(taken, 138, 141);
        assert_false(rate_is_full(&rate, now));
        assert_true(rate_is_full(&rate, now + 11 * SECOND));
}

/* A request may cost more than what is left: then its user waits longer. */
static void test_rate_is_owed(void **state) {
        static const struct rate_limit limit = { .usec_each = 6, .burst = 2500 };
        struct rate rate = { 0 };
        uint64_t now = SECOND;

        rate_take(&rate, &limit, now, 5000);
        assert_int_equal(rate_wait_usec(&rate, &limit, now), 6 + (5000 - 2500) * 6);
        assert_int_equal(rate_wait_usec(&rate, &limit, now + 15006), 0);
}

/* Standard error goes to a file until written() is asked. */
static int begin(char *path) {
        int old = dup(STDERR_FILENO);
        int fd = mkstemp(path);

        assert_true(old >= 0 && fd >= 0 && dup2(fd, STDERR_FILENO) >= 0);
        (void) close(fd);
        return old;
}

/* How many lines were written; malloc'ed text of them. */
static unsigned end(int old, const char *path, char **ret_text) {
        unsigned lines = 0;
        struct stat st;
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        char *text;

        assert_true(dup2(old, STDERR_FILENO) >= 0);
        (void) close(old);
        assert_true(fd >= 0 && fstat(fd, &st) == 0);
        text = xcalloc(1, (size_t) st.st_size + 1);
        assert_int_equal(read(fd, text, (size_t) st.st_size), st.st_size);
        (void) close(fd);
        (void) unlink(path);
        for (const char *p = text; (p = strchr(p, '\n')); p++)
                lines++;
        if (ret_text)
                *ret_text = text;
        else
                free(text);
        return lines;
}

/* This line has no limit of its own: a user causes it as often as he likes. */
static void cause_one(unsigned i) {
        log_warn("job %u: mpirun asks for host 'nonsense'", i);
}

static void test_user_cannot_fill_the_log_by_any_line(void **state) {
        char path[] = "/tmp/test-log-XXXXXX";
        cleanup_free char *text = NULL;
        int old = begin(path);
        unsigned lines;

        for (unsigned i = 0; i < 20000; i++)
                cause_one(i);
        log_error("another line is written all the same");
        for (unsigned i = 0; i < 20000; i++)
                log_info("move %u: a third one", i);
        lines = end(old, path, &text);
        assert_in_range(lines, 401, 420);
        assert_non_null(strstr(text, "another line"));
}

static void test_log_tells_how_much_it_left_out(void **state) {
        static const struct rate_limit limit = { .usec_each = 200000, .burst = 3 };
        char path[] = "/tmp/test-log-XXXXXX";
        cleanup_free char *text = NULL;
        struct log_rate rate = { 0 };
        int old = begin(path);

        for (unsigned i = 0; i < 10; i++)
                log_rated(&rate, &limit, LOG_INFO, "line %u", i);
        (void) usleep(210000);
        log_rated(&rate, &limit, LOG_INFO, "line later");
        /* A line that is not written at this level does not count. */
        log_setup(NULL, LOG_WARNING);
        for (unsigned i = 0; i < 10; i++)
                log_rated(&rate, &limit, LOG_INFO, "line of no interest");
        log_setup(NULL, LOG_INFO);
        (void) usleep(210000);
        log_rated(&rate, &limit, LOG_INFO, "line last");
        assert_int_equal(end(old, path, &text), 5);
        assert_non_null(strstr(text, "line later (and 7 such lines before that are left out)\n"));
        assert_non_null(strstr(text, "line last\n"));
}

static void *cause_many(void *arg) {
        for (unsigned i = 0; i < 5000; i++)
                cause_one(i);
        return NULL;
}

static void test_threads_share_a_rate(void **state) {
        char path[] = "/tmp/test-log-XXXXXX";
        pthread_t threads[4];
        int old = begin(path);

        for (unsigned i = 0; i < ARRAY_SIZE(threads); i++)
                assert_int_equal(pthread_create(&threads[i], NULL, cause_many, NULL), 0);
        for (unsigned i = 0; i < ARRAY_SIZE(threads); i++)
                (void) pthread_join(threads[i], NULL);
        assert_in_range(end(old, path, NULL), 0, 20); /* the test before has had its 200 */
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_rate_allows_a_burst_and_then_a_trickle),
                cmocka_unit_test(test_rate_is_owed),
                cmocka_unit_test(test_user_cannot_fill_the_log_by_any_line),
                cmocka_unit_test(test_log_tells_how_much_it_left_out),
                cmocka_unit_test(test_threads_share_a_rate),
        };

        return cmocka_run_group_tests_name("log-rate", tests, NULL, NULL);
}
