#include "daemon/web/http.h"

#include <arpa/inet.h>
#include <errno.h>
#include <event2/buffer.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <unistd.h>

/* The usual one has fall-throughs that clang warns of. */
#define HASH_FUNCTION HASH_OAT
#include <uthash.h>

#include "common/timer.h"
#include "common/util.h"

/* A request has a line and some headers. The library answers what is longer with 414 or 431. */
#define REQUEST_MAX_BYTES ((size_t) 16384)
/* A connection without a byte in either direction lasts so long. */
#define IDLE_SEC 5U
#define SCAN_USEC UINT64_C(250000)
/* The library recommends this for public servers. */
#define STRICTNESS 1
/* Root has so many beside those of all others. */
#define ROOT_CONNECTIONS 16U
/* The library takes so many bytes of a stream at a time. */
#define STREAM_BLOCK_BYTES ((size_t) 16384)

struct user {
        uid_t uid;
        unsigned connections;
        unsigned streams;
        struct rate requests;
        UT_hash_handle hh;
};

struct connection {
        struct user *user;
        int fd; /* the library's */
        uint64_t begin_usec;
        bool browser_checks;
        bool over; /* its time is; the library has not closed it yet */
        struct http_stream *stream; /* NULL: it has none */
        TAILQ_ENTRY(connection) entry;
};

struct http_stream {
        struct http *http;
        struct MHD_Connection *mhd;
        struct evbuffer *out; /* waits to be read */
        struct event *left;   /* the client wants no more of it */
        const struct http_stream_ops *ops;
        void *userdata;
        bool suspended; /* the library looks at it again when there is more */
        bool over;      /* what has been written is the last */
};

struct http {
        struct MHD_Daemon *daemon;
        struct event *ready;
        struct event *timeout; /* the library's */
        struct event *scan;
        struct http_limits limits;
        http_answer_fn answer;
        void *context;
        struct user *users;
        TAILQ_HEAD(, connection) connections; /* the oldest first */
        unsigned n_connections;
        unsigned n_of_root;
        unsigned n_streams; /* of all users but root */
        struct connection *adding;
        struct MHD_Connection *answering;
};

/* ---- users ---- */

static struct user *user_of(struct http *http, uid_t uid) {
        struct user *user;

        HASH_FIND(hh, http->users, &uid, sizeof(uid), user);
        if (user)
                return user;
        user = xcalloc(1, sizeof(*user));
        user->uid = uid;
        HASH_ADD(hh, http->users, uid, sizeof(user->uid), user);
        return user;
}

/* A user who takes nothing is forgotten. */
static void forget_users(struct http *http, uint64_t now) {
        struct user *user, *next;

        HASH_ITER (hh, http->users, user, next) {
                if (user->connections > 0 || !rate_is_full(&user->requests, now))
                        continue;
                HASH_DEL(http->users, user);
                free(user);
        }
}

static bool admit(const struct http *http, const struct user *user, uint64_t now) {
        if (user->uid == 0)
                return http->n_of_root < ROOT_CONNECTIONS;
        return user->connections < http->limits.connections &&
               http->n_connections - http->n_of_root < http->limits.connections_all &&
               rate_wait_usec(&user->requests, &http->limits.requests, now) == 0;
}

/* ---- streams ---- */

static struct connection *connection_of(struct MHD_Connection *mhd) {
        const union MHD_ConnectionInfo *info = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

        return info ? info->socket_context : NULL;
}

/* The library reads when the client does. */
static ssize_t read_stream(void *cls, uint64_t position, char *buffer, size_t max_bytes) {
        struct http_stream *stream = cls;
        int n = evbuffer_remove(stream->out, buffer, max_bytes);

        if (n > 0) {
                stream->ops->drained(stream->userdata);
                return n;
        }
        if (stream->over)
                return MHD_CONTENT_READER_END_OF_STREAM;
        MHD_suspend_connection(stream->mhd);
        stream->suspended = true;
        return 0;
}

