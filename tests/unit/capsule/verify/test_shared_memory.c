/* CRIU waits for ever for who waits in vfork(2), and dumps no processes that share their memory:
 * both are seen before it is asked. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/util.h"
#include "daemon/capsule/init/verify/shared_memory.h"

enum { STACK_BYTES = 65536 };

static int proc = -1;
static int reported[2]; /* what children say goes here: their numbers */
static int orders[2]; /* who reads from it waits for an order */

static pid_t received(void) {
        pid_t pid = 0;

        assert_int_equal(read(reported[0], &pid, sizeof(pid)), sizeof(pid));
        return pid;
}

static void report(void) {
        pid_t pid = (pid_t) syscall(SYS_getpid);

        (void) write_all(reported[1], &pid, sizeof(pid));
}

static _Noreturn int stay(void *arg) {
        (void) arg;
        report();
        for (;;)
                (void) pause();
}

static _Noreturn int run_sleep(void *arg) {
        char byte;

        (void) arg;
        report();
        (void) !read(orders[0], &byte, 1);
        (void) execl("/bin/sleep", "sleep", "1000", (char *) NULL);
        _exit(1);
}

static pid_t clone_it(int (*run)(void *), int flags) {
        char *stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

        return stack == MAP_FAILED ? -1 : clone(run, stack + STACK_BYTES, flags | SIGCHLD, NULL);
}

static void make_by_vfork(void) {
        if (vfork() == 0) /* NOLINT(clang-analyzer-security.insecureAPI.vfork,bugprone-unsafe-functions): what programs do */
                (void) stay(NULL);
}

static void make_as_posix_spawn(void) {
        (void) clone_it(run_sleep, CLONE_VM | CLONE_VFORK);
}

static void *make_in_thread(void *arg) {
        make_by_vfork();
        return arg;
}

static void make_by_a_thread(void) {
        pthread_t thread;

        if (pthread_create(&thread, NULL, make_in_thread, NULL) != 0)
                _exit(1);
}

static void make_with_memory(void) {
        (void) clone_it(stay, CLONE_VM);
}

static void make_sibling(void) {
        (void) clone_it(stay, CLONE_VM | CLONE_PARENT);
}

static void make_two_and_end(void) {
        (void) clone_it(stay, CLONE_VM);
        (void) clone_it(stay, CLONE_VM);
        _exit(0);
}

static void make_by_fork(void) {
        if (fork() == 0)
                (void) stay(NULL);
}

/* The children have ended, and are not waited for. */
static void make_two_zombies(void) {
        for (int i = 0; i < 2; i++)
                if (fork() == 0) {
                        report();
                        _exit(0);
                }
}

static pid_t begin(void (*make)(void)) {
        pid_t pid = fork();

        if (pid == 0) {
                (void) close(orders[1]);
                make();
                for (;;)
                        (void) pause();
        }
        return pid;
}

static void end(const pid_t *pids, size_t n) {
        for (size_t i = 0; i < n; i++)
                (void) kill(pids[i], SIGKILL);
        while (waitpid(-1, NULL, __WALL) > 0)
                ;
}

/* Finds it beside others, whichever comes first. */
static bool found(const pid_t *pids, size_t n, struct shared_memory *ret) {
        const pid_t some[] = { getpid(), pids[0], 999999999, pids[1], getppid(), n > 2 ? pids[2] : pids[0] };
        const pid_t others[] = { pids[1], getppid(), pids[0], getpid() };
        struct shared_memory reverse;
        bool is = shared_memory_find(proc, some, n > 2 ? 6 : 5, ret);

        assert_int_equal(shared_memory_find(proc, others, ARRAY_SIZE(others), &reverse), is && n == 2);
        assert_true(!is || n > 2 || reverse.passes == ret->passes);
        return is;
}

static void test_kinds(void **state) {
        static const struct {
                void (*make)(void);
                bool passes;
        } cases[] = {
                { make_by_vfork, true },     { make_as_posix_spawn, true }, { make_by_a_thread, true },
                { make_with_memory, false }, { make_sibling, false },
        };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                pid_t pids[2] = { begin(cases[i].make), received() };
                struct shared_memory shared = { 0 };

                if (!cases[i].passes)
                        usleep(20000); /* who made it comes to its pause(2) */
                assert_true(found(pids, ARRAY_SIZE(pids), &shared));
                assert_true((shared.pid == pids[0] && shared.other == pids[1]) ||
                            (shared.pid == pids[1] && shared.other == pids[0]));
                assert_int_equal(shared.passes, cases[i].passes);
                end(pids, ARRAY_SIZE(pids));
        }
}

static void test_orphans(void **state) {
        pid_t maker = begin(make_two_and_end);
        pid_t pids[2] = { received(), received() };
        struct shared_memory shared;

        (void) state;
        assert_int_equal(waitpid(maker, NULL, 0), maker);
        usleep(20000); /* they come to their pause(2) */
        assert_true(found(pids, ARRAY_SIZE(pids), &shared));
        assert_false(shared.passes);
        end(pids, ARRAY_SIZE(pids));
}

static void test_memory_of_their_own(void **state) {
        pid_t pids[3] = { begin(make_by_fork), received() };
        struct shared_memory shared;

        (void) state;
        assert_false(found(pids, 2, &shared));
        end(pids, 2);
        pids[0] = begin(make_two_zombies);
        pids[1] = received();
        pids[2] = received();
        usleep(20000);
        assert_false(found(pids, 3, &shared));
        end(pids, 1);
        /* The child runs its program when it is told to. */
        pids[0] = begin(make_as_posix_spawn);
        pids[1] = received();
        assert_true(found(pids, 2, &shared));
        assert_int_equal(write_all(orders[1], "", 1), 0);
        for (int i = 0; i < 1000 && shared_memory_find(proc, pids, 2, &shared); i++)
                usleep(10000);
        assert_false(found(pids, 2, &shared));
        end(pids, 2);
}

static int set_up(void **state) {
        (void) state;
        proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        assert_true(proc >= 0);
        assert_int_equal(pipe(reported), 0);
        assert_int_equal(pipe(orders), 0);
        return prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_kinds),
                cmocka_unit_test(test_orphans),
                cmocka_unit_test(test_memory_of_their_own),
        };

        return cmocka_run_group_tests(tests, set_up, NULL);
}
