#include "daemon/capsule/init/net/link.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_ether.h>
#include <linux/if_link.h>
#include <linux/if_packet.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include <libmnl/libmnl.h>

#include "common/error.h"
#include "common/util.h"
#include "daemon/capsule/init/net/filter.h"
#include "daemon/capsule/init/net/netlink.h"

/* Before Linux 6.13 a new link must have a name that is free on the node as well, whose uplink
 * often is an eth0. */
#define NEW_LINK_NAME "rmd-new"
#define LONE_PEER_NAME "rmd-end"

enum { LO_INDEX = 1 };

static int set_flags(struct mnl_socket *nl, int index, bool up) {
        char buffer[NETLINK_BUFFER_BYTES];
        struct nlmsghdr *h = netlink_request(buffer, RTM_NEWLINK, 0);
        struct ifinfomsg *info = mnl_nlmsg_put_extra_header(h, sizeof(*info));

        info->ifi_family = AF_UNSPEC;
        info->ifi_index = index;
        info->ifi_change = IFF_UP;
        info->ifi_flags = up ? IFF_UP : 0;
        return netlink_talk(nl, h, h->nlmsg_len, 1);
}

static int set_name(struct mnl_socket *nl, int index, const char *name) {
        char buffer[NETLINK_BUFFER_BYTES];
        struct nlmsghdr *h = netlink_request(buffer, RTM_NEWLINK, 0);
        struct ifinfomsg *info = mnl_nlmsg_put_extra_header(h, sizeof(*info));

        info->ifi_family = AF_UNSPEC;
        info->ifi_index = index;
        mnl_attr_put_strz(h, IFLA_IFNAME, name);
        return netlink_talk(nl, h, h->nlmsg_len, 1);
}

static int make_macvlan(struct link *link, int lower_index, int netns_fd) {
        char buffer[NETLINK_BUFFER_BYTES];
        struct nlmsghdr *h = netlink_request(buffer, RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL);
        struct ifinfomsg *info = mnl_nlmsg_put_extra_header(h, sizeof(*info));
        struct nlattr *outer;
        struct nlattr *inner;

        info->ifi_family = AF_UNSPEC;
        mnl_attr_put_strz(h, IFLA_IFNAME, NEW_LINK_NAME);
        mnl_attr_put(h, IFLA_ADDRESS, sizeof(link->spec.mac), link->spec.mac);
        mnl_attr_put_u32(h, IFLA_LINK, (uint32_t) lower_index);
        mnl_attr_put_u32(h, IFLA_NET_NS_FD, (uint32_t) netns_fd);
        outer = mnl_attr_nest_start(h, IFLA_LINKINFO);
        mnl_attr_put_strz(h, IFLA_INFO_KIND, "macvlan");
        inner = mnl_attr_nest_start(h, IFLA_INFO_DATA);
        mnl_attr_put_u32(h, IFLA_MACVLAN_MODE, MACVLAN_MODE_BRIDGE);
        mnl_attr_nest_end(h, inner);
        mnl_attr_nest_end(h, outer);
        return netlink_talk(link->node, h, h->nlmsg_len, 1);
}

/* Makes a link of which both ends are in the capsule, and the other one stays down. */
static int make_lone_link(const struct link *link) {
        char buffer[NETLINK_BUFFER_BYTES];
        struct nlmsghdr *h = netlink_request(buffer, RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL);
        struct ifinfomsg *info = mnl_nlmsg_put_extra_header(h, sizeof(*info));
        struct nlattr *outer, *inner, *peer;

        info->ifi_family = AF_UNSPEC;
        mnl_attr_put_strz(h, IFLA_IFNAME, NEW_LINK_NAME);
        mnl_attr_put(h, IFLA_ADDRESS, sizeof(link->spec.mac), link->spec.mac);
        outer = mnl_attr_nest_start(h, IFLA_LINKINFO);
        mnl_attr_put_strz(h, IFLA_INFO_KIND, "veth");
        inner = mnl_attr_nest_start(h, IFLA_INFO_DATA);
        peer = mnl_attr_nest_start(h, VETH_INFO_PEER);
        (void) mnl_nlmsg_put_extra_header(h, sizeof(*info));
        mnl_attr_put_strz(h, IFLA_IFNAME, LONE_PEER_NAME);
        mnl_attr_nest_end(h, peer);
        mnl_attr_nest_end(h, inner);
        mnl_attr_nest_end(h, outer);
        return netlink_talk(link->own, h, h->nlmsg_len, 1);
}

