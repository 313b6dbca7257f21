/* Memory that moves and checkpoints need not carry: given back to the kernel when the group is
 * about to be captured. */
#ifndef RM_RTLIB_REGIONS_H
#define RM_RTLIB_REGIONS_H

#include <stdbool.h>
#include <stddef.h>

/* As rmrt_exclude() and rmrt_include(). */
int regions_exclude(void *memory, size_t bytes);
int regions_include(const void *memory, size_t bytes);
/* Is there any? */
bool regions_any(void);
/* The excluded memory is zero after this. */
void regions_drop(void);

#endif