/* Have the library read again, from the loop. */
static void wake_stream(struct http_stream *stream) {
        if (!stream->suspended)
                return;
        stream->suspended = false;
        MHD_resume_connection(stream->mhd);
        event_active(stream->http->timeout, EV_TIMEOUT, 0);
}

/* The client has closed its end, or says more than its request. The library sees nothing of a
 * connection that is suspended. */
static void on_left(evutil_socket_t fd, short what, void *arg) {
        struct http_stream *stream = arg;

        (void) shutdown(fd, SHUT_RDWR);
        (void) evbuffer_drain(stream->out, evbuffer_get_length(stream->out));
        http_stream_end(stream);
}

struct http_stream *http_stream_begin(struct http *http, const struct http_stream_ops *ops, void *userdata) {
        struct connection *connection = connection_of(http->answering);
        struct user *user = connection->user;
        bool root = user->uid == 0;
        struct http_stream *stream;

        if (user->streams >= http->limits.streams || (!root && http->n_streams >= http->limits.streams_all))
                return NULL;
        stream = xcalloc(1, sizeof(*stream));
        *stream = (struct http_stream) { .http = http, .mhd = http->answering, .ops = ops, .userdata = userdata };
        stream->out = evbuffer_new();
        stream->left = event_new(event_get_base(http->scan), connection->fd, EV_READ | EV_CLOSED, on_left, stream);
        if (!stream->out || !stream->left || event_add(stream->left, NULL) < 0)
                abort();
        connection->stream = stream;
        user->streams++;
        http->n_streams += !root;
        return stream;
}

void http_stream_write(struct http_stream *stream, const char *text, size_t bytes) {
        if (stream->over)
                return;
        if (evbuffer_get_length(stream->out) + bytes > stream->http->limits.stream_bytes)
                stream->over = true;
        else if (evbuffer_add(stream->out, text, bytes) < 0)
                abort();
        wake_stream(stream);
}

size_t http_stream_pending_bytes(const struct http_stream *stream) {
        return evbuffer_get_length(stream->out);
}

void http_stream_end(struct http_stream *stream) {
        stream->over = true;
        wake_stream(stream);
}

/* Frees a stream whose connection is closed. */
static void stream_free(struct http_stream *stream, struct user *user) {
        user->streams--;
        stream->http->n_streams -= user->uid != 0;
        event_free(stream->left);
        stream->ops->closed(stream->userdata);
        evbuffer_free(stream->out);
        free(stream);
}

/* ---- answers ---- */

const char *http_request_header(const struct http_request *request, const char *name) {
        return MHD_lookup_connection_value(request->library, MHD_HEADER_KIND, name);
}

const char *http_request_argument(const struct http_request *request, const char *name) {
        return MHD_lookup_connection_value(request->library, MHD_GET_ARGUMENT_KIND, name);
}

bool http_host_is_loopback(const char *host) {
        static const char name[] = "localhost";
        size_t n = host ? strcspn(host, ":") : 0;
        char address[INET_ADDRSTRLEN] = "";
        struct in_addr in;

        if (!host || (host[n] && strspn(host + n + 1, "0123456789") != strlen(host + n + 1)))
                return false;
        if (n == strlen(name) && strncasecmp(host, name, n) == 0)
                return true;
        if (n >= sizeof(address))
                return false;
        memcpy(address, host, n);
        return inet_pton(AF_INET, address, &in) == 1 && ntohl(in.s_addr) >> 24 == IN_LOOPBACKNET;
}

static struct MHD_Response *make_response(const struct http_answer *answer) {
        if (answer->stream)
                return MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, STREAM_BLOCK_BYTES, read_stream, answer->stream, NULL);
        return MHD_create_response_from_buffer_copy(strlen(answer->text), answer->text);
}

static enum MHD_Result send_answer(struct MHD_Connection *mhd, const struct http_answer *answer) {
        struct MHD_Response *response = make_response(answer);
        enum MHD_Result sent;

