/* A thread that speaks with PID 1 of the capsule: it says that this rank goes on without others,
 * hears which were lost, and makes no call of MPI. */
#ifndef RM_RTLIB_FT_DOOR_H
#define RM_RTLIB_FT_DOOR_H

#include <stdbool.h>
#include <stdint.h>

#include "rtlib/ft/losses.h"

/* Is this the capsule of a job that wants it? */
bool door_is_wanted(void);

/* `losses`: what it fills, until the process ends. 0 once it has an answer, or -errno. */
int door_start(uint32_t rank, struct losses *losses);

/* The rank has finalized: says so until it is heard, for 10 s at most. */
void door_finish(void);

#endif
