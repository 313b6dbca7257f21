/* The capsule's network link, over rtnetlink; and the filter that keeps it silent, over nfnetlink. */
#ifndef RM_DAEMON_CAPSULE_INIT_LINK_H
#define RM_DAEMON_CAPSULE_INIT_LINK_H

#include <stdbool.h>
#include <stdint.h>

struct rm_error;
struct mnl_socket;

#define LINK_NAME "eth0"

struct link_spec {
        const char *uplink; /* in the node */
        uint32_t address;   /* network byte order */
        uint32_t gateway;   /* 0: none */
        uint8_t prefix;
        uint8_t mac[6];
};

/* A rtnetlink socket stays in the network namespace it was opened in: `node` is opened before, `own` after the change. */
struct link {
        struct link_spec spec;
        struct mnl_socket *node;
        struct mnl_socket *own;
        struct mnl_socket *filter;
        int announce_fd; /* packet socket for the announcement */
        int index;       /* of LINK_NAME in the capsule; 0: there is no link */
        bool filtered;
};

/* In the node's namespace. */
int link_open_node(struct link *link, const struct link_spec *spec, struct rm_error *error);
/* In the capsule's: lo up, no IPv6, TCP timers; the link made (down) with its address. */
int link_create(struct link *link, struct rm_error *error);
int link_raise(struct link *link, struct rm_error *error);
/*
 * The filter drops every IP packet and every ARP packet, in and out, lo included: nobody can tell that there is an
 * address here. It is what cuts and opens a capsule: setting the link down and up takes ten times as long, and CRIU can
 * restore connections only over a link that is up.
 */
int link_set_filter(struct link *link, bool on, struct rm_error *error);
/* Tells the switches (gratuitous ARP) where the address is now. Best effort. */
void link_announce(struct link *link);
/* At once, where the kernel would take its time after the last process. */
void link_delete(struct link *link);

#endif
