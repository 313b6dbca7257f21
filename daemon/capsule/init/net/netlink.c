#include "daemon/capsule/init/net/netlink.h"

#include <errno.h>
#include <sys/socket.h>

#include <libmnl/libmnl.h>

#include "common/error.h"

struct mnl_socket *netlink_open(int bus, struct rm_error *error) {
        struct mnl_socket *nl = mnl_socket_open2(bus, SOCK_CLOEXEC);

        if (!nl || mnl_socket_bind(nl, 0, MNL_SOCKET_AUTOPID) < 0) {
                error_sys(error, -errno, "cannot open a netlink socket");
                if (nl)
                        mnl_socket_close(nl);
                return NULL;
        }
        return nl;
}

int netlink_talk(struct mnl_socket *nl, const void *buffer, size_t size, unsigned acks) {
        char answer[NETLINK_BUFFER_BYTES];

        if (mnl_socket_sendto(nl, buffer, size) < 0)
                return -errno;
        while (acks > 0) {
                ssize_t n = mnl_socket_recvfrom(nl, answer, sizeof(answer));
                int left;

                if (n < 0)
                        return -errno;
                left = (int) n;
                for (struct nlmsghdr *h = (struct nlmsghdr *) (void *) answer; mnl_nlmsg_ok(h, left);
                     h = mnl_nlmsg_next(h, &left)) {
                        const struct nlmsgerr *e = mnl_nlmsg_get_payload(h);

                        if (h->nlmsg_type != NLMSG_ERROR)
                                continue;
                        if (e->error != 0)
                                return e->error;
                        acks--;
                }
        }
        return 0;
}

struct nlmsghdr *netlink_request(char *buffer, uint16_t type, uint16_t flags) {
        struct nlmsghdr *h = mnl_nlmsg_put_header(buffer);

        h->nlmsg_type = type;
        h->nlmsg_flags = (uint16_t) (NLM_F_REQUEST | NLM_F_ACK | flags);
        h->nlmsg_seq = 1;
        return h;
}
