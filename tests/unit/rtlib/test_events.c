/* The notices of the library to a program, PID 1's part being played here. That rmd sends them is a
 * cluster test's subject. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/program_socket.h"
#include "common/util.h"
#include "proto/program.pb-c.h"
#include "rm/rmrt.h"

static char reported[64];

static void remember(enum rmrt_event event, void *data) {
        size_t n = strlen(reported);

        assert_true(n + 1 < sizeof(reported));
        reported[n] = ((const char *) data)[event];
        reported[n + 1] = 0;
        if (event == RMRT_BEFORE_MOVE)
                assert_int_equal(rmrt_step(1, 2), 0); /* which calls nothing more */
}

/* No rank of a job; the abstract names here are the machine's. */
static uint32_t rank_here(void) {
        return 0x80000000U | (uint32_t) getpid();
}

static ssize_t post_hold(Program__Event event, uint64_t hold_usec) {
        static uint64_t serial;
        struct sockaddr_un address;
        socklen_t bytes = program_socket_rank_address(rank_here(), &address);
        Program__Happens happens = PROGRAM__HAPPENS__INIT;
        Program__Notice notice = PROGRAM__NOTICE__INIT;
        uint8_t data[PROGRAM_SOCKET_MESSAGE_BYTES];
        int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);
        ssize_t n;

        happens.event = event;
        happens.hold_usec = hold_usec;
        notice.serial = ++serial;
        notice.body_case = PROGRAM__NOTICE__BODY_HAPPENS;
        notice.happens = &happens;
        n = sendto(fd, data, program__notice__pack(&notice, data), MSG_NOSIGNAL, (const struct sockaddr *) &address, bytes);
        assert_int_equal(close(fd), 0);
        return n;
}

static ssize_t post(Program__Event event) {
        return post_hold(event, 0);
}

/* A step later than the last tick of the coarse clock. */
static void expect(const char *word) {
        usleep(20000);
        assert_int_equal(rmrt_step(1, 2), 0);
        assert_string_equal(reported, word);
        *reported = 0;
}

static void test_order(void **state) {
        assert_int_equal(rmrt_at(RMRT_AFTER_MOVE, NULL, NULL), -EINVAL);
        assert_int_equal(rmrt_at(0, remember, NULL), -EINVAL);
        assert_int_equal(rmrt_at(RMRT_AFTER_RESTART + 1, remember, NULL), -EINVAL);
        assert_true(post(PROGRAM__EVENT__EVENT_AFTER_MOVE) < 0); /* nobody listens */
        assert_int_equal(rmrt_at(RMRT_BEFORE_MOVE, remember, (void *) "-a----"), 0);
        assert_int_equal(rmrt_at(RMRT_BEFORE_MOVE, remember, (void *) "-b----"), 0);
        assert_int_equal(rmrt_at(RMRT_AFTER_MOVE, remember, (void *) "---A--"), 0);
        assert_int_equal(rmrt_at(RMRT_BEFORE_CHECKPOINT, remember, (void *) "--c---"), 0);
        expect("");
        assert_true(post(PROGRAM__EVENT__EVENT_BEFORE_MOVE) > 0);
        expect("ab");
        assert_true(post(PROGRAM__EVENT__EVENT_AFTER_MOVE) > 0);
        expect("A");
        assert_true(post(PROGRAM__EVENT__EVENT_BEFORE_CHECKPOINT) > 0);
        expect("c");
        assert_true(post(PROGRAM__EVENT__EVENT_AFTER_CHECKPOINT) > 0); /* there is no function for it */
        assert_true(post((Program__Event) 99) > 0);
        expect("");
}

/* The notices come after a long step: the calls before the event are too late. */
static void test_too_late(void **state) {
        assert_true(post(PROGRAM__EVENT__EVENT_BEFORE_MOVE) > 0);
        assert_true(post(PROGRAM__EVENT__EVENT_AFTER_MOVE) > 0);
        expect("A");
        assert_true(post(PROGRAM__EVENT__EVENT_BEFORE_CHECKPOINT) > 0);
        assert_true(post(PROGRAM__EVENT__EVENT_AFTER_RESTART) > 0);
        expect("");
        assert_true(post(PROGRAM__EVENT__EVENT_AFTER_MOVE) > 0);
        assert_true(post(PROGRAM__EVENT__EVENT_BEFORE_MOVE) > 0);
        expect("Aab");
}

static void test_too_many(void **state) {
        int r = 0;

        for (int i = 0; i <= RMRT_CALLBACKS_MAX && r == 0; i++)
                r = rmrt_at(RMRT_AFTER_RESTART, remember, (void *) "-----r");
        assert_int_equal(r, -ENOSPC);
}

/* ---- memory that is left out ---- */

#define PAGE 4096U

static void test_excluded(void **state) {
        char *memory = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

        assert_true(memory != MAP_FAILED);
        memset(memory, 7, 4 * PAGE);
        assert_int_equal(rmrt_exclude(NULL, 1), -EINVAL);
        assert_int_equal(rmrt_exclude(memory, 0), -EINVAL);
        assert_int_equal(rmrt_exclude(memory, SIZE_MAX), -EINVAL);
        assert_int_equal(rmrt_exclude(memory + 1, 3 * PAGE), 0); /* two whole pages */
        assert_int_equal(rmrt_exclude(memory + 3 * PAGE, PAGE), -EEXIST);
        expect("");
        assert_int_equal(memory[PAGE], 7);
        assert_true(post(PROGRAM__EVENT__EVENT_DROP) > 0);
        expect("");
        assert_int_equal(memory[PAGE - 1], 7);
        assert_int_equal(memory[PAGE], 0);
        assert_int_equal(memory[3 * PAGE - 1], 0);
        assert_int_equal(memory[3 * PAGE], 7);
        memset(memory, 8, 4 * PAGE);
        assert_true(post(PROGRAM__EVENT__EVENT_BEFORE_CHECKPOINT) > 0);
        expect("c");
        assert_int_equal(memory[PAGE], 0);
        assert_int_equal(memory[3 * PAGE], 8);
        memset(memory, 9, 4 * PAGE);
        assert_int_equal(rmrt_include(memory, 3 * PAGE), -ENOENT);
        assert_int_equal(rmrt_include(memory + 1, 3 * PAGE), 0);
        assert_int_equal(rmrt_include(memory + 1, 3 * PAGE), -ENOENT);
        assert_true(post(PROGRAM__EVENT__EVENT_DROP) > 0);
        expect("");
        assert_int_equal(memory[PAGE], 9);
        assert_int_equal(munmap(memory, 4 * PAGE), 0);
}

