/* Connections between the processes of virtual hosts: in place of daemon/wire's conn.c, listener.c
 * and tls.c. As TCP, what is lost is sent again, and comes in order or not at all; a connection
 * over which nothing gets through ends. */
#ifndef RM_TESTS_SIM_SOCKETS_H
#define RM_TESTS_SIM_SOCKETS_H

#include <stddef.h>

#include "tests/sim/host.h"

/* A host has the address "10.0.0.N", with N one above its number, and one port. */
#define SOCKETS_PORT 4711U
#define SOCKETS_ADDRESS "10.0.0.%u"

/* From when the process starts until it has ended. */
void sockets_begin(struct host *host);
void sockets_end(struct host *host);
/* The process was killed, and its system tells the other ends. */
void sockets_reset(struct host *host);
void sockets_packet(struct host *host, unsigned from, const void *data, size_t size_bytes);

#endif
