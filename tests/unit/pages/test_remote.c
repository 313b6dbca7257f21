/* A userfaultfd out of another process: what is refused, and that the process is as before in every
 * case. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/filter.h>
#include <linux/futex.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "child.h"
#include "common/util.h"
#include "daemon/pages/maps.h"
#include "daemon/pages/remote.h"

enum {
        LIMIT_USEC = 2000000, /* the machine may be busy */
        SHORT_USEC = 50000,
};

static int take(const struct child *child, uint64_t limit_usec, struct rm_error *err) {
        cleanup_free char *path = xasprintf("/proc/%d", (int) child->pid);
        cleanup_close int proc_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        int fd = -1, r;

        assert_true(proc_fd >= 0);
        r = remote_userfaultfd(child->pidfd, proc_fd, limit_usec, &fd, NULL, err);
        assert_int_equal(r == 0, fd >= 0);
        if (fd >= 0)
                (void) close(fd);
        return r;
}

/* The traces that a failed or successful try could leave behind, as text. */
static char *condition(const struct child *child) {
        static const char *const names[] = { "State",  "TracerPid", "SigPnd",  "ShdPnd", "SigBlk",
                                             "SigIgn", "SigCgt",    "Threads", "Seccomp" };
        cleanup_free char *calls = child_calls(child->pid);
        char *text = xasprintf("%u descriptors, system calls%s", child_descriptors(child->pid), calls);

        for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
                cleanup_free char *before = text;
                cleanup_free char *line = child_status(child->pid, names[i]);

                text = xasprintf("%s\n%s", before, line);
        }
        return text;
}

/* Takes, or fails to with `code`, and finds the child as before. */
static void assert_takes(void (*function)(int link), int code, const char *text) {
        struct child child = child_begin(function);
        struct rm_error err = { 0 };
        char *before, *after;
        int r;

        child_settle(&child);
        before = condition(&child);
        r = take(&child, code == -ETIMEDOUT ? SHORT_USEC : LIMIT_USEC, &err);
        if (r != code)
                fail_msg("%d, not %d: %s", r, code, err.text);
        if (text && !strstr(err.text, text))
                fail_msg("'%s' has no '%s'", err.text, text);
        child_settle(&child);
        after = condition(&child);
        assert_string_equal(before, after);
        free(before);
        free(after);
        /* The child goes on, to its end. */
        child_go(&child);
        child_expect(&child);
        child_finish(&child);
}

/* Says that all is well, and ends. */
static void end_well(int link) {
        child_ready(link);
        _exit(0);
}

/* ---- calls that wait ---- */

static void wait_in_read(int link) {
        child_ready(link);
        child_wait(link);
        end_well(link);
}

static void wait_in_poll(int link) {
        struct pollfd p = { .fd = link, .events = POLLIN };

        child_ready(link);
        child_assert(poll(&p, 1, 60000) == 1);
        end_well(link);
}

static void wait_in_epoll(int link) {
        int epoll = epoll_create1(EPOLL_CLOEXEC);
        struct epoll_event event = { .events = EPOLLIN };

        child_assert(epoll_ctl(epoll, EPOLL_CTL_ADD, link, &event) == 0);
        child_ready(link);
        child_assert(epoll_wait(epoll, &event, 1, -1) == 1);
        end_well(link);
}

/* In each, the parent's byte comes as SIGIO. */
static void note_signal(int signal) {
        (void) signal;
}

static void signal_on_byte(int link, int signal) {
        struct sigaction action = { .sa_handler = note_signal };

        child_assert(sigaction(signal, &action, NULL) == 0);
        child_assert(fcntl(link, F_SETSIG, signal) == 0 && fcntl(link, F_SETOWN, getpid()) == 0 &&
                     fcntl(link, F_SETFL, O_ASYNC) == 0);
}

static void wait_in_sigsuspend(int link) {
        sigset_t io, none;

        (void) sigemptyset(&none);
        (void) sigemptyset(&io);
        (void) sigaddset(&io, SIGUSR1);
        child_assert(sigprocmask(SIG_BLOCK, &io, NULL) == 0);
        signal_on_byte(link, SIGUSR1);
        child_ready(link);
        child_assert(sigsuspend(&none) < 0 && errno == EINTR);
        child_assert(sigprocmask(SIG_BLOCK, NULL, &none) == 0 && sigismember(&none, SIGUSR1));
        end_well(link);
}

