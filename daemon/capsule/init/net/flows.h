/* The flows of the payload: the kernel's own counters of its TCP connections, over sock_diag. No
 * program has to be instrumented. */
#ifndef RM_DAEMON_CAPSULE_INIT_NET_FLOWS_H
#define RM_DAEMON_CAPSULE_INIT_NET_FLOWS_H

#include <stddef.h>
#include <stdint.h>

#include "daemon/capsule/flow.h"

struct rm_error;

/*
 * Sums over the TCP connections of this network namespace that there are now, one for each IPv4
 * address at the other end, by address; loopback left out. So a sum falls when a connection ends,
 * and begins at zero after a restore. At most FLOWS_MAX of them. `ret` is malloc'ed. 0 or a
 * negative errno.
 */
enum { FLOWS_MAX = 16384 };
int flows_read(struct capsule_flow **ret, size_t *ret_n, struct rm_error *error);

/* Bytes that have come over TCP and are not read, connections that are not accepted, and ends of
 * connections that are not taken, added up: of a payload that stands still it grows when somebody
 * wants something of it. 0 or a negative errno. */
int flows_unread(uint64_t *ret);

#endif
