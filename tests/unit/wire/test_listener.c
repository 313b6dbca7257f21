/* Listening sockets: replaced when left behind, never taken from a daemon that lives. */
#include "wire_test.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "daemon/wire/listener.h"

static void on_accept(void *userdata, int fd, const char *name) {
        unsigned *accepted = userdata;

        (*accepted)++;
        assert_non_null(name);
        (void) close(fd);
}

static int connect_unix(const char *path) {
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        int fd = socket(AF_UNIX, SOCK_STREAM, 0);

        (void) snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
        if (connect(fd, (struct sockaddr *) &address, sizeof(address)) < 0) {
                (void) close(fd);
                return -errno;
        }
        return fd;
}

static void test_unix(void **state) {
        struct event_base *base = event_base_new();
        char dir[] = "/tmp/test-listener-XXXXXX";
        struct listener *first = NULL;
        struct listener *second = NULL;
        struct rm_error err = { 0 };
        unsigned accepted = 0;
        struct stat st;
        int fds[40];

        assert_non_null(mkdtemp(dir));
        cleanup_free char *path = xasprintf("%s/rmd.sock", dir);

        assert_int_equal(listener_create_unix(base, path, 0666, on_accept, &accepted, &first, &err), 0);
        assert_int_equal(stat(path, &st), 0);
        assert_int_equal(st.st_mode & 07777, 0666);
        assert_int_equal(listener_create_unix(base, path, 0666, on_accept, &accepted, &second, &err), -EADDRINUSE);
        for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
                fds[i] = connect_unix(path);
        RUN_UNTIL(base, accepted == ARRAY_SIZE(fds), 30000);
        assert_int_equal(accepted, ARRAY_SIZE(fds));
        for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
                (void) close(fds[i]);
        listener_destroy(first);
        assert_int_equal(stat(path, &st), -1);
        event_base_free(base);
        (void) remove_tree(dir);
}

/* ---- who is to wait ---- */

struct space {
        unsigned accepted;
        unsigned max;
};

static bool has_space(void *userdata) {
        const struct space *space = userdata;

        return space->accepted < space->max;
}

static void on_space_accept(void *userdata, int fd, const char *name) {
        struct space *space = userdata;

        on_accept(&space->accepted, fd, name);
}

static void test_waits_for_room(void **state) {
        struct event_base *base = event_base_new();
        char dir[] = "/tmp/test-listener-XXXXXX";
        struct space space = { .max = 3 };
        struct listener *listener = NULL;
        struct rm_error err = { 0 };
        int fds[5];

        assert_non_null(mkdtemp(dir));
        cleanup_free char *path = xasprintf("%s/rmd.sock", dir);

        assert_int_equal(listener_create_unix(base, path, 0666, on_space_accept, &space, &listener, &err), 0);
        listener_set_ready(listener, has_space);
        for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
                fds[i] = connect_unix(path);
        RUN_UNTIL(base, space.accepted == 3, 30000);
        RUN_UNTIL(base, space.accepted > 3, 100);
        assert_int_equal(space.accepted, 3);
        space.max = 5;
        RUN_UNTIL(base, space.accepted == 5, 30000);
        assert_int_equal(space.accepted, 5);
        for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
                (void) close(fds[i]);
        listener_destroy(listener);
        event_base_free(base);
        (void) remove_tree(dir);
}

static void test_left_behind(void **state) {
        struct event_base *base = event_base_new();
        char dir[] = "/tmp/test-listener-XXXXXX";
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        struct listener *listener = NULL;
        struct rm_error err = { 0 };
        unsigned accepted = 0;
        int fd;

        assert_non_null(mkdtemp(dir));
        cleanup_free char *path = xasprintf("%s/rmd.sock", dir);

        (void) snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
        fd = socket(AF_UNIX, SOCK_STREAM, 0);
        assert_int_equal(bind(fd, (struct sockaddr *) &address, sizeof(address)), 0);
        (void) close(fd); /* as after kill -9 */
        assert_int_equal(listener_create_unix(base, path, 0666, on_accept, &accepted, &listener, &err), 0);
        fd = connect_unix(path);
        assert_true(fd >= 0);
        (void) close(fd);
        listener_destroy(listener);
        /* A file that is no socket belongs to another program. */
        assert_int_equal(write_file_atomic(path, "x", 1, 0600, false), 0);
        assert_int_equal(listener_create_unix(base, path, 0666, on_accept, &accepted, &listener, &err), -EEXIST);
        assert_int_equal(access(path, F_OK), 0);
        event_base_free(base);
        (void) remove_tree(dir);
}

static void test_tcp(void **state) {
        struct event_base *base = event_base_new();
        struct listener *listener = NULL;
        struct listener *second = NULL;
        struct rm_error err = { 0 };
        struct sockaddr_in in = { .sin_family = AF_INET };
        unsigned accepted = 0;
        int fd = socket(AF_INET, SOCK_STREAM, 0);

        assert_int_equal(listener_create_tcp(base, "127.0.0.1", 0, on_accept, &accepted, &listener, &err), 0);
        assert_true(listener_port(listener) > 0);
        assert_int_equal(listener_create_tcp(base, "127.0.0.1", listener_port(listener), on_accept, NULL, &second, &err),
                         -EADDRINUSE);
        assert_int_equal(listener_create_tcp(base, "nowhere", 0, on_accept, NULL, &second, &err), -EINVAL);
        in.sin_port = htons(listener_port(listener));
        (void) inet_pton(AF_INET, "127.0.0.1", &in.sin_addr);
        assert_int_equal(connect(fd, (struct sockaddr *) &in, sizeof(in)), 0);
        RUN_UNTIL(base, accepted == 1, 30000);
        assert_int_equal(accepted, 1);
        (void) close(fd);
        listener_destroy(listener);
        event_base_free(base);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_unix),
                cmocka_unit_test(test_waits_for_room),
                cmocka_unit_test(test_left_behind),
                cmocka_unit_test(test_tcp),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
