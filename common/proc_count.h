/* Counts the entries in the /proc of a process, before they are read: its owner decides how much
 * that is. */
#ifndef RM_COMMON_PROC_COUNT_H
#define RM_COMMON_PROC_COUNT_H

#include <stddef.h>

/* A group with more than this is neither moved nor saved. To look at a descriptor takes rmd's
 * programs some 10 us, several times for a move, and as root. */
enum {
        PROC_DESCRIPTORS_MAX = 16384, /* of a process */
        PROC_GROUP_DESCRIPTORS_MAX = 65536,
        PROC_GROUP_THREADS_MAX = 16384,
        PROC_GROUP_MAPPINGS_MAX = 262144,
};

/* Open descriptors of the process whose directory in /proc is `proc_fd`/`name`; 0: it has ended.
 * The kernel tells how many there are from 6.2 on; before, they are counted, but no further than
 * one beyond `most`. */
size_t proc_count_descriptors(int proc_fd, const char *name, size_t most);
/* Threads; 0: it has ended. */
size_t proc_count_threads(int proc_fd, const char *name);

#endif
