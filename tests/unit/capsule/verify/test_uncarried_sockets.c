/* Sockets that CRIU refuses, or would carry wrongly, are seen before CRIU is asked, and those that
 * are like them but carried are not taken for them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/util.h"
#include "daemon/capsule/init/net/sock_diag.h"
#include "tests/unit/capsule/verify/holders.h"

#ifndef IPPROTO_MPTCP
#define IPPROTO_MPTCP 262
#endif

static int ends[2];

static void unaccepted(void) {
        connect_inet(ends);
}

static void mptcp(void) {
        must(socket(AF_INET, SOCK_STREAM, IPPROTO_MPTCP) >= 0);
}

static void ordinary_sockets(void) {
        must(socket(AF_INET, SOCK_STREAM, 0) >= 0 && socket(AF_INET6, SOCK_DGRAM, 0) >= 0 &&
             socket(AF_UNIX, SOCK_SEQPACKET, 0) >= 0 && socket(AF_UNIX, SOCK_STREAM, 0) >= 0 &&
             socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE) >= 0);
}

static void connect_unix(int type) {
        struct sockaddr_un name = { .sun_family = AF_UNIX };

        (void) snprintf(name.sun_path + 1, sizeof(name.sun_path) - 1, "rmd-test-uncarried.%d", (int) getpid());
        ends[0] = socket(AF_UNIX, type, 0);
        ends[1] = socket(AF_UNIX, type, 0);
        must(bind(ends[0], (struct sockaddr *) &name, sizeof(name)) == 0 && listen(ends[0], 4) == 0 &&
             connect(ends[1], (struct sockaddr *) &name, sizeof(name)) == 0);
}

static void accepted(void) {
        connect_inet(ends);
        must(accept(ends[0], NULL, NULL) >= 0);
}

/* Fills a connection: one end has sent more than the other one takes. */
static int fill_connection(void) {
        static char data[1 << 20];
        int fd;

        connect_inet(ends);
        fd = accept(ends[0], NULL, NULL);
        must(fd >= 0 && fcntl(ends[1], F_SETFL, O_NONBLOCK) == 0);
        while (write(ends[1], data, sizeof(data)) > 0)
                ;
        return fd;
}

static void closed_with_data(void) {
        (void) fill_connection();
        must(close(ends[1]) == 0);
}

static void closed_after_other_end(void) {
        int fd = fill_connection();

        must(shutdown(fd, SHUT_WR) == 0);
        while (recv(ends[1], &fd, sizeof(fd), 0) != 0)
                ;
        must(close(ends[1]) == 0);
}

static void shut_down_with_data(void) {
        (void) fill_connection();
        must(shutdown(ends[1], SHUT_WR) == 0);
}

static void closed_without_data(void) {
        accepted();
        must(close(ends[1]) == 0);
}

/* CRIU makes it anew. */
static void unix_waits(void) {
        connect_unix(SOCK_STREAM);
}

static void unix_with_request(void) {
        connect_unix(SOCK_STREAM);
        must(write(ends[1], "x", 1) == 1);
}

static void packets_with_request(void) {
        connect_unix(SOCK_SEQPACKET);
        must(write(ends[1], "x", 1) == 1);
}

static void unix_given_up(void) {
        connect_unix(SOCK_STREAM);
        (void) close(ends[1]);
}

static void unix_accepted(void) {
        unix_with_request();
        must(accept(ends[0], NULL, NULL) >= 0);
}

