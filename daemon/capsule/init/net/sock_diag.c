#include "daemon/capsule/init/net/sock_diag.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/netlink_diag.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include <libmnl/libmnl.h>

enum { BUFFER_BYTES = 32768, SEQUENCE = 1, MEMINFO_UNREAD = SK_MEMINFO_RMEM_ALLOC };

struct walk {
        sock_diag_fn fn;
        void *arg;
        uint8_t protocol; /* of those that are told now */
        bool enough;
};

static int report(struct walk *walk, const struct sock_diag *socket) {
        walk->enough = !walk->fn(socket, walk->arg);
        return walk->enough ? MNL_CB_STOP : MNL_CB_OK;
}

static uint64_t mix(uint64_t hash, uint64_t word) {
        hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
        return hash ^ hash >> 32;
}

/* Both are told to who may configure the network, as PID 1. MPTCP is another protocol of this
 * kind. */
static int take_inet_attribute(const struct nlattr *attribute, void *arg) {
        struct sock_diag *socket = arg;
        const struct nlattr *info;

        if (mnl_attr_get_type(attribute) == INET_DIAG_MD5SIG)
                socket->keys = "TCP-MD5";
        if (mnl_attr_get_type(attribute) == INET_DIAG_ULP_INFO)
                mnl_attr_for_each_nested(info, attribute) if (mnl_attr_get_type(info) == INET_ULP_INFO_NAME &&
                                                              strcmp(mnl_attr_get_str(info), "tls") == 0) socket->keys = "TLS";
        return MNL_CB_OK;
}

static int take_inet(const struct nlmsghdr *header, void *arg) {
        const struct inet_diag_msg *m = mnl_nlmsg_get_payload(header);
        struct walk *walk = arg;
        struct sock_diag socket = { .family = walk->protocol == IPPROTO_TCP ? SOCK_DIAG_TCP : SOCK_DIAG_UDP };

        if (mnl_nlmsg_get_payload_len(header) < sizeof(*m))
                return MNL_CB_OK;
        socket.inode = m->idiag_inode;
        socket.type = walk->protocol == IPPROTO_TCP ? SOCK_STREAM : SOCK_DGRAM;
        socket.state = m->idiag_state;
        socket.port = ntohs(m->id.idiag_sport);
        socket.peer = m->id.idiag_dport;
        for (size_t i = 0; i < 4; i++)
                socket.peer = mix(socket.peer, m->id.idiag_dst[i]);
        socket.unread = m->idiag_rqueue;
        socket.unsent = m->idiag_wqueue;
        if (walk->protocol == IPPROTO_TCP)
                (void) mnl_attr_parse(header, sizeof(*m), take_inet_attribute, &socket);
        return report(walk, &socket);
}

static int take_unix_attribute(const struct nlattr *attribute, void *arg) {
        struct sock_diag *socket = arg;
        size_t size = mnl_attr_get_payload_len(attribute);
        const void *data = mnl_attr_get_payload(attribute);
        struct unix_diag_rqlen queues;

        switch (mnl_attr_get_type(attribute)) {
        case UNIX_DIAG_PEER:
                if (size >= sizeof(uint32_t))
                        socket->peer = mnl_attr_get_u32(attribute);
                break;
        case UNIX_DIAG_NAME:
                socket->named = size > 0;
                break;
        case UNIX_DIAG_ICONS:
                socket->pending = (uint32_t *) data;
                socket->n_pending = size / sizeof(uint32_t);
                break;
        case UNIX_DIAG_RQLEN:
                if (size < sizeof(queues))
                        break;
                memcpy(&queues, data, sizeof(queues));
                socket->unread = queues.udiag_rqueue;
                socket->unsent = queues.udiag_wqueue;
                break;
        default:
                break;
        }
        return MNL_CB_OK;
}

static int take_unix(const struct nlmsghdr *header, void *arg) {
        const struct unix_diag_msg *m = mnl_nlmsg_get_payload(header);
        struct walk *walk = arg;
        struct sock_diag socket = { .family = SOCK_DIAG_UNIX };

        if (mnl_nlmsg_get_payload_len(header) < sizeof(*m))
                return MNL_CB_OK;
        socket.inode = m->udiag_ino;
        socket.type = m->udiag_type;
        socket.state = m->udiag_state;
        (void) mnl_attr_parse(header, sizeof(*m), take_unix_attribute, &socket);
        return report(walk, &socket);
}

static int take_netlink_attribute(const struct nlattr *attribute, void *arg) {
        struct sock_diag *socket = arg;
        size_t size = mnl_attr_get_payload_len(attribute);
        const uint32_t *words = mnl_attr_get_payload(attribute);

        if (mnl_attr_get_type(attribute) == NETLINK_DIAG_MEMINFO && size > MEMINFO_UNREAD * sizeof(*words))
                socket->unread = words[MEMINFO_UNREAD];
        for (size_t i = 1; mnl_attr_get_type(attribute) == NETLINK_DIAG_GROUPS && i < size / sizeof(*words); i++)
                socket->high_groups |= words[i];
        return MNL_CB_OK;
}

