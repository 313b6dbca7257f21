/* A process that CRIU refuses is seen before CRIU is asked, and one that is like it but carried is
 * not taken for it. Here: threads, timers, limits and other things of the process itself. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/util.h"
#include "daemon/capsule/init/verify/blocker_scan.h"
#include "tests/unit/capsule/verify/holders.h"

static void first_thread_ended(void) {
        pthread_t thread;

        must(pthread_create(&thread, NULL, stay, NULL) == 0 && pthread_create(&thread, NULL, say_and_stay, NULL) == 0);
        pthread_exit(NULL);
}

static void last_thread_ended(void) {
        pthread_t thread;

        must(pthread_create(&thread, NULL, stay, NULL) == 0);
}

static void *make_timer(void *arg) {
        struct sigevent event = { .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGUSR1 };
        timer_t timer;

        event._sigev_un._tid = (pid_t) syscall(SYS_gettid);
        must(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0);
        return arg;
}

static void timer_of_thread(void) {
        (void) make_timer(NULL);
}

static void timer_of_ended_thread(void) {
        pthread_t thread;

        must(pthread_create(&thread, NULL, make_timer, NULL) == 0 && pthread_join(thread, NULL) == 0);
}

/* This case makes as many timers as the others. */
static void timer_of_ended_thread_among_others(void) {
        timer_t timer;

        must(timer_create(CLOCK_REALTIME, NULL, &timer) == 0);
        timer_of_ended_thread();
        timer_of_thread();
}

static rlim_t space_bytes(void) {
        char text[64] = "";
        int fd = open("/proc/self/statm", O_RDONLY);

        must(fd >= 0 && read(fd, text, sizeof(text) - 1) > 0 && close(fd) == 0);
        return strtoul(text, NULL, 10) * (rlim_t) sysconf(_SC_PAGESIZE);
}

static void no_space(void) {
        limit(RLIMIT_AS, space_bytes() + 4096);
}

static void some_space(void) {
        limit(RLIMIT_AS, space_bytes() * 2 + (64 << 20));
}

/* 16 bytes for each page, which nobody has touched. */
static void no_space_for_many_pages(void) {
        must(mmap(NULL, 1L << 32, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0) != MAP_FAILED);
        limit(RLIMIT_AS, space_bytes() + (4 << 20));
}

static void no_descriptors(void) {
        limit(RLIMIT_NOFILE, 16);
        while (dup(STDERR_FILENO) >= 0)
                ;
}

/* The table has room below the limit. */
static void descriptors_above_limit(void) {
        for (int i = 100; i < 140; i++)
                must(dup2(STDERR_FILENO, i) == i);
        limit(RLIMIT_NOFILE, 16);
}

static void queue_signals(rlim_t most) {
        sigset_t set;

        (void) sigemptyset(&set);
        (void) sigaddset(&set, SIGRTMIN);
        must(sigprocmask(SIG_BLOCK, &set, NULL) == 0);
        for (int i = 0; i < 8; i++)
                must(sigqueue(getpid(), SIGRTMIN, (union sigval) { .sival_int = i }) == 0);
        limit(RLIMIT_SIGPENDING, most);
}

static int semaphores; /* of the test */

static void has_to_undo(void) {
        struct sembuf add = { .sem_op = 1, .sem_flg = SEM_UNDO };

        must(semop(semaphores, &add, 1) == 0);
}

static void uses_semaphores(void) {
        struct sembuf add = { .sem_op = 1 };

        must(semop(semaphores, &add, 1) == 0);
}

static void too_many_signals(void) {
        queue_signals(2);
}

static void some_signals(void) {
        queue_signals(1000);
}

