#include "daemon/pages/threads.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/rseq.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/compare.h"
#include "common/openat.h"
#include "common/util.h"
#include "daemon/pages/interrupted.h"

enum {
        CODE_64_BIT = 0x33,         /* the segment of 64 bit code */
        SYSCALL_STOP = SIGTRAP | 0x80,
        SYSCALL_BYTES = 2,
        /* A system call is begun again this often when signals come first. */
        TRIES_MAX = 32,
        /* A thread has this time, whatever the deadline, to end a call that it is in, or to come
         * back into a stop that it has just left. */
        FINISH_USEC = 5000000,
        /* For threads that were to stop, and had not yet when the process was given up: as long as
         * they may wait for a core. */
        LATE_USEC = 1000000,
};

struct thread {
        pid_t tid;
        bool ours; /* of the process, and no other's that got its number meanwhile */
        bool asked; /* to stop, and did not yet; its call is interrupted all the same */
        bool stopped; /* in a stop where registers decide how an interrupted system call goes on */
        struct user_regs_struct regs; /* as they were when it stopped */
};

struct threads {
        int proc_fd;
        uint64_t deadline_usec;
        struct thread *items;
        size_t n;
        size_t chosen;
};

/* ---- what /proc says ---- */

/* Reads the value behind "NAME:" in a thread's status, a letter or a number. It may be long: a
 * thread can have 65536 groups. -ENODATA: it has no such line. */
static int read_status(int proc_fd, pid_t tid, const char *name, char *ret_letter, uint64_t *ret_number) {
        cleanup_free char *line = NULL, *path = xasprintf("task/%d/status", (int) tid);
        cleanup_file FILE *f = fopen_at(proc_fd, path);
        size_t space = 0, n = strlen(name);

        if (!f)
                return -ESRCH;
        while (getline(&line, &space, f) > 0)
                if (strncmp(line, name, n) == 0) {
                        const char *at = line + n + strspn(line + n, " \t");

                        *ret_letter = *at;
                        *ret_number = strtoull(at, NULL, 10);
                        return 0;
                }
        return ferror(f) ? -ESRCH : -ENODATA;
}

/* A filter may answer the call with a signal that kills. */
static int check_filter(int proc_fd, pid_t tid, struct rm_error *err) {
        uint64_t mode = 0;
        char letter;
        int r = read_status(proc_fd, tid, "Seccomp:", &letter, &mode);

        if (r == -ENODATA)
                return 0; /* a kernel without seccomp */
        if (r < 0)
                return error_sys(err, r, "read the status of thread %d", (int) tid);
        return mode == 0 ? 0 : error_set(err, -EOPNOTSUPP, "thread %d has its system calls filtered (seccomp)", (int) tid);
}

/* ---- stops ---- */

/* The next event of a thread. SIGCHLD is blocked and so waits to be taken; as one may speak for
 * several threads, it only ends a pause. */
static int await_event(pid_t tid, uint64_t deadline_usec, int *ret_status) {
        const struct timespec pause = { .tv_nsec = 1000000 };
        sigset_t child;
        pid_t pid;

        (void) sigemptyset(&child);
        (void) sigaddset(&child, SIGCHLD);
        for (;;) {
                pid = waitpid(tid, ret_status, __WALL | WNOHANG);
                if (pid < 0 && errno != EINTR)
                        return -ESRCH;
                if (pid > 0)
                        return WIFSTOPPED(*ret_status) ? 0 : -ESRCH;
                if (now_usec() >= deadline_usec)
                        return -ETIMEDOUT;
                (void) sigtimedwait(&child, NULL, &pause);
        }
}

static bool is_event_stop(int status) {
        return status >> 16 == PTRACE_EVENT_STOP;
}

/* Until the thread stands in the stop that PTRACE_INTERRUPT asked for. A signal that comes first is
 * delivered: its handler then begins where the thread goes on later. */
static int await_stop(struct thread *t, uint64_t deadline_usec) {
        int status;

        for (;;) {
                int r = await_event(t->tid, deadline_usec, &status);

                if (r < 0)
                        return r;
                if (is_event_stop(status))
                        break;
                if (ptrace(PTRACE_CONT, t->tid, NULL, (long) WSTOPSIG(status)) < 0)
                        return -errno;
        }
        if (ptrace(PTRACE_GETREGS, t->tid, NULL, &t->regs) < 0)
                return -errno;
        t->asked = false;
        t->stopped = true;
        return 0;
}

