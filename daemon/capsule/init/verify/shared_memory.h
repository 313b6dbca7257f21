/* Finds processes that share their memory: a child of vfork(2) or posix_spawn(3) with its parent
 * until it runs a program or ends, and whatever clone(2) makes with CLONE_VM. CRIU dumps
 * neither. */
#ifndef RM_DAEMON_CAPSULE_INIT_VERIFY_SHARED_MEMORY_H
#define RM_DAEMON_CAPSULE_INIT_VERIFY_SHARED_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct shared_memory {
        pid_t pid, other;
        bool passes; /* a thread of one of them may be waiting in vfork(2) */
};

/* Returns whether there are two such processes, and two of them in `ret`; one pair for which
 * `passes` is false is preferred. `proc` is /proc of the caller's PID namespace. A process that
 * ends meanwhile has no memory. */
bool shared_memory_find(int proc, const pid_t *pids, size_t n, struct shared_memory *ret);
/* Finds two processes that share their working directory, root and umask (CLONE_FS). `passes` is
 * false. */
bool shared_directories_find(int proc, const pid_t *pids, size_t n, struct shared_memory *ret);

#endif
