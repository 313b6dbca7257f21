#include "daemon/wire/listener.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/log.h"
#include "common/timer.h"
#include "common/util.h"

/* At EMFILE the pending connection stays readable: accepting again at once would spin. */
#define ACCEPT_PAUSE_MSEC 100
/* The listener accepts connections for this long at a time, so that one that waits behind a
 * thousand strangers is served soon, but other events get their turn too. */
#define ACCEPT_BURST_USEC 5000U
/* The pause after which as many may be accepted again; a host that floods us must not have the
 * whole processor by it. */
#define ACCEPT_REST_MSEC 5
/* Connections that find the queue full wait outside of it, where the kernel keeps no order. They
 * cost rmd nothing. */
#define BACKLOG 1024

struct listener {
        struct event *event;
        struct event *resume;
        listener_accept_fn on_accept;
        listener_ready_fn ready; /* NULL: always */
        void *userdata;
        char *path; /* NULL for TCP */
        char *lock_path;
        int lock_fd;
        int fd;
        uint16_t port;
};

static void describe(const struct listener *listener, int fd, char *buf, size_t buf_bytes) {
        struct sockaddr_in in = { 0 };
        socklen_t n = sizeof(in);
        struct ucred cred;
        socklen_t cred_bytes = sizeof(cred);
        char address[INET_ADDRSTRLEN] = "?";

        if (listener->path) {
                if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &cred_bytes) < 0)
                        (void) snprintf(buf, buf_bytes, "local client");
                else
                        (void) snprintf(buf, buf_bytes, "local client pid %d uid %u", (int) cred.pid, (unsigned) cred.uid);
                return;
        }
        if (getpeername(fd, (struct sockaddr *) &in, &n) == 0)
                (void) inet_ntop(AF_INET, &in.sin_addr, address, sizeof(address));
        (void) snprintf(buf, buf_bytes, "%s:%u", address, (unsigned) ntohs(in.sin_port));
}

static void pause_accepting(struct listener *listener, unsigned msec) {
        (void) event_del(listener->event);
        timer_arm(listener->resume, msec * UINT64_C(1000));
}

static void on_resume(evutil_socket_t fd, short what, void *userdata) {
        struct listener *listener = userdata;

        (void) event_add(listener->event, NULL);
}

