/* Sets round trip times for the capsule's peers in the TCP metrics of a new network namespace. */
#ifndef RM_DAEMON_CAPSULE_INIT_NET_TCP_METRICS_H
#define RM_DAEMON_CAPSULE_INIT_NET_TCP_METRICS_H

#include <stddef.h>
#include <stdint.h>

struct mnl_socket;

enum { TCP_METRICS_PEERS_MAX = 1024 };

/*
 * A connection that CRIU restores has no measured round trip time, so the kernel waits one to three
 * seconds before it sends again what was under way when the capsule was cut: far longer than the
 * move took. Where it has a round trip time for that address from an earlier connection it waits
 * some 20 ms instead. So, before the capsule has a link, this gives lo every peer's address for a
 * moment and connects to it; the kernel keeps the metrics.
 * Best effort: without it, moves only cost their peers more time.
 */
void tcp_metrics_set_round_trips(struct mnl_socket *nl, uint32_t own, const char *hosts);

/* Pure part: the IPv4 addresses (network byte order) that begin a line of a hosts file, without
 * loopback, `own` and repetitions. Returns how many. */
size_t tcp_metrics_parse_hosts(const char *hosts, uint32_t own, uint32_t *addresses, size_t max);

#endif
