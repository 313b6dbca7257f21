#include "daemon/mover/calls.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The usual one has fall-throughs that clang warns of. */
#define HASH_FUNCTION HASH_OAT
#include <uthash.h>

#include "common/openat.h"
#include "common/util.h"
#include "daemon/mover/procs.h"

/* Processor time in which a call has written what it has looked up, 4 MiB at most. */
#define CALL_USEC 10000U
#define STACK_BYTES 8192U
/* The kernel tells no more of a stack. */
#define STACK_LINES 64U
#define SCHED_BYTES 128U

struct thread {
        pid_t tid;
        unsigned scan; /* the last that has seen it */
        uint64_t over_usec; /* its calls from before then are over */
        /* The look that its progress is measured from, which began and was over at these times. */
        uint64_t since_usec;
        uint64_t until_usec;
        uint64_t run_nsec; /* on processors, exact when it is on none */
        uint64_t runs; /* how many times it has come to one */
        bool running;
        UT_hash_handle hh;
};

struct calls {
        struct thread *threads;
        unsigned scan;
        uint64_t over_usec;
};

struct calls *calls_create(void) {
        return xcalloc(1, sizeof(struct calls));
}

static void thread_drop(struct calls *calls, struct thread *thread) {
        HASH_DEL(calls->threads, thread);
        free(thread);
}

void calls_destroy(struct calls *calls) {
        struct thread *thread, *next;

        if (!calls)
                return;
        HASH_ITER (hh, calls->threads, thread, next)
                thread_drop(calls, thread);
        free(calls);
}

static bool text_read(int dir_fd, const char *tid, const char *name, char *text, size_t size_bytes) {
        char path[64];

        (void) snprintf(path, sizeof(path), "%s/%s", tid, name);
        return read_text_at(dir_fd, path, text, size_bytes) >= 0;
}

/* All of the stack of a thread that is not on a processor, and nothing that writes in it? */
static bool is_clear(const char *stack) {
        unsigned lines = 0;

        for (const char *at = stack; (at = strchr(at, '\n')); at++)
                lines++;
        return lines > 0 && lines < STACK_LINES && !strstr(stack, "process_vm_") && !strstr(stack, "access_remote_vm");
}

/* True if the call that the thread was in at the look before is over: it has had so much processor
 * time since. A thread that is on a processor has been there all the time if it has not come to one
 * again. A call that waits for a userfaultfd seems to advance once its thread was to be stopped, as
 * it asks again and again then: only debuggers do that, and code that begins to track a process. */
static bool has_advanced(const struct thread *thread, const struct thread *now) {
        if (!thread->running)
                return now->run_nsec - thread->run_nsec >= CALL_USEC * UINT64_C(1000);
        return now->running && now->runs == thread->runs && now->since_usec - thread->until_usec >= CALL_USEC;
}

static struct thread *thread_find(struct calls *calls, pid_t tid) {
        struct thread *thread;

        HASH_FIND(hh, calls->threads, &tid, sizeof(tid), thread);
        if (!thread) {
                thread = xcalloc(1, sizeof(*thread));
                thread->tid = tid;
                thread->running = true;
                HASH_ADD(hh, calls->threads, tid, sizeof(thread->tid), thread);
        }
        return thread;
}

/* Looks at one thread. A thread that has ended is passed over, and so are all where the kernel does
 * not tell stacks. The stack of a thread that comes to a processor meanwhile is not valid. */
static void thread_scan(struct calls *calls, int dir_fd, const char *tid) {
        char stack[STACK_BYTES], sched[SCHED_BYTES], after[SCHED_BYTES];
        struct thread now = { .since_usec = now_usec() };
        struct thread *thread;
        bool clear;

        if (!text_read(dir_fd, tid, "schedstat", sched, sizeof(sched)) || !text_read(dir_fd, tid, "stack", stack, sizeof(stack)) ||
            !text_read(dir_fd, tid, "schedstat", after, sizeof(after)))
                return;
        now.until_usec = now_usec();
        now.running = stack[0] == '\0' || strcmp(sched, after) != 0;
        clear = !now.running && is_clear(stack);
        (void) sscanf(after, "%" SCNu64 " %*u %" SCNu64, &now.run_nsec, &now.runs);
        thread = thread_find(calls, (pid_t) strtol(tid, NULL, 10));
        thread->scan = calls->scan;
        if (clear)
                thread->over_usec = now.since_usec;
        else if (has_advanced(thread, &now))
                thread->over_usec = thread->since_usec;
        else if (!thread->running || (now.running && now.runs == thread->runs))
                return;
        thread->since_usec = now.since_usec;
        thread->until_usec = now.until_usec;
        thread->run_nsec = now.run_nsec;
        thread->runs = now.runs;
        thread->running = now.running;
}

static void process_scan(struct calls *calls, pid_t pid) {
        cleanup_free char *path = xasprintf("/proc/%d/task", (int) pid);
        cleanup_dir DIR *dir = opendir(path);
        const char *tid;

        while ((tid = next_number(dir)))
                thread_scan(calls, dirfd(dir), tid);
}

int calls_scan(struct calls *calls, const char *procs_file) {
        cleanup_free pid_t *pids = NULL;
        uint64_t over_usec = now_usec();
        struct thread *thread, *next;
        size_t n = 0;
        int r = procs_read(procs_file, &pids, &n);

        if (r < 0)
                return r;
        calls->scan++;
        for (size_t i = 0; i < n; i++)
                process_scan(calls, pids[i]);
        HASH_ITER (hh, calls->threads, thread, next) {
                if (thread->scan != calls->scan)
                        thread_drop(calls, thread);
                else if (thread->over_usec < over_usec)
                        over_usec = thread->over_usec;
        }
        calls->over_usec = over_usec;
        return 0;
}

uint64_t calls_over_usec(const struct calls *calls) {
        return calls->over_usec;
}