static void on_readable(evutil_socket_t fd, short what, void *userdata) {
        struct listener *listener = userdata;

        uint64_t end_usec = now_usec() + ACCEPT_BURST_USEC;

        do {
                char name[96];
                int client;

                if (listener->ready && !listener->ready(listener->userdata))
                        break;
                client = accept4(fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
                if (client < 0) {
                        if (errno == EINTR || errno == ECONNABORTED)
                                continue;
                        if (errno != EAGAIN) {
                                log_warn("%s: cannot accept a connection: %s", listener->path ? listener->path : "peers",
                                         strerror(errno));
                                pause_accepting(listener, ACCEPT_PAUSE_MSEC);
                        }
                        return;
                }
                describe(listener, client, name, sizeof(name));
                listener->on_accept(listener->userdata, client, name);
        } while (now_usec() < end_usec);
        pause_accepting(listener, ACCEPT_REST_MSEC);
}

static int listener_start(struct listener *listener, struct event_base *base, struct rm_error *err) {
        if (listen(listener->fd, BACKLOG) < 0)
                return error_sys(err, -errno, "cannot listen");
        listener->event = event_new(base, listener->fd, EV_READ | EV_PERSIST, on_readable, listener);
        listener->resume = evtimer_new(base, on_resume, listener);
        if (!listener->event || !listener->resume || event_add(listener->event, NULL) < 0)
                return error_set(err, -ENOMEM, "cannot watch the socket");
        return 0;
}

static struct listener *listener_new(listener_accept_fn on_accept, void *userdata) {
        struct listener *listener = xcalloc(1, sizeof(*listener));

        listener->on_accept = on_accept;
        listener->userdata = userdata;
        listener->fd = -1;
        listener->lock_fd = -1;
        return listener;
}

/* The lock tells a running daemon from a socket that a killed one left behind. */
static int lock_path(struct listener *listener, struct rm_error *err) {
        listener->lock_fd = open(listener->lock_path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (listener->lock_fd < 0)
                return error_sys(err, -errno, "cannot make %s", listener->lock_path);
        if (flock(listener->lock_fd, LOCK_EX | LOCK_NB) < 0) {
                if (errno == EWOULDBLOCK)
                        return error_set(err, -EADDRINUSE, "%s: another daemon is serving it", listener->path);
                return error_sys(err, -errno, "cannot lock %s", listener->lock_path);
        }
        return 0;
}

/* Bound under a name of its own and renamed, so that the path is never missing and never has a
 * wrong mode. */
static int bind_unix(struct listener *listener, mode_t mode, struct rm_error *err) {
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        cleanup_free char *temporary = xasprintf("%s.new", listener->path);
        struct stat st;
        int r = 0;

        if (strlen(temporary) >= sizeof(address.sun_path))
                return error_set(err, -ENAMETOOLONG, "%s: a socket's path has at most %zu bytes", listener->path,
                                 sizeof(address.sun_path) - sizeof(".new"));
        if (lstat(listener->path, &st) == 0 && !S_ISSOCK(st.st_mode))
                return error_set(err, -EEXIST, "%s: exists and is not a socket", listener->path);
        memcpy(address.sun_path, temporary, strlen(temporary));
        listener->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        if (listener->fd < 0)
                return error_sys(err, -errno, "cannot make a socket");
        (void) unlink(temporary);
        if (bind(listener->fd, (struct sockaddr *) &address, sizeof(address)) < 0)
                return error_sys(err, -errno, "cannot bind %s", temporary);
        if (chmod(temporary, mode) < 0 || rename(temporary, listener->path) < 0) {
                r = error_sys(err, -errno, "cannot put %s in place", listener->path);
                (void) unlink(temporary);
        }
        return r;
}

int listener_create_unix(struct event_base *base, const char *path, mode_t mode, listener_accept_fn on_accept, void *userdata,
                         struct listener **ret, struct rm_error *err) {
        struct listener *listener = listener_new(on_accept, userdata);
        int r;

        listener->path = xstrdup(path);
        listener->lock_path = xasprintf("%s.lock", path);
        r = lock_path(listener, err);
        if (r == 0) {
                r = bind_unix(listener, mode, err);
                if (r == 0)
                        r = listener_start(listener, base, err);
        }
        if (r < 0) {
                /* The path is another process's: neither the path nor the lock may be removed. */
                if (listener->fd < 0)
                        free(take_ptr(listener->path));
                listener_destroy(listener);
                return r;
        }
        *ret = listener;
        return 0;
}

static int bind_tcp(struct listener *listener, const char *address, uint16_t port, struct rm_error *err) {
        struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(port) };
        socklen_t n = sizeof(in);
        int on = 1;

        if (inet_pton(AF_INET, address, &in.sin_addr) != 1)
                return error_set(err, -EINVAL, "'%s' is not an IPv4 address", address);
        listener->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        if (listener->fd < 0)
                return error_sys(err, -errno, "cannot make a socket");
        (void) setsockopt(listener->fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
        if (bind(listener->fd, (struct sockaddr *) &in, sizeof(in)) < 0)
                return error_sys(err, -errno, "cannot bind %s:%u", address, (unsigned) port);
        if (getsockname(listener->fd, (struct sockaddr *) &in, &n) < 0)
                return error_sys(err, -errno, "cannot read the port");
        listener->port = ntohs(in.sin_port);
        return 0;
}

int listener_create_tcp(struct event_base *base, const char *address, uint16_t port, listener_accept_fn on_accept, void *userdata,
                        struct listener **ret, struct rm_error *err) {
        struct listener *listener = listener_new(on_accept, userdata);
        int r;

        r = bind_tcp(listener, address, port, err);
        if (r == 0)
                r = listener_start(listener, base, err);
        if (r < 0) {
                listener_destroy(listener);
                return r;
        }
        *ret = listener;
        return 0;
}

void listener_set_ready(struct listener *listener, listener_ready_fn ready) {
        listener->ready = ready;
}

uint16_t listener_port(const struct listener *listener) {
        return listener->port;
}

void listener_destroy(struct listener *listener) {
        if (!listener)
                return;
        if (listener->event)
                event_free(listener->event);
        if (listener->resume)
                event_free(listener->resume);
        if (listener->fd >= 0)
                (void) close(listener->fd);
        if (listener->path)
                (void) unlink(listener->path);
        /* The lock file stays: removing it would let two daemons lock two files of one name. */
        if (listener->lock_fd >= 0)
                (void) close(listener->lock_fd);
        free(listener->path);
        free(listener->lock_path);
        free(listener);
}
