/* Ends ranks that hang after a loss, and says where: never a rank that only waits for one that
 * computes. */
#ifndef RM_RTLIB_FT_WATCH_H
#define RM_RTLIB_FT_WATCH_H

#include "rtlib/ft/comm.h"

/* Reads the user's limit on what a wait may take after a loss: RMRT_WAIT_LIMIT, in seconds. Ends
 * the job if it is none. */
void watch_init(void);

/* This thread waits for others until it leaves, on a communicator (NULL: for a message). May be
 * nested. */
void watch_enter(const struct comm *c);
void watch_leave(void);

/* While it waits, to be called often: if all ranks that live have waited for 20 s, each in one and
 * the same call, and nothing has come in, none of them will go on. Then all say where they are, and
 * the job ends; so it does when this rank has waited in one call for longer than the user's limit.
 * Not with MPI_THREAD_MULTIPLE. */
void watch_scan(void);

/* Ranks have come together for a repair: it is to end within 25 s. `false`: it has. */
void watch_repair(bool begins);

/* MPI may hang in this call if a rank is lost: then the process ends after 3 s. NULL: it has
 * returned. */
void watch_call(const char *call);

/* By a thread of the library, so many milliseconds after the last time; returns when the next is to
 * be, at the latest. */
int watch_tick(int msec);

#endif