        if (!response)
                return MHD_NO;
        (void) MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, answer->type);
        (void) MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close");
        (void) MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
        (void) MHD_add_response_header(response, MHD_HTTP_HEADER_X_CONTENT_TYPE_OPTIONS, "nosniff");
        (void) MHD_add_response_header(response, "Content-Security-Policy", answer->policy ? answer->policy : "default-src 'none'");
        (void) MHD_add_response_header(response, "Referrer-Policy", "no-referrer");
        (void) MHD_add_response_header(response, "Cross-Origin-Resource-Policy", "same-origin");
        if (answer->stream) /* a proxy (nginx) is to pass on each piece as it comes */
                (void) MHD_add_response_header(response, "X-Accel-Buffering", "no");
        if (answer->status == MHD_HTTP_METHOD_NOT_ALLOWED)
                (void) MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
        sent = MHD_queue_response(mhd, answer->status, response);
        MHD_destroy_response(response);
        return sent;
}

/* The head of a request is there. What may follow of it is not read: the answer closes the
 * connection. */
static enum MHD_Result on_request(void *cls, struct MHD_Connection *mhd, const char *url, const char *method, const char *version,
                                  const char *upload_data, size_t *upload_data_size, void **request_context) {
        struct http *http = cls;
        const struct connection *connection = connection_of(mhd);
        struct http_answer answer = { .type = "text/plain; charset=utf-8" };
        struct http_request request = { .path = url, .library = mhd };

        if (!connection)
                return MHD_NO;
        request.uid = connection->user->uid;
        request.browser_checks = connection->browser_checks;
        request.host_is_loopback = http_host_is_loopback(http_request_header(&request, MHD_HTTP_HEADER_HOST));
        request.accept = http_request_header(&request, MHD_HTTP_HEADER_ACCEPT);
        if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 && strcmp(method, MHD_HTTP_METHOD_HEAD) != 0) {
                answer.status = MHD_HTTP_METHOD_NOT_ALLOWED;
                answer.text = "only GET and HEAD are answered\n";
        } else if (connection->browser_checks && !request.host_is_loopback) {
                answer.status = MHD_HTTP_MISDIRECTED_REQUEST;
                answer.text = "the Host header does not name the loopback of this machine\n";
        } else {
                http->answering = mhd;
                http->answer(http->context, &request, &answer);
                http->answering = NULL;
        }
        return send_answer(mhd, &answer);
}

/* ---- the library in the loop ---- */

static void connection_end(struct http *http, struct connection *connection) {
        if (connection->stream)
                stream_free(connection->stream, connection->user);
        TAILQ_REMOVE(&http->connections, connection, entry);
        http->n_connections--;
        http->n_of_root -= connection->user->uid == 0;
        connection->user->connections--;
        free(connection);
}

static void on_connection(void *cls, struct MHD_Connection *mhd, void **socket_context, enum MHD_ConnectionNotificationCode code) {
        struct http *http = cls;

        if (code == MHD_CONNECTION_NOTIFY_STARTED) {
                *socket_context = http->adding;
                http->adding = NULL;
        } else if (*socket_context) {
                connection_end(http, *socket_context);
                *socket_context = NULL;
        }
}

static void run_library(struct http *http) {
        uint64_t msec = 0;

        (void) MHD_run(http->daemon);
        if (MHD_get_timeout64(http->daemon, &msec) == MHD_YES)
                timer_arm(http->timeout, msec * 1000);
        else
                (void) evtimer_del(http->timeout);
}

static void on_ready(evutil_socket_t fd, short what, void *arg) {
        run_library(arg);
}

/* A client that writes or reads a byte now and then is not idle, but its time is over, too. Streams
 * have no such time: theirs is what the library allows a client that reads nothing. */
static void on_scan(evutil_socket_t fd, short what, void *arg) {
        struct http *http = arg;
        uint64_t now = now_usec();
        struct connection *connection;
        bool any = false;

        TAILQ_FOREACH (connection, &http->connections, entry) {
                if (now < connection->begin_usec + http->limits.life_usec)
                        break;
                if (connection->stream)
                        continue;
                if (!connection->over)
                        (void) shutdown(connection->fd, SHUT_RDWR);
                connection->over = any = true;
        }
        if (any)
                run_library(http);
        forget_users(http, now);
        if (http->n_connections > 0 || http->users)
                timer_arm(http->scan, SCAN_USEC);
}

