/* Listening sockets: a Unix one for local clients, a TCP one for peers. */
#ifndef RM_WIRE_LISTENER_H
#define RM_WIRE_LISTENER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

#include <event2/event.h>

#include "common/error.h"

struct listener;

/* `fd` is a connected, non-blocking, close-on-exec socket, owned by the callee; `name` describes
 * the other end. */
typedef void (*listener_accept_fn)(void *userdata, int fd, const char *name);

/* May one more be accepted? If not, new ones wait in the kernel's queue, and it is asked again
 * soon. */
typedef bool (*listener_ready_fn)(void *userdata);

/* Listen at `path` with `mode` (0666: clients are identified by SO_PEERCRED). Holds a lock file
 * `path`.lock, so that a second daemon fails with -EADDRINUSE instead of taking the path over; a
 * socket left behind by a killed one is replaced. */
int listener_create_unix(struct event_base *base, const char *path, mode_t mode, listener_accept_fn on_accept, void *userdata,
                         struct listener **ret, struct rm_error *err);
/* `address` IPv4, port 0 = any free one. */
int listener_create_tcp(struct event_base *base, const char *address, uint16_t port, listener_accept_fn on_accept, void *userdata,
                        struct listener **ret, struct rm_error *err);
/* NULL: always ready, as at first. With the userdata of on_accept. */
void listener_set_ready(struct listener *listener, listener_ready_fn ready);
/* The TCP port. */
uint16_t listener_port(const struct listener *listener);
/* Closes the listener; also removes the path of a Unix one (its empty lock file stays). Not from
 * within on_accept. NULL ok. */
void listener_destroy(struct listener *listener);

#endif
