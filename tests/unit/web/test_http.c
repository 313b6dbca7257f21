/* The HTTP server and its hostile clients: what is answered and what is not, and what each of them
 * may take. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/util.h"
#include "daemon/web/http.h"

#define ALICE 1000U
#define BOB 1001U
#define LONG_USEC UINT64_C(20000000)

struct fixture {
        struct event_base *base;
        struct http *http;
        unsigned asked;
        char path[64];
        char accept[64];
        char answer[65536]; /* to one client */
        size_t answer_bytes;
        char *body; /* what the server answers with */
        struct http_stream *stream; /* the latest one; NULL: it was refused, or is closed */
        unsigned drained;
        unsigned closed;
};

static void on_drained(void *userdata) {
        struct fixture *f = userdata;

        f->drained++;
}

static void on_closed(void *userdata) {
        struct fixture *f = userdata;

        f->closed++;
        f->stream = NULL;
}

static const struct http_stream_ops stream_ops = { .drained = on_drained, .closed = on_closed };

static void answer_stream(struct fixture *f, struct http_answer *ret) {
        ret->stream = f->stream = http_stream_begin(f->http, &stream_ops, f);
        ret->status = ret->stream ? 200 : 503;
        ret->type = "text/event-stream";
        ret->text = "too many\n";
}

static void answer(void *context, const struct http_request *request, struct http_answer *ret) {
        struct fixture *f = context;

        f->asked++;
        (void) snprintf(f->path, sizeof(f->path), "%s", request->path);
        (void) snprintf(f->accept, sizeof(f->accept), "%s", request->accept ? request->accept : "-");
        if (strcmp(request->path, "/stream") == 0) {
                answer_stream(f, ret);
                return;
        }
        ret->status = 200;
        ret->text = f->body ? f->body : "hello\n";
}

static void begin(struct fixture *f, uint64_t life_usec, unsigned connections, uint64_t burst) {
        const struct http_limits limits = { .connections = connections,
                                            .connections_all = 10,
                                            .requests = { .usec_each = 1000000, .burst = burst },
                                            .life_usec = life_usec,
                                            .streams = 2,
                                            .streams_all = 3,
                                            .stream_bytes = 100000 };
        struct rm_error err = { 0 };

        *f = (struct fixture) { .base = event_base_new() };
        assert_int_equal(http_create(f->base, &limits, answer, f, &f->http, &err), 0);
}

static void end(struct fixture *f) {
        http_destroy(f->http);
        event_base_free(f->base);
        free(f->body);
}

/* The client's end; -1: the server did not take it. */
static int connect_as(struct fixture *f, uid_t uid, bool browser_checks) {
        int pair[2];

        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair), 0);
        if (http_add(f->http, pair[1], uid, browser_checks))
                return pair[0];
        (void) close(pair[0]);
        return -1;
}

static void say(int fd, const char *text) {
        assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), (ssize_t) strlen(text));
}

/* Runs the loop until the server has closed the connection, and keeps what it has answered. False:
 * it has not within so long. */
static bool closed_within(struct fixture *f, int fd, uint64_t usec) {
        uint64_t end_usec = now_usec() + usec;

        f->answer_bytes = 0;
        while (now_usec() < end_usec) {
                ssize_t n = recv(fd, f->answer + f->answer_bytes, sizeof(f->answer) - 1 - f->answer_bytes, 0);

                if (n > 0)
                        f->answer_bytes += (size_t) n;
                f->answer[f->answer_bytes] = 0;
                if (n == 0 || (n < 0 && errno != EAGAIN))
                        return true;
                (void) event_base_loop(f->base, EVLOOP_NONBLOCK);
        }
        return false;
}

/* The answer to one client. */
static const char *ask(struct fixture *f, uid_t uid, bool browser_checks, const char *request) {
        int fd = connect_as(f, uid, browser_checks);

        assert_true(fd >= 0);
        say(fd, request);
        assert_true(closed_within(f, fd, LONG_USEC));
        (void) close(fd);
        return f->answer;
}