static const struct thread *find(const struct threads *threads, pid_t tid) {
        for (size_t i = 0; i < threads->n; i++)
                if (threads->items[i].tid == tid)
                        return &threads->items[i];
        return NULL;
}

static int say_refused(const struct threads *threads, pid_t tid, int error, struct rm_error *err) {
        uint64_t tracer = 0, none;
        char letter = '\0', state = '\0';

        if (error == ESRCH || read_status(threads->proc_fd, tid, "State:", &state, &none) < 0 || state == 'Z' || state == 'X')
                return 0; /* it has ended */
        if (read_status(threads->proc_fd, tid, "TracerPid:", &letter, &tracer) == 0 && tracer != 0)
                return error_set(err, -EBUSY, "thread %d is traced by process %" PRIu64, (int) tid, tracer);
        return error_sys(err, -error, "trace thread %d", (int) tid);
}

static int say_late(struct rm_error *err) {
        return error_set(err, -ETIMEDOUT, "its threads cannot all be stopped in time");
}

static int seize(struct threads *threads, pid_t tid, struct rm_error *err) {
        char path[64];
        struct thread *t;

        if (ptrace(PTRACE_SEIZE, tid, NULL, (long) PTRACE_O_TRACESYSGOOD) < 0) {
                int error = errno;

                return find(threads, tid) ? 0 : say_refused(threads, tid, error, err);
        }
        threads->items = xgrow(threads->items, threads->n, sizeof(*threads->items));
        t = &threads->items[threads->n++];
        /* While it is traced, its number is not given to another. */
        (void) snprintf(path, sizeof(path), "task/%d", (int) tid);
        *t = (struct thread) { .tid = tid, .ours = faccessat(threads->proc_fd, path, F_OK, 0) == 0, .asked = true };
        return ptrace(PTRACE_INTERRUPT, tid, NULL, NULL) == 0 || errno == ESRCH
                       ? 0
                       : error_sys(err, -errno, "interrupt thread %d", (int) tid);
}

/* The known threads in order, to be searched: there may be thousands. */
static pid_t *known_tids(const struct threads *threads) {
        pid_t *tids = xcalloc(threads->n, sizeof(*tids));

        for (size_t i = 0; i < threads->n; i++)
                tids[i] = threads->items[i].tid;
        if (threads->n > 0)
                qsort(tids, threads->n, sizeof(*tids), compare_u32);
        return tids;
}

/* Seizes the threads that are not known yet; all are asked before the first is waited for. */
static int seize_new(struct threads *threads, struct rm_error *err) {
        cleanup_dir DIR *dir = opendir_at(threads->proc_fd, "task");
        cleanup_free pid_t *known = known_tids(threads);
        size_t n_known = threads->n;
        const char *name;
        int r = 0;

        if (!dir)
                return error_set(err, -ESRCH, "the process has ended");
        while (r == 0 && (name = next_number(dir))) {
                pid_t tid = (pid_t) strtol(name, NULL, 10);

                if (!bsearch(&tid, known, n_known, sizeof(*known), compare_u32))
                        r = now_usec() < threads->deadline_usec ? seize(threads, tid, err) : say_late(err);
        }
        return r;
}

/* Forgets those that end instead. */
static int await_new(struct threads *threads, size_t first, struct rm_error *err) {
        for (size_t i = first; i < threads->n;) {
                struct thread *t = &threads->items[i];
                int r = await_stop(t, threads->deadline_usec);

                if (r == -ESRCH) {
                        *t = threads->items[--threads->n];
                        continue;
                }
                if (r < 0)
                        return error_set(err, r, "thread %d does not stop: %s", (int) t->tid, strerror(-r));
                r = t->ours ? check_filter(threads->proc_fd, t->tid, err) : 0;
                if (r == 0 && now_usec() >= threads->deadline_usec)
                        r = say_late(err);
                if (r < 0)
                        return r;
                i++;
        }
        return 0;
}

int threads_stop(int proc_fd, uint64_t deadline_usec, struct threads **ret, struct rm_error *err) {
        struct threads *threads = xcalloc(1, sizeof(*threads));
        size_t before;
        int r;

        *ret = threads;
        threads->proc_fd = proc_fd;
        threads->deadline_usec = deadline_usec;
        /* A thread that still ran may have made another: until there is none that is not
         * stopped. */
        do {
                before = threads->n;
                r = seize_new(threads, err);
                if (r == 0)
                        r = await_new(threads, before, err);
                if (r == 0 && now_usec() >= deadline_usec)
                        r = say_late(err);
        } while (r == 0 && threads->n != before);
        if (r == 0 && threads->n == 0)
                r = error_set(err, -ESRCH, "the process has ended");
        return r;
}

