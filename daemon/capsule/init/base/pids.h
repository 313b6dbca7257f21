/* Pids in the capsule. */
#ifndef RM_DAEMON_CAPSULE_INIT_BASE_PIDS_H
#define RM_DAEMON_CAPSULE_INIT_BASE_PIDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* The facts about a process in /proc/PID/stat. */
struct pids_stat {
        char name[16];
        char state;
        pid_t parent;
        unsigned group, session;
        unsigned threads;
};

/* False: there is no such process any more. `pid`: as /proc names it. */
bool pids_read_stat(const char *pid, struct pids_stat *ret);

/* The first pid of some hundred that no thread in the capsule, session or group has. */
unsigned pids_find_gap(void);
/* Lists the pids in the control group in this directory, as our pid namespace counts; what is
 * outside of that is left out. malloc'ed. Returns how many. */
size_t pids_of_group(int group_fd, pid_t **ret);
/* A number for this set of processes, from their PIDs and names: with other processes, or programs,
 * it is another one. Never 0. */
uint64_t pids_fingerprint(const pid_t *pids, size_t n);
/* Pure part: `taken` is sorted in place. */
unsigned pids_find_gap_in(unsigned *taken, size_t n, unsigned pid_max);

#endif
