/* Pids in the capsule. */
#ifndef RM_DAEMON_CAPSULE_INIT_PIDS_H
#define RM_DAEMON_CAPSULE_INIT_PIDS_H

#include <stddef.h>

/* The first pid of some hundred that no thread in the capsule, session or group has. */
unsigned pids_find_gap(void);
/* Pure part: `taken` is sorted in place. */
unsigned pids_find_gap_in(unsigned *taken, size_t n, unsigned pid_max);

#endif