static void expect_status(const char *got, const char *want) {
        char line[64];

        (void) snprintf(line, sizeof(line), "HTTP/1.1 %s ", want);
        if (strncmp(got, line, strlen(line)) != 0)
                fail_msg("%.40s, expected %s", got, want);
}

static void test_get(void **state) {
        struct fixture f;
        const char *got;

        begin(&f, LONG_USEC, 8, 100);
        got = ask(&f, ALICE, false, "GET /metrics?x=1 HTTP/1.1\r\nHost: x\r\nAccept: text/plain\r\n\r\n");
        expect_status(got, "200");
        assert_non_null(strstr(got, "\r\n\r\nhello\n"));
        assert_non_null(strstr(got, "Connection: close\r\n"));
        assert_non_null(strstr(got, "Cache-Control: no-store\r\n"));
        assert_string_equal(f.path, "/metrics");
        assert_string_equal(f.accept, "text/plain");
        got = ask(&f, ALICE, false, "HEAD / HTTP/1.1\r\nHost: x\r\n\r\n");
        expect_status(got, "200");
        assert_non_null(strstr(got, "Content-Length: 6\r\n"));
        assert_null(strstr(got, "hello"));
        assert_string_equal(f.accept, "-");
        assert_int_equal(http_connections(f.http), 0);
        end(&f);
}

/* Neither read nor passed on. */
static void test_other_methods(void **state) {
        static const char *const requests[] = {
                "POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello",
                "PUT /metrics HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
                "DELETE / HTTP/1.1\r\nHost: x\r\n\r\n",
                "OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n",
                "BREW /pot HTTP/1.1\r\nHost: x\r\n\r\n",
        };
        struct fixture f;

        begin(&f, LONG_USEC, 8, 100);
        for (size_t i = 0; i < ARRAY_SIZE(requests); i++) {
                const char *got = ask(&f, ALICE, false, requests[i]);

                expect_status(got, "405");
                assert_non_null(strstr(got, "Allow: GET, HEAD\r\n"));
        }
        assert_int_equal(f.asked, 0);
        end(&f);
}

static void test_nonsense(void **state) {
        static const char *const requests[] = {
                "\r\n\r\n\r\n\x01\x02",     "GET\r\n\r\n",
                "GET / HTTP/9.9\r\n\r\n",   "GET / HTTP/1.1\r\n\r\n",
                "\x16\x03\x01\x02\x00\x01", "GET / HTTP/1.1\r\nHost: x\r\nHost: y\r\nContent-Length: -1\r\n\r\n",
        };
        struct fixture f;

        begin(&f, 1000000, 8, 100);
        for (size_t i = 0; i < ARRAY_SIZE(requests); i++) {
                const char *got = ask(&f, ALICE, false, requests[i]);

                if (strncmp(got, "HTTP/1.1 200", 12) == 0)
                        fail_msg("request %zu is answered", i);
        }
        end(&f);
}

/* A request that does not fit into 16 KiB is refused, whichever part of it is long. */
static void test_too_long(void **state) {
        cleanup_free char *word = xcalloc(1, 20001);
        cleanup_free char *path = NULL, *header = NULL, *name = NULL;
        struct fixture f;

        memset(word, 'a', 20000);
        path = xasprintf("GET /%s HTTP/1.1\r\nHost: x\r\n\r\n", word);
        header = xasprintf("GET / HTTP/1.1\r\nHost: x\r\nX: %s\r\n\r\n", word);
        name = xasprintf("GET / HTTP/1.1\r\nHost: x\r\n%s: x\r\n\r\n", word);
        begin(&f, LONG_USEC, 8, 100);
        expect_status(ask(&f, ALICE, false, path), "414");
        expect_status(ask(&f, ALICE, false, header), "431");
        expect_status(ask(&f, ALICE, false, name), "431");
        assert_int_equal(f.asked, 0);
        end(&f);
}

