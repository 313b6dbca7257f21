#include "daemon/web/peer_uid.h"

#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <libmnl/libmnl.h>

#include "common/util.h"

enum { BUFFER_BYTES = 8192 };

struct peer_uid {
        struct mnl_socket *nl;
        uint32_t sequence;
};

struct peer_uid *peer_uid_create(void) {
        /* The kernel answers within the call that asks; this is only so that nothing can ever hold
         * rmd up. */
        static const struct timeval most = { .tv_usec = 100000 };
        struct peer_uid *diag = xcalloc(1, sizeof(*diag));

        diag->nl = mnl_socket_open2(NETLINK_SOCK_DIAG, SOCK_CLOEXEC);
        if (diag->nl && mnl_socket_bind(diag->nl, 0, MNL_SOCKET_AUTOPID) == 0 &&
            setsockopt(mnl_socket_get_fd(diag->nl), SOL_SOCKET, SO_RCVTIMEO, &most, sizeof(most)) == 0)
                return diag;
        peer_uid_destroy(diag);
        return NULL;
}

void peer_uid_destroy(struct peer_uid *diag) {
        if (!diag)
                return;
        if (diag->nl)
                (void) mnl_socket_close(diag->nl);
        free(diag);
}

static int take_uid(const struct nlmsghdr *header, void *arg) {
        const struct inet_diag_msg *socket = mnl_nlmsg_get_payload(header);
        uid_t *uid = arg;

        if (mnl_nlmsg_get_payload_len(header) >= sizeof(*socket))
                *uid = socket->idiag_uid;
        return MNL_CB_STOP;
}

/* Puts a request for that one socket, and not for a list of all. */
static struct nlmsghdr *put_request(char *buffer, uint32_t sequence, const struct sockaddr_in *far,
                                    const struct sockaddr_in *near) {
        struct nlmsghdr *header = mnl_nlmsg_put_header(buffer);
        struct inet_diag_req_v2 *request;

        header->nlmsg_type = SOCK_DIAG_BY_FAMILY;
        header->nlmsg_flags = NLM_F_REQUEST;
        header->nlmsg_seq = sequence;
        request = mnl_nlmsg_put_extra_header(header, sizeof(*request));
        request->sdiag_family = AF_INET;
        request->sdiag_protocol = IPPROTO_TCP;
        request->idiag_states = UINT32_MAX;
        request->id.idiag_sport = far->sin_port;
        request->id.idiag_dport = near->sin_port;
        request->id.idiag_src[0] = far->sin_addr.s_addr;
        request->id.idiag_dst[0] = near->sin_addr.s_addr;
        request->id.idiag_cookie[0] = request->id.idiag_cookie[1] = INET_DIAG_NOCOOKIE;
        return header;
}

int peer_uid_find(struct peer_uid *diag, int fd, uid_t *ret_uid) {
        struct sockaddr_in far = { 0 }, near = { 0 };
        socklen_t far_bytes = sizeof(far), near_bytes = sizeof(near);
        char buffer[BUFFER_BYTES];
        struct nlmsghdr *header;
        uid_t uid = (uid_t) -1;
        ssize_t n;

        if (!diag)
                return -ENOTSUP;
        if (getpeername(fd, (struct sockaddr *) &far, &far_bytes) < 0 ||
            getsockname(fd, (struct sockaddr *) &near, &near_bytes) < 0)
                return -errno;
        if (far.sin_family != AF_INET || near.sin_family != AF_INET)
                return -EAFNOSUPPORT;
        header = put_request(buffer, ++diag->sequence, &far, &near);
        if (mnl_socket_sendto(diag->nl, header, header->nlmsg_len) < 0)
                return -errno;
        n = mnl_socket_recvfrom(diag->nl, buffer, sizeof(buffer));
        if (n < 0 || mnl_cb_run(buffer, (size_t) n, diag->sequence, mnl_socket_get_portid(diag->nl), take_uid, &uid) < 0)
                return -errno;
        if (uid == (uid_t) -1)
                return -ENOENT;
        *ret_uid = uid;
        return 0;
}
