/* Netlink sockets, requests and their acknowledgements, which the capsule's link and its packet
 * filter share. */
#ifndef RM_DAEMON_CAPSULE_INIT_NET_NETLINK_H
#define RM_DAEMON_CAPSULE_INIT_NET_NETLINK_H

#include <stddef.h>
#include <stdint.h>

struct mnl_socket;
struct nlmsghdr;
struct rm_error;

enum { NETLINK_BUFFER_BYTES = 8192 };

/* NULL with `error` set. It stays in the network namespace it was opened in. Free with
 * mnl_socket_close(). */
struct mnl_socket *netlink_open(int bus, struct rm_error *error);
/* A request at the start of `buffer`, which the kernel is to acknowledge. */
struct nlmsghdr *netlink_request(char *buffer, uint16_t type, uint16_t flags);
/* Sends `size` bytes of requests and waits for `acks` acknowledgements. 0, or the first error the
 * kernel answers; what it answers beside that stays in the socket. */
int netlink_talk(struct mnl_socket *nl, const void *buffer, size_t size, unsigned acks);

#endif
