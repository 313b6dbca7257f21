/* Pids in the capsule. */
#ifndef RM_DAEMON_CAPSULE_INIT_PIDS_H
#define RM_DAEMON_CAPSULE_INIT_PIDS_H

#include <stddef.h>
#include <sys/types.h>

/* The first pid of some hundred that no thread in the capsule, session or group has. */
unsigned pids_find_gap(void);
/* Of the control group in this directory, as our pid namespace counts; what is outside of that is left out. malloc'ed. Returns how many. */
size_t pids_of_group(int group_fd, pid_t **ret);
/* Pure part: `taken` is sorted in place. */
unsigned pids_find_gap_in(unsigned *taken, size_t n, unsigned pid_max);

#endif