static int add_address(struct link *link) {
        char buffer[NETLINK_BUFFER_BYTES];
        struct nlmsghdr *h = netlink_request(buffer, RTM_NEWADDR, NLM_F_CREATE | NLM_F_REPLACE);
        struct ifaddrmsg *info = mnl_nlmsg_put_extra_header(h, sizeof(*info));
        uint32_t mask = link->spec.prefix == 0 ? 0 : htonl(~0U << (32 - link->spec.prefix));

        info->ifa_family = AF_INET;
        info->ifa_prefixlen = link->spec.prefix;
        info->ifa_index = (unsigned) link->index;
        mnl_attr_put_u32(h, IFA_LOCAL, link->spec.address);
        mnl_attr_put_u32(h, IFA_ADDRESS, link->spec.address);
        if (link->spec.prefix < 31)
                mnl_attr_put_u32(h, IFA_BROADCAST, link->spec.address | ~mask);
        return netlink_talk(link->own, h, h->nlmsg_len, 1);
}

int link_lend_address(struct mnl_socket *nl, uint32_t address, bool on) {
        char buffer[NETLINK_BUFFER_BYTES];
        struct nlmsghdr *h = netlink_request(buffer, on ? RTM_NEWADDR : RTM_DELADDR, on ? NLM_F_CREATE : 0);
        struct ifaddrmsg *info = mnl_nlmsg_put_extra_header(h, sizeof(*info));

        info->ifa_family = AF_INET;
        info->ifa_prefixlen = 32;
        info->ifa_index = LO_INDEX;
        mnl_attr_put_u32(h, IFA_LOCAL, address);
        mnl_attr_put_u32(h, IFA_ADDRESS, address);
        return netlink_talk(nl, h, h->nlmsg_len, 1);
}

static int add_gateway(struct link *link) {
        char buffer[NETLINK_BUFFER_BYTES];
        struct nlmsghdr *h = netlink_request(buffer, RTM_NEWROUTE, NLM_F_CREATE | NLM_F_REPLACE);
        struct rtmsg *info = mnl_nlmsg_put_extra_header(h, sizeof(*info));

        info->rtm_family = AF_INET;
        info->rtm_table = RT_TABLE_MAIN;
        info->rtm_protocol = RTPROT_STATIC;
        info->rtm_scope = RT_SCOPE_UNIVERSE;
        info->rtm_type = RTN_UNICAST;
        mnl_attr_put_u32(h, RTA_GATEWAY, link->spec.gateway);
        mnl_attr_put_u32(h, RTA_OIF, (uint32_t) link->index);
        return netlink_talk(link->own, h, h->nlmsg_len, 1);
}

/*
 * Per network namespace. Short timers make the peers of a moved capsule resume soon; kernels
 * without them just wait longer. But they make TCP give up soon as well, since it counts how often
 * it has sent again: after some 14 s. A peer that stands still in a move is not dead, so the counts
 * have the most that the kernel takes: some 250 s for data, 130 s for a connection being made.
 * CAPSULE_SILENCE_MAX_USEC is less than both.
 */