static void too_many_mappings(void) {
        enum { N = 1 << 20, PAGE = 4096 };
        char *memory = mmap(NULL, (size_t) N * PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

        must(memory != MAP_FAILED);
        for (size_t i = 0; i < N && mprotect(memory + i * PAGE, PAGE, PROT_NONE) == 0; i += 2)
                ;
}

static void without_vdso(void) {
        FILE *f = fopen("/proc/self/maps", "re");
        unsigned long begin, end;
        char line[256];

        while (f && fgets(line, sizeof(line), f))
                if (strstr(line, " [vdso]") && sscanf(line, "%lx-%lx", &begin, &end) == 2)
                        must(munmap((void *) begin, end - begin) == 0); // NOLINT(performance-no-int-to-ptr)
        (void) stay(say_and_stay(NULL));
}

/* ---- of threads ---- */

static int apart;

static void *leave(void *arg) {
        must(unshare(apart) == 0);
        return say_and_stay(arg);
}

static void thread_apart(int what) {
        pthread_t thread;

        apart = what;
        must(pthread_create(&thread, NULL, leave, NULL) == 0);
        (void) stay(NULL);
}

static void thread_with_descriptors(void) {
        thread_apart(CLONE_FILES);
}

static void thread_with_directory(void) {
        thread_apart(CLONE_FS);
}

static void thread_with_semaphores(void) {
        thread_apart(CLONE_SYSVSEM);
}

/* ---- looks ---- */

static void test_kinds(void **state) {
        static const struct holder holders[] = {
                { "first thread", first_thread_ended, BLOCKER_FIRST_THREAD, false },
                { "last thread", last_thread_ended, BLOCKER_NONE, false },
                { "timer", timer_of_thread, BLOCKER_NONE, false },
                { "ended timer", timer_of_ended_thread, BLOCKER_TIMER, false },
                { "ended timers", timer_of_ended_thread_among_others, BLOCKER_TIMER, false },
                { "no space", no_space, BLOCKER_SPACE, false },
                { "space", some_space, BLOCKER_NONE, false },
                { "pages", no_space_for_many_pages, BLOCKER_SPACE, false },
                { "no descriptors", no_descriptors, BLOCKER_SPACE, false },
                { "high descriptors", descriptors_above_limit, BLOCKER_NONE, false },
                { "undo", has_to_undo, BLOCKER_SEM_UNDO, true },
                { "semaphores", uses_semaphores, BLOCKER_NONE, false },
                { "too many signals", too_many_signals, BLOCKER_SPACE, false },
                { "signals", some_signals, BLOCKER_NONE, false },
                { "mappings", too_many_mappings, BLOCKER_SPACE, true },
                { "vDSO", without_vdso, BLOCKER_VDSO, true },
                { "thread, files", thread_with_descriptors, BLOCKER_THREAD_APART, true },
                { "thread, directory", thread_with_directory, BLOCKER_THREAD_APART, true },
                { "thread, semaphores", thread_with_semaphores, BLOCKER_NONE, true },
        };
        pthread_t thread;

        (void) state;
        /* A process of several threads, as PID 1 may be, always has a list of operations to
         * undo. */
        semaphores = semget(IPC_PRIVATE, 1, 0600);
        assert_true(semaphores >= 0);
        assert_int_equal(pthread_create(&thread, NULL, stay, NULL), 0);
        check_holders(holders, ARRAY_SIZE(holders));
        assert_int_equal(semctl(semaphores, 0, IPC_RMID), 0);
        (void) pthread_cancel(thread);
        (void) pthread_join(thread, NULL);
}

static int stay_as_child(void *arg) {
        (void) stay(arg);
        return 0;
}

/* Two processes with one working directory, and two that share nothing. */
static void test_shared_directories(void **state) {
        static char stack[65536] __attribute__((aligned(16)));
        Capsule__Spec spec = CAPSULE__SPEC__INIT;
        struct blocker_scope scope = { .proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC),
                                       .spec = &spec,
                                       .frozen = true,
                                       .budget = SIZE_MAX,
                                       .cpu_usec = 60000000 };
        struct blocker blocker;

        (void) state;
        spec.uid = getuid();
        spec.gid = getgid();
        for (int shared = 0; shared < 2; shared++) {
                pid_t pids[] = { start_holder(some_space), 0 };

                pids[1] = clone(stay_as_child, stack + sizeof(stack), SIGCHLD | (shared ? CLONE_FS : 0), NULL);
                assert_true(pids[1] > 0);
                if (shared) {
                        /* This process and its child. */
                        pid_t of_test[] = { getpid(), pids[1] };

                        blockers_of_processes(&scope, of_test, 2, &blocker, NULL);
                        assert_int_equal(blocker.kind, BLOCKER_SHARED_DIRECTORIES);
                } else {
                        blockers_of_processes(&scope, pids, 2, &blocker, NULL);
                        assert_int_not_equal(blocker.kind, BLOCKER_SHARED_DIRECTORIES);
                }
                for (size_t i = 0; i < 2; i++) {
                        (void) kill(pids[i], SIGKILL);
                        (void) waitpid(pids[i], NULL, 0);
                }
        }
        (void) close(scope.proc);
}

/* A process that is a child of nobody in its group is not the first one. */
static void test_adopted(void **state) {
        pid_t pid = start_holder(some_space);
        Capsule__Spec spec = CAPSULE__SPEC__INIT;
        struct blocker_scope scope = {
                .proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC), .spec = &spec, .budget = SIZE_MAX, .cpu_usec = 60000000
        };
        const pid_t roots[] = { getpid(), pid, 0 };
        const pid_t group[] = { getpid(), pid };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(roots); i++) {
                struct blocker found;

                scope.root = roots[i];
                blockers_of_processes(&scope, &pid, 1, &found, NULL);
                assert_int_equal(found.kind == BLOCKER_ADOPTED, i == 0);
                blockers_of_processes(&scope, group, roots[i] == pid ? 1 : 2, &found, NULL);
                assert_int_equal(found.kind == BLOCKER_ADOPTED, roots[i] == pid);
        }
        (void) kill(pid, SIGKILL);
        (void) waitpid(pid, NULL, 0);
        (void) close(scope.proc);
}

/* A process that ends with another signal than SIGCHLD, or without any, as long as it runs no other
 * program. */
static void test_exit_signal(void **state) {
        static char stack[65536] __attribute__((aligned(16)));
        const int signals[] = { SIGUSR1, SIGRTMIN, 0, SIGCHLD };

        (void) state;
        (void) signal(SIGUSR1, SIG_IGN);
        (void) signal(SIGRTMIN, SIG_IGN);
        for (size_t i = 0; i < ARRAY_SIZE(signals); i++) {
                pid_t pid = clone(stay_as_child, stack + sizeof(stack), signals[i], NULL);
                struct blocker found;

                assert_true(pid > 0);
                scan_holder(pid, signals[i] == SIGCHLD ? BLOCKER_NONE : BLOCKER_EXIT_SIGNAL, false, NULL, &found);
                (void) kill(pid, SIGKILL);
                (void) waitpid(pid, NULL, __WALL);
                assert_int_equal(found.kind, signals[i] == SIGCHLD ? BLOCKER_NONE : BLOCKER_EXIT_SIGNAL);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_kinds),
                cmocka_unit_test(test_shared_directories),
                cmocka_unit_test(test_adopted),
                cmocka_unit_test(test_exit_signal),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
