/* Teaches a new network namespace that the capsule's peers are near. */
#ifndef RM_DAEMON_CAPSULE_INIT_SEED_H
#define RM_DAEMON_CAPSULE_INIT_SEED_H

#include <stddef.h>
#include <stdint.h>

struct mnl_socket;

enum { SEED_PEERS_MAX = 1024 };

/*
 * A connection that CRIU restores has no measured round trip time, so the kernel waits one to three seconds before it
 * sends again what was under way when the capsule was cut: far longer than the move took. Where it remembers a round trip
 * to that address from an earlier connection it waits some 20 ms instead. So, before the capsule has a link, every peer's
 * address lives for a moment on lo, is connected to, and is forgotten again; the kernel remembers.
 * Best effort: without it, moves only cost their peers more time.
 */
void seed_round_trips(struct mnl_socket *nl, uint32_t own, const char *hosts);

/* Pure part: the IPv4 addresses (network byte order) that begin a line of a hosts file, without loopback, `own` and
 * repetitions. Returns how many. */
size_t seed_parse_hosts(const char *hosts, uint32_t own, uint32_t *addresses, size_t max);

#endif
