/* System calls that the freeze interrupts are given back to their threads; one that does not come
 * to its stop holds up nobody. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/util.h"
#include "daemon/capsule/init/criu/waiting.h"

enum { CHILDREN = 6, STOP_WAIT_USEC = 500000 /* waiting.c */, WAIT_USEC = 20000000 };

struct shared {
        volatile int in_kernel[CHILDREN]; /* about to wait where it cannot be interrupted */
        volatile int interrupted[CHILDREN];
        volatile int signals[CHILDREN];
        volatile int done[CHILDREN];
};

static struct waiting *waiting; /* lives as long as the process */
static struct shared *shared;
static int own;
static int ends[2]; /* of a pipe, whose second one only the test has: children wait until it closes that */

/* vfork(2) returns when its child has ended: until then nothing but SIGKILL ends the wait, as for a
 * hung file system. */
static void on_signal(int signo) {
        pid_t pid;

        (void) signo;
        shared->in_kernel[own] = 1;
        pid = vfork(); /* NOLINT(clang-analyzer-security.insecureAPI.vfork) */
        if (pid == 0) {
                char byte;

                (void) !read(ends[0], &byte, 1);
                _exit(0);
        }
        (void) waitpid(pid, NULL, 0);
}

static void on_other_signal(int signo) {
        (void) signo;
        shared->signals[own]++;
}

/* poll(2) ends with EINTR, as in the freezer, and is called again by nobody else. */
static _Noreturn void run_child(int i) {
        struct pollfd p = { .fd = ends[0], .events = POLLIN };

        own = i;
        (void) close(ends[1]);
        (void) signal(SIGUSR1, on_signal);
        (void) signal(SIGUSR2, on_other_signal);
        if (poll(&p, 1, -1) < 0)
                shared->interrupted[i] = 1;
        shared->done[i] = 1;
        for (;;)
                (void) pause();
}

static int set_up(void **state) {
        pid_t *pids = xcalloc(CHILDREN, sizeof(*pids));

        shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        assert_ptr_not_equal(shared, MAP_FAILED);
        assert_int_equal(pipe(ends), 0);
        for (int i = 0; i < CHILDREN; i++) {
                pids[i] = fork();
                assert_true(pids[i] >= 0);
                if (pids[i] == 0)
                        run_child(i);
        }
        *state = pids;
        return 0;
}

static int tear_down(void **state) {
        pid_t *pids = *state;

        for (int i = 0; i < CHILDREN; i++) {
                int status;

                (void) kill(pids[i], SIGKILL);
                while (waitpid(pids[i], &status, __WALL) == pids[i] && WIFSTOPPED(status))
                        ;
        }
        cleanup_close_fd(&ends[0]);
        cleanup_close_fd(&ends[1]);
        (void) munmap(shared, sizeof(*shared));
        free(pids);
        return 0;
}

static void await_poll(pid_t pid) {
        cleanup_free char *path = xasprintf("/proc/%d/syscall", (int) pid);
        uint64_t end = now_usec() + WAIT_USEC;

        for (;;) {
                cleanup_free char *text = NULL;

                assert_int_equal(read_file(path, 4096, &text, NULL), 0);
                if (strtol(text, NULL, 10) == SYS_poll)
                        return;
                assert_true(now_usec() < end);
                usleep(500);
        }
}

static bool status_has(pid_t pid, const char *line) {
        cleanup_free char *path = xasprintf("/proc/%d/status", (int) pid);
        cleanup_free char *text = NULL;

        assert_int_equal(read_file(path, 65536, &text, NULL), 0);
        return strstr(text, line) != NULL;
}

static void await_status(pid_t pid, const char *line) {
        uint64_t end = now_usec() + WAIT_USEC;

        while (!status_has(pid, line)) {
                assert_true(now_usec() < end);
                usleep(500);
        }
}

static void await(const volatile int *flag) {
        uint64_t end = now_usec() + WAIT_USEC;

        while (!*flag) {
                assert_true(now_usec() < end);
                usleep(500);
        }
}

