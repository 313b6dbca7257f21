/* The facts about the processes of a group. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/proc_count.h"
#include "common/util.h"
#include "daemon/mover/descriptors.h"
#include "daemon/mover/procs.h"

static void a_list(void **state) {
        char path[] = "/tmp/rmd-test-procs.XXXXXX";
        cleanup_close int fd = mkstemp(path);
        cleanup_free pid_t *pids = NULL;
        cleanup_free pid_t *none = NULL;
        size_t n = 99;

        (void) state;
        assert_true(fd >= 0);
        assert_int_equal(procs_read(path, &none, &n), 0);
        assert_int_equal(n, 0);
        assert_int_equal(write_all(fd, "1\n4194303\n0\n7", 13), 0);
        assert_int_equal(procs_read(path, &pids, &n), 0);
        assert_int_equal(n, 3);
        assert_int_equal(pids[0], 1);
        assert_int_equal(pids[1], 4194303);
        assert_int_equal(pids[2], 7);
        assert_int_equal(unlink(path), 0);
        assert_int_equal(procs_read(path, &pids, &n), -ENOENT);
}

static int open_process(pid_t pid) {
        cleanup_free char *path = xasprintf("/proc/%d", (int) pid);

        return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* A process that has locked a megabyte; with CLONE_NEWPID it is the first in a namespace of its
 * own. */
static pid_t child_start(unsigned long flags) {
        pid_t pid;
        int ends[2];
        char byte;

        assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
        pid = (pid_t) syscall(SYS_clone, flags | SIGCHLD, NULL, NULL, NULL, NULL);
        if (pid == 0) {
                void *area = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

                if (area == MAP_FAILED || syscall(SYS_mlock, area, 1 << 20) < 0 || write(ends[1], "", 1) != 1)
                        _exit(1);
                for (;;)
                        (void) pause();
        }
        assert_true(pid > 0);
        (void) close(ends[1]);
        assert_int_equal(read(ends[0], &byte, 1), 1);
        (void) close(ends[0]);
        return pid;
}

