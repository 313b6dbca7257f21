/* Faults of kernels that damage or stop moves, and that cannot be tried without harm: only the
 * kernel's version tells. Pure. */
#ifndef RM_RMCTL_KERNEL_FAULTS_H
#define RM_RMCTL_KERNEL_FAULTS_H

#include <stdbool.h>

struct kernel_fault {
        const char *name;  /* as CVE numbers */
        const char *what;  /* may happen */
        const char *means; /* for moves */
        const char *fixed; /* in which versions */
};

/* The fault that matters most of those that a kernel of this release has, by its number, or NULL.
 * `tracking`: moves track memory here. `huge_pages`: programs may have some. A distribution may
 * have corrected it under an older number. */
const struct kernel_fault *kernel_fault_of(const char *release, bool tracking, bool huge_pages);

#endif