/* A page from elsewhere can make a browser connect here, by a name of its own that leads here. */
static void test_host(void **state) {
        static const struct {
                const char *host;
                bool loopback;
        } hosts[] = {
                { "localhost", true },
                { "localhost:7701", true },
                { "LOCALHOST", true },
                { "127.0.0.1", true },
                { "127.0.0.1:7701", true },
                { "127.1.2.3", true },
                { "evil.example", false },
                { "localhost.evil", false },
                { "127.0.0.1.evil", false },
                { "128.0.0.1", false },
                { "", false },
                { ":7701", false },
                { "localhost:x", false },
                { "10.0.0.1:7701", false },
                { "0x7f.1", false },
                { "[::1]", false },
        };
        struct fixture f;

        for (size_t i = 0; i < ARRAY_SIZE(hosts); i++)
                if (http_host_is_loopback(hosts[i].host) != hosts[i].loopback)
                        fail_msg("'%s' is taken wrongly", hosts[i].host);
        assert_false(http_host_is_loopback(NULL));
        begin(&f, LONG_USEC, 8, 100);
        expect_status(ask(&f, ALICE, true, "GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n"), "421");
        assert_int_equal(f.asked, 0);
        expect_status(ask(&f, ALICE, true, "GET / HTTP/1.1\r\nHost: localhost:7701\r\n\r\n"), "200");
        end(&f);
}

/* The time of a client is over, though it sends a byte every now and then, or reads none of a long
 * answer. */