/* A call that would end with EINTR by the stop alone, though no handler was called. */
static void wait_in_epoll_pwait(int link) {
        int epoll = epoll_create1(EPOLL_CLOEXEC);
        struct epoll_event event;
        sigset_t io, none;

        (void) sigemptyset(&none);
        (void) sigemptyset(&io);
        (void) sigaddset(&io, SIGUSR1);
        child_assert(sigprocmask(SIG_BLOCK, &io, NULL) == 0);
        signal_on_byte(link, SIGUSR1);
        child_ready(link);
        child_assert(epoll_pwait(epoll, &event, 1, -1, &none) < 0 && errno == EINTR);
        child_wait(link); /* there is a byte: it was the signal that ended it */
        end_well(link);
}

static void wait_in_sigwait(int link) {
        sigset_t io;
        int signal = 0;

        (void) sigemptyset(&io);
        (void) sigaddset(&io, SIGUSR1);
        child_assert(sigprocmask(SIG_BLOCK, &io, NULL) == 0);
        signal_on_byte(link, SIGUSR1);
        child_ready(link);
        signal = sigwaitinfo(&io, NULL);
        child_assert(signal == SIGUSR1);
        end_well(link);
}

static void *up(void *ctx) {
        const int *at = ctx;
        struct sembuf one = { .sem_op = 1 };

        child_wait(at[1]);
        child_assert(semop(at[0], &one, 1) == 0);
        return NULL;
}

static void wait_in_semop(int link) {
        int at[2] = { semget(IPC_PRIVATE, 1, 0600), link };
        struct sembuf down = { .sem_op = -1 };
        pthread_t thread;
        int r;

        child_assert(at[0] >= 0 && pthread_create(&thread, NULL, up, at) == 0);
        child_ready(link);
        r = semop(at[0], &down, 1);
        (void) semctl(at[0], 0, IPC_RMID);
        child_assert(r == 0);
        end_well(link);
}

/* Calls with a time limit: the kernel would go on with them by restart_syscall(2), which does not
 * tell which one it is. */
static void wait_in_nanosleep(int link) {
        const struct timespec limit = { .tv_sec = 60 };

        signal_on_byte(link, SIGUSR1);
        child_ready(link);
        child_assert(syscall(SYS_nanosleep, &limit, NULL) < 0 && errno == EINTR); /* libc takes the other */
        end_well(link);
}

static void wait_in_clock_nanosleep(int link) {
        const struct timespec limit = { .tv_sec = 60 };

        signal_on_byte(link, SIGUSR1);
        child_ready(link);
        child_assert(clock_nanosleep(CLOCK_MONOTONIC, 0, &limit, NULL) == EINTR);
        end_well(link);
}

static void wait_in_futex(int link) {
        const struct timespec limit = { .tv_sec = 60 };
        uint32_t word = 1;

        signal_on_byte(link, SIGUSR1);
        child_ready(link);
        child_assert(syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 1, &limit, NULL, 0) < 0 && errno == EINTR);
        end_well(link);
}

static void test_waiting_calls(void **state) {
        static void (*const functions[])(int link) = {
                wait_in_read,    wait_in_poll,  wait_in_epoll,     wait_in_sigsuspend,      wait_in_epoll_pwait,
                wait_in_sigwait, wait_in_semop, wait_in_nanosleep, wait_in_clock_nanosleep, wait_in_futex,
        };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(functions); i++)
                assert_takes(functions[i], 0, NULL);
}

enum { SLEPT_USEC = 1200000, LEFT_SEC = 58 };

