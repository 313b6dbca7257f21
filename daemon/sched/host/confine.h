/* Taking away from the policy host what a policy does not need, before any code of a policy runs. */
#ifndef RM_SCHED_HOST_CONFINE_H
#define RM_SCHED_HOST_CONFINE_H

#include <stdint.h>

#include "common/error.h"

/* Die with the parent; limits on CPU time, memory (0: none) and core files; no way to gain privileges; user nobody when root; no
 * network, no new programs, no signals to others, no files to write. What the kernel has no means for is left out, the limits are not. */
int confine(uint64_t cpu_usec, uint64_t memory_bytes, struct rm_error *err);

#endif
