#include "daemon/capsule/init/criu/waiting.h"

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/openat.h"
#include "common/proc_count.h"
#include "common/util.h"
#include "daemon/capsule/init/criu/image_fixup.h"
#include "daemon/pages/interrupted.h"

enum {
        ERESTARTNOHAND_VALUE = 514, /* of the kernel: call again, unless a handler was called */
        STOP_WAIT_USEC = 500000,
};

struct call {
        pid_t tid;
        long number;
        bool again; /* it is in restart_syscall() now */
        bool held;
        unsigned long long sp;
        unsigned long long pc;
};

struct waiting {
        struct call *calls;
        size_t n;
};

struct waiting *waiting_create(void) {
        return xcalloc(1, sizeof(struct waiting));
}

/* ---- where threads wait ---- */

static void add(struct waiting *waiting, const struct call *call) {
        if (waiting->n >= PROC_GROUP_THREADS_MAX)
                return; /* no such group is dumped */
        waiting->calls = xgrow(waiting->calls, waiting->n, sizeof(*waiting->calls));
        waiting->calls[waiting->n++] = *call;
}

static const struct call *find(const struct waiting *waiting, pid_t tid) {
        for (size_t i = 0; i < waiting->n; i++)
                if (waiting->calls[i].tid == tid)
                        return &waiting->calls[i];
        return NULL;
}

/* "NUMBER ARGUMENT... SP PC"; a thread that was in no system call has "-1 SP PC". */
static bool read_call(pid_t pid, pid_t tid, struct call *ret) {
        cleanup_free char *path = xasprintf("/proc/%d/task/%d/syscall", (int) pid, (int) tid);
        cleanup_free char *text = NULL;
        size_t size;

        *ret = (struct call) { .tid = tid };
        return read_file(path, 512, &text, &size) == 0 &&
               sscanf(text, "%ld %*x %*x %*x %*x %*x %*x %llx %llx", &ret->number, &ret->sp, &ret->pc) == 3;
}

static void note_thread(struct waiting *waiting, const struct waiting *before, pid_t pid, pid_t tid) {
        const struct call *old;
        struct call call;

        if (!read_call(pid, tid, &call))
                return;
        if (call.number == SYS_restart_syscall) {
                old = find(before, tid);
                if (!old || old->sp != call.sp || old->pc != call.pc)
                        return;
                call.number = old->number;
                call.again = true;
        }
        if (image_fixup_can_restart(call.number))
                add(waiting, &call);
}

void waiting_note(struct waiting *waiting, const pid_t *pids, size_t n) {
        struct waiting before = *waiting;

        *waiting = (struct waiting) { 0 };
        for (size_t i = 0; i < n; i++) {
                cleanup_free char *path = xasprintf("/proc/%d/task", (int) pids[i]);
                cleanup_dir DIR *dir = opendir(path);
                const char *tid;

                while ((tid = next_number(dir)))
                        note_thread(waiting, &before, pids[i], (pid_t) strtol(tid, NULL, 10));
        }
        free(before.calls);
}

/* ---- to the other end ---- */

void waiting_saved_state(const struct waiting *waiting, Capsule__SavedState *saved_state) {
        saved_state->waiting = xcalloc(waiting->n + 1, sizeof(*saved_state->waiting)); /* NOLINT(bugprone-sizeof-expression) */
        for (size_t i = 0; i < waiting->n && saved_state->n_waiting < WAITING_SAVED_STATE_MAX; i++) {
                Capsule__WaitingCall *call;

                if (!waiting->calls[i].again)
                        continue;
                call = xcalloc(1, sizeof(*call));
                capsule__waiting_call__init(call);
                call->tid = (uint32_t) waiting->calls[i].tid;
                call->number = (uint32_t) waiting->calls[i].number;
                saved_state->waiting[saved_state->n_waiting++] = call;
        }
}

