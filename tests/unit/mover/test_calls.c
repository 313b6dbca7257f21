/* Are calls that write to the memory of processes over? */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "../pages/child.h"
#include "../pages/programs.h"
#include "../pages/slow_call.h"
#include "common/util.h"
#include "daemon/mover/calls.h"
#include "group.h"

enum { SCAN_USEC = 3000, LOOKS = 30, LARGE_BYTES = 16 << 20 };

static void sleep_for_ever(int link) {
        child_ready(link);
        for (;;)
                (void) pause();
}

static void spin_for_ever(int link) {
        child_ready(link);
        for (volatile uint64_t i = 0;; i++)
                ;
}

/* The thread makes one call after another. */
static void write_for_ever(int link) {
        char *from = map_area(LARGE_BYTES / 4096), *to = map_area(LARGE_BYTES / 4096);
        struct iovec here = { .iov_base = from, .iov_len = LARGE_BYTES };
        struct iovec there = { .iov_base = to, .iov_len = LARGE_BYTES };

        child_ready(link);
        for (;;)
                child_assert(process_vm_writev(getpid(), &here, 1, &there, 1, 0) == LARGE_BYTES);
}

/* The file that names the processes. */
static char *named(const char *procs) {
        char *path = xstrdup("/tmp/rmd-test-calls.XXXXXX");
        cleanup_close int fd = mkstemp(path);

        assert_true(fd >= 0);
        assert_int_equal(write_all(fd, procs, strlen(procs)), 0);
        return path;
}

static void scan(struct calls *calls, const char *file) {
        assert_int_equal(calls_scan(calls, file), 0);
        (void) usleep(SCAN_USEC);
}

static void forget(struct calls *calls, const char *file) {
        calls_destroy(calls);
        (void) unlink(file);
}

/* A call that was under way is over some time, and that is seen, whatever a program does. */
static void test_over(void **state) {
        void (*const programs_here[])(int link) = { sleep_for_ever, spin_for_ever, write_for_ever };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(programs_here); i++) {
                struct child child = child_begin(programs_here[i]);
                cleanup_free char *procs = procs_of(&child.pid, 1);
                cleanup_free char *file = named(procs);
                struct calls *calls = calls_create();

                for (int k = 0; k < 3; k++)
                        for (uint64_t begin_usec = now_usec(); calls_over_usec(calls) < begin_usec;)
                                scan(calls, file);
                forget(calls, file);
                assert_int_equal(child_end(&child), SIGKILL);
        }
}

static void test_under_way(void **state) {
        struct child other = child_begin(sleep_for_ever);
        struct child writer = child_begin(write_what_is_missing);
        const pid_t pids[] = { other.pid, writer.pid };
        cleanup_free char *procs = procs_of(pids, 2);
        cleanup_free char *file = named(procs);
        struct calls *calls = calls_create();
        struct target target = { .pid = getpid() };
        uint64_t waits_usec;

        (void) state;
        target.there = map_area(1);
        scan(calls, file);
        assert_int_equal(write_all(writer.link, &target, sizeof(target)), 0);
        child_expect(&writer);
        waits_usec = now_usec();
        for (int i = 0; i < LOOKS; i++) {
                scan(calls, file);
                assert_true(calls_over_usec(calls) < waits_usec);
        }
        child_go(&writer);
        child_expect(&writer);
        while (calls_over_usec(calls) < waits_usec)
                scan(calls, file);
        forget(calls, file);
        assert_int_equal(child_end(&other), SIGKILL);
        assert_int_equal(child_end(&writer), SIGKILL);
}

static void test_nobody(void **state) {
        cleanup_free char *file = named("");
        struct calls *calls = calls_create();
        uint64_t begin_usec = now_usec();

        (void) state;
        scan(calls, file);
        assert_true(calls_over_usec(calls) >= begin_usec);
        assert_int_equal(unlink(file), 0);
        assert_true(calls_scan(calls, file) < 0);
        calls_destroy(calls);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_over),
                cmocka_unit_test(test_under_way),
                cmocka_unit_test(test_nobody),
        };

        priority_normal();
        return cmocka_run_group_tests_name("mover-calls", tests, NULL, NULL);
}
