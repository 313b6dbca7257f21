#include "launcher/client/client.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/frame.h"
#include "common/program_socket.h"
#include "common/util.h"
#include "launcher/client/wire.h"

/* rmd answers at once, except when a change has to find a leader first. */
#define REPLY_TIMEOUT_USEC (60U * 1000000U)

/* rmd closes clients that have not said hello yet where one user connects many times at once: such
 * as scripts that start many commands. */
#define OPEN_TRIES 6U
#define OPEN_PAUSE_USEC 5000U /* doubled each time: 0.3 s in all */

#define CONNECT_PAUSE_MSEC 50

#define CONFIG_PATH "/etc/rmd/rmd.conf" /* of rmd, on a node that was set up */

struct client {
        int fd;
        int interrupt_fd; /* -1: none */
        uint32_t last_id;
        struct buffer in;
        Rm__LocalReply *hello;
};

const char *client_socket_path(void) {
        const char *path = getenv("RM_SOCKET");

        if (path && *path)
                return path;
        /* Root's own, where users cannot stand in the way. */
        return geteuid() == 0 && access(CLIENT_ROOT_SOCKET_PATH, W_OK) == 0 ? CLIENT_ROOT_SOCKET_PATH : CLIENT_SOCKET_PATH;
}

/* In a capsule there is no rmd, and no one who could start one. */
static bool is_in_job(void) {
        return access(PROGRAM_SOCKET_PATH, F_OK) == 0;
}

static int connect_error(int code, const char *path, struct rm_error *err) {
        const char *job = getenv("RM_JOB_ID");

        switch (code) {
        case -ENOENT:
        case -ECONNREFUSED:
        case -ENOTDIR:
                if (is_in_job())
                        return error_set(err, CLIENT_NO_DAEMON,
                                         "job %s runs here, and a job's programs do not reach rmd: call it from outside of the "
                                         "job, or start "
                                         "further ranks by MPI_Comm_spawn()",
                                         job ? job : "of rmd");
                return error_set(err, CLIENT_NO_DAEMON, "rmd is not running on this node (%s): %s", path,
                                 access(CONFIG_PATH, F_OK) < 0 && errno == ENOENT
                                         ? "it was never set up here, which root does by 'rmd --init-cluster' or 'rmd --join NODE' "
                                           "of the package rmd"
                                         : "start it with 'systemctl start rmd'");
        default:
                return error_sys(err, code, "cannot talk to rmd (%s)", path);
        }
}

int client_connect(int *ret_fd, struct rm_error *err) {
        const char *path = client_socket_path();
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        cleanup_close int fd = -1;

        if (strlen(path) >= sizeof(address.sun_path))
                return error_sys(err, -ENAMETOOLONG, "cannot talk to rmd (%s)", path);
        strcpy(address.sun_path, path);
        fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0)
                return error_sys(err, -errno, "cannot make a socket");
        if (connect(fd, (struct sockaddr *) &address, sizeof(address)) < 0)
                return connect_error(-errno, path, err);
        *ret_fd = take_fd(&fd);
        return 0;
}

static int interrupted(struct rm_error *err) {
        return error_set(err, -EINTR, "interrupted while rmd had not answered");
}

/* An rmd that accepts no connections must not keep us from ending. */
static int connect_interruptible(int interrupt_fd, int *ret_fd, struct rm_error *err) {
        uint64_t deadline_usec = now_usec() + REPLY_TIMEOUT_USEC;

        for (;;) {
                struct pollfd p = { .fd = interrupt_fd, .events = POLLIN };
                struct rm_error why = { 0 };
                int r = client_connect(ret_fd, &why);

                if (r != -EAGAIN || now_usec() >= deadline_usec) {
                        if (r < 0)
                                *err = why;
                        return r;
                }
                if (poll(&p, 1, CONNECT_PAUSE_MSEC) > 0)
                        return interrupted(err);
        }
}

static int gone(struct rm_error *err) {
        return error_set(err, CLIENT_NO_DAEMON,
                         "rmd on this node (%s) closed the connection before it answered: see 'systemctl status rmd'",
                         client_socket_path());
}

/* Wait until the socket can be read (POLLIN) or written (POLLOUT), or `deadline_usec` (0: none). */
static int wait_for(struct client *client, short events, uint64_t deadline_usec, struct rm_error *err) {
        for (;;) {
                struct pollfd p[] = { { .fd = client->fd, .events = events }, { .fd = client->interrupt_fd, .events = POLLIN } };
                int timeout_ms = -1;
                int r;

                if (deadline_usec > 0) {
                        uint64_t now = now_usec();

                        if (now >= deadline_usec)
                                return error_set(err, -ETIMEDOUT, "rmd did not answer in time");
                        timeout_ms = (int) ((deadline_usec - now + 999) / 1000);
                }
                r = poll(p, 2, timeout_ms);
                if (r > 0)
                        return p[0].revents ? 0 : interrupted(err);
                if (r < 0 && errno != EINTR)
                        return error_sys(err, -errno, "cannot wait for rmd");
        }
}

int client_send(struct client *client, const ProtobufCMessage *body, uint32_t *ret_id, struct rm_error *err) {
        uint64_t deadline_usec = now_usec() + REPLY_TIMEOUT_USEC;
        struct buffer out = { 0 };
        int r = 0;

        wire_put(&out, ++client->last_id, body);
        if (ret_id)
                *ret_id = client->last_id;
        while (out.used > 0 && r == 0) {
                ssize_t n = send(client->fd, buffer_data(&out), out.used, MSG_NOSIGNAL);

                if (n >= 0)
                        buffer_drop(&out, (size_t) n);
                else if (errno == EPIPE || errno == ECONNRESET)
                        break; /* it may have said why before it closed: that is still to be received */
                else if (errno == EAGAIN)
                        r = wait_for(client, POLLOUT, deadline_usec, err);
                else if (errno != EINTR)
                        r = error_sys(err, -errno, "cannot send to rmd");
        }
        buffer_finish(&out);
        return r;
}

