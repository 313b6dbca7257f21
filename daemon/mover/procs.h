/* The processes of a group, as cgroup.procs names them. */
#ifndef RM_MOVER_PROCS_H
#define RM_MOVER_PROCS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* malloc'ed; 0 or -errno. */
int procs_read(const char *file, pid_t **ret_pids, size_t *ret_n);

#define PROCS_PATH_BYTES 256U

struct procs_status {
        pid_t inner_pid;  /* in its own pid namespace */
        unsigned nesting; /* of that: 1 when it is ours */
        uint64_t locked_bytes;
};

/* 0; -ESRCH: it has ended; or -errno. */
int procs_status(int proc_fd, struct procs_status *ret);

enum procs_direct {
        PROCS_DIRECT_NONE,
        PROCS_DIRECT_FLAG, /* O_DIRECT */
        PROCS_DIRECT_TYPE, /* its file system may do it for any file: FUSE, 9p, SMB */
};

/* The rest of the budget for a look at all processes of a group. */
struct procs_budget {
        size_t descriptors;
        uint64_t cpu_usec; /* time of a processor */
};

/* Has it a file open that it reads past the page cache? An enum procs_direct or -errno; `ret_path`
 * then names the first. -E2BIG: it has more than the budget allows, or than a process may have
 * (proc_count.h). */
int procs_reads_direct(int proc_fd, struct procs_budget *budget, char ret_path[PROCS_PATH_BYTES]);

#endif