static void child_end(pid_t pid) {
        assert_int_equal(kill(pid, SIGKILL), 0);
        assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void a_status(void **state) {
        cleanup_close int self = open_process(getpid());
        pid_t same = child_start(0);
        pid_t below = child_start(CLONE_NEWPID);
        cleanup_close int same_fd = open_process(same);
        cleanup_close int below_fd = open_process(below);
        struct procs_status mine = { 0 }, status = { 0 };

        (void) state;
        assert_int_equal(procs_status(self, &mine), 0);
        assert_true(mine.nesting >= 1);
        assert_int_equal(procs_status(same_fd, &status), 0);
        assert_int_equal(status.nesting, mine.nesting);
        assert_int_equal(status.inner_pid, same);
        assert_int_equal(status.locked_bytes, 1 << 20);
        assert_int_equal(procs_status(below_fd, &status), 0);
        assert_int_equal(status.nesting, mine.nesting + 1);
        assert_int_equal(status.inner_pid, 1);
        child_end(same);
        child_end(below);
        assert_int_equal(procs_status(same_fd, &status), -ESRCH);
}

/* A process that has one file open so many times. */
static pid_t holder_start(size_t n) {
        struct rlimit limit;
        int ends[2];
        char byte;
        pid_t pid;

        assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
        pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) {
                int fd = open("/etc/passwd", O_RDONLY);

                (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
                if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
                        _exit(1);
                limit.rlim_cur = limit.rlim_max;
                if (setrlimit(RLIMIT_NOFILE, &limit) < 0)
                        _exit(1);
                for (size_t i = 1; i < n; i++)
                        if (dup(fd) < 0)
                                _exit(1);
                (void) !write(ends[1], "", 1);
                for (;;)
                        (void) pause();
        }
        (void) close(ends[1]);
        assert_int_equal(read(ends[0], &byte, 1), 1);
        (void) close(ends[0]);
        return pid;
}

/* The owner decides how many descriptors there are; rm-mover, which looks at them in each round, is
 * root's. */
static void descriptors_are_looked_at_within_a_budget(void **state) {
        pid_t few = holder_start(1000), many = holder_start(PROC_DESCRIPTORS_MAX + 1);
        cleanup_close int few_fd = open_process(few), many_fd = open_process(many);
        struct procs_budget budget = { .descriptors = PROC_GROUP_DESCRIPTORS_MAX, .cpu_usec = 60000000 };
        char path[PROCS_PATH_BYTES];
        uint64_t begin_usec;

        (void) state;
        assert_int_equal(procs_reads_direct(few_fd, &budget, path), PROCS_DIRECT_NONE);
        assert_true(budget.descriptors <= PROC_GROUP_DESCRIPTORS_MAX - 1000);
        assert_true(budget.descriptors > PROC_GROUP_DESCRIPTORS_MAX - 1100);
        begin_usec = thread_cpu_usec();
        assert_int_equal(procs_reads_direct(many_fd, &budget, path), -E2BIG);
        assert_true(thread_cpu_usec() - begin_usec < 20000); /* it has counted */
        /* The descriptors of other processes have used up the budget. */
        budget.descriptors = 999;
        assert_int_equal(procs_reads_direct(few_fd, &budget, path), -E2BIG);
        budget = (struct procs_budget) { .descriptors = PROC_GROUP_DESCRIPTORS_MAX, .cpu_usec = 0 };
        assert_int_equal(procs_reads_direct(few_fd, &budget, path), -E2BIG);
        child_end(few);
        child_end(many);
        assert_int_equal(procs_reads_direct(few_fd, &budget, path), -ESRCH);
}

/* ---- by a child in another control group ---- */

/* A folder with the file by which a control group is entered; the name is malloc'ed. */
static char *group_make(void) {
        char *dir = xstrdup("/tmp/rmd-test-procs.XXXXXX");
        cleanup_free char *path = NULL;

        assert_non_null(mkdtemp(dir));
        path = xasprintf("%s/cgroup.procs", dir);
        assert_int_equal(write_file_atomic(path, "", 0, 0600, false), 0);
        return dir;
}

static pid_t only_child(void) {
        cleanup_free char *text = NULL;

        assert_int_equal(read_file("/proc/thread-self/children", 100, &text, NULL), 0);
        return (pid_t) atoi(text);
}

static void a_look_is_made_in_the_group_that_was_named(void **state) {
        cleanup_free char *dir = group_make();
        cleanup_free char *path = xasprintf("%s/cgroup.procs", dir);
        cleanup_free char *text = NULL;
        cleanup_close int own_fd = open_process(getpid());
        cleanup_close int direct_fd = open(path, O_RDONLY | O_DIRECT | O_CLOEXEC);
        struct procs_budget budget = { .descriptors = PROC_GROUP_DESCRIPTORS_MAX, .cpu_usec = 60000000 };
        char found[PROCS_PATH_BYTES];
        struct descriptors *d;

        (void) state;
        assert_true(direct_fd >= 0);
        assert_int_equal(descriptors_start(dir, &d), 0);
        assert_int_equal(descriptors_read_direct(d, own_fd, &budget, found), PROCS_DIRECT_FLAG);
        assert_string_equal(found, path);
        assert_true(budget.descriptors < PROC_GROUP_DESCRIPTORS_MAX);
        assert_true(budget.cpu_usec < 60000000);
        assert_int_equal(read_file(path, 100, &text, NULL), 0);
        assert_string_equal(text, "0"); /* itself */
        /* The group is removed with all in it. */
        assert_int_equal(kill(only_child(), SIGKILL), 0);
        assert_int_equal(descriptors_read_direct(d, own_fd, &budget, found), -EPIPE);
        descriptors_end(d);
        assert_int_equal(only_child(), 0);

        assert_int_equal(remove_tree(dir), 0);
        assert_int_equal(descriptors_start(dir, &d), 0);
        assert_int_equal(descriptors_read_direct(d, own_fd, &budget, found), -ENOENT);
        descriptors_end(d);
        assert_int_equal(descriptors_start("", &d), 0);
        assert_int_equal(descriptors_read_direct(d, own_fd, &budget, found), PROCS_DIRECT_FLAG);
        descriptors_end(d);
}

int main(void) {
        const struct CMUnitTest tests[] = { cmocka_unit_test(a_list), cmocka_unit_test(a_status),
                                            cmocka_unit_test(descriptors_are_looked_at_within_a_budget),
                                            cmocka_unit_test(a_look_is_made_in_the_group_that_was_named) };

        return cmocka_run_group_tests_name("procs", tests, NULL, NULL);
}
