/* Capabilities of the calling process, which is single-threaded; a set of them has the bit 1 <<
 * CAP_... for each (capabilities(7)). */
#ifndef RM_COMMON_CAPABILITIES_H
#define RM_COMMON_CAPABILITIES_H

#include <stdint.h>

#define CAPABILITY(c) (UINT64_C(1) << (c))

/* The process has no others from now on, and these are effective, permitted and inheritable. 0 or
 * -errno: -EPERM when it lacks one of them. */
int capabilities_keep(uint64_t capabilities);

#endif
