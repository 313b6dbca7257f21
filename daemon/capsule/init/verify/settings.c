#include "daemon/capsule/init/verify/settings.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/ioprio.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/error.h"
#include "common/openat.h"
#include "common/util.h"

/* Returns the number in a file of /proc, or without the file `otherwise`. */
static uint64_t read_number(int dir_fd, const char *name, int base, uint64_t otherwise) {
        char text[32];

        return read_text_at(dir_fd, name, text, sizeof(text)) > 0 ? strtoull(text, NULL, base) : otherwise;
}

static int write_number(const char *path, uint64_t number) {
        char text[32];

        (void) snprintf(text, sizeof(text), "%" PRIu64, number);
        return write_text(path, text);
}

/* /proc/PID/task/TID has no such file, but /proc/TID has. */
static const char *slack_path(char path[48], uint32_t tid) {
        (void) snprintf(path, 48, "/proc/%" PRIu32 "/timerslack_ns", tid);
        return path;
}

static uint64_t slack_of(uint32_t tid) {
        char path[48];

        return read_number(AT_FDCWD, slack_path(path, tid), 10, 0);
}

/* Older kernels say a level of what has no class, and take none. */
static uint32_t io_priority_of(uint32_t tid) {
        long value = syscall(SYS_ioprio_get, IOPRIO_WHO_PROCESS, (int) tid);

        return value > 0 && IOPRIO_PRIO_CLASS(value) != IOPRIO_CLASS_NONE ? (uint32_t) value : 0;
}

void settings_take(int task_fd, Capsule__InventoryTask *task) {
        task->settings = true;
        task->coredump_filter = (uint32_t) read_number(task_fd, "coredump_filter", 16, 0);
        for (size_t i = 0; i < task->n_threads; i++) {
                task->threads[i]->io_priority = io_priority_of(task->threads[i]->tid);
                task->threads[i]->timer_slack_nsec = slack_of(task->threads[i]->tid);
        }
}

/* A slack of 0 is that of a thread with a real-time policy, which CRIU does not restore. */
static int make_thread(const Capsule__InventoryThread *thread, struct rm_error *error) {
        char path[48];
        int r;

        if (io_priority_of(thread->tid) != thread->io_priority &&
            syscall(SYS_ioprio_set, IOPRIO_WHO_PROCESS, (int) thread->tid, (int) thread->io_priority) < 0)
                return error_sys(error, -errno, "thread %" PRIu32 " cannot have the I/O priority %#" PRIx32, thread->tid,
                                 thread->io_priority);
        if (thread->timer_slack_nsec == 0 || slack_of(thread->tid) == thread->timer_slack_nsec)
                return 0;
        r = write_number(slack_path(path, thread->tid), thread->timer_slack_nsec);
        return r < 0 ? error_sys(error, r, "thread %" PRIu32 " cannot have a timer slack of %" PRIu64 " ns", thread->tid,
                                 thread->timer_slack_nsec)
                     : 0;
}

static int make_task(const Capsule__InventoryTask *task, struct rm_error *error) {
        char path[48];
        int r = 0;

        (void) snprintf(path, sizeof(path), "/proc/%" PRIu32 "/coredump_filter", task->pid);
        if (read_number(AT_FDCWD, path, 16, task->coredump_filter) != task->coredump_filter)
                r = write_number(path, task->coredump_filter);
        if (r < 0)
                return error_sys(error, r, "process %" PRIu32 " cannot have the coredump_filter %#" PRIx32, task->pid,
                                 task->coredump_filter);
        for (size_t i = 0; i < task->n_threads && r == 0; i++)
                r = make_thread(task->threads[i], error);
        return r;
}

int settings_make(const Capsule__Inventory *inventory, struct rm_error *error) {
        int r = 0;

        for (size_t i = 0; i < inventory->n_tasks && r == 0; i++)
                if (inventory->tasks[i]->settings)
                        r = make_task(inventory->tasks[i], error);
        return r;
}
