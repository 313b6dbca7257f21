/* rm-yield on a core whose kernel is played here: who else is on it, and since when, decides what a
 * thread that waits does. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define NSEC_PER_MSEC INT64_C(1000000)
#define POLL_NSEC 70  /* between two calls */
#define CALL_NSEC 250 /* of the kernel */
#define TURN_NSEC 20000
#define SLICE_NSEC (4 * NSEC_PER_MSEC)

/* The other threads on the core: others of the same scheduling group that yield after a moment, or
 * compute; or some of another group. */
enum others { NONE, YIELDING, COMPUTING, OTHER_GROUP };

static struct {
        enum others others;
        unsigned count; /* of them */
        int64_t now_nsec;
        int64_t used_nsec;
        int64_t slice_nsec; /* of the thread's slice, used */
        long preempted;
        unsigned looks, yields;
        int64_t longest_nsec; /* one call, without the time that others ran */
} core = { .now_nsec = 1000 * NSEC_PER_MSEC, .used_nsec = NSEC_PER_MSEC, .preempted = 7, .count = 1 };

static void others_run(int64_t nsec) {
        core.now_nsec += nsec;
        core.slice_nsec = 0;
        core.preempted++;
}

static void spend(int64_t nsec) {
        core.now_nsec += nsec;
        core.used_nsec += nsec;
        core.slice_nsec += nsec;
        if (core.others != NONE && core.slice_nsec >= SLICE_NSEC)
                others_run(SLICE_NSEC * core.count);
}

static int64_t clock_of(clockid_t id) {
        if (id == CLOCK_MONOTONIC)
                return core.now_nsec;
        assert_int_equal(id, CLOCK_THREAD_CPUTIME_ID);
        return core.used_nsec;
}

/* The function is in place of libc's. Calls that may block, or wait, are refused. */
long syscall(long number, ...) {
        va_list args;

        spend(CALL_NSEC);
        va_start(args, number);
        if (number == SYS_sched_yield) {
                core.yields++;
                if (core.others == YIELDING || core.others == COMPUTING)
                        others_run((core.others == YIELDING ? TURN_NSEC : SLICE_NSEC) * core.count);
        } else if (number == SYS_getrusage) {
                assert_int_equal(va_arg(args, int), RUSAGE_THREAD);
                core.looks++;
                *va_arg(args, struct rusage *) = (struct rusage) { .ru_nivcsw = core.preempted };
        } else if (number == SYS_clock_gettime) {
                int64_t nsec = clock_of(va_arg(args, clockid_t));

                *va_arg(args, struct timespec *) = (struct timespec) { nsec / 1000000000, nsec % 1000000000 };
        } else {
                fail_msg("rm-yield makes system call %ld", number);
        }
        va_end(args);
        return 0;
}

/* Polls for so long; returns the percentage of it that was its own processor time. */
static double wait_msec(int64_t msec) {
        int64_t from_nsec = core.now_nsec;
        int64_t used_nsec = core.used_nsec;

        core.looks = core.yields = 0;
        core.longest_nsec = 0;
        while (core.now_nsec - from_nsec < msec * NSEC_PER_MSEC) {
                int64_t before_nsec = core.used_nsec;

                spend(POLL_NSEC);
                assert_int_equal(sched_yield(), 0);
                if (core.used_nsec - before_nsec > core.longest_nsec)
                        core.longest_nsec = core.used_nsec - before_nsec;
        }
        return 100.0 * (double) (core.used_nsec - used_nsec) / (double) (core.now_nsec - from_nsec);
}

/* The thread has been alone for long enough to have forgotten what was before. */
static void begin(void) {
        core.others = NONE;
        core.count = 1;
        wait_msec(20);
}

/* A thread with its own core asks the kernel every 250 us, and not never, for the sake of threads
 * that wait for the caller to yield. */
static void costs_nothing(void) {
        assert_true(wait_msec(100) > 99.9);
        assert_in_range(core.yields, 100, 420);
        assert_int_equal(core.looks, core.yields);
        assert_true(core.longest_nsec <= POLL_NSEC + 4 * CALL_NSEC);
}

static void test_alone(void **state) {
        begin();
        costs_nothing();
}

/* Threads that exchange messages get the core from one that has none to wait for, and they may be
 * many. */
static void test_yielding(void **state) {
        for (unsigned count = 1; count <= 8; count++) {
                double share;

                begin();
                core.others = YIELDING;
                core.count = count;
                wait_msec(50);
                share = wait_msec(200);
                assert_true(share < 13);
                assert_true(core.yields > 2000 / count);
                core.others = NONE;
                wait_msec(5);
                costs_nothing();
        }
}

/* Threads that compute get most of the core, but the thread is never kept from its messages. */
static void test_computing(void **state) {
        for (unsigned count = 1; count <= 8; count++) {
                double share;

                begin();
                core.others = COMPUTING;
                core.count = count;
                wait_msec(500);
                share = wait_msec(1000);
                assert_in_range((int) (share * 10), 100, 130);
                assert_true(core.longest_nsec <= POLL_NSEC + 4 * CALL_NSEC);
                core.others = NONE;
                wait_msec(20);
                costs_nothing();
        }
}

/* Time of threads of another group is given by the scheduler; yields change nothing. */
static void test_other_group(void **state) {
        double share;

        begin();
        core.others = OTHER_GROUP;
        wait_msec(200);
        share = wait_msec(1000);
        assert_in_range((int) share, 49, 51);
        core.others = NONE;
        wait_msec(100);
        costs_nothing();
}

/* A rank that was folded for long does not go on more slowly once it has its core back. */
static void test_forgets(void **state) {
        begin();
        core.others = COMPUTING;
        wait_msec(1000);
        core.others = NONE;
        wait_msec(8);
        costs_nothing();
}

/* The first one of all: what was before the first call is not known. */
static void test_first_calls(void **state) {
        wait_msec(2);
        assert_in_range(core.yields, 1, 10);
}

/* Tasks of the kernel take the core now and then. The shorter ones are not worth a yield, the
 * others are forgotten soon. */
static void test_short_tasks(void **state) {
        begin();
        for (int i = 0; i < 200; i++) {
                wait_msec(5);
                assert_in_range(core.yields, 10, i % 2 ? 300 : 25);
                others_run(i % 2 ? 20000 : 500000);
        }
}

/* The thread itself waits for a disk, or for threads of its own, between the messages. */
static void test_blocks_by_itself(void **state) {
        begin();
        for (int i = 0; i < 200; i++) {
                wait_msec(1);
                assert_in_range(core.yields, 1, 5);
                core.now_nsec += 20 * NSEC_PER_MSEC;
        }
}

/* A move restores the clock, but the kernel counts anew. */
static void test_moved(void **state) {
        begin();
        core.others = COMPUTING;
        wait_msec(1000);
        core.used_nsec = 0;
        core.preempted = 0;
        core.others = NONE;
        wait_msec(100);
        costs_nothing();
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_first_calls), /* first */
                cmocka_unit_test(test_alone),
                cmocka_unit_test(test_yielding),
                cmocka_unit_test(test_computing),
                cmocka_unit_test(test_other_group),
                cmocka_unit_test(test_forgets),
                cmocka_unit_test(test_short_tasks),
                cmocka_unit_test(test_blocks_by_itself),
                cmocka_unit_test(test_moved),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