/* The other end is the child's, which is not looked at. */
static void connected_outside(void) {
        int pair[2];

        must(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
        if (fork() == 0) {
                (void) close(pair[0]);
                (void) stay(NULL);
        }
        (void) close(pair[1]);
}

static void datagrams(bool pair_is_left) {
        struct sockaddr_un name = { .sun_family = AF_UNIX };
        int pair[2], fd = socket(AF_UNIX, SOCK_DGRAM, 0);

        (void) snprintf(name.sun_path + 1, sizeof(name.sun_path) - 1, "rmd-test-uncarried.%d", (int) getpid());
        must(socketpair(AF_UNIX, SOCK_DGRAM, 0, pair) == 0 && bind(fd, (struct sockaddr *) &name, sizeof(name)) == 0);
        must(connect(pair_is_left ? pair[0] : socket(AF_UNIX, SOCK_DGRAM, 0), (struct sockaddr *) &name, sizeof(name)) == 0);
}

static void one_way(void) {
        datagrams(true);
}

static void to_a_name(void) {
        datagrams(false);
}

static void unread(int type, int option) {
        int pair[2], on = 1;

        must(socketpair(AF_UNIX, type, 0, pair) == 0);
        must(option == 0 || setsockopt(pair[1], SOL_SOCKET, option, &on, sizeof(on)) == 0);
        must(write(pair[0], "x", 1) == 1);
}

static void unread_without_option(void) {
        unread(SOCK_STREAM, 0);
}

static void unread_stream_with_credentials(void) {
        unread(SOCK_STREAM, SO_PASSCRED);
}

static void unread_message_with_time(void) {
        unread(SOCK_DGRAM, SO_TIMESTAMP);
}

static void unread_stream_with_time(void) {
        unread(SOCK_STREAM, SO_TIMESTAMP);
}

static void datagram(int family, bool held) {
        struct sockaddr_in name = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons(9) };
        struct sockaddr_in6 name6 = { .sin6_family = AF_INET6, .sin6_port = htons(9) };
        int fd = socket(family, SOCK_DGRAM, 0), on = 1;

        name6.sin6_addr.s6_addr[10] = name6.sin6_addr.s6_addr[11] = 0xff;
        name6.sin6_addr.s6_addr[12] = 127;
        name6.sin6_addr.s6_addr[15] = 1;
        must(connect(fd, family == AF_INET ? (struct sockaddr *) &name : (struct sockaddr *) &name6,
                     family == AF_INET ? sizeof(name) : sizeof(name6)) == 0);
        must(setsockopt(fd, IPPROTO_UDP, UDP_CORK, &on, sizeof(on)) == 0);
        must(!held || send(fd, "x", 1, 0) == 1);
}

static void corked(void) {
        datagram(AF_INET, true);
}

static void corked6(void) {
        datagram(AF_INET6, true);
}

static void cork_without_data(void) {
        datagram(AF_INET, false);
}

static void netlink_unread(void) {
        struct {
                struct nlmsghdr header;
                struct rtgenmsg what;
        } ask = { { sizeof(ask), RTM_GETLINK, NLM_F_REQUEST | NLM_F_DUMP, 1, 0 }, { AF_UNSPEC } };
        int fd = socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);

        must(send(fd, &ask, sizeof(ask), 0) == (ssize_t) sizeof(ask));
}

static void netlink_groups(unsigned group) {
        struct sockaddr_nl name = { .nl_family = AF_NETLINK };
        int fd = socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);

        must(bind(fd, (struct sockaddr *) &name, sizeof(name)) == 0 &&
             setsockopt(fd, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &group, sizeof(group)) == 0);
}

static void netlink_high_group(void) {
        netlink_groups(RTNLGRP_BRVLAN);
}

static void netlink_low_group(void) {
        netlink_groups(RTNLGRP_LINK);
}

/* Messages in the queue of a Unix socket, of these numbers of bytes. */
static void messages(int type, const size_t *bytes, size_t n, bool closed) {
        static const char text[100000];
        int pair[2];

        must(socketpair(AF_UNIX, type, 0, pair) == 0);
        for (size_t i = 0; i < n; i++)
                must(send(pair[0], text, bytes[i], MSG_DONTWAIT) == (ssize_t) bytes[i]);
        must(!closed || close(pair[0]) == 0);
}

static void empty_datagram_first(void) {
        messages(SOCK_DGRAM, (const size_t[]) { 0, 2 }, 2, false);
}

static void empty_datagrams_last(void) {
        messages(SOCK_DGRAM, (const size_t[]) { 100000, 0, 0 }, 3, false);
}

static void empty_packet_between(void) {
        messages(SOCK_SEQPACKET, (const size_t[]) { 2, 0, 1 }, 3, false);
}

static void empty_packet_closed(void) {
        messages(SOCK_SEQPACKET, (const size_t[]) { 0, 1 }, 2, true);
}

static void packets_closed(void) {
        messages(SOCK_SEQPACKET, (const size_t[]) { 1, 2 }, 2, true);
}

static void datagrams_with_data(void) {
        messages(SOCK_DGRAM, (const size_t[]) { 1, 50000 }, 2, false);
}

static void urgent(bool closed, bool read_before) {
        char byte;
        int fd;

        connect_inet(ends);
        fd = accept(ends[0], NULL, NULL);
        must(fd >= 0 && write(fd, "abc", 3) == 3 && send(fd, "!", 1, MSG_OOB) == 1 && write(fd, "de", 2) == 2);
        must(!closed || shutdown(fd, SHUT_WR) == 0);
        (void) usleep(100000);
        must(!read_before || recv(ends[1], &byte, 1, MSG_OOB) == 1);
}

static void urgent_unread(void) {
        urgent(false, false);
}