bool http_add(struct http *http, int fd, uid_t uid, bool browser_checks) {
        const struct sockaddr_in nowhere = { .sin_family = AF_INET };
        struct user *user = user_of(http, uid);
        uint64_t now = now_usec();
        struct connection *connection;

        if (!evtimer_pending(http->scan, NULL))
                timer_arm(http->scan, SCAN_USEC);
        if (!admit(http, user, now)) {
                (void) close(fd);
                return false;
        }
        rate_take(&user->requests, &http->limits.requests, now, 1);
        connection = xcalloc(1, sizeof(*connection));
        *connection = (struct connection) { .user = user, .fd = fd, .begin_usec = now, .browser_checks = browser_checks };
        TAILQ_INSERT_TAIL(&http->connections, connection, entry);
        http->n_connections++;
        http->n_of_root += uid == 0;
        user->connections++;
        http->adding = connection;
        /* The library closes the socket, also where it does not take it. */
        (void) MHD_add_connection(http->daemon, fd, (const struct sockaddr *) &nowhere, sizeof(nowhere));
        if (http->adding) {
                connection_end(http, take_ptr(http->adding));
                return false;
        }
        run_library(http);
        return true;
}

unsigned http_connections(const struct http *http) {
        return http->n_connections;
}

/* ---- the whole ---- */

int http_create(struct event_base *base, const struct http_limits *limits, http_answer_fn answer, void *context, struct http **ret,
                struct rm_error *err) {
        struct http *http = xcalloc(1, sizeof(*http));
        const union MHD_DaemonInfo *info;

        http->limits = *limits;
        http->answer = answer;
        http->context = context;
        TAILQ_INIT(&http->connections);
        /* All is done in this thread, so that a connection is taken in the call that adds it. */
        http->daemon =
                MHD_start_daemon(MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET | MHD_USE_NO_THREAD_SAFETY | MHD_ALLOW_SUSPEND_RESUME, 0,
                                 NULL, NULL, on_request, http, MHD_OPTION_CONNECTION_LIMIT,
                                 limits->connections_all + ROOT_CONNECTIONS, MHD_OPTION_CONNECTION_TIMEOUT, IDLE_SEC,
                                 MHD_OPTION_CONNECTION_MEMORY_LIMIT, REQUEST_MAX_BYTES, MHD_OPTION_CLIENT_DISCIPLINE_LVL,
                                 STRICTNESS, MHD_OPTION_NOTIFY_CONNECTION, on_connection, http, MHD_OPTION_END);
        info = http->daemon ? MHD_get_daemon_info(http->daemon, MHD_DAEMON_INFO_EPOLL_FD) : NULL;
        if (!info) {
                http_destroy(http);
                return error_set(err, -ENOMEM, "libmicrohttpd does not start");
        }
        http->ready = event_new(base, info->epoll_fd, EV_READ | EV_PERSIST, on_ready, http);
        http->timeout = evtimer_new(base, on_ready, http);
        http->scan = evtimer_new(base, on_scan, http);
        if (!http->ready || !http->timeout || !http->scan || event_add(http->ready, NULL) < 0)
                abort();
        *ret = http;
        return 0;
}

void http_destroy(struct http *http) {
        struct user *user, *next;
        struct connection *connection;

        if (!http)
                return;
        /* The library does not stop while a connection is suspended. */
        TAILQ_FOREACH (connection, &http->connections, entry)
                if (connection->stream)
                        http_stream_end(connection->stream);
        if (http->ready)
                event_free(http->ready);
        if (http->daemon)
                MHD_stop_daemon(http->daemon);
        if (http->timeout)
                event_free(http->timeout);
        if (http->scan)
                event_free(http->scan);
        HASH_ITER (hh, http->users, user, next) {
                HASH_DEL(http->users, user);
                free(user);
        }
        free(http);
}
