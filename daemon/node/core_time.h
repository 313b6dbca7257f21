/* Processor time of processes, and what they did not get of it. */
#ifndef RM_NODE_CORE_TIME_H
#define RM_NODE_CORE_TIME_H

#include <stddef.h>
#include <stdint.h>

/* Sums since the processes began, of their first threads only: a process can have so many that to
 * read them all takes long. */
struct core_time {
        uint64_t ran_usec;
        uint64_t waited_usec; /* could have run, and had no core */
};

/* Reads the times of the processes that `procs_file` names (as cgroup.procs does); all 0 when
 * nothing can be read. -E2BIG if there are more than `most`: sums of some say nothing, since from
 * one time to the next they may be others. */
int core_time_read(const char *procs_file, size_t most, struct core_time *ret);

#endif