/* ---- the thread that makes the calls ---- */

static bool dispatches_calls(pid_t tid) {
        struct __ptrace_sud_config config = { 0 };

        return ptrace(PTRACE_GET_SYSCALL_USER_DISPATCH_CONFIG, tid, sizeof(config), &config) == 0 && config.mode != 0;
}

/* May it stand in a restartable sequence? It would go on in there as if nothing had come between,
 * though it had to begin again: the kernel looks when a thread returns to its program, and would
 * see it elsewhere. */
static bool may_be_in_sequence(pid_t tid, int memory_fd) {
        struct __ptrace_rseq_configuration config = { 0 };
        uint64_t sequence = 0;

        if (ptrace(PTRACE_GET_RSEQ_CONFIGURATION, tid, sizeof(config), &config) < 0 || config.rseq_abi_pointer == 0)
                return false;
        return pread(memory_fd, &sequence, sizeof(sequence), (off_t) (config.rseq_abi_pointer + offsetof(struct rseq, rseq_cs))) !=
                       sizeof(sequence) ||
               sequence != 0;
}

int threads_choose(struct threads *threads, int memory_fd, struct rm_error *err) {
        bool busy = false;

        for (int in_call = 1; in_call >= 0; in_call--)
                for (size_t i = 0; i < threads->n; i++) {
                        const struct thread *t = &threads->items[i];

                        if (!t->ours || t->regs.cs != CODE_64_BIT || dispatches_calls(t->tid) ||
                            ((int64_t) t->regs.orig_rax >= 0) != (in_call == 1))
                                continue;
                        /* There are no system calls in such a sequence. */
                        if (!in_call && may_be_in_sequence(t->tid, memory_fd)) {
                                busy = true;
                                continue;
                        }
                        threads->chosen = i;
                        return 0;
                }
        return busy ? error_set(err, -EAGAIN, "each thread is in a restartable sequence")
                    : error_set(err, -EOPNOTSUPP, "no thread runs 64 bit code that makes system calls as usual");
}

/* ---- a system call in it ---- */

static int put_back(struct thread *t) {
        return ptrace(PTRACE_SETREGS, t->tid, NULL, &t->regs) < 0 ? -errno : 0;
}

/* From any stop, with its own registers, to the stop where it may be let go, on the way taking
 * `signal`. Only there does the kernel repeat a system call that it interrupted. */
static int come_to_stop(struct thread *t, int signal) {
        t->stopped = false;
        if (ptrace(PTRACE_INTERRUPT, t->tid, NULL, NULL) < 0 || ptrace(PTRACE_CONT, t->tid, NULL, (long) signal) < 0)
                return -errno;
        return await_stop(t, now_usec() + FINISH_USEC);
}

/* Takes back a thread that did not reach the call in time, as in a frozen control group: to the
 * same stop, without the call. */
static int take_back(struct thread *t) {
        struct user_regs_struct own = t->regs, regs;
        bool handled = false;
        int status;

        t->stopped = false;
        if (ptrace(PTRACE_INTERRUPT, t->tid, NULL, NULL) < 0)
                return -errno;
        for (;;) {
                int r = await_event(t->tid, now_usec() + FINISH_USEC, &status);
                int signal = 0;

                if (r < 0)
                        return r;
                if (is_event_stop(status))
                        break;
                if (WSTOPSIG(status) == SYSCALL_STOP) {
                        if (ptrace(PTRACE_GETREGS, t->tid, NULL, &regs) < 0)
                                return -errno;
                        regs.orig_rax = (unsigned long long) -1;
                } else {
                        signal = WSTOPSIG(status);
                        handled = true;
                        regs = own;
                }
                if (ptrace(PTRACE_SETREGS, t->tid, NULL, &regs) < 0 || ptrace(PTRACE_CONT, t->tid, NULL, (long) signal) < 0)
                        return -errno;
        }
        t->stopped = true;
        if (handled) /* it stands in the handler, or where that returns to */
                return ptrace(PTRACE_GETREGS, t->tid, NULL, &t->regs) < 0 ? -errno : 0;
        return put_back(t);
}

/* Runs the thread to the next stop at a system call's begin or end. -EAGAIN: something came
 * between, and the thread is as it was before the call. */
