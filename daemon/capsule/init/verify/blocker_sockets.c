/* Sockets that CRIU does not carry, or not as they are now. Whose socket it is /proc tells, what is
 * in it the kernel's list of all. */
#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "common/util.h"
#include "daemon/capsule/init/net/sock_diag.h"
#include "daemon/capsule/init/verify/blocker_scan_internal.h"

enum {
        PASS_PIDFD = 76, /* SO_PASSPIDFD, which older headers do not have */
};

/* The look keeps this of each socket of the namespace until all are known. */
struct diag_list {
        struct scan *scan;
        struct sock_diag *items; /* by family and inode */
        size_t n;
};

/* ---- as they are seen in /proc ---- */

/* The kernel's names of protocols; SOCK_RAW may have any. */
static bool is_known(const char *protocol) {
        static const char *const names[] = { "TCP",   "TCPv6", "UDP",    "UDPv6", "UDP-Lite",    "UDPLITE", "UDPLITEv6", "RAW",
                                             "RAWv6", "PING",  "PINGv6", "UNIX",  "UNIX-STREAM", "NETLINK", "PACKET" };

        for (size_t i = 0; i < ARRAY_SIZE(names); i++)
                if (strcmp(protocol, names[i]) == 0)
                        return true;
        return false;
}

/* Returns whether it is a Unix socket. */
static bool scan_protocol(struct scan *scan, int fds, const char *number) {
        char path[64], name[64];
        ssize_t n;

        (void) snprintf(path, sizeof(path), "/proc/self/fd/%d/%.10s", fds, number);
        n = getxattr(path, "system.sockprotoname", name, sizeof(name) - 1);
        if (n <= 0)
                return false;
        name[n] = '\0';
        if (!is_known(name))
                scan_note(scan, BLOCKER_PROTOCOL, name);
        return strncmp(name, "UNIX", 4) == 0;
}

/* Looks for descriptors in the queue of a socket, also of a socket in that queue, and of
 * connections that nobody has accepted yet (the kernel counts those with the socket that
 * listens). */
static void scan_queued(struct scan *scan, const char *number) {
        const char *text;

        (void) scan_read(scan, scan->text, SCAN_FDINFO_BYTES, "%d/fdinfo/%.10s", (int) scan->pid, number);
        text = strstr(scan->text, "scm_fds:");
        if (text && strtoul(text + strlen("scm_fds:"), NULL, 10) > 0)
                scan_note(scan, BLOCKER_UNDER_WAY, NULL);
}

void scan_socket(struct scan *scan, int fds, const char *number, const char *link) {
        struct own_socket socket = { .pid = scan->pid, .fd = atoi(number) };

        socket.of_unix = scan_protocol(scan, fds, number);
        scan_queued(scan, number);
        if (sscanf(link, "socket:[%" SCNu64 "]", &socket.inode) != 1)
                return;
        scan->sockets = xgrow(scan->sockets, scan->n_sockets, sizeof(*scan->sockets));
        scan->sockets[scan->n_sockets++] = socket;
}

/* ---- as the kernel lists them ---- */

static int by_inode(const void *a, const void *b) {
        uint64_t x = ((const struct own_socket *) a)->inode, y = ((const struct own_socket *) b)->inode;

        return x < y ? -1 : x > y;
}

/* NULL: none of the processes has it. */
static const struct own_socket *find(const struct scan *scan, uint64_t inode) {
        const struct own_socket key = { .inode = inode };

        return scan->n_sockets > 0 ? bsearch(&key, scan->sockets, scan->n_sockets, sizeof(key), by_inode) : NULL;
}

static void note(struct scan *scan, const struct own_socket *own, enum blocker_kind kind, const char *detail, uint64_t mark) {
        scan->pid = own->pid;
        scan_note_marked(scan, kind, detail, mark);
}

/* Returns the value of an option, 0 if the socket has none. */
static int option_of(const struct scan *scan, const struct own_socket *own, int level, int name) {
        cleanup_close int fd = scan_take(scan, own->pid, own->fd);
        socklen_t size = sizeof(int);
        int value = 0;

        return fd >= 0 && getsockopt(fd, level, name, &value, &size) == 0 ? value : 0;
}

