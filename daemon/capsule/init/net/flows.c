#include "daemon/capsule/init/net/flows.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <libmnl/libmnl.h>

#include "common/error.h"
#include "common/util.h"
#include "daemon/capsule/init/net/sock_diag.h"

enum { TCP_STATE_ESTABLISHED = 1, TCP_STATE_CLOSE_WAIT = 8, TCP_STATE_LISTEN = 10 };

struct list {
        struct capsule_flow *flows;
        size_t n;
};

static void add(struct list *list, uint32_t address, uint64_t sent_bytes) {
        list->flows = xgrow(list->flows, list->n, sizeof(*list->flows));
        list->flows[list->n++] = (struct capsule_flow) { .address = address, .sent_bytes = sent_bytes };
}

/* An IPv4 address at the other end, also that of a socket that could speak IPv6. */
static bool far_address(const struct inet_diag_msg *socket, uint32_t *ret) {
        struct in6_addr address;

        if (socket->idiag_family == AF_INET) {
                *ret = socket->id.idiag_dst[0];
        } else {
                memcpy(&address, socket->id.idiag_dst, sizeof(address));
                if (!IN6_IS_ADDR_V4MAPPED(&address))
                        return false;
                *ret = address.s6_addr32[3];
        }
        return ntohl(*ret) >> 24 != IN_LOOPBACKNET;
}

static int take_attribute(const struct nlattr *attribute, void *arg) {
        struct tcp_info *info = arg;
        size_t size = mnl_attr_get_payload_len(attribute);

        /* An older kernel knows fewer counters: those stay 0. */
        if (mnl_attr_get_type(attribute) == INET_DIAG_INFO)
                memcpy(info, mnl_attr_get_payload(attribute), size < sizeof(*info) ? size : sizeof(*info));
        return MNL_CB_OK;
}

static int take_socket(const struct nlmsghdr *header, void *arg) {
        const struct inet_diag_msg *socket = mnl_nlmsg_get_payload(header);
        struct list *list = arg;
        struct tcp_info info = { 0 };
        uint32_t address;

        if (mnl_nlmsg_get_payload_len(header) < sizeof(*socket) || !far_address(socket, &address))
                return MNL_CB_OK;
        (void) mnl_attr_parse(header, sizeof(*socket), take_attribute, &info);
        if (info.tcpi_bytes_acked > 0 && list->n < FLOWS_MAX)
                add(list, address, info.tcpi_bytes_acked);
        return MNL_CB_OK;
}

/* `extension`: 0: none; `fn` is called for each connection in these states. */
static int ask(struct mnl_socket *nl, uint8_t family, uint8_t extension, uint32_t states, mnl_cb_t fn, void *arg) {
        const struct inet_diag_req_v2 request = { .sdiag_family = family,
                                                  .sdiag_protocol = IPPROTO_TCP,
                                                  .idiag_ext = extension ? (uint8_t) (1U << (extension - 1)) : 0,
                                                  .idiag_states = states };

        return sock_diag_dump(nl, &request, sizeof(request), fn, arg);
}

static int by_address(const void *a, const void *b) {
        uint32_t x = ((const struct capsule_flow *) a)->address, y = ((const struct capsule_flow *) b)->address;

        return x < y ? -1 : x > y;
}

static void add_up(struct list *list) {
        size_t used = 0;

        if (list->n > 0)
                qsort(list->flows, list->n, sizeof(*list->flows), by_address);
        for (size_t i = 0; i < list->n; i++)
                if (used > 0 && list->flows[used - 1].address == list->flows[i].address)
                        list->flows[used - 1].sent_bytes += list->flows[i].sent_bytes;
                else
                        list->flows[used++] = list->flows[i];
        list->n = used;
}

static int ask_all(uint8_t extension, uint32_t states, mnl_cb_t fn, void *arg) {
        struct mnl_socket *nl = mnl_socket_open2(NETLINK_SOCK_DIAG, SOCK_CLOEXEC);
        int r = !nl || mnl_socket_bind(nl, 0, MNL_SOCKET_AUTOPID) < 0 ? -errno : 0;

        if (r == 0)
                r = ask(nl, AF_INET, extension, states, fn, arg);
        if (r == 0)
                r = ask(nl, AF_INET6, extension, states, fn, arg);
        if (nl)
                mnl_socket_close(nl);
        return r;
}

static int take_unread(const struct nlmsghdr *header, void *arg) {
        const struct inet_diag_msg *socket = mnl_nlmsg_get_payload(header);
        uint64_t *sum = arg;

        if (mnl_nlmsg_get_payload_len(header) >= sizeof(*socket))
                *sum += socket->idiag_rqueue + (socket->idiag_state == TCP_STATE_CLOSE_WAIT);
        return MNL_CB_OK;
}

int flows_unread(uint64_t *ret) {
        *ret = 0;
        return ask_all(0, 1U << TCP_STATE_ESTABLISHED | 1U << TCP_STATE_CLOSE_WAIT | 1U << TCP_STATE_LISTEN, take_unread, ret);
}

int flows_read(struct capsule_flow **ret, size_t *ret_n, struct rm_error *error) {
        struct list list = { 0 };
        int r = ask_all(INET_DIAG_INFO, 1U << TCP_STATE_ESTABLISHED | 1U << TCP_STATE_CLOSE_WAIT, take_socket, &list);

        if (r < 0) {
                free(list.flows);
                return error_sys(error, r, "cannot read the counters of TCP connections");
        }
        add_up(&list);
        *ret = list.flows;
        *ret_n = list.n;
        return 0;
}
