/* rm-prrte: what it takes out of the environment, and process groups of children that run another program already. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

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
        pid_t own = start(0), other = start(getpgrp());

        assert_int_equal(syscall(SYS_setpgid, own, own), -1); /* what PRRTE would see */
        assert_int_equal(errno, EACCES);
        assert_int_equal(setpgid(own, own), 0);
        assert_int_equal(setpgid(own, 0), 0);
        /* It does not have it. */
        assert_int_equal(setpgid(other, other), -1);
        assert_int_equal(errno, EACCES);
        stop(own);
        stop(other);
        assert_int_equal(setpgid(own, own), -1);
        assert_int_equal(errno, ESRCH);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_environment),
                cmocka_unit_test(test_group_of_late_child),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
