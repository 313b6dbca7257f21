/* Resource limits of the process that connected, and of no other. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/util.h"
#include "daemon/requests/limits.h"

static void test_parse(void **state) {
        static const char text[] = "Limit                     Soft Limit           Hard Limit           Units     \n"
                                   "Max cpu time              600                  unlimited            seconds   \n"
                                   "Max open files            500                  4096                 files     \n"
                                   "Max new thing             1                    2                    things    \n";
        Rm__JobSpec *spec = xcalloc(1, sizeof(*spec));
        struct limits limits;

        assert_int_equal(limits_parse(text, &limits), 0);
        assert_int_equal(limits.n, 2);
        assert_int_equal(limits.items[0].resource, RLIMIT_CPU);
        assert_int_equal(limits.items[0].soft, 600);
        assert_true(limits.items[0].hard == RLIM_INFINITY);
        assert_int_equal(limits.items[1].hard, 4096);
        rm__job_spec__init(spec);
        limits_set(spec, &limits);
        limits_set(spec, &limits); /* replaces */
        assert_int_equal(spec->n_rlimits, 2);
        assert_int_equal(spec->rlimits[1]->soft, 500);
        rm__job_spec__free_unpacked(spec, NULL);
        assert_int_equal(limits_parse("", &limits), -EINVAL);
        assert_int_equal(limits_parse("nonsense\nmore of it\n", &limits), -EINVAL);
}

static void test_status(void **state) {
        assert_true(limits_status_is("Name:\tx\nUid:\t1000\t1000\t1000\t1000\nGid:\t1\t1\t1\t1\n", 1000));
        assert_false(limits_status_is("Name:\tx\nUid:\t1000\t1000\t0\t1000\n", 1000)); /* may become root again */
        assert_false(limits_status_is("Name:\tx\nUid:\t1000\t0\t0\t0\n", 1000));
        assert_false(limits_status_is("Name:\tx\nUid:\t1000\t1000\n", 1000));
        assert_false(limits_status_is("Name:\tUid:\t7\t7\t7\t7\n", 7)); /* a process may call itself so */
        assert_false(limits_status_is("", 0));
}

/* A child connects, and does what `after` says; its end of the socket stays open here. */
enum after { AFTER_STAY, AFTER_END };

static int connect_child(enum after after, struct ucred *ret_creds, pid_t *ret_pid) {
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        cleanup_close int listening = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        socklen_t size = sizeof(*ret_creds), address_bytes = sizeof(address);
        int fd;

        /* By itself the kernel finds a name. */
        assert_int_equal(bind(listening, (struct sockaddr *) &address, sizeof(sa_family_t)), 0);
        assert_int_equal(getsockname(listening, (struct sockaddr *) &address, &address_bytes), 0);
        assert_int_equal(listen(listening, 1), 0);
        *ret_pid = fork();
        if (*ret_pid == 0) {
                struct rlimit limit = { 77, 78 };
                int mine = socket(AF_UNIX, SOCK_STREAM, 0);

                (void) setrlimit(RLIMIT_NOFILE, &limit);
                if (connect(mine, (struct sockaddr *) &address, address_bytes) < 0)
                        _exit(1);
                if (after == AFTER_STAY)
                        (void) pause();
                _exit(0);
        }
        fd = accept4(listening, NULL, NULL, SOCK_CLOEXEC);
        assert_true(fd >= 0);
        assert_int_equal(getsockopt(fd, SOL_SOCKET, SO_PEERCRED, ret_creds, &size), 0);
        if (after == AFTER_END)
                assert_int_equal(waitpid(*ret_pid, NULL, 0), *ret_pid);
        return fd;
}

static void test_of_the_process_that_connected(void **state) {
        struct limits *limits = NULL;
        struct rm_error err = { 0 };
        struct ucred creds;
        pid_t pid;
        cleanup_close int fd = connect_child(AFTER_STAY, &creds, &pid);
        uint64_t files = 0;

        assert_int_equal(limits_of_peer(fd, &creds, &limits, &err), 0);
        for (size_t i = 0; i < limits->n; i++)
                if (limits->items[i].resource == RLIMIT_NOFILE)
                        files = limits->items[i].soft;
        assert_int_equal(files, 77);
        free(limits);
        /* The process runs as another user than when it connected. */
        creds.uid++;
        assert_int_equal(limits_of_peer(fd, &creds, &limits, &err), -EPERM);
        (void) kill(pid, SIGKILL);
        (void) waitpid(pid, NULL, 0);
}

/* The pid may be another process's by now: here that of the test itself. */
static void test_process_that_has_ended_lends_no_limits(void **state) {
        struct limits *limits = NULL;
        struct rm_error err = { 0 };
        struct ucred creds;
        pid_t pid;
        cleanup_close int fd = connect_child(AFTER_END, &creds, &pid);

        assert_int_equal(limits_of_peer(fd, &creds, &limits, &err), -ESRCH);
        creds.pid = getpid();
        assert_int_equal(limits_of_peer(fd, &creds, &limits, &err), -ESRCH);
        assert_non_null(strstr(err.text, "has ended"));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_parse),
                cmocka_unit_test(test_status),
                cmocka_unit_test(test_of_the_process_that_connected),
                cmocka_unit_test(test_process_that_has_ended_lends_no_limits),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