/* With one of these a message has more than its data, which CRIU refuses to read. Streams keep no
 * times. */
static void scan_unread(struct scan *scan, const struct sock_diag *socket, const struct own_socket *own) {
        static const int options[] = { SO_PASSCRED, PASS_PIDFD, SO_TIMESTAMP, SO_TIMESTAMPNS, SO_TIMESTAMPING };
        size_t n = socket->type == SOCK_STREAM ? 2 : ARRAY_SIZE(options);

        for (size_t i = 0; i < n; i++)
                if (option_of(scan, own, SOL_SOCKET, options[i]) != 0) {
                        note(scan, own, BLOCKER_UNREAD_CONTROL, NULL, 0);
                        return;
                }
}

/* CRIU leaves it out, or the mark where it was. */
static void scan_urgent(struct scan *scan, const struct own_socket *own) {
        cleanup_close int fd = scan_take(scan, own->pid, own->fd);
        struct pollfd state = { .fd = fd, .events = POLLPRI };

        if (fd >= 0 && poll(&state, 1, 0) == 1 && (state.revents & POLLPRI))
                note(scan, own, BLOCKER_URGENT, NULL, 0);
}

/* Is there an empty message among those that wait? Each look goes on behind the one before. The end
 * of a connection looks like an empty message behind which nothing comes, to its reader as well. */
static bool has_empty(int fd) {
        struct pollfd state = { .fd = fd, .events = POLLRDHUP };
        bool ended = poll(&state, 1, 0) == 1 && (state.revents & POLLRDHUP);
        char text[16384];
        ssize_t n;

        while ((n = recv(fd, text, sizeof(text), MSG_PEEK | MSG_DONTWAIT)) > 0)
                ;
        return n == 0 && (!ended || recv(fd, text, sizeof(text), MSG_PEEK | MSG_DONTWAIT) > 0);
}

static bool was_empty(const struct empty_messages *known, uint64_t inode) {
        for (size_t i = 0; known && i < known->n; i++)
                if (known->inodes[i] == inode)
                        return true;
        return known && known->n == EMPTY_MESSAGES_MAX;
}

static void forget_empty(struct empty_messages *known, uint64_t inode) {
        for (size_t i = 0; known && i < known->n; i++)
                if (known->inodes[i] == inode)
                        known->inodes[i--] = known->inodes[--known->n];
}

/* Looks through the queue from its begin, whatever offset its owner looks from. */
static bool look_for_empty(int fd) {
        const int begin = 0;
        socklen_t size = sizeof(int);
        bool empty;
        int offset;

        if (getsockopt(fd, SOL_SOCKET, SO_PEEK_OFF, &offset, &size) < 0 ||
            setsockopt(fd, SOL_SOCKET, SO_PEEK_OFF, &begin, sizeof(begin)) < 0)
                return false;
        empty = has_empty(fd);
        (void) setsockopt(fd, SOL_SOCKET, SO_PEEK_OFF, &offset, sizeof(offset));
        return empty;
}

/* CRIU takes an empty message for the end of the queue, and leaves out what comes behind it. */
static void scan_messages(struct scan *scan, const struct own_socket *own) {
        struct empty_messages *known = scan->scope->empty_messages;
        cleanup_close int fd = scan_take(scan, own->pid, own->fd);
        struct pollfd state = { .fd = fd, .events = POLLIN };

        if (fd < 0)
                return;
        if (poll(&state, 1, 0) != 1) {
                forget_empty(known, own->inode); /* all were read */
                return;
        }
        if (was_empty(known, own->inode)) {
                note(scan, own, BLOCKER_EMPTY_MESSAGE, NULL, 0);
        } else if (look_for_empty(fd)) {
                if (known)
                        known->inodes[known->n++] = own->inode;
                note(scan, own, BLOCKER_EMPTY_MESSAGE, NULL, 0);
        }
}

static int by_family_and_inode(const void *a, const void *b) {
        const struct sock_diag *x = a, *y = b;

        if (x->family != y->family)
                return x->family < y->family ? -1 : 1;
        return x->inode < y->inode ? -1 : x->inode > y->inode;
}

