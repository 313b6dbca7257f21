/* The way back from PID 1, whose part is played here: notices come to who has the name of their
 * rank. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/program_socket.h"
#include "rtlib/channel.h"

/* No rank of a job; the abstract names here are the machine's. */
static uint32_t rank_here(void) {
        return 0x80000000U | (uint32_t) getpid();
}

static ssize_t post(const void *data, size_t size) {
        struct sockaddr_un address;
        socklen_t bytes = program_socket_rank_address(rank_here(), &address);
        int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);
        ssize_t n;

        assert_true(fd >= 0);
        n = sendto(fd, data, size, MSG_NOSIGNAL, (const struct sockaddr *) &address, bytes);
        assert_int_equal(close(fd), 0);
        return n;
}

static ssize_t post_event(uint64_t serial) {
        Program__Happens happens = PROGRAM__HAPPENS__INIT;
        Program__Notice notice = PROGRAM__NOTICE__INIT;
        uint8_t data[PROGRAM_SOCKET_MESSAGE_BYTES];

        happens.event = PROGRAM__EVENT__EVENT_AFTER_MOVE;
        notice.serial = serial;
        notice.body_case = PROGRAM__NOTICE__BODY_HAPPENS;
        notice.happens = &happens;
        return post(data, program__notice__pack(&notice, data));
}

static void expect(uint64_t serial) {
        Program__Notice *notice = channel_next();

        assert_non_null(notice);
        assert_int_equal(notice->serial, serial);
        assert_int_equal(notice->happens->event, PROGRAM__EVENT__EVENT_AFTER_MOVE);
        program__notice__free_unpacked(notice, NULL);
}

static int teardown(void **state) {
        channel_close();
        return 0;
}

static void test_notices(void **state) {
        assert_null(channel_next());
        assert_true(post_event(1) < 0);
        assert_int_equal(channel_listen(rank_here()), 0);
        assert_int_equal(channel_listen(rank_here()), 0);
        errno = 77;
        assert_null(channel_next());
        assert_int_equal(errno, 77);
        assert_true(post_event(2) > 0);
        assert_true(post_event(3) > 0);
        expect(2);
        expect(3);
        assert_null(channel_next());
        channel_close();
        assert_true(post_event(4) < 0);
        assert_null(channel_next());
}

static void test_nonsense(void **state) {
        uint8_t data[4 * PROGRAM_SOCKET_MESSAGE_BYTES];

        memset(data, 0xff, sizeof(data));
        assert_int_equal(channel_listen(rank_here()), 0);
        assert_true(post(data, sizeof(data)) > 0);
        assert_true(post(data, 7) > 0);
        assert_true(post_event(8) > 0);
        expect(8);
        assert_null(channel_next());
}

/* A program that closes all that it does not know, and has something else there then. */
static void test_closed_by_program(void **state) {
        int pair[2];

        assert_int_equal(channel_listen(rank_here()), 0);
        closefrom(3);
        assert_int_equal(socketpair(AF_UNIX, SOCK_DGRAM, 0, pair), 0);
        assert_int_equal(write(pair[1], "own", 3), 3);
        assert_null(channel_next());
        assert_int_equal(channel_listen(rank_here()), 0);
        assert_true(post_event(5) > 0);
        expect(5);
        channel_close();
        assert_int_equal(read(pair[0], (char[3]) { 0 }, 3), 3);
        assert_int_equal(close(pair[0]), 0);
        assert_int_equal(close(pair[1]), 0);
}

/* A rank's socket is not taken by its children, nor by another process that claims the rank. */
static void test_two_processes(void **state) {
        uint32_t rank = rank_here();
        int status;
        pid_t pid;

        assert_int_equal(channel_listen(rank), 0);
        assert_true(post_event(6) > 0);
        pid = fork();
        if (pid == 0)
                _exit(channel_next() ? 1 : channel_listen(rank) != -EADDRINUSE);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
        expect(6);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_teardown(test_notices, teardown),
                cmocka_unit_test_teardown(test_nonsense, teardown),
                cmocka_unit_test_teardown(test_closed_by_program, teardown),
                cmocka_unit_test_teardown(test_two_processes, teardown),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