static int take_netlink(const struct nlmsghdr *header, void *arg) {
        const struct netlink_diag_msg *m = mnl_nlmsg_get_payload(header);
        struct walk *walk = arg;
        struct sock_diag socket = { .family = SOCK_DIAG_NETLINK };

        if (mnl_nlmsg_get_payload_len(header) < sizeof(*m))
                return MNL_CB_OK;
        socket.inode = m->ndiag_ino;
        (void) mnl_attr_parse(header, sizeof(*m), take_netlink_attribute, &socket);
        return report(walk, &socket);
}

int sock_diag_dump(struct mnl_socket *nl, const void *request, size_t request_bytes, mnl_cb_t fn, void *arg) {
        char buffer[BUFFER_BYTES];
        struct nlmsghdr *header = mnl_nlmsg_put_header(buffer);
        int r = MNL_CB_OK;

        header->nlmsg_type = SOCK_DIAG_BY_FAMILY;
        header->nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
        header->nlmsg_seq = SEQUENCE;
        memcpy(mnl_nlmsg_put_extra_header(header, request_bytes), request, request_bytes);
        if (mnl_socket_sendto(nl, header, header->nlmsg_len) < 0)
                return -errno;
        while (r > MNL_CB_STOP) {
                ssize_t n = mnl_socket_recvfrom(nl, buffer, sizeof(buffer));

                if (n < 0)
                        return -errno;
                r = mnl_cb_run(buffer, (size_t) n, SEQUENCE, mnl_socket_get_portid(nl), fn, arg);
        }
        return r < 0 ? -errno : 0;
}

static int dump(struct mnl_socket *nl, const void *request, size_t size, mnl_cb_t fn, struct walk *walk) {
        int r = sock_diag_dump(nl, request, size, fn, walk);

        return walk->enough ? -E2BIG : r;
}

static int dump_inet(struct mnl_socket *nl, uint8_t protocol, uint32_t states, struct walk *walk) {
        struct inet_diag_req_v2 request = { .sdiag_family = AF_INET, .sdiag_protocol = protocol, .idiag_states = states };
        int r;

        walk->protocol = protocol;
        if (protocol == IPPROTO_TCP)
                request.idiag_ext = 1U << (INET_DIAG_INFO - 1); /* with that come keys */
        r = dump(nl, &request, sizeof(request), take_inet, walk);
        request.sdiag_family = AF_INET6;
        return r < 0 ? r : dump(nl, &request, sizeof(request), take_inet, walk);
}

int sock_diag_each(sock_diag_fn fn, void *arg) {
        const struct unix_diag_req of_unix = { .sdiag_family = AF_UNIX,
                                               .udiag_states = UINT32_MAX,
                                               .udiag_show =
                                                       UDIAG_SHOW_NAME | UDIAG_SHOW_PEER | UDIAG_SHOW_ICONS | UDIAG_SHOW_RQLEN };
        const struct netlink_diag_req of_netlink = { .sdiag_family = AF_NETLINK,
                                                     .sdiag_protocol = NDIAG_PROTO_ALL,
                                                     .ndiag_show = NDIAG_SHOW_MEMINFO | NDIAG_SHOW_GROUPS };
        struct walk walk = { .fn = fn, .arg = arg };
        struct mnl_socket *nl = mnl_socket_open2(NETLINK_SOCK_DIAG, SOCK_CLOEXEC);
        int r = !nl || mnl_socket_bind(nl, 0, MNL_SOCKET_AUTOPID) < 0 ? -errno : 0;

        if (r == 0)
                r = dump_inet(nl, IPPROTO_TCP,
                              1U << SOCK_DIAG_ESTABLISHED | 1U << SOCK_DIAG_LISTEN | 1U << SOCK_DIAG_FIN_WAIT1 |
                                      1U << SOCK_DIAG_FIN_WAIT2 | 1U << SOCK_DIAG_CLOSE_WAIT | 1U << SOCK_DIAG_LAST_ACK |
                                      1U << SOCK_DIAG_CLOSING,
                              &walk);
        if (r == 0)
                r = dump_inet(nl, IPPROTO_UDP, UINT32_MAX, &walk);
        if (r == 0)
                r = dump(nl, &of_unix, sizeof(of_unix), take_unix, &walk);
        if (r == 0)
                r = dump(nl, &of_netlink, sizeof(of_netlink), take_netlink, &walk);
        if (nl)
                (void) mnl_socket_close(nl);
        return r;
}
