#include "daemon/capsule/init/net/tcp_metrics.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/util.h"
#include "daemon/capsule/init/net/link.h"

/* The port at the other end: nobody in a job talks to it, so that what lingers of our connections
 * is in nobody's way. */
enum { SEED_PORT = 1 };

static bool known(const uint32_t *addresses, size_t n, uint32_t address) {
        for (size_t i = 0; i < n; i++)
                if (addresses[i] == address)
                        return true;
        return false;
}

size_t tcp_metrics_parse_hosts(const char *hosts, uint32_t own, uint32_t *addresses, size_t max) {
        size_t n = 0;

        while (*hosts && n < max) {
                size_t word = strcspn(hosts, " \t\r\n#");
                char text[INET_ADDRSTRLEN] = "";
                struct in_addr address;

                if (word < sizeof(text)) {
                        memcpy(text, hosts, word);
                        text[word] = '\0';
                        if (inet_pton(AF_INET, text, &address) == 1 && ntohl(address.s_addr) >> 24 != IN_LOOPBACKNET &&
                            address.s_addr != own && !known(addresses, n, address.s_addr))
                                addresses[n++] = address.s_addr;
                }
                hosts += strcspn(hosts, "\n");
                hosts += strspn(hosts, "\n");
        }
        return n;
}

static int listen_everywhere(void) {
        const struct sockaddr_in any = { .sin_family = AF_INET, .sin_port = htons(SEED_PORT) };
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

        if (fd >= 0 && (bind(fd, (const struct sockaddr *) &any, sizeof(any)) < 0 || listen(fd, 4) < 0)) {
                close(fd);
                return -1;
        }
        return fd;
}

/* The far end closes first and gets the lingering state; ours ends cleanly, which is when the
 * kernel remembers. */
static void connect_once(int listener, uint32_t own, uint32_t peer) {
        const struct sockaddr_in from = { .sin_family = AF_INET, .sin_addr.s_addr = own };
        const struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(SEED_PORT), .sin_addr.s_addr = peer };
        cleanup_close int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        cleanup_close int far = -1;

        if (fd < 0 || bind(fd, (const struct sockaddr *) &from, sizeof(from)) < 0 ||
            connect(fd, (const struct sockaddr *) &to, sizeof(to)) < 0)
                return;
        far = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        cleanup_close_fd(&far);
}

void tcp_metrics_set_round_trips(struct mnl_socket *nl, uint32_t own, const char *hosts) {
        cleanup_free uint32_t *peers = xcalloc(TCP_METRICS_PEERS_MAX, sizeof(*peers));
        size_t n = tcp_metrics_parse_hosts(hosts, own, peers, TCP_METRICS_PEERS_MAX);
        cleanup_close int listener = n > 0 ? listen_everywhere() : -1;

        if (listener < 0 || link_lend_address(nl, own, true) < 0)
                return;
        for (size_t i = 0; i < n; i++) {
                if (link_lend_address(nl, peers[i], true) < 0)
                        continue;
                connect_once(listener, own, peers[i]);
                (void) link_lend_address(nl, peers[i], false);
        }
        (void) link_lend_address(nl, own, false);
}
