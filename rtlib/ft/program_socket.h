/* A thread that speaks with PID 1 of the capsule: it says that this rank goes on without others,
 * hears which were lost, and makes no call of MPI. */
#ifndef RM_RTLIB_FT_PROGRAM_SOCKET_H
#define RM_RTLIB_FT_PROGRAM_SOCKET_H

#include <stdbool.h>
#include <stdint.h>

#include "rtlib/ft/losses.h"

/* Is this the capsule of a job that wants it? */
bool program_socket_is_requested(void);

/* `losses`: what it fills, until the process ends. 0 once it has an answer, or -errno. */
int program_socket_start(uint32_t rank, struct losses *losses);

/* The rank has finalized: says so until it is heard, for 10 s at most. */
void program_socket_finish(void);

#endif