static void urgent_closed(void) {
        urgent(true, false);
}

static void urgent_read(void) {
        urgent(false, true);
}

static void urgent_unix(void) {
        int pair[2];

        must(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0 && write(pair[0], "abc", 3) == 3);
        errno = EPROTONOSUPPORT; /* of kernels before 5.15 */
        must(send(pair[0], "!", 1, MSG_OOB) == 1);
}

/* ---- with keys ---- */

static void use_md5(int family) {
        struct tcp_md5sig md5 = { .tcpm_keylen = 4, .tcpm_key = "key" };
        int fd = socket(family, SOCK_STREAM, 0);

        md5.tcpm_addr.ss_family = (sa_family_t) family;
        must(fd >= 0);
        if (setsockopt(fd, IPPROTO_TCP, TCP_MD5SIG, &md5, sizeof(md5)) < 0)
                _exit(NOTHING_LIKE_THAT);
        must(listen(fd, 1) == 0);
}

static void md5_listens(void) {
        use_md5(AF_INET);
}

static void md5_listens6(void) {
        use_md5(AF_INET6);
}

static void md5_connected(void) {
        struct sockaddr_in name = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
        struct tcp_md5sig md5 = { .tcpm_keylen = 4, .tcpm_key = "key" };
        socklen_t size = sizeof(name);
        int listener = socket(AF_INET, SOCK_STREAM, 0), fd = socket(AF_INET, SOCK_STREAM, 0);

        memcpy(&md5.tcpm_addr, &name, sizeof(name));
        if (setsockopt(listener, IPPROTO_TCP, TCP_MD5SIG, &md5, sizeof(md5)) < 0 ||
            setsockopt(fd, IPPROTO_TCP, TCP_MD5SIG, &md5, sizeof(md5)) < 0)
                _exit(NOTHING_LIKE_THAT);
        must(bind(listener, (struct sockaddr *) &name, size) == 0 && listen(listener, 1) == 0 &&
             getsockname(listener, (struct sockaddr *) &name, &size) == 0 && connect(fd, (struct sockaddr *) &name, size) == 0);
        must(accept(listener, NULL, NULL) >= 0 && close(listener) == 0);
}

static void kernel_tls(void) {
        accepted();
        if (setsockopt(ends[1], IPPROTO_TCP, TCP_ULP, "tls", sizeof("tls")) < 0)
                _exit(NOTHING_LIKE_THAT);
}

/* ---- looks ---- */

static void test_kinds(void **state) {
        static const struct holder holders[] = {
                { "MPTCP", mptcp, BLOCKER_PROTOCOL, false },
                { "sockets", ordinary_sockets, BLOCKER_NONE, false },
                { "not accepted", unaccepted, BLOCKER_UNACCEPTED, false },
                { "accepted", accepted, BLOCKER_NONE, false },
                { "closed with data", closed_with_data, BLOCKER_CLOSED_UNSENT, false },
                { "closed, last", closed_after_other_end, BLOCKER_CLOSED_UNSENT, false },
                { "shut down with data", shut_down_with_data, BLOCKER_NONE, false },
                { "closed without data", closed_without_data, BLOCKER_NONE, false },
                { "Unix", unix_waits, BLOCKER_NONE, false },
                { "Unix, request", unix_with_request, BLOCKER_UNACCEPTED, false },
                { "Unix packets, request", packets_with_request, BLOCKER_UNACCEPTED, false },
                { "Unix, given up", unix_given_up, BLOCKER_UNACCEPTED, false },
                { "Unix, accepted", unix_accepted, BLOCKER_NONE, false },
                { "outside", connected_outside, BLOCKER_OUTSIDE, false },
                { "unread", unread_without_option, BLOCKER_NONE, false },
                { "one way", one_way, BLOCKER_ONE_WAY, false },
                { "to a name", to_a_name, BLOCKER_NONE, false },
                { "credentials", unread_stream_with_credentials, BLOCKER_UNREAD_CONTROL, true },
                { "time", unread_message_with_time, BLOCKER_UNREAD_CONTROL, true },
                { "stream with time", unread_stream_with_time, BLOCKER_NONE, true },
                { "cork", corked, BLOCKER_CORKED, true },
                { "cork, IPv6", corked6, BLOCKER_CORKED, true },
                { "empty cork", cork_without_data, BLOCKER_NONE, true },
                { "empty, first", empty_datagram_first, BLOCKER_EMPTY_MESSAGE, true },
                { "empty, last", empty_datagrams_last, BLOCKER_EMPTY_MESSAGE, true },
                { "empty, between", empty_packet_between, BLOCKER_EMPTY_MESSAGE, true },
                { "empty, closed", empty_packet_closed, BLOCKER_EMPTY_MESSAGE, true },
                { "packets, closed", packets_closed, BLOCKER_NONE, true },
                { "datagrams", datagrams_with_data, BLOCKER_NONE, true },
                { "urgent", urgent_unread, BLOCKER_URGENT, true },
                { "urgent, closed", urgent_closed, BLOCKER_URGENT, true },
                { "urgent, read", urgent_read, BLOCKER_NONE, true },
                { "urgent, Unix", urgent_unix, BLOCKER_URGENT, true },
                { "netlink", netlink_unread, BLOCKER_UNREAD_NETLINK, false },
                { "netlink groups", netlink_high_group, BLOCKER_PROTOCOL, false },
                { "netlink group", netlink_low_group, BLOCKER_NONE, false },
                { "MD5", md5_listens, BLOCKER_KEYED, false },
                { "MD5, IPv6", md5_listens6, BLOCKER_KEYED, false },
                { "MD5, connected", md5_connected, BLOCKER_KEYED, false },
                { "TLS", kernel_tls, BLOCKER_KEYED, false },
        };

        (void) state;
        check_holders(holders, ARRAY_SIZE(holders));
}