static void tune(void) {
        static const char *const settings[][2] = {
                { "/proc/sys/net/ipv6/conf/all/disable_ipv6", "1" },
                { "/proc/sys/net/ipv6/conf/default/disable_ipv6", "1" },
                { "/proc/sys/net/ipv4/tcp_rto_min_us", "20000" },
                { "/proc/sys/net/ipv4/tcp_rto_max_ms", "1000" },
                { "/proc/sys/net/ipv4/tcp_retries2", "255" },
                { "/proc/sys/net/ipv4/tcp_orphan_retries", "255" }, /* who has written its last and is gone: 2 s otherwise */
                { "/proc/sys/net/ipv4/tcp_syn_retries", "127" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(settings); i++)
                (void) write_text(settings[i][0], settings[i][1]);
}

int link_open_node(struct link *link, const struct link_spec *spec, struct rm_error *error) {
        *link = (struct link) { .spec = *spec, .announce_fd = -1 };
        link->node = netlink_open(NETLINK_ROUTE, error);
        if (!link->node)
                return -EIO;
        if (!spec->uplink || !*spec->uplink)
                return 0;
        link->index = (int) if_nametoindex(spec->uplink);
        if (link->index == 0)
                return error_sys(error, -errno, "the node has no interface '%s' for the capsule's link", spec->uplink);
        return 0;
}

static int keep_to_job(const struct link *link, struct rm_error *error) {
        const struct link_spec *spec = &link->spec;
        struct filter_job job = {
                .device = LINK_NAME,
                .address = spec->address,
                .prefix = spec->prefix,
                .gateway = spec->gateway,
                .peers = spec->peers,
                .n_peers = spec->n_peers,
        };

        memcpy(job.mac, spec->mac, sizeof(job.mac));
        return filter_set_job(&job, error);
}

int link_create(struct link *link, struct rm_error *error) {
        int lower_index = link->index;
        cleanup_close int netns_fd = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
        int r;

        link->index = 0;
        tune();
        link->own = netlink_open(NETLINK_ROUTE, error);
        link->filter = link->own ? netlink_open(NETLINK_NETFILTER, error) : NULL;
        if (!link->filter || netns_fd < 0)
                return -EIO;
        r = set_flags(link->own, LO_INDEX, true);
        if (r < 0)
                return error_sys(error, r, "cannot set lo up");
        if (lower_index == 0)
                return 0;
        r = link->spec.alone ? make_lone_link(link) : make_macvlan(link, lower_index, netns_fd);
        if (r < 0)
                return error_sys(error, r, "cannot make a %s link on %s", link->spec.alone ? "veth" : "macvlan", link->spec.uplink);
        link->index = (int) if_nametoindex(NEW_LINK_NAME);
        r = link->index == 0 ? -errno : set_name(link->own, link->index, LINK_NAME);
        if (r == 0)
                r = add_address(link);
        if (r < 0)
                return error_sys(error, r, "cannot give the capsule's link its address");
        r = keep_to_job(link, error);
        if (r < 0)
                return r;
        link->announce_fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        return 0;
}

int link_set_up(struct link *link, bool up, struct rm_error *error) {
        int r = 0;

        if (link->index == 0 || link->up == up)
                return 0;
        r = set_flags(link->own, link->index, up);
        if (r == 0 && up && link->spec.gateway != 0)
                r = add_gateway(link); /* the kernel forgets routes when a link goes down */
        if (r < 0)
                return error_sys(error, r, "cannot set the capsule's link %s", up ? "up" : "down");
        link->up = up;
        return 0;
}

int link_set_filter(struct link *link, bool on, struct rm_error *error) {
        int r;

        if (link->filtered == on)
                return 0;
        r = filter_set_cut(link->filter, on, error);
        if (r == 0)
                link->filtered = on;
        return r;
}

struct announcement {
        struct ethhdr eth;
        struct arphdr arp;
        uint8_t sender_mac[6];
        uint32_t sender_address;
        uint8_t target_mac[6];
        uint32_t target_address;
} __attribute__((packed));

void link_announce(struct link *link) {
        struct announcement a = {
                .arp = { .ar_hrd = htons(ARPHRD_ETHER),
                         .ar_pro = htons(ETH_P_IP),
                         .ar_hln = 6,
                         .ar_pln = 4,
                         .ar_op = htons(ARPOP_REQUEST) },
                .sender_address = link->spec.address,
                .target_address = link->spec.address,
        };
        struct sockaddr_ll to = { .sll_family = AF_PACKET, .sll_ifindex = link->index, .sll_halen = 6 };

        if (link->index == 0 || link->announce_fd < 0)
                return;
        memset(a.eth.h_dest, 0xff, 6);
        memcpy(a.eth.h_source, link->spec.mac, 6);
        a.eth.h_proto = htons(ETH_P_ARP);
        memcpy(a.sender_mac, link->spec.mac, 6);
        memset(to.sll_addr, 0xff, 6);
        (void) sendto(link->announce_fd, &a, sizeof(a), 0, (const struct sockaddr *) &to, sizeof(to));
}

void link_delete(struct link *link) {
        char buffer[NETLINK_BUFFER_BYTES];
        struct nlmsghdr *h = netlink_request(buffer, RTM_DELLINK, 0);
        struct ifinfomsg *info = mnl_nlmsg_put_extra_header(h, sizeof(*info));

        if (link->index == 0)
                return;
        info->ifi_family = AF_UNSPEC;
        info->ifi_index = link->index;
        (void) netlink_talk(link->own, h, h->nlmsg_len, 1);
        link->index = 0;
}