/* As the first process of a capsule does: what was not waited for comes to it like the ends of its
 * children. */
static size_t reap_stops(void) {
        size_t n = 0;
        int status;
        pid_t pid;

        while ((pid = waitpid(-1, &status, WNOHANG | __WALL)) > 0) {
                assert_true(WIFSTOPPED(status));
                waiting_stopped(waiting, pid, status);
                n++;
        }
        return n;
}

/* A child that got no processor until it was let go comes to its stop only then. */
static void await_untraced(pid_t pid) {
        uint64_t end = now_usec() + WAIT_USEC;

        while (!status_has(pid, "\nTracerPid:\t0\n")) {
                assert_true(now_usec() < end);
                usleep(500);
                (void) reap_stops();
        }
}

static void test_call_goes_on(void **state) {
        pid_t *pids = *state;

        for (int i = 0; i < CHILDREN; i++)
                await_poll(pids[i]);
        waiting_note(waiting, pids, CHILDREN);
        waiting_hold(waiting);
        waiting_let_go(waiting);
        for (int i = 0; i < CHILDREN; i++)
                await_untraced(pids[i]);
        cleanup_close_fd(&ends[1]);
        for (int i = 0; i < CHILDREN; i++) {
                await(&shared->done[i]);
                assert_int_equal(shared->interrupted[i], 0);
        }
}

static void test_slow_threads(void **state) {
        pid_t *pids = *state;
        uint64_t begin, took_usec;
        size_t n = 0;

        for (int i = 0; i < CHILDREN; i++)
                await_poll(pids[i]);
        waiting_note(waiting, pids, CHILDREN);
        for (int i = 0; i < CHILDREN; i++) {
                assert_int_equal(kill(pids[i], SIGUSR1), 0);
                await(&shared->in_kernel[i]);
                await_status(pids[i], "\nState:\tD");
        }
        begin = now_usec();
        waiting_hold(waiting);
        waiting_let_go(waiting);
        took_usec = now_usec() - begin;
        print_message("%d threads that do not stop: %u us\n", CHILDREN, (unsigned) took_usec);
        assert_true(took_usec < CHILDREN * STOP_WAIT_USEC); /* as long as one after the other would take */
        cleanup_close_fd(&ends[1]);
        /* The children stop later, and must not remain stopped then. */
        for (begin = now_usec(); n < CHILDREN; n += reap_stops()) {
                assert_true(now_usec() < begin + WAIT_USEC);
                usleep(1000);
        }
        for (int i = 0; i < CHILDREN; i++) {
                assert_true(status_has(pids[i], "\nTracerPid:\t0\n"));
                await(&shared->done[i]);
        }
}

/* A signal that comes to a thread while it is held is neither lost nor taken for its stop. */
static void test_signals_and_ends(void **state) {
        pid_t *pids = *state;
        int status;

        for (int i = 0; i < CHILDREN; i++)
                await_poll(pids[i]);
        waiting_note(waiting, pids, CHILDREN);
        for (int i = 0; i < CHILDREN; i++)
                assert_int_equal(kill(pids[i], SIGSTOP), 0);
        usleep(20000);
        for (int i = 1; i < CHILDREN; i++)
                assert_int_equal(kill(pids[i], SIGUSR2), 0);
        waiting_hold(waiting);
        for (int i = 1; i < CHILDREN; i++)
                assert_int_equal(kill(pids[i], SIGCONT), 0);
        assert_int_equal(kill(pids[0], SIGKILL), 0);
        usleep(20000);
        waiting_let_go(waiting);
        assert_int_equal(waitpid(pids[0], &status, 0), pids[0]);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        for (int i = 1; i < CHILDREN; i++) {
                await_untraced(pids[i]);
                await(&shared->signals[i]);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_call_goes_on, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_slow_threads, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_signals_and_ends, set_up, tear_down),
        };

        waiting = waiting_create();
        return cmocka_run_group_tests(tests, NULL, NULL);
}
