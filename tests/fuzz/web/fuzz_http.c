/* Feeds the HTTP server with requests of any user of the machine, in pieces of any size: it answers
 * in HTTP or not at all, nothing but GET and HEAD gets what is served, and nothing of a connection
 * is left. */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/util.h"
#include "daemon/metrics/openmetrics.h"
#include "daemon/web/http.h"

#define SERVED "served"
#define ANSWER_MAX_BYTES 4096U

static void check(bool holds) {
        if (!holds)
                abort();
}

static void on_drained(void *userdata) {
}

static void on_closed(void *userdata) {
}

static const struct http_stream_ops stream_ops = { .drained = on_drained, .closed = on_closed };

/* A stream says one word and goes on; the client, which has said all, ends it. */
static void answer(void *context, const struct http_request *request, struct http_answer *ret) {
        struct http **http = context;

        (void) http_request_argument(request, "since");
        (void) metrics_format_for(request->accept);
        check(request->path != NULL);
        ret->status = 200;
        ret->text = SERVED "\n";
        if (strncmp(request->path, "/s", 2) == 0)
                ret->stream = http_stream_begin(*http, &stream_ops, NULL);
        if (ret->stream)
                http_stream_write(ret->stream, SERVED, strlen(SERVED));
}

static struct http *server(struct event_base **ret_base) {
        static const struct http_limits limits = { .connections = 4,
                                                   .connections_all = 4,
                                                   .requests = { .usec_each = 1, .burst = UINT32_MAX },
                                                   .life_usec = 60000000,
                                                   .streams = 4,
                                                   .streams_all = 4,
                                                   .stream_bytes = 100000 };
        static struct event_base *base;
        static struct http *http;

        if (!base) {
                base = event_base_new();
                check(base && http_create(base, &limits, answer, &http, &http, NULL) == 0);
        }
        *ret_base = base;
        return http;
}

/* Sends as much as the other end takes. */
static void send_piece(struct event_base *base, int fd, const uint8_t *data, size_t n) {
        if (n > 0)
                (void) send(fd, data, n, MSG_NOSIGNAL);
        (void) event_base_loop(base, EVLOOP_NONBLOCK);
}

/* Receives all that has been answered so far. */
static size_t receive(int fd, char *answer, size_t used) {
        ssize_t n;

        while (used < ANSWER_MAX_BYTES && (n = recv(fd, answer + used, ANSWER_MAX_BYTES - used, 0)) > 0)
                used += (size_t) n;
        return used;
}

static bool may_be_served(const uint8_t *data, size_t n) {
        /* Empty lines may come before a request. */
        while (n > 0 && (*data == '\r' || *data == '\n')) {
                data++;
                n--;
        }
        return (n >= 4 && memcmp(data, "GET ", 4) == 0) || (n >= 5 && memcmp(data, "HEAD ", 5) == 0) ||
               (n >= 4 && memcmp(data, "GET\t", 4) == 0) || (n >= 5 && memcmp(data, "HEAD\t", 5) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        struct event_base *base;
        struct http *http = server(&base);
        size_t first, used = 0;
        char text[ANSWER_MAX_BYTES + 1] = "";
        int pair[2];

        if (size < 2)
                return 0;
        first = data[0] % size;
        data++;
        size--;
        check(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) == 0);
        check(http_add(http, pair[1], 1000, data[0] & 1));
        send_piece(base, pair[0], data, first < size ? first : size);
        used = receive(pair[0], text, used);
        if (first < size)
                send_piece(base, pair[0], data + first, size - first);
        (void) shutdown(pair[0], SHUT_WR);
        for (unsigned i = 0; i < 100 && http_connections(http) > 0; i++) {
                (void) event_base_loop(base, EVLOOP_NONBLOCK);
                used = receive(pair[0], text, used);
        }
        used = receive(pair[0], text, used);
        text[used] = 0;
        check(http_connections(http) == 0);
        check(used == 0 || memcmp(text, "HTTP/1.", 7) == 0);
        check(!strstr(text, SERVED) || may_be_served(data, size));
        (void) close(pair[0]);
        return 0;
}
