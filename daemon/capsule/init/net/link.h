/* The capsule's network link, over rtnetlink; what passes it is filter.h's. */
#ifndef RM_DAEMON_CAPSULE_INIT_NET_LINK_H
#define RM_DAEMON_CAPSULE_INIT_NET_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rm_error;
struct mnl_socket;

#define LINK_NAME "eth0"

struct link_spec {
        const char *uplink; /* in the node */
        bool alone;         /* not on the uplink: nothing that is sent arrives anywhere */
        uint32_t address;   /* network byte order */
        uint32_t gateway;   /* 0: none */
        uint8_t prefix;
        uint8_t mac[6];
        const uint32_t *peers; /* addresses of the job's capsules, network byte order: who may be talked to. Borrowed */
        size_t n_peers;
};

/* A rtnetlink socket stays in the network namespace it was opened in: `node` is opened before,
 * `own` after the change. */
struct link {
        struct link_spec spec;
        struct mnl_socket *node;
        struct mnl_socket *own;
        struct mnl_socket *filter;
        int announce_fd; /* packet socket for the announcement */
        int index;       /* of LINK_NAME in the capsule; 0: there is no link */
        bool up;
        bool filtered;
};

/* Opens the node's side, in the node's namespace. With an uplink that is empty there is no link. */
int link_open_node(struct link *link, const struct link_spec *spec, struct rm_error *error);
/* Makes the capsule's side, in its namespace: lo up, no IPv6, TCP timers; the link made (down) with
 * its address, and shut to all but the job's capsules. */
int link_create(struct link *link, struct rm_error *error);
/*
 * Two ways to silence a capsule, for they cost and do different things. The filter drops every IP
 * and every ARP packet, in and out, lo included, within 0.1 ms. A link that is down takes 5 to 12
 * ms, and is needed as well: two links with the same MAC address on two nodes must never be up at
 * once, as each node hands frames for a MAC address it has itself to its own link. CRIU restores
 * connections only over a link that is up; then the filter is all there is.
 */
int link_set_up(struct link *link, bool up, struct rm_error *error);
int link_set_filter(struct link *link, bool on, struct rm_error *error);
/* Puts one more address on lo, or takes it away. */
int link_lend_address(struct mnl_socket *nl, uint32_t address, bool on);
/* Tells the switches (gratuitous ARP) where the address is now. Best effort. */
void link_announce(struct link *link);
/* Deletes the link at once, where the kernel would take its time after the last process. */
void link_delete(struct link *link);

#endif