static const struct sock_diag *find_unix(const struct diag_list *list, uint64_t inode) {
        const struct sock_diag key = { .family = SOCK_DIAG_UNIX, .inode = inode };

        return list->n > 0 ? bsearch(&key, list->items, list->n, sizeof(key), by_family_and_inode) : NULL;
}

/* CRIU makes such a connection anew from a client that waits for it and has sent nothing yet. */
static bool is_carried(const struct diag_list *list, uint32_t client) {
        const struct sock_diag *socket = client > 0 && find(list->scan, client) ? find_unix(list, client) : NULL;

        return socket && socket->unsent == 0;
}

static void scan_unix_queue(const struct diag_list *list, const struct sock_diag *socket, const struct own_socket *own) {
        uint64_t mark = 0;
        bool carried = true;

        for (size_t i = 0; i < socket->n_pending && !scan_done(list->scan); i++) {
                mark = mark * 31 + socket->pending[i];
                carried &= is_carried(list, socket->pending[i]);
        }
        if (!carried)
                note(list->scan, own, BLOCKER_UNACCEPTED, "Unix socket", mark + socket->n_pending);
}

/* CRIU connects those that have no name in pairs only. */
static bool is_one_way(const struct diag_list *list, const struct sock_diag *socket) {
        const struct sock_diag *peer = socket->type == SOCK_DGRAM && socket->peer > 0 ? find_unix(list, socket->peer) : NULL;

        return peer && peer->peer != socket->inode && !peer->named;
}

static void scan_unix(const struct diag_list *list, const struct sock_diag *socket, const struct own_socket *own) {
        if (socket->state == SOCK_DIAG_LISTEN) {
                scan_unix_queue(list, socket, own);
                return;
        }
        if (socket->unread > 0)
                scan_unread(list->scan, socket, own);
        if (socket->type != SOCK_STREAM)
                scan_messages(list->scan, own);
        else if (socket->unread > 0)
                scan_urgent(list->scan, own);
        /* The other end may have been made by one of the processes, where these run, since they
         * were looked at. */
        if (socket->type != SOCK_DGRAM && socket->peer > 0 && !find(list->scan, socket->peer))
                note(list->scan, own, BLOCKER_OUTSIDE, NULL, own->inode);
        if (is_one_way(list, socket))
                note(list->scan, own, BLOCKER_ONE_WAY, NULL, own->inode);
}

/* The connections that a listening socket has not accepted are no process's, and have its port. */
static void scan_tcp_queue(const struct diag_list *list, const struct sock_diag *socket, const struct own_socket *own) {
        char detail[32];
        uint64_t mark = 0;

        if (list->scan->found->kind != BLOCKER_NONE)
                return; /* there may be many of them */
        /* TCP is the first family. */
        for (size_t i = 0; i < list->n && list->items[i].inode == 0; i++)
                if (list->items[i].family == SOCK_DIAG_TCP && list->items[i].port == socket->port &&
                    list->items[i].state == SOCK_DIAG_ESTABLISHED)
                        mark += list->items[i].peer;
        (void) snprintf(detail, sizeof(detail), "TCP port %u", socket->port);
        note(list->scan, own, BLOCKER_UNACCEPTED, detail, mark);
}

/* The end of the data counts as one byte. */
static bool is_closed(const struct sock_diag *socket) {
        return socket->inode == 0 && socket->unsent > 1 && socket->state != SOCK_DIAG_ESTABLISHED;
}

/* A connection that was closed is no process's any more, and its last data still on the way to the
 * other end: CRIU does not know of it. It lasts as long as the other end does not read. */
static void scan_closed(const struct diag_list *list, const struct sock_diag *socket) {
        char port[16];

        if (!is_closed(socket))
                return;
        list->scan->pid = 0;
        (void) snprintf(port, sizeof(port), "%u", socket->port);
        scan_note_marked(list->scan, BLOCKER_CLOSED_UNSENT, port, socket->peer);
}