void waiting_saved_state_finish(Capsule__SavedState *saved_state) {
        for (size_t i = 0; i < saved_state->n_waiting; i++)
                free(saved_state->waiting[i]);
        free(saved_state->waiting);
        saved_state->waiting = NULL;
        saved_state->n_waiting = 0;
}

void waiting_set_saved_state(struct waiting *waiting, const Capsule__SavedState *saved_state) {
        waiting->n = 0;
        for (size_t i = 0; i < saved_state->n_waiting && i < WAITING_SAVED_STATE_MAX; i++) {
                const struct call call = { .tid = (pid_t) saved_state->waiting[i]->tid,
                                           .number = saved_state->waiting[i]->number,
                                           .again = true };

                add(waiting, &call);
        }
}

long waiting_again(void *waiting, pid_t tid) {
        const struct call *call = find(waiting, tid);

        return call && call->again ? call->number : -1;
}

/* ---- going on at the source ---- */

/* A thread that is interrupted comes to its stop in the freezer, or, in one of version 1, when it
 * is thawed. */
void waiting_hold(struct waiting *waiting) {
        for (size_t i = 0; i < waiting->n; i++) {
                struct call *call = &waiting->calls[i];

                call->held =
                        ptrace(PTRACE_SEIZE, call->tid, NULL, NULL) == 0 && ptrace(PTRACE_INTERRUPT, call->tid, NULL, NULL) == 0;
        }
}

/* Takes the stop of a thread: the signal, and above it the event. 0: not yet; negative: the thread
 * is no more. Its end is left for others to be told. */
static int take_stop(pid_t tid) {
        siginfo_t info = { 0 };

        if (waitid(P_PID, (id_t) tid, &info, WSTOPPED | WNOHANG | __WALL) < 0)
                return -errno;
        return info.si_pid == tid ? info.si_status : 0;
}

/* Gives a thread its call back, if it is still where it was, with EINTR: the kernel then decides as
 * for calls that it begins again by itself. */
static void give_back(const struct call *call) {
        struct user_regs_struct regs;
        uint64_t rdi, rdx;

        if (ptrace(PTRACE_GETREGS, call->tid, NULL, &regs) < 0 || regs.rip != call->pc || regs.rsp != call->sp ||
            (int64_t) regs.rax != -EINTR)
                return;
        rdi = regs.rdi;
        rdx = regs.rdx;
        interrupted_sleep_arguments(call->number, &rdi, regs.rsi, &rdx, regs.r10);
        regs.rdi = rdi;
        regs.rdx = rdx;
        regs.rax = (unsigned long long) -ERESTARTNOHAND_VALUE;
        regs.orig_rax = (unsigned long long) call->number;
        (void) ptrace(PTRACE_SETREGS, call->tid, NULL, &regs);
}

/* A signal that was on its way to it goes on, and comes before its call does. */
static void release(const struct call *call, pid_t tid, int stop) {
        bool event = stop >> 8 == PTRACE_EVENT_STOP;

        if (event && call)
                give_back(call);
        (void) ptrace(PTRACE_DETACH, tid, NULL, event ? 0L : (long) (stop & 0xff));
}

void waiting_let_go(struct waiting *waiting) {
        uint64_t deadline = now_usec() + STOP_WAIT_USEC;

        for (size_t i = 0; i < waiting->n; i++) {
                struct call *call = &waiting->calls[i];
                int stop = 0;

                while (call->held && (stop = take_stop(call->tid)) == 0 && now_usec() < deadline)
                        usleep(50);
                if (stop == 0)
                        continue;
                call->held = false;
                if (stop > 0)
                        release(call, call->tid, stop);
        }
}

void waiting_stopped(struct waiting *waiting, pid_t tid, int wait_status) {
        struct call *found = NULL;

        for (size_t i = 0; i < waiting->n && !found; i++)
                if (waiting->calls[i].tid == tid && waiting->calls[i].held)
                        found = &waiting->calls[i];
        if (found)
                found->held = false;
        release(found, tid, wait_status >> 8);
}
