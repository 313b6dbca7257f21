/* Connections that a capsule's kernel has accepted and its programs have not: CRIU cannot dump
 * them. */
#ifndef RM_TRANSFER_INFLIGHT_H
#define RM_TRANSFER_INFLIGHT_H

#include <stdbool.h>
#include <sys/types.h>

/* Searches the network namespace of process `pid`. False when it cannot be read: CRIU will say
 * so. */
bool inflight_connections(pid_t pid);

#endif