/* The child sleeps for the rest of the time, and not once more for all of it. */
static void sleep_and_report(int link) {
        struct timespec left = { .tv_sec = 60 };
        const struct timespec *limit = &left;

        signal_on_byte(link, SIGUSR1);
        child_ready(link);
        child_assert(syscall(SYS_nanosleep, limit, &left) < 0 && errno == EINTR && left.tv_sec <= LEFT_SEC);
        child_wait(link);
        child_ready(link);
        left = (struct timespec) { .tv_sec = 60 };
        child_assert(clock_nanosleep(CLOCK_MONOTONIC, 0, limit, &left) == EINTR && left.tv_sec <= LEFT_SEC);
        end_well(link);
}

static void test_sleeps_for_what_is_left(void **state) {
        struct child child = child_begin(sleep_and_report);

        (void) state;
        for (int i = 0; i < 2; i++) {
                struct rm_error err = { 0 };

                child_settle(&child);
                (void) usleep(SLEPT_USEC);
                assert_int_equal(take(&child, LIMIT_USEC, &err), 0);
                child_go(&child);
                child_expect(&child);
        }
        child_finish(&child);
}

/* ---- what the process may be ---- */

static void ignore_traps(int link) {
        child_assert(signal(SIGTRAP, SIG_IGN) != SIG_ERR);
        wait_in_read(link);
}

static void block_all(int link) {
        sigset_t all;

        (void) sigfillset(&all);
        child_assert(sigprocmask(SIG_SETMASK, &all, NULL) == 0);
        child_assert(kill(getpid(), SIGUSR1) == 0); /* remains pending */
        wait_in_read(link);
}

