/* A userfaultfd made in another process and taken out of it: it is for that process's memory, and
 * the process does not keep it. */
#ifndef RM_DAEMON_PAGES_REMOTE_H
#define RM_DAEMON_PAGES_REMOTE_H

#include <stdint.h>

#include "common/error.h"

/* `proc_fd` is the process's directory in /proc. Its threads are stopped meanwhile, usually for
 * less than a millisecond and for at most `limit_usec` in one of some tries; system calls that wait
 * are then made again (interrupted.h). A process of its own does it, which is not in our process
 * group: a process that is killed inside would leave the other with wrong registers.
 * `*ret_stopped_usec` NULL ok. 0, or, the process being as before:
 * -EBUSY: it is traced; -EOPNOTSUPP: its system calls are filtered or dispatched, it has no vdso or
 * no 64 bit code; -EAGAIN, -ETIMEDOUT: it does not stop, or not where it can be used, perhaps
 * later; -EMFILE: it has no descriptor left; -ESRCH: it has ended. Where the process was frozen
 * between the two system calls, for seconds, it is -ETIMEDOUT as well; the process then keeps an
 * unused userfaultfd, and is traced, until it runs again. So its control group should not be frozen
 * meanwhile. */
int remote_userfaultfd(int pidfd, int proc_fd, uint64_t limit_usec, int *ret_fd, uint64_t *ret_stopped_usec, struct rm_error *err);

#endif
