/* Messages over Unix sockets that carry a descriptor, and what that is. */
#ifndef RM_DAEMON_PAGES_PASSING_H
#define RM_DAEMON_PAGES_PASSING_H

#include <stdbool.h>
#include <stddef.h>

/* `descriptor` -1: none. 0 or -errno. */
int passing_send(int fd, const void *data, size_t size_bytes, int descriptor);
/* All of `size_bytes`. `*ret_descriptor` is -1 when none came. 0; -EPIPE: the other end has hung
 * up; or -errno. */
int passing_receive(int fd, void *data, size_t size_bytes, int *ret_descriptor);

/* Is the descriptor a userfaultfd? One that came from outside may be anything. */
bool passing_is_userfaultfd(int fd);

#endif
