/* What is known of the processes of a group. */
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
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/util.h"
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

/* A process that has locked a megabyte; with CLONE_NEWPID it is the first in a namespace of its own. */
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

int main(void) {
        const struct CMUnitTest tests[] = { cmocka_unit_test(a_list), cmocka_unit_test(a_status) };

        return cmocka_run_group_tests_name("procs", tests, NULL, NULL);
}