static void filter_calls(int link) {
        struct sock_filter code[] = {
                BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
                BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_userfaultfd, 0, 1),
                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        };
        struct sock_fprog program = { .len = ARRAY_SIZE(code), .filter = code };

        child_assert(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
        child_assert(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
        wait_in_read(link);
}

/* The line of the filter in /proc comes behind all of the groups. */
static void filter_calls_in_groups(int link) {
        gid_t groups[20000];

        for (size_t i = 0; i < ARRAY_SIZE(groups); i++)
                groups[i] = 100000 + (gid_t) i;
        child_assert(setgroups(ARRAY_SIZE(groups), groups) == 0);
        filter_calls(link);
}

static void *filter_in_thread(void *ctx) {
        filter_calls(*(int *) ctx);
        return NULL;
}

static void filter_one_thread(int link) {
        pthread_t thread;

        child_assert(pthread_create(&thread, NULL, filter_in_thread, &link) == 0);
        (void) pthread_join(thread, NULL);
}

static void dispatch_calls(int link) {
        static volatile char selector = 0; /* let pass */

        child_assert(prctl(PR_SET_SYSCALL_USER_DISPATCH, 1, 0, 0, &selector) == 0);
        wait_in_read(link);
}

static struct map own_vdso(void) {
        cleanup_close int proc_fd = open("/proc/self", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        struct map found = { 0 };
        struct maps maps;

        child_assert(maps_read(proc_fd, &maps) == 0);
        for (size_t i = 0; i < maps.n; i++)
                if (maps.items[i].kind == MAP_KIND_VDSO)
                        found = maps.items[i];
        maps_finish(&maps);
        child_assert(found.end != 0);
        return found;
}

static void lose_vdso(int link) {
        struct map vdso = own_vdso();

        child_assert(syscall(SYS_munmap, vdso.start, vdso.end - vdso.start) == 0);
        wait_in_read(link);
}

static void replace_vdso(int link) {
        struct map vdso = own_vdso();
        union {
                uint64_t address;
                void *pointer;
        } at = { .address = vdso.start };

        child_assert(mprotect(at.pointer, vdso.end - vdso.start, PROT_READ | PROT_WRITE | PROT_EXEC) == 0);
        memset(at.pointer, 0x90, vdso.end - vdso.start);
        wait_in_read(link);
}

static void have_no_descriptor(int link) {
        struct rlimit limit = { .rlim_cur = 0, .rlim_max = 0 };

        child_assert(setrlimit(RLIMIT_NOFILE, &limit) == 0);
        wait_in_read(link);
}

/* The child is in vfork(2), where no signal reaches it, until its own child ends. */
static void wait_in_vfork(int link) {
        pid_t pid;

        child_ready(link);
        pid = vfork(); /* NOLINT(bugprone-unsafe-functions): what programs do */
        if (pid == 0) {
                char byte;

                (void) !read(link, &byte, 1);
                _exit(0);
        }
        end_well(link);
}

static void *sleep_in_thread(void *ctx) {
        const struct timespec limit = { .tv_sec = 60 };

        (void) nanosleep(&limit, NULL);
        return ctx;
}

/* The others have stopped, and wait for the same as before. */
static void wait_beside_vfork(int link) {
        pthread_t thread;

        for (int i = 0; i < 3; i++)
                child_assert(pthread_create(&thread, NULL, sleep_in_thread, NULL) == 0);
        wait_in_vfork(link);
}

static void test_refused(void **state) {
        (void) state;
        assert_takes(ignore_traps, 0, NULL);
        assert_takes(block_all, 0, NULL);
        assert_takes(filter_calls, -EOPNOTSUPP, "seccomp");
        assert_takes(filter_calls_in_groups, -EOPNOTSUPP, "seccomp");
        assert_takes(filter_one_thread, -EOPNOTSUPP, "seccomp");
        assert_takes(dispatch_calls, -EOPNOTSUPP, "system calls as usual");
        assert_takes(lose_vdso, -EOPNOTSUPP, "vdso");
        assert_takes(replace_vdso, -EOPNOTSUPP, "vdso");
        assert_takes(have_no_descriptor, -EMFILE, "userfaultfd()");
        assert_takes(wait_in_vfork, -ETIMEDOUT, "does not stop");
        assert_takes(wait_beside_vfork, -ETIMEDOUT, "does not stop");
}

/* ---- what would take long is given up ---- */

enum { THREADS = 6000, STACK_BYTES = 64 << 10, GIVE_UP_USEC = 5000000 };

static void *wait_in_thread(void *ctx) {
        char byte;

        (void) !read(*(int *) ctx, &byte, 1);
        return NULL;
}

/* More than can be stopped in the time. */
static void have_many_threads(int link) {
        pthread_attr_t attributes;
        pthread_t thread;

        child_assert(pthread_attr_init(&attributes) == 0 && pthread_attr_setstacksize(&attributes, STACK_BYTES) == 0);
        for (int i = 0; i < THREADS; i++)
                child_assert(pthread_create(&thread, &attributes, wait_in_thread, &link) == 0);
        child_ready(link);
        child_wait(link);
        end_well(link);
}

static void assert_gives_up(void (*function)(int link), uint64_t most_usec) {
        struct child child = child_begin(function);
        struct rm_error err = { 0 };
        uint64_t begin_usec;

        child_settle(&child);
        begin_usec = now_usec();
        assert_int_equal(take(&child, SHORT_USEC, &err), -ETIMEDOUT);
        begin_usec = now_usec() - begin_usec;
        print_message("'%s' after %u ms\n", err.text, (unsigned) (begin_usec / 1000));
        assert_true(begin_usec < most_usec);
        assert_int_equal(child_end(&child), SIGKILL);
}

static void test_gives_up(void **state) {
        (void) state;
        assert_gives_up(have_many_threads, GIVE_UP_USEC);
        assert_gives_up(wait_in_vfork, 1000000);
}

static volatile uint32_t *turns; /* of the code of 32 bits, which has this memory, too */

/* Code of 32 bits: an endless loop that counts its turns. In the segment of the stack, since that
 * of data is none in a program of 64 bits. */
static void run_32_bits(int link) {
        static const uint8_t code[] = { 0x36, 0xff, 0x05, 0, 0, 0, 0, 0xeb, 0xf7 }; /* incl %ss:turns; jmp .-7 */
        uint32_t address = (uint32_t) (uintptr_t) turns;
        uint8_t *page =
                mmap(NULL, PAGES_PAGE_BYTES, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);

        child_assert(page != MAP_FAILED);
        memcpy(page, code, sizeof(code));
        memcpy(page + 3, &address, sizeof(address));
        (void) signal(SIGSEGV, SIG_DFL);
        child_ready(link);
        __asm__ volatile("pushq $0x23\n pushq %0\n lretq\n" : : "r"((uint64_t) (uintptr_t) page) : "memory");
}

/* Until the child runs such code. On some virtual machines, whatever their kernel is configured to,
 * it dies at once: false. */
static bool runs_32_bits(const struct child *child) {
        siginfo_t end = { 0 };

        while (*turns == 0) {
                assert_int_equal(waitid(P_PID, (id_t) child->pid, &end, WEXITED | WNOHANG | WNOWAIT), 0);
                if (end.si_pid == child->pid)
                        return false;
                (void) usleep(1000);
        }
        return true;
}

static void test_32_bits(void **state) {
        struct child child;
        struct rm_error err = { 0 };

        (void) state;
        turns = mmap(NULL, PAGES_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
        assert_ptr_not_equal((void *) turns, MAP_FAILED);
        child = child_begin(run_32_bits);
        if (!runs_32_bits(&child)) {
                (void) child_end(&child);
                print_message("this machine runs no code of 32 bits\n");
                skip();
        }
        assert_int_equal(take(&child, LIMIT_USEC, &err), -EOPNOTSUPP);
        assert_non_null(strstr(err.text, "64 bit"));
        assert_int_equal(waitpid(child.pid, NULL, WNOHANG), 0);
        assert_int_equal(child_end(&child), SIGKILL);
}

static void test_ended(void **state) {
        struct child child = child_begin(wait_in_read);
        struct rm_error err = { 0 };
        siginfo_t info;

        (void) state;
        (void) kill(child.pid, SIGKILL);
        assert_int_equal(waitid(P_PID, (id_t) child.pid, &info, WEXITED | WNOWAIT), 0);
        assert_int_equal(take(&child, LIMIT_USEC, &err), -ESRCH);
        assert_int_equal(child_end(&child), SIGKILL);
}

/* A stopped process remains so. */
static void test_stopped(void **state) {
        struct child child = child_begin(wait_in_read);
        struct rm_error err = { 0 };
        char *before, *after;
        int status;

        (void) state;
        child_settle(&child);
        assert_int_equal(kill(child.pid, SIGSTOP), 0);
        assert_int_equal(waitpid(child.pid, &status, WUNTRACED), child.pid);
        before = condition(&child);
        assert_non_null(strstr(before, "stopped"));
        assert_int_equal(take(&child, LIMIT_USEC, &err), 0);
        child_settle(&child);
        after = condition(&child);
        assert_string_equal(before, after);
        free(before);
        free(after);
        assert_int_equal(kill(child.pid, SIGCONT), 0);
        child_go(&child);
        child_expect(&child);
        child_finish(&child);
}

/* A debugger keeps what it has. */
static void test_traced(void **state) {
        struct child child = child_begin(wait_in_read);
        struct rm_error err = { 0 };

        (void) state;
        assert_int_equal(ptrace(PTRACE_SEIZE, child.pid, NULL, NULL), 0);
        assert_int_equal(take(&child, LIMIT_USEC, &err), -EBUSY);
        assert_non_null(strstr(err.text, "traced by process"));
        child_go(&child);
        child_expect(&child);
        child_finish(&child);
}

/* ---- while much happens in it ---- */

static volatile sig_atomic_t handled;

static void on_timer(int signal) {
        (void) signal;
        handled++;
}

/* Signals all the time, and sums in registers that must come out right. */
static void compute(int link) {
        struct sigaction action = { .sa_handler = on_timer, .sa_flags = SA_RESTART };
        struct itimerval every = { .it_interval = { .tv_usec = 100 }, .it_value = { .tv_usec = 100 } };
        struct pollfd p = { .fd = link, .events = POLLIN };

        child_assert(sigaction(SIGALRM, &action, NULL) == 0 && setitimer(ITIMER_REAL, &every, NULL) == 0);
        child_ready(link);
        do {
                uint64_t x = 1;
                double sum = 0;

                for (uint32_t i = 0; i < 100000; i++) {
                        x = x * 6364136223846793005U + 1442695040888963407U;
                        sum += (double) (x >> 60);
                }
                child_assert(x == 7853315990982803361U && sum == 750117.0);
        } while (poll(&p, 1, 0) <= 0);
        child_assert(handled > 0);
        end_well(link);
}

static void *be_brief(void *ctx) {
        (void) ctx;
        return NULL;
}

static void *make_threads(void *ctx) {
        for (;;) {
                pthread_t thread;

                child_assert(pthread_create(&thread, NULL, be_brief, NULL) == 0);
                (void) pthread_join(thread, NULL);
        }
        return ctx;
}

static void churn(int link) {
        pthread_t thread;

        for (int i = 0; i < 3; i++)
                child_assert(pthread_create(&thread, NULL, make_threads, NULL) == 0);
        wait_in_read(link);
}

/* Processes in place of threads. */
static void *make_processes(void *ctx) {
        for (;;) {
                pid_t pid = fork();

                if (pid == 0)
                        _exit(0);
                child_assert(waitpid(pid, NULL, 0) == pid);
        }
        return ctx;
}

static void breed(int link) {
        pthread_t thread;

        child_assert(pthread_create(&thread, NULL, make_processes, NULL) == 0);
        wait_in_read(link);
}

static void test_busy(void **state) {
        static void (*const functions[])(int link) = { compute, churn, breed };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(functions); i++) {
                struct child child = child_begin(functions[i]);

                for (int k = 0; k < 20; k++) {
                        struct rm_error err = { 0 };
                        int r = take(&child, LIMIT_USEC, &err);

                        if (r != 0)
                                fail_msg("%d, function %zu: %s", k, i, err.text);
                }
                child_go(&child);
                child_expect(&child);
                child_finish(&child);
        }
}

/* ---- no signal is lost, or comes twice ---- */

enum { LAST_VALUE = INT32_MAX };

static volatile sig_atomic_t last_value;
static volatile sig_atomic_t wrong_order;

static void on_value(int signal, siginfo_t *info, void *ctx) {
        (void) signal, (void) ctx;
        wrong_order |=
                info->si_code != SI_QUEUE || (info->si_value.sival_int != last_value + 1 && info->si_value.sival_int != LAST_VALUE);
        last_value = info->si_value.sival_int;
}

static void count_signals(int link) {
        struct sigaction action = { .sa_sigaction = on_value, .sa_flags = SA_SIGINFO | SA_RESTART };

        child_assert(sigaction(SIGRTMIN, &action, NULL) == 0);
        child_ready(link);
        while (last_value != LAST_VALUE && !wrong_order)
                ;
        child_assert(!wrong_order);
        child_ready(link);
        child_wait(link);
}

struct sender {
        pid_t pid;
        volatile bool end;
};

static void *send_signals(void *ctx) {
        const struct sender *sender = ctx;

        for (int i = 1; i != 0; i = sender->end ? LAST_VALUE : i + 1) {
                union sigval value = { .sival_int = i };

                /* Signals are sent again as long as the queue is full. */
                while (sigqueue(sender->pid, SIGRTMIN, value) < 0 && errno == EAGAIN)
                        (void) sched_yield();
                if (i == LAST_VALUE)
                        break;
        }
        return NULL;
}

static void test_signals(void **state) {
        struct child child = child_begin(count_signals);
        struct sender sender = { .pid = child.pid };
        pthread_t thread;

        (void) state;
        assert_int_equal(pthread_create(&thread, NULL, send_signals, &sender), 0);
        for (int k = 0; k < 50; k++) {
                struct rm_error err = { 0 };

                if (take(&child, LIMIT_USEC, &err) < 0)
                        fail_msg("%d: %s", k, err.text);
        }
        sender.end = true;
        (void) pthread_join(thread, NULL);
        child_expect(&child);
        child_go(&child);
        child_finish(&child);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_waiting_calls), cmocka_unit_test(test_sleeps_for_what_is_left),
                cmocka_unit_test(test_refused),       cmocka_unit_test(test_gives_up),
                cmocka_unit_test(test_32_bits),       cmocka_unit_test(test_ended),
                cmocka_unit_test(test_stopped),       cmocka_unit_test(test_traced),
                cmocka_unit_test(test_busy),          cmocka_unit_test(test_signals),
        };

        priority_normal();
        return cmocka_run_group_tests_name("pages-remote", tests, NULL, NULL);
}