static void test_slow_clients(void **state) {
        struct fixture f;
        int silent, slow, deaf;
        uint64_t end_usec;

        begin(&f, 1000000, 8, 100);
        f.body = xcalloc(1, 4000001);
        memset(f.body, 'x', 4000000);
        silent = connect_as(&f, ALICE, false);
        slow = connect_as(&f, ALICE, false);
        deaf = connect_as(&f, ALICE, false);
        say(deaf, "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
        end_usec = now_usec() + LONG_USEC;
        while (http_connections(f.http) > 0 && now_usec() < end_usec) {
                (void) send(slow, "G", 1, MSG_NOSIGNAL);
                (void) event_base_loop(f.base, EVLOOP_NONBLOCK);
                (void) usleep(1000);
        }
        assert_int_equal(http_connections(f.http), 0);
        assert_int_equal(f.asked, 1);
        (void) close(silent);
        (void) close(slow);
        (void) close(deaf);
        end(&f);
}

/* The connections of a user leave those of others alone; root has its own. */
static void test_connections_of_a_user(void **state) {
        struct fixture f;
        int fds[32];
        size_t n = 0;

        begin(&f, LONG_USEC, 4, 100);
        for (unsigned i = 0; i < 4; i++)
                assert_true((fds[n++] = connect_as(&f, ALICE, false)) >= 0);
        assert_int_equal(connect_as(&f, ALICE, false), -1);
        expect_status(ask(&f, BOB, false, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"), "200");
        (void) close(fds[0]);
        for (unsigned i = 0; i < 100 && http_connections(f.http) > 3; i++)
                (void) event_base_loop(f.base, EVLOOP_NONBLOCK);
        assert_true((fds[0] = connect_as(&f, ALICE, false)) >= 0);
        /* Ten users' connections are all that there are, but root's. */
        for (uid_t uid = 2000; n < 10; uid++)
                assert_true((fds[n++] = connect_as(&f, uid, false)) >= 0);
        assert_int_equal(connect_as(&f, 3000, false), -1);
        expect_status(ask(&f, 0, false, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"), "200");
        while (n > 0)
                (void) close(fds[--n]);
        end(&f);
}

static void test_requests_of_a_user(void **state) {
        struct fixture f;

        begin(&f, LONG_USEC, 8, 3);
        for (unsigned i = 0; i < 3; i++)
                expect_status(ask(&f, ALICE, false, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"), "200");
        assert_int_equal(connect_as(&f, ALICE, false), -1);
        expect_status(ask(&f, BOB, false, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"), "200");
        for (unsigned i = 0; i < 6; i++)
                expect_status(ask(&f, 0, false, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"), "200");
        end(&f);
}

/* A connection has one request: what comes behind it is not another one. */
static void test_one_request(void **state) {
        struct fixture f;

        begin(&f, LONG_USEC, 8, 100);
        (void) ask(&f, ALICE, false, "GET /a HTTP/1.1\r\nHost: x\r\n\r\nGET /b HTTP/1.1\r\nHost: x\r\n\r\n");
        assert_int_equal(f.asked, 1);
        assert_string_equal(f.path, "/a");
        end(&f);
}

#define GET_STREAM "GET /stream HTTP/1.1\r\nHost: x\r\n\r\n"

/* A client that has a stream now; -1: it was refused one. */
static int open_stream(struct fixture *f, uid_t uid) {
        int fd = connect_as(f, uid, false);
        unsigned asked = f->asked;

        assert_true(fd >= 0);
        say(fd, GET_STREAM);
        for (unsigned i = 0; i < 100 && f->asked == asked; i++)
                (void) event_base_loop(f->base, EVLOOP_NONBLOCK);
        assert_int_equal(f->asked, asked + 1);
        if (f->stream)
                return fd;
        (void) close(fd);
        return -1;
}

/* Runs the loop until the client has this text, too. */
static bool hears(struct fixture *f, int fd, const char *text) {
        uint64_t end_usec = now_usec() + LONG_USEC;

        f->answer_bytes = 0;
        while (now_usec() < end_usec) {
                ssize_t n = recv(fd, f->answer + f->answer_bytes, sizeof(f->answer) - 1 - f->answer_bytes, 0);

                f->answer_bytes += n > 0 ? (size_t) n : 0;
                f->answer[f->answer_bytes] = 0;
                if (strstr(f->answer, text))
                        return true;
                if (n == 0)
                        return false;
                (void) event_base_loop(f->base, EVLOOP_NONBLOCK);
        }
        return false;
}

static bool all_closed(struct fixture *f, unsigned closed) {
        uint64_t end_usec = now_usec() + LONG_USEC;

        while (f->closed < closed && now_usec() < end_usec)
                (void) event_base_loop(f->base, EVLOOP_NONBLOCK);
        return f->closed == closed;
}

/* The stream lasts longer than any other answer, and ends when its client leaves or the server says
 * so. */
static void test_stream(void **state) {
        struct fixture f;
        uint64_t end_usec;
        int fd;

        begin(&f, 300000, 8, 100);
        fd = open_stream(&f, ALICE);
        assert_true(hears(&f, fd, "\r\n\r\n"));
        expect_status(f.answer, "200");
        assert_non_null(strstr(f.answer, "text/event-stream"));
        http_stream_write(f.stream, "one", 3);
        assert_true(hears(&f, fd, "one"));
        for (end_usec = now_usec() + 700000; now_usec() < end_usec; (void) usleep(1000))
                (void) event_base_loop(f.base, EVLOOP_NONBLOCK);
        http_stream_write(f.stream, "two", 3);
        assert_true(hears(&f, fd, "two"));
        assert_true(f.drained >= 2);
        assert_int_equal(http_stream_pending_bytes(f.stream), 0);
        (void) close(fd);
        assert_true(all_closed(&f, 1));
        fd = open_stream(&f, ALICE);
        http_stream_write(f.stream, "last", 4);
        http_stream_end(f.stream);
        assert_true(hears(&f, fd, "last"));
        assert_true(closed_within(&f, fd, LONG_USEC));
        assert_true(all_closed(&f, 2));
        assert_int_equal(http_connections(f.http), 0);
        (void) close(fd);
        end(&f);
}

/* A user who has all of his streams leaves those of others alone, and all have no more than there
 * are. */
static void test_streams_of_a_user(void **state) {
        struct fixture f;
        int fds[8];
        size_t n = 0;

        begin(&f, LONG_USEC, 8, 100);
        assert_true((fds[n++] = open_stream(&f, ALICE)) >= 0);
        assert_true((fds[n++] = open_stream(&f, ALICE)) >= 0);
        assert_int_equal(open_stream(&f, ALICE), -1);
        expect_status(ask(&f, ALICE, false, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"), "200");
        assert_true((fds[n++] = open_stream(&f, BOB)) >= 0);
        assert_int_equal(open_stream(&f, 3000), -1);
        assert_true((fds[n++] = open_stream(&f, 0)) >= 0);
        assert_true((fds[n++] = open_stream(&f, 0)) >= 0);
        assert_int_equal(open_stream(&f, 0), -1);
        (void) close(fds[0]);
        assert_true(all_closed(&f, 1));
        assert_true((fds[0] = open_stream(&f, ALICE)) >= 0);
        /* The server ends while they are open. */
        http_destroy(f.http);
        f.http = NULL;
        assert_int_equal(f.closed, 1 + n);
        while (n > 0)
                (void) close(fds[--n]);
        end(&f);
}

/* The data that waits for a client that does not read is bounded: it loses its stream. */
static void test_slow_reader(void **state) {
        char text[1000];
        struct fixture f;
        size_t written = 0;
        int fd;

        memset(text, 'x', sizeof(text));
        begin(&f, LONG_USEC, 8, 100);
        fd = open_stream(&f, ALICE);
        while (f.stream && written < 10000000) {
                http_stream_write(f.stream, text, sizeof(text));
                written += sizeof(text);
                assert_true(http_stream_pending_bytes(f.stream) <= 100000);
                (void) event_base_loop(f.base, EVLOOP_NONBLOCK);
                if (http_stream_pending_bytes(f.stream) > 99000)
                        break;
        }
        http_stream_write(f.stream, text, sizeof(text));
        http_stream_write(f.stream, "never", 5);
        assert_true(closed_within(&f, fd, LONG_USEC));
        assert_null(strstr(f.answer, "never"));
        assert_true(all_closed(&f, 1));
        (void) close(fd);
        end(&f);
}

/* The head of a stream alone is no stream; half of a client neither. */
static void test_half_streams(void **state) {
        struct fixture f;
        int fd;

        begin(&f, LONG_USEC, 8, 100);
        expect_status(ask(&f, ALICE, false, "HEAD /stream HTTP/1.1\r\nHost: x\r\n\r\n"), "200");
        assert_true(all_closed(&f, 1));
        fd = open_stream(&f, ALICE);
        (void) shutdown(fd, SHUT_WR);
        assert_true(all_closed(&f, 2));
        (void) close(fd);
        /* A client leaves before it has read anything, which is an error at the other end. */
        fd = open_stream(&f, ALICE);
        http_stream_write(f.stream, "unread", 6);
        (void) event_base_loop(f.base, EVLOOP_NONBLOCK);
        (void) close(fd);
        assert_true(all_closed(&f, 3));
        /* A client sends more than its request. */
        fd = open_stream(&f, ALICE);
        assert_true(hears(&f, fd, "\r\n\r\n"));
        say(fd, GET_STREAM);
        assert_true(all_closed(&f, 4));
        assert_int_equal(f.asked, 4);
        (void) close(fd);
        end(&f);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_get),
                cmocka_unit_test(test_other_methods),
                cmocka_unit_test(test_nonsense),
                cmocka_unit_test(test_too_long),
                cmocka_unit_test(test_host),
                cmocka_unit_test(test_slow_clients),
                cmocka_unit_test(test_connections_of_a_user),
                cmocka_unit_test(test_requests_of_a_user),
                cmocka_unit_test(test_one_request),
                cmocka_unit_test(test_stream),
                cmocka_unit_test(test_streams_of_a_user),
                cmocka_unit_test(test_slow_reader),
                cmocka_unit_test(test_half_streams),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