static int go_to_call(struct thread *t, uint64_t deadline_usec) {
        int status, r;

        if (ptrace(PTRACE_SYSCALL, t->tid, NULL, NULL) < 0)
                return -errno;
        r = await_event(t->tid, deadline_usec, &status);
        if (r == -ETIMEDOUT) {
                (void) take_back(t);
                return r;
        }
        if (r < 0 || (!is_event_stop(status) && WSTOPSIG(status) == SYSCALL_STOP))
                return r;
        r = put_back(t);
        if (r == 0 && !is_event_stop(status))
                r = come_to_stop(t, WSTOPSIG(status));
        return r < 0 ? r : -EAGAIN;
}

static int call_once(struct thread *t, const struct user_regs_struct *requested, uint64_t deadline_usec, int64_t *ret_result) {
        struct user_regs_struct regs;
        bool right;
        int r;

        if (ptrace(PTRACE_SETREGS, t->tid, NULL, requested) < 0)
                return -errno;
        r = go_to_call(t, deadline_usec);
        if (r < 0)
                return r;
        if (ptrace(PTRACE_GETREGS, t->tid, NULL, &regs) < 0)
                return -errno;
        /* A process that shares the memory but is no thread of this one may have changed it: then
         * no call is made. */
        right = regs.orig_rax == requested->rax && regs.rip == requested->rip + SYSCALL_BYTES;
        regs.orig_rax = right ? regs.orig_rax : (unsigned long long) -1;
        if (!right && ptrace(PTRACE_SETREGS, t->tid, NULL, &regs) < 0)
                return -errno;
        /* The call is being made, so its end is waited for, whatever the time is. */
        r = go_to_call(t, now_usec() + FINISH_USEC);
        if (r == -EAGAIN)
                return -EPROTO; /* the call was made: not again */
        if (r < 0)
                return r;
        if (ptrace(PTRACE_GETREGS, t->tid, NULL, &regs) < 0)
                return -errno;
        r = put_back(t);
        if (r == 0)
                r = come_to_stop(t, 0);
        if (r == 0 && !right)
                r = -EPROTO;
        if (r == 0)
                *ret_result = (int64_t) regs.rax;
        return r;
}

int threads_call(struct threads *threads, const struct threads_call *call, uint64_t deadline_usec, int64_t *ret_result,
                 struct rm_error *err) {
        struct thread *t = &threads->items[threads->chosen];
        int r = -EAGAIN;

        for (int i = 0; i < TRIES_MAX && r == -EAGAIN; i++) {
                struct user_regs_struct requested = t->regs;

                requested.rip = call->instruction;
                requested.rax = (unsigned long long) call->number;
                /* The thread counts as being in no system call: the kernel has none to repeat. */
                requested.orig_rax = (unsigned long long) -1;
                requested.rdi = call->argument;
                r = call_once(t, &requested, deadline_usec, ret_result);
        }
        return r < 0 ? error_sys(err, r, "make a system call in thread %d", (int) t->tid) : 0;
}

/* ---- and on ---- */

static void release(struct thread *t) {
        if (!t->stopped)
                return; /* the kernel lets go of it when this process ends */
        if (interrupted_again(&t->regs))
                (void) put_back(t);
        (void) ptrace(PTRACE_DETACH, t->tid, NULL, NULL);
}

/* Once it has a core it comes to the stop; one that waits where no signal reaches it (vfork(2)) is
 * in no call that could be interrupted. */
static bool comes_late(const struct threads *threads, const struct thread *t) {
        char state = '\0';
        uint64_t none;

        return t->asked && read_status(threads->proc_fd, t->tid, "State:", &state, &none) == 0 && state != 'D';
}

bool threads_unreachable(const struct threads *threads) {
        for (size_t i = 0; i < threads->n; i++)
                if (threads->items[i].asked && !comes_late(threads, &threads->items[i]))
                        return true;
        return false;
}

void threads_release(struct threads *threads) {
        uint64_t deadline_usec;

        if (!threads)
                return;
        for (size_t i = 0; i < threads->n; i++)
                release(&threads->items[i]);
        deadline_usec = now_usec() + LATE_USEC;
        for (size_t i = 0; i < threads->n; i++)
                if (comes_late(threads, &threads->items[i]) && await_stop(&threads->items[i], deadline_usec) == 0)
                        release(&threads->items[i]);
        free(threads->items);
        free(threads);
}