/* Memory that would have other contents when its pages are dropped is not excluded. */
static void test_not_excluded(void **state) {
        char *shared = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        char *file, *hole;
        int fd = open("/proc/self/exe", O_RDONLY);

        assert_true(shared != MAP_FAILED && fd >= 0);
        file = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
        hole = mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        assert_true(file != MAP_FAILED && hole != MAP_FAILED);
        assert_int_equal(munmap(hole + PAGE, PAGE), 0);
        assert_int_equal(rmrt_exclude(shared, 2 * PAGE), -EOPNOTSUPP);
        assert_int_equal(rmrt_exclude(file, 2 * PAGE), -EOPNOTSUPP);
        assert_int_equal(rmrt_exclude(hole, 3 * PAGE), -EOPNOTSUPP);
        for (unsigned i = 0; i < RMRT_REGIONS_MAX; i++)
                assert_int_equal(rmrt_exclude(hole + i * 8, 8), 0); /* less than a page each */
        assert_int_equal(rmrt_exclude(hole + RMRT_REGIONS_MAX * 8, 8), -ENOSPC);
        for (unsigned i = 0; i < RMRT_REGIONS_MAX; i++)
                assert_int_equal(rmrt_include(hole + i * 8, 8), 0);
        assert_int_equal(close(fd), 0);
        assert_int_equal(munmap(shared, 2 * PAGE) | munmap(file, 2 * PAGE) | munmap(hole, 3 * PAGE), 0);
}

/* ---- places ---- */

#define HOLD_USEC UINT64_C(20000000)

/* For how long it waited there. */
static uint64_t stay(void) {
        uint64_t begin;

        usleep(20000); /* later than the last tick of the coarse clock */
        begin = now_usec();
        rmrt_checkpoint_here();
        return now_usec() - begin;
}

static _Atomic bool posted;

static void *post_later(void *arg) {
        sleep(1);
        posted = true;
        assert_true(post_hold(*(const Program__Event *) arg, HOLD_USEC) > 0);
        return NULL;
}

/* Until that comes, a second later. */
static void stay_until(Program__Event event) {
        pthread_t thread;

        posted = false;
        assert_int_equal(pthread_create(&thread, NULL, post_later, &event), 0);
        assert_true(stay() < HOLD_USEC / 2);
        assert_true(posted);
        assert_int_equal(pthread_join(thread, NULL), 0);
}

static void go_on(enum rmrt_event event, void *data) {
        (void) event;
        (void) data;
        rmrt_checkpoint_here(); /* is none here */
}

static void test_places(void **state) {
        uint64_t usec;

        assert_true(stay() < HOLD_USEC / 2); /* nothing is near */
        assert_true(post_hold(PROGRAM__EVENT__EVENT_PLACE, 2000000) > 0);
        expect(""); /* a step is no place */
        usec = stay();
        assert_true(usec >= 500000 && usec < HOLD_USEC / 2); /* and no longer */
        assert_true(post_hold(PROGRAM__EVENT__EVENT_PLACE, HOLD_USEC) > 0);
        stay_until(PROGRAM__EVENT__EVENT_PLACE); /* the next place, then */
        stay_until(PROGRAM__EVENT__EVENT_AFTER_CHECKPOINT);
        assert_true(stay() < HOLD_USEC / 2);
        assert_true(post_hold(PROGRAM__EVENT__EVENT_PLACE, HOLD_USEC) > 0);
        assert_true(post(PROGRAM__EVENT__EVENT_AFTER_CHECKPOINT) > 0); /* it comes too late */
        assert_true(stay() < HOLD_USEC / 2);
        assert_int_equal(rmrt_at(RMRT_AFTER_MOVE, go_on, NULL), 0);
        assert_true(post_hold(PROGRAM__EVENT__EVENT_PLACE, HOLD_USEC) > 0);
        assert_true(post(PROGRAM__EVENT__EVENT_AFTER_MOVE) > 0);
        assert_true(stay() < HOLD_USEC / 2);
        *reported = 0;
}

static void test_end(void **state) {
        assert_true(post(PROGRAM__EVENT__EVENT_AFTER_MOVE) > 0);
        rmrt_finalize();
        expect("");
        assert_true(post(PROGRAM__EVENT__EVENT_AFTER_MOVE) < 0);
}

static int setup(void **state) {
        char rank[16];

        (void) snprintf(rank, sizeof(rank), "%u", rank_here());
        assert_int_equal(setenv("RM_JOB_ID", "1", 1), 0);
        assert_int_equal(setenv("PMIX_RANK", rank, 1), 0);
        return rmrt_init();
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_order),    cmocka_unit_test(test_too_late), cmocka_unit_test(test_places),
                cmocka_unit_test(test_too_many), cmocka_unit_test(test_excluded), cmocka_unit_test(test_not_excluded),
                cmocka_unit_test(test_end),
        };

        return cmocka_run_group_tests(tests, setup, NULL);
}