static void scan_listed(const struct diag_list *list, const struct sock_diag *socket) {
        const struct own_socket *own = socket->inode > 0 ? find(list->scan, socket->inode) : NULL;

        if (socket->family == SOCK_DIAG_TCP && socket->inode == 0)
                scan_closed(list, socket);
        if (!own)
                return;
        if (socket->family == SOCK_DIAG_UNIX)
                scan_unix(list, socket, own);
        else if (socket->keys) /* CRIU does not know of them, and plain data would follow */
                note(list->scan, own, BLOCKER_KEYED, socket->keys, 0);
        else if (socket->family == SOCK_DIAG_TCP && socket->state == SOCK_DIAG_LISTEN && socket->unread > 0)
                scan_tcp_queue(list, socket, own);
        else if (socket->family == SOCK_DIAG_TCP && socket->unread > 0)
                scan_urgent(list->scan, own);
        else if (socket->family == SOCK_DIAG_UDP && socket->unsent > 0 && option_of(list->scan, own, IPPROTO_UDP, UDP_CORK) != 0)
                note(list->scan, own, BLOCKER_CORKED, NULL, 0);
        else if (socket->family == SOCK_DIAG_NETLINK && socket->high_groups != 0)
                note(list->scan, own, BLOCKER_PROTOCOL, "NETLINK, groups above 32", 0);
        else if (socket->family == SOCK_DIAG_NETLINK && socket->unread > 0)
                note(list->scan, own, BLOCKER_UNREAD_NETLINK, NULL, 0);
}

static bool matters(const struct sock_diag *socket) {
        switch (socket->family) {
        case SOCK_DIAG_UNIX:
                return socket->inode > 0;
        case SOCK_DIAG_TCP:
                return is_closed(socket) || (socket->inode == 0 && socket->state == SOCK_DIAG_ESTABLISHED) ||
                       (socket->inode > 0 && (socket->unread > 0 || socket->keys));
        case SOCK_DIAG_UDP:
                return socket->unsent > 0;
        case SOCK_DIAG_NETLINK:
                return socket->unread > 0 || socket->high_groups != 0;
        default:
                return true;
        }
}

/* Keeps the sockets that matter: there may be millions that nobody has a descriptor of, as
 * connections that were given up. */
static bool keep(const struct sock_diag *socket, void *arg) {
        struct diag_list *list = arg;
        struct sock_diag *item;

        if (scan_done(list->scan))
                return false;
        if (!matters(socket))
                return true;
        list->items = xgrow(list->items, list->n, sizeof(*list->items));
        item = &list->items[list->n++];
        *item = *socket;
        item->pending = NULL;
        if (socket->n_pending > 0) {
                item->pending = xcalloc(socket->n_pending, sizeof(*item->pending));
                memcpy(item->pending, socket->pending, socket->n_pending * sizeof(*item->pending));
        }
        return true;
}

/* The kernel lists an accepted Unix connection where its client is: one that is not listed here has
 * a client elsewhere, unless it was closed meanwhile. */
static void search_unlisted(const struct diag_list *list) {
        struct scan *scan = list->scan;

        for (size_t i = 0; i < scan->n_sockets && !scan_done(scan); i++)
                if (scan->sockets[i].of_unix && !find_unix(list, scan->sockets[i].inode))
                        note(scan, &scan->sockets[i], BLOCKER_OUTSIDE, NULL, scan->sockets[i].inode);
}

void scan_sockets(struct scan *scan) {
        struct diag_list list = { .scan = scan };
        int r;

        if (scan->n_sockets > 0)
                qsort(scan->sockets, scan->n_sockets, sizeof(*scan->sockets), by_inode);
        r = sock_diag_each(keep, &list);
        if (list.n > 0)
                qsort(list.items, list.n, sizeof(*list.items), by_family_and_inode);
        for (size_t i = 0; r == 0 && i < list.n && !scan_done(scan); i++)
                scan_listed(&list, &list.items[i]);
        if (r == 0)
                search_unlisted(&list);
        for (size_t i = 0; i < list.n; i++)
                free(list.items[i].pending);
        free(list.items);
}
