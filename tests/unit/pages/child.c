#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "child.h"

#include <dirent.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/util.h"

void priority_normal(void) {
        const struct sched_param param = { 0 };

        /* A kernel without groups of sessions has no such file. */
        (void) write_text("/proc/self/autogroup", "0");
        if (sched_setscheduler(0, SCHED_OTHER, &param) < 0 || setpriority(PRIO_PROCESS, 0, 0) < 0)
                print_message("the test keeps its low priority, and may be too slow\n");
}

#define CHILDREN_MAX 64

static pid_t children[CHILDREN_MAX]; /* that have not been ended; 0: free */

static void note_child(pid_t before, pid_t now) {
        for (size_t i = 0; i < CHILDREN_MAX; i++)
                if (children[i] == before) {
                        children[i] = now;
                        return;
                }
}

void children_end(void) {
        for (size_t i = 0; i < CHILDREN_MAX; i++) {
                if (children[i] == 0)
                        continue;
                (void) kill(children[i], SIGKILL);
                (void) waitpid(children[i], NULL, 0);
                children[i] = 0;
        }
}

struct child child_begin(void (*function)(int link)) {
        struct child child;
        int ends[2];

        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
        child.pid = fork();
        if (child.pid == 0) {
                (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
                (void) close(ends[0]);
                function(ends[1]);
                _exit(0);
        }
        assert_true(child.pid > 0);
        note_child(0, child.pid);
        (void) close(ends[1]);
        child.link = ends[0];
        child.pidfd = (int) syscall(SYS_pidfd_open, child.pid, 0);
        assert_true(child.pidfd >= 0);
        child_expect(&child);
        return child;
}

static int await_end(struct child *child) {
        int status = -1;

        assert_int_equal(waitpid(child->pid, &status, 0), child->pid);
        note_child(child->pid, 0);
        (void) close(child->pidfd);
        (void) close(child->link);
        return status;
}

int child_end(struct child *child) {
        (void) kill(child->pid, SIGKILL);
        return await_end(child);
}

void child_finish(struct child *child) {
        assert_int_equal(await_end(child), 0);
}

void child_check(bool condition, const char *text, int line) {
        if (condition)
                return;
        (void) fprintf(stderr, "child: line %d: not true: %s\n", line, text);
        _exit(1);
}

void child_ready(int link) {
        child_assert(write_all(link, "", 1) == 0);
}

void child_wait(int link) {
        char byte;

        child_assert(read_all(link, &byte, 1) == 0);
}

void child_go(const struct child *child) {
        assert_int_equal(write_all(child->link, "", 1), 0);
}

void child_expect(const struct child *child) {
        char byte;

        assert_int_equal(read_all(child->link, &byte, 1), 0);
}

char *child_status(pid_t pid, const char *name) {
        cleanup_free char *path = xasprintf("/proc/%d/status", (int) pid);
        cleanup_free char *text = NULL;
        cleanup_free char *requested = xasprintf("\n%s:", name);
        const char *line;

        assert_int_equal(read_file(path, 1U << 20, &text, NULL), 0);
        line = strstr(text, requested);
        assert_non_null(line);
        return strndup(line + 1, strcspn(line + 1, "\n"));
}

static char *thread_call(pid_t pid, const char *tid) {
        cleanup_free char *path = xasprintf("/proc/%d/task/%s/syscall", (int) pid, tid);
        char *text = NULL;

        /* The thread may have ended. */
        if (read_file(path, 512, &text, NULL) < 0)
                return xstrdup("");
        text[strcspn(text, " \n")] = '\0';
        return text;
}

char *child_calls(pid_t pid) {
        cleanup_free char *path = xasprintf("/proc/%d/task", (int) pid);
        DIR *dir = opendir(path);
        char *calls = xstrdup("");
        struct dirent *entry;

        assert_non_null(dir);
        while ((entry = readdir(dir))) {
                cleanup_free char *before = calls;
                cleanup_free char *call = entry->d_name[0] == '.' ? NULL : thread_call(pid, entry->d_name);

                calls = xasprintf("%s%s%s", before, call ? " " : "", call ? call : "");
        }
        (void) closedir(dir);
        return calls;
}

void child_settle(const struct child *child) {
        for (int i = 0; i < 2000; i++) {
                cleanup_free char *line = child_status(child->pid, "State");
                cleanup_free char *calls = child_calls(child->pid);

                if (!strstr(line, "running") && !strstr(calls, "running"))
                        return;
                (void) usleep(1000);
        }
        fail_msg("child %d does not come to rest", (int) child->pid);
}

unsigned child_descriptors(pid_t pid) {
        cleanup_free char *path = xasprintf("/proc/%d/fd", (int) pid);
        DIR *dir = opendir(path);
        unsigned n = 0;

        assert_non_null(dir);
        while (readdir(dir))
                n++;
        (void) closedir(dir);
        return n;
}
