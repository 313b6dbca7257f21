/* A service manager that waits for "READY=1" and never gets it takes rmd for one that does not
 * start, and kills it. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/util.h"
#include "daemon/setup/notify.h"

static int manager(const char *name, bool abstract) {
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

        assert_true(fd >= 0);
        memcpy(address.sun_path, name, strlen(name));
        if (abstract)
                address.sun_path[0] = '\0';
        assert_int_equal(bind(fd, (struct sockaddr *) &address,
                              (socklen_t) (offsetof(struct sockaddr_un, sun_path) + strlen(name))),
                         0);
        return fd;
}

static void hears(int fd, const char *requested) {
        char text[128] = "";

        assert_int_equal(recv(fd, text, sizeof(text) - 1, MSG_DONTWAIT), (ssize_t) strlen(requested));
        assert_string_equal(text, requested);
}

static void test_path(void **state) {
        char dir[] = "/tmp/test-notify.XXXXXX";
        cleanup_free char *name = NULL;
        int fd;

        assert_non_null(mkdtemp(dir));
        name = xasprintf("%s/socket", dir);
        assert_int_equal(notify_send(name, "READY=1"), -ENOENT);
        fd = manager(name, false);
        assert_int_equal(notify_send(name, "READY=1"), 0);
        hears(fd, "READY=1");
        close(fd);
        assert_int_equal(notify_send(name, "STOPPING=1"), -ECONNREFUSED);
        assert_int_equal(remove_tree(dir), 0);
}

static void test_abstract(void **state) {
        cleanup_free char *name = xasprintf("@test-notify-%d", (int) getpid());
        int fd = manager(name, true);

        assert_int_equal(notify_send(name, "STATUS=leader: n1"), 0);
        hears(fd, "STATUS=leader: n1");
        close(fd);
}

/* rmd must not stand still because of a manager that does not read. */
static void test_full(void **state) {
        cleanup_free char *name = xasprintf("@test-notify-full-%d", (int) getpid());
        int fd = manager(name, true);
        int r = 0;

        for (int i = 0; i < 100000 && r == 0; i++)
                r = notify_send(name, "STATUS=again");
        assert_int_equal(r, -EAGAIN);
        close(fd);
}

static void test_bad_names(void **state) {
        char longer[200];

        memset(longer, 'x', sizeof(longer) - 1);
        longer[0] = '/';
        longer[sizeof(longer) - 1] = '\0';
        assert_int_equal(notify_send(NULL, "READY=1"), 0);
        assert_int_equal(notify_send("", "READY=1"), -EAFNOSUPPORT);
        assert_int_equal(notify_send("vsock:2:1234", "READY=1"), -EAFNOSUPPORT);
        assert_int_equal(notify_send(longer, "READY=1"), -ENAMETOOLONG);
}

static void test_environment(void **state) {
        cleanup_free char *taken = NULL;

        assert_int_equal(setenv("NOTIFY_SOCKET", "/run/x", 1), 0);
        taken = notify_take_socket();
        assert_string_equal(taken, "/run/x");
        assert_null(getenv("NOTIFY_SOCKET"));
        assert_null(notify_take_socket());
        assert_int_equal(setenv("NOTIFY_SOCKET", "", 1), 0);
        assert_null(notify_take_socket());
        assert_null(getenv("NOTIFY_SOCKET"));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_path),      cmocka_unit_test(test_abstract),    cmocka_unit_test(test_full),
                cmocka_unit_test(test_bad_names), cmocka_unit_test(test_environment),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