static int read_more(struct client *client, struct rm_error *err) {
        uint8_t chunk[65536];
        ssize_t n = recv(client->fd, chunk, sizeof(chunk), 0);

        if (n > 0)
                buffer_add(&client->in, chunk, (size_t) n);
        else if (n == 0 || errno == ECONNRESET)
                return gone(err);
        else if (errno != EINTR && errno != EAGAIN)
                return error_sys(err, -errno, "cannot receive from rmd");
        return 0;
}

static int reply_error(const Rm__Error *error, struct rm_error *err) {
        int code = error->code > 0 ? -error->code : -EIO;

        if (code == CLIENT_NO_DAEMON) /* of another node: one has answered here */
                code = -EHOSTUNREACH;
        return error_set(err, code, "%s", *error->text ? error->text : strerror(-code));
}

/* `deadline_usec` 0: none. */
static int receive_until(struct client *client, uint64_t deadline_usec, Rm__LocalReply **ret_reply, struct rm_error *err) {
        for (;;) {
                int r = wire_next(&client->in, ret_reply);

                if (r != 0)
                        return r < 0 ? error_sys(err, r, "rmd sent an invalid reply") : 0;
                r = wait_for(client, POLLIN, deadline_usec, err);
                if (r == 0)
                        r = read_more(client, err);
                if (r < 0)
                        return r;
        }
}

int client_receive_any(struct client *client, uint64_t timeout_usec, Rm__LocalReply **ret_reply, struct rm_error *err) {
        return receive_until(client, timeout_usec ? now_usec() + timeout_usec : 0, ret_reply, err);
}

int client_receive(struct client *client, uint64_t timeout_usec, Rm__LocalReply **ret_reply, struct rm_error *err) {
        uint64_t deadline_usec = timeout_usec ? now_usec() + timeout_usec : 0;

        for (;;) {
                Rm__LocalReply *reply = NULL;
                int r = receive_until(client, deadline_usec, &reply, err);

                if (r < 0)
                        return r;
                if (reply->id == client->last_id) {
                        if (reply->body_case != RM__LOCAL_REPLY__BODY_ERROR) {
                                *ret_reply = reply;
                                return 0;
                        }
                        r = reply_error(reply->error, err);
                        rm__local_reply__free_unpacked(reply, NULL);
                        return r;
                }
                rm__local_reply__free_unpacked(reply, NULL);
        }
}

int client_request(struct client *client, const ProtobufCMessage *body, Rm__LocalReply__BodyCase kind, Rm__LocalReply **ret_reply,
                   struct rm_error *err) {
        Rm__LocalReply *reply = NULL;
        int r = client_send(client, body, NULL, err);

        if (r == 0)
                r = client_receive(client, REPLY_TIMEOUT_USEC, &reply, err);
        if (r < 0)
                return r;
        if (reply->body_case != kind) {
                r = error_set(err, -EPROTO, "unexpected reply %d from rmd (expected %d)", (int) reply->body_case, (int) kind);
                rm__local_reply__free_unpacked(reply, NULL);
                return r;
        }
        *ret_reply = reply;
        return 0;
}

static int open_once(const char *name, int interrupt_fd, struct client **ret_client, struct rm_error *err) {
        Rm__Hello hello = RM__HELLO__INIT;
        struct client *client;
        int fd = -1;
        int r;

        r = connect_interruptible(interrupt_fd, &fd, err);
        if (r < 0)
                return r;
        client = xcalloc(1, sizeof(*client));
        client->fd = fd;
        client->interrupt_fd = interrupt_fd;
        hello.version = CLIENT_PROTOCOL_VERSION;
        hello.client = (char *) name;
        r = client_request(client, &hello.base, RM__LOCAL_REPLY__BODY_HELLO, &client->hello, err);
        if (r < 0) {
                client_close(client);
                /* The daemon took the connection, and closed it for others that came later. */
                return r == CLIENT_NO_DAEMON ? -EAGAIN : r;
        }
        *ret_client = client;
        return 0;
}

int client_open_interruptible(const char *name, int interrupt_fd, struct client **ret_client, struct rm_error *err) {
        struct rm_error why = { 0 };
        int r = -EAGAIN;

        for (unsigned i = 0; i < OPEN_TRIES && r == -EAGAIN; i++) {
                if (i > 0)
                        (void) usleep(OPEN_PAUSE_USEC << i);
                why = (struct rm_error) { 0 };
                r = open_once(name, interrupt_fd, ret_client, &why);
        }
        if (r < 0)
                *err = why;
        return r == -EAGAIN ? CLIENT_NO_DAEMON : r;
}

int client_open(const char *name, struct client **ret_client, struct rm_error *err) {
        return client_open_interruptible(name, -1, ret_client, err);
}

void client_close(struct client *client) {
        if (!client)
                return;
        if (client->hello)
                rm__local_reply__free_unpacked(client->hello, NULL);
        cleanup_close_fd(&client->fd);
        buffer_finish(&client->in);
        free(client);
}

int client_exit_code(int error) {
        return error == CLIENT_NO_DAEMON ? EXIT_NO_DAEMON : EXIT_REFUSED;
}
