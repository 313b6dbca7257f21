/* The channel between the program and PID 1 of its capsule: datagrams to PID 1's socket, and, once
 * a rank listens, datagrams that come back. */
#ifndef RM_RTLIB_CHANNEL_H
#define RM_RTLIB_CHANNEL_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/program.pb-c.h"

/* Sends a request, or loses it if it cannot be sent at once. errno stays as it is in all calls. */
void channel_send(const Program__Request *request);

/* Keeps a descriptor open, under the name of this rank, until channel_close(); again: does nothing,
 * unless the program has closed it. -EADDRINUSE: another process calls itself the same. */
int channel_listen(uint32_t rank);
void channel_close(void);

/* The next notice there is, to be freed by program__notice__free_unpacked(); NULL: there is none.
 * For one thread at a time. None comes to a process that was forked. */
Program__Notice *channel_next(void);

/* Until there is one, for so long at most. The only call here that waits. */
void channel_wait(uint64_t usec);

#endif