static void read_both(int signo) {
        (void) signo;
        for (ssize_t expected = 0; expected < 2; expected++) {
                char byte;

                if (recv(ends[1], &byte, 1, 0) != expected)
                        _exit(1);
        }
}

static void read_when_told(void) {
        must(socketpair(AF_UNIX, SOCK_DGRAM, 0, ends) == 0 && signal(SIGUSR1, read_both) != SIG_ERR);
        must(send(ends[0], "", 0, 0) == 0 && send(ends[0], "x", 1, 0) == 1);
}

/* Once all was read, nothing is left of a message without data. */
static void test_empty_messages(void **state) {
        static struct empty_messages empty_messages;
        pid_t pid = start_holder(read_when_told);
        struct blocker found;

        (void) state;
        for (int looks = 0; looks < 2; looks++) {
                scan_holder(pid, BLOCKER_EMPTY_MESSAGE, true, &empty_messages, &found);
                assert_int_equal(found.kind, BLOCKER_EMPTY_MESSAGE);
                assert_int_equal(empty_messages.n, 1);
        }
        (void) kill(pid, SIGUSR1);
        scan_holder(pid, BLOCKER_NONE, true, &empty_messages, &found);
        (void) kill(pid, SIGKILL);
        (void) waitpid(pid, NULL, 0);
        assert_int_equal(found.kind, BLOCKER_NONE);
        assert_int_equal(empty_messages.n, 0);
}

/* The same connections are told from others that wait at the same place. */
static void test_same_connections(void **state) {
        struct blocker earlier, later;
        pid_t pids[2];

        (void) state;
        for (size_t i = 0; i < 2; i++)
                pids[i] = start_holder(unaccepted);
        scan_holder(pids[0], BLOCKER_UNACCEPTED, false, NULL, &earlier);
        scan_holder(pids[0], BLOCKER_UNACCEPTED, false, NULL, &later);
        assert_true(blocker_is_still(&earlier, &later));
        scan_holder(pids[1], BLOCKER_UNACCEPTED, false, NULL, &later);
        assert_int_not_equal(earlier.mark, later.mark);
        assert_false(blocker_is_still(&earlier, &later));
        for (size_t i = 0; i < 2; i++) {
                (void) kill(pids[i], SIGKILL);
                (void) waitpid(pids[i], NULL, 0);
        }
}

struct reported {
        size_t n, most;
};

static bool take_some(const struct sock_diag *socket, void *arg) {
        struct reported *all = arg;

        (void) socket;
        return ++all->n < all->most;
}

/* A user may have any number of sockets, with and without descriptors: who looks at them can
 * stop. */
static void test_list_ends(void **state) {
        struct reported all = { 0, SIZE_MAX }, some = { 0, 2 };
        int fds[2][2];

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
                assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds[i]), 0);
        assert_int_equal(sock_diag_each(take_some, &all), 0);
        assert_true(all.n >= 4);
        assert_int_equal(sock_diag_each(take_some, &some), -E2BIG);
        assert_int_equal(some.n, 2);
        for (size_t i = 0; i < ARRAY_SIZE(fds); i++) {
                (void) close(fds[i][0]);
                (void) close(fds[i][1]);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_kinds),
                cmocka_unit_test(test_empty_messages),
                cmocka_unit_test(test_same_connections),
                cmocka_unit_test(test_list_ends),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
