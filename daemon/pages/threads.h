/* All threads of another process, stopped by ptrace, a system call made in one of them, and all let
 * go on as if nothing had been. For a process that was made for this alone and blocks all signals
 * (remote.c): the kernel releases what it holds when it ends. */
#ifndef RM_DAEMON_PAGES_THREADS_H
#define RM_DAEMON_PAGES_THREADS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"

struct threads;

/* Every thread of the process whose directory in /proc this is; no further one can begin. The
 * process itself is as it was, which threads_release() must be called for also after an error.
 * Times are of now_usec().
 * -EBUSY: another process traces it; -EOPNOTSUPP: a thread has system calls filtered; -ETIMEDOUT: a
 * thread does not stop, as one in a hung system call or in vfork(2); -ESRCH: it ends. */
int threads_stop(int proc_fd, uint64_t deadline_usec, struct threads **ret, struct rm_error *err);

/* True after -ETIMEDOUT if a thread waits where no signal reaches it, so that the time was not
 * short only because the machine is busy. */
bool threads_unreachable(const struct threads *threads);

/* Choose the thread that makes the calls, and find where: `instruction` is the address of a system
 * call instruction in it. -EOPNOTSUPP: no thread runs 64 bit code without dispatching system calls
 * to itself; -EAGAIN: each may be in a restartable sequence. */
int threads_choose(struct threads *threads, int memory_fd, struct rm_error *err);
struct threads_call {
        uint64_t instruction;
        long number;
        uint64_t argument; /* the first; the others are whatever the thread has there */
};
/* The call's own result, or error, in `ret_result`. An error in return: it was not made, but for
 * -EPROTO, when it may have been, since a process that shares the memory put another instruction
 * there. It begins before the deadline, and is then waited for. */
int threads_call(struct threads *threads, const struct threads_call *call, uint64_t deadline_usec, int64_t *ret_result,
                 struct rm_error *err);

/* Releases the threads, also after an error. NULL ok. */
void threads_release(struct threads *threads);

#endif
