/*
 * An HTTP server for local clients that may be hostile. libmicrohttpd speaks HTTP, in rmd's own
 * loop; here it is bounded what each user may take of it: connections, requests in a time, bytes of
 * a request, and the time from the begin of a connection to its end, however slowly its client
 * reads or writes. Each connection has one request, and nothing but GET and HEAD is answered. Knows
 * nothing of what is served.
 *
 * An answer may be a stream, which lasts as long as its client reads it. There are fewer of these
 * than of connections, and what waits to be read is bound, too: a client that does not read for 5
 * seconds loses its stream.
 *
 * libevent's own server (evhttp) does not say when a connection ends that has sent no request,
 * takes no sockets that others have accepted, and its timeout begins again with every byte, so that
 * nothing of this could be bound.
 */
#ifndef RM_WEB_HTTP_H
#define RM_WEB_HTTP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <event2/event.h>

#include "common/error.h"
#include "common/rate.h"

/* The user at the other end is not known. All such connections are taken for those of one user. */
#define HTTP_UNKNOWN_USER ((uid_t) - 1)

struct http;
struct http_stream;
struct MHD_Connection;

struct http_request {
        const char *path;   /* "/metrics": without the query, its escapes resolved */
        const char *accept; /* the header of that name; NULL: it has none */
        uid_t uid;
        bool browser_checks; /* as http_add() was told */
        bool host_is_loopback; /* its Host header names this machine's loopback */
        struct MHD_Connection *library;
};

/* A header, and an argument of the query ("?since=5"), by its name. NULL: it is not there. Valid
 * during the call that answers. */
const char *http_request_header(const struct http_request *request, const char *name);
const char *http_request_argument(const struct http_request *request, const char *name);

struct http_answer {
        unsigned status;
        const char *type; /* Content-Type */
        const char *text; /* copied after the call; not looked at with a stream */
        const char *policy; /* Content-Security-Policy; NULL: nothing may be loaded or run */
        struct http_stream *stream; /* from http_stream_begin() */
};

/* Answers a request at once. */
typedef void (*http_answer_fn)(void *context, const struct http_request *request, struct http_answer *ret);

struct http_limits {
        unsigned connections;     /* of one user */
        unsigned connections_all; /* of all users but root */
        struct rate_limit requests; /* of one user but root */
        uint64_t life_usec; /* of a connection */
        unsigned streams; /* of one user, root as well */
        unsigned streams_all; /* of all users but root */
        size_t stream_bytes; /* of one stream, that wait to be read */
};

/* -ENOMEM: the library does not start. */
int http_create(struct event_base *base, const struct http_limits *limits, http_answer_fn answer, void *context, struct http **ret,
                struct rm_error *err);
/* Open connections are closed. NULL ok. */
void http_destroy(struct http *http);

/* A connection of this user, whose socket is non-blocking and taken over. `browser_checks`:
 * anybody's browser on this machine could be made to connect there by a page from elsewhere, so
 * that the Host header must name this machine's loopback. False: the user has too many, or too
 * often; it is closed. */
bool http_add(struct http *http, int fd, uid_t uid, bool browser_checks);
/* Connections that are open. */
unsigned http_connections(const struct http *http);

struct http_stream_ops {
        void (*drained)(void *userdata); /* some of what was written has been read */
        void (*closed)(void *userdata); /* the last call: the stream is no more */
};

/* Makes the answer to the request that is being answered a stream. NULL: the user, or all users,
 * have as many as they may. */
struct http_stream *http_stream_begin(struct http *http, const struct http_stream_ops *ops, void *userdata);
/* A text that does not fit ends the stream, without a call: closed() comes later. */
void http_stream_write(struct http_stream *stream, const char *text, size_t bytes);
size_t http_stream_pending_bytes(const struct http_stream *stream);
/* Ends a stream: what was written is still sent, and closed() comes later. */
void http_stream_end(struct http_stream *stream);

/* Pure. Is it "localhost" or a loopback address, with or without a port? NULL: there is no Host. */
bool http_host_is_loopback(const char *host);

#endif
