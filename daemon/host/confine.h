/* Taking away from the host of a policy what a policy does not need, before any code of a policy
 * runs. */
#ifndef RM_HOST_CONFINE_H
#define RM_HOST_CONFINE_H

#include <stdint.h>

#include "common/error.h"

/*
 * Die with the parent; limits on CPU time, memory (0: none), core files and written files; no way
 * to gain privileges; user nobody when root; and of the system calls only those that compute, read,
 * or write to what is open. Threads are among them. Any failure is an error, after which no policy
 * may be loaded.
 */
int confine(uint64_t cpu_usec, uint64_t memory_bytes, struct rm_error *err);
/* Forbids child processes, and signals but to this process; to be called after confine(). It is a
 * function of its own, because a host that lists policies tries each in a child. */
int confine_alone(struct rm_error *err);

#endif
