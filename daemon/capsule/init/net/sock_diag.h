/* The sockets of this network namespace, as the kernel tells of them (sock_diag(7)), for those that
 * CRIU cannot carry as they are. */
#ifndef RM_DAEMON_CAPSULE_INIT_NET_SOCK_DIAG_H
#define RM_DAEMON_CAPSULE_INIT_NET_SOCK_DIAG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <libmnl/libmnl.h>

enum sock_diag_family { SOCK_DIAG_TCP, SOCK_DIAG_UDP, SOCK_DIAG_UNIX, SOCK_DIAG_NETLINK };

/* TCP_ESTABLISHED, TCP_LISTEN; also of Unix sockets. The others are of connections that one side or
 * both have closed, and which may have data that was not acknowledged or read yet. */
enum {
        SOCK_DIAG_ESTABLISHED = 1,
        SOCK_DIAG_FIN_WAIT1 = 4,
        SOCK_DIAG_FIN_WAIT2,
        SOCK_DIAG_CLOSE_WAIT = 8,
        SOCK_DIAG_LAST_ACK,
        SOCK_DIAG_LISTEN,
        SOCK_DIAG_CLOSING,
};

struct sock_diag {
        enum sock_diag_family family;
        uint64_t inode; /* 0: no process has it, as a connection that was not accepted */
        uint8_t type; /* SOCK_STREAM ...; of TCP and Unix sockets */
        uint8_t state; /* of TCP and Unix sockets */
        uint16_t port; /* of TCP: its own */
        /* The other end: for TCP, its address and port, mixed; for Unix sockets, its inode, 0:
         * none. */
        uint64_t peer;
        uint32_t unread; /* bytes; of a listening TCP socket: connections that were not accepted */
        uint32_t unsent; /* bytes; of a Unix socket: those that the peer has not read */
        /* The inodes of the sockets that a listening Unix socket has not accepted; 0: one was
         * closed. */
        uint32_t *pending;
        size_t n_pending;
        bool named; /* of a Unix socket: it has a name */
        uint64_t high_groups; /* of Netlink: nonzero if it is in a group above 32 */
        const char *keys; /* of TCP: what the kernel signs or encrypts its data by; NULL: nothing */
};

/* Takes a socket; `pending` is lent for the call. Returns false if it wants no more. */
typedef bool (*sock_diag_fn)(const struct sock_diag *socket, void *arg);

/* Returns 0, or -errno, when not all were told: -E2BIG if `fn` wanted no more. */
int sock_diag_each(sock_diag_fn fn, void *arg);

/* Asks for a dump by `request`, of `request_bytes`, over a socket of NETLINK_SOCK_DIAG that is
 * bound; `fn` takes each message of the answer. Returns 0, also when `fn` has stopped it, or
 * -errno. */
int sock_diag_dump(struct mnl_socket *nl, const void *request, size_t request_bytes, mnl_cb_t fn, void *arg);

#endif
