/* The capsule's packet filter, over nfnetlink: two nf_tables tables, one that keeps jobs apart and
 * one that silences a capsule. A packet passes only if both let it. */
#ifndef RM_DAEMON_CAPSULE_INIT_NET_FILTER_H
#define RM_DAEMON_CAPSULE_INIT_NET_FILTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mnl_socket;
struct rm_error;

/* The MACs of a job's capsules begin with so many equal bytes, which others have not: its epoch
 * (daemon/job/fence.h). */
#define FILTER_EPOCH_BYTES 2

/* Addresses are in network byte order. */
struct filter_job {
        const char *device; /* the capsule's link, which must be there */
        uint32_t address;
        uint8_t mac[6];
        uint8_t prefix; /* of the capsules' network */
        uint32_t gateway; /* 0: none */
        const uint32_t *peers; /* the job's capsules; `address` may be among them */
        size_t n_peers;
};

/*
 * Must be called once, before the link is up: IP and ARP pass only between this capsule and its
 * job's, and what leaves carries its own addresses. What arrives is of the job's epoch: a packet
 * that was long on its way, or a copy of an earlier attempt that was forgotten somewhere, may have
 * an address that was given out again since. lo is free. With a gateway, other networks may be
 * spoken to as well, but no other address of the capsules' network. Where the kernel can filter at
 * the device (5.16), frames that a program writes raw are held to that too; elsewhere those pass,
 * which is logged. To be called in the capsule's network namespace.
 */
int filter_set_job(const struct filter_job *job, struct rm_error *error);

/* Drops every IP and every ARP packet, in and out, lo included (but what CRIU sends there itself),
 * within 0.1 ms; or no longer. `nl` is of NETLINK_NETFILTER, in the capsule's namespace. On and off
 * take turns. */
int filter_set_cut(struct mnl_socket *nl, bool on, struct rm_error *error);

#endif
