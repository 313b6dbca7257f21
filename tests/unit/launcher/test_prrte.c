/* rm-prrte: what it takes out of the environment, and process groups of children that run another
 * program already. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/capsule/rank_end.h"
#include "launcher/prrte/rm-prrte.h"

static void test_environment(void **state) {
        static const struct {
                const char *before, *after; /* NULL: it is gone */
        } cases[] = {
                { "LD_PRELOAD=" PRRTE_PRELOAD, NULL },
                { "LD_PRELOAD=a.so:" PRRTE_PRELOAD, "LD_PRELOAD=a.so" },
                { "LD_PRELOAD=" PRRTE_PRELOAD ":a.so", "LD_PRELOAD=a.so" },
                { "LD_PRELOAD=a.so b.so:" PRRTE_PRELOAD ":/c/d.so", "LD_PRELOAD=a.so:b.so:/c/d.so" },
                { "LD_PRELOAD=a.so:" PRRTE_PRELOAD "x", "LD_PRELOAD=a.so:" PRRTE_PRELOAD "x" },
                { "LD_PRELOADED=" PRRTE_PRELOAD, "LD_PRELOADED=" PRRTE_PRELOAD },
                { PRRTE_VARIABLE "12=BASH_FUNC_f%%=() { a=b\n}", "BASH_FUNC_f%%=() { a=b\n}" },
                { PRRTE_VARIABLE "0==", "=" },
        };

        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
                char text[128], first[] = "A=b", last[] = "C=d";
                char *env[] = { first, text, last, NULL };
                size_t n = cases[i].after ? 3 : 2;

                (void) snprintf(text, sizeof(text), "%s", cases[i].before);
                prrte_clean_environment(env, PRRTE_PRELOAD);
                assert_string_equal(env[0], "A=b");
                assert_string_equal(env[n - 1], "C=d");
                assert_null(env[n]);
                if (cases[i].after)
                        assert_string_equal(env[1], cases[i].after);
        }
}

/* A child that is in the group that it asked for itself, and runs another program. */
static pid_t start(pid_t group) {
        int fds[2];
        char byte;
        pid_t pid;

        assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
        pid = fork();
        if (pid == 0) {
                (void) setpgid(0, group);
                (void) execl("/bin/sleep", "sleep", "60", NULL);
                _exit(127);
        }
        close(fds[1]);
        assert_int_equal(read(fds[0], &byte, 1), 0); /* execve() has closed it */
        close(fds[0]);
        return pid;
}

static void stop(pid_t pid) {
        (void) kill(pid, SIGKILL);
        assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void test_group_of_late_child(void **state) {
        pid_t own, other;

        (void) syscall(SYS_setpgid, 0, 0); /* that of the shell may be of another pid namespace, where it is 0 */
        own = start(0);
        other = start(getpgrp());
        assert_int_equal(syscall(SYS_setpgid, own, own), -1); /* what PRRTE would see */
        assert_int_equal(errno, EACCES);
        assert_int_equal(setpgid(own, own), 0);
        assert_int_equal(setpgid(own, 0), 0);
        /* The child does not have that group. */
        assert_int_equal(setpgid(other, other), -1);
        assert_int_equal(errno, EACCES);
        stop(own);
        stop(other);
        assert_int_equal(setpgid(own, own), -1);
        assert_int_equal(errno, ESRCH);
}

static volatile sig_atomic_t children;

static struct rank_end_record read_record(int fd) {
        struct rank_end_record record;
        struct stat st = { 0 };

        /* A child may have to write it yet. */
        while (fstat(fd, &st) == 0 && st.st_size == lseek(fd, 0, SEEK_CUR))
                usleep(1000);
        assert_int_equal(read(fd, &record, sizeof(record)), sizeof(record));
        return record;
}

static void on_child(int signo) {
        children++;
}

/* Starts a rank as PRRTE does. */
static pid_t start_rank(int status) {
        pid_t pid = fork();

        if (pid == 0) {
                (void) setpgid(0, 0);
                if (status == 0)
                        pause();
                _exit(status);
        }
        return pid;
}

static void test_daemon_writes_ends(void **state) {
        char path[] = "/tmp/rm-prrte-XXXXXX";
        int fd = mkstemp(path), status = 0;
        struct rank_end_record record;
        pid_t first, second;

        assert_true(fd >= 0);
        prrte_set_daemon(path);
        first = start_rank(3);
        assert_int_equal(waitpid(-1, &status, 0), first);
        assert_int_equal(WEXITSTATUS(status), 3);
        record = read_record(fd);
        assert_int_equal(record.kind, RANK_BEGUN);
        assert_int_equal(record.pid, first);
        record = read_record(fd);
        assert_int_equal(record.kind, RANK_ENDED);
        assert_int_equal(record.pid, first);
        assert_int_equal(record.status, status);
        assert_true(record.real_usec > UINT64_C(1500000000000000));
        second = start_rank(0);
        assert_int_equal(read_record(fd).kind, RANK_BEGUN);
        assert_int_equal(waitpid(-1, NULL, WNOHANG), 0);
        (void) kill(second, SIGCONT); /* kills nobody */
        (void) kill(second, SIGTERM);
        assert_int_equal(waitpid(second, NULL, 0), second);
        record = read_record(fd);
        assert_int_equal(record.kind, RANK_KILLED);
        assert_int_equal(record.pid, second);
        assert_int_equal(waitpid(-1, &status, 0), -1);
        assert_int_equal(errno, ECHILD);
        assert_int_equal(read(fd, &record, 1), 0);
        /* A process that is no daemon writes no records. */
        prrte_set_daemon(NULL);
        first = start_rank(3);
        assert_int_equal(waitpid(first, &status, 0), first);
        assert_int_equal(read(fd, &record, 1), 0);
        close(fd);
        (void) unlink(path);
}

/* mpirun has told it to kill them before it looks: the first one has ended by itself. */
static void test_end_is_seen_at_once(void **state) {
        struct sigaction action = { .sa_handler = on_child, .sa_flags = SA_RESTART };
        char path[] = "/tmp/rm-prrte-XXXXXX";
        int fd = mkstemp(path), status = 0;
        struct rank_end_record record;
        pid_t first, second;

        assert_true(fd >= 0);
        prrte_set_daemon(path);
        assert_int_equal(sigaction(SIGCHLD, &action, NULL), 0);
        second = start_rank(0);
        assert_int_equal(read_record(fd).pid, second);
        first = start_rank(3);
        while (children == 0)
                usleep(1000);
        (void) kill(second, SIGKILL);
        assert_int_equal(waitpid(first, &status, 0), first);
        assert_int_equal(waitpid(second, NULL, 0), second);
        assert_int_equal(read_record(fd).kind, RANK_BEGUN);
        record = read_record(fd);
        assert_int_equal(record.kind, RANK_ENDED);
        assert_int_equal(record.pid, first);
        assert_int_equal(record.status, status);
        record = read_record(fd);
        assert_int_equal(record.kind, RANK_KILLED);
        assert_int_equal(record.pid, second);
        assert_int_equal(read(fd, &record, 1), 0);
        (void) signal(SIGCHLD, SIG_DFL);
        prrte_set_daemon(NULL);
        close(fd);
        (void) unlink(path);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_environment),
                cmocka_unit_test(test_group_of_late_child),
                cmocka_unit_test(test_daemon_writes_ends),
                cmocka_unit_test(test_end_is_seen_at_once),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
