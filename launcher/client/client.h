/* A connection to the rmd of this node for programs that ask and wait for the answer. */
#ifndef RM_LAUNCHER_CLIENT_CLIENT_H
#define RM_LAUNCHER_CLIENT_CLIENT_H

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"
#include "proto/local.pb-c.h"

#define CLIENT_SOCKET_PATH "/run/rmd/rmd.sock"
#define CLIENT_ROOT_SOCKET_PATH CLIENT_SOCKET_PATH ".root"
#define CLIENT_PROTOCOL_VERSION 1U

/* Exit codes of every command of ours. */
enum {
        EXIT_DONE = 0,
        EXIT_REFUSED = 1,
        EXIT_USAGE = 2,
        EXIT_NO_DAEMON = 3,
};

/* The result of every call below when no rmd serves this node. */
#define CLIENT_NO_DAEMON (-EHOSTDOWN)

struct client;

/* RM_SOCKET of the environment, else root's socket for root where there is one, else
 * CLIENT_SOCKET_PATH. */
const char *client_socket_path(void);

/* A connected socket, close-on-exec and non-blocking, nothing said yet. CLIENT_NO_DAEMON or another
 * negative errno; -EAGAIN when rmd is too busy to accept it. */
int client_connect(int *ret_fd, struct rm_error *err);

/* Connect and say hello as `name`, which is not copied. The connection closes in client_close(). */
int client_open(const char *name, struct client **ret_client, struct rm_error *err);
/* The same as client_open(), for a program that keeps signals back: this and every call that waits
 * for an answer return -EINTR as soon as `interrupt_fd` can be read. It stays the caller's; -1:
 * never. */
int client_open_interruptible(const char *name, int interrupt_fd, struct client **ret_client, struct rm_error *err);
/* NULL ok. */
void client_close(struct client *client);

/* Sends a request with this body without waiting. ret_id: of the request; NULL ok. */
int client_send(struct client *client, const ProtobufCMessage *body, uint32_t *ret_id, struct rm_error *err);
/* Wait for the next reply to the last request sent, at most `timeout_usec` (0: forever;
 * -ETIMEDOUT). Replies to earlier requests are skipped. An Error of rmd is returned as its negative
 * code with its text. The caller frees the reply with rm__local_reply__free_unpacked(). */
int client_receive(struct client *client, uint64_t timeout_usec, Rm__LocalReply **ret_reply, struct rm_error *err);
/* The next reply to any request, also an Error: for callers with several requests at a time.
 * `timeout_usec` as above. */
int client_receive_any(struct client *client, uint64_t timeout_usec, Rm__LocalReply **ret_reply, struct rm_error *err);
/* client_send() and client_receive() of one reply, which must be of that kind. */
int client_request(struct client *client, const ProtobufCMessage *body, Rm__LocalReply__BodyCase kind, Rm__LocalReply **ret_reply,
                   struct rm_error *err);

/* EXIT_NO_DAEMON or EXIT_REFUSED, for a negative errno of a call above. */
int client_exit_code(int error);

#endif
