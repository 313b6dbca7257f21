/* System calls that were interrupted by a stop or a freeze, and not by a signal. Pure. */
#ifndef RM_DAEMON_PAGES_INTERRUPTED_H
#define RM_DAEMON_PAGES_INTERRUPTED_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/user.h>

/* nanosleep() and clock_nanosleep() have left where the caller wanted it what is left to sleep: the
 * arguments (rdi, rsi, rdx, r10) to go on with. What else there is stays as it is. */
void interrupted_sleep_arguments(long number, uint64_t *rdi, uint64_t rsi, uint64_t *rdx, uint64_t r10);

/* Changes the registers of a thread in a stop of ptrace(2) so that the kernel makes the system call
 * again with its own number and arguments, unless a signal's handler is to be called. True: they
 * have changed. Otherwise the thread was in no call, or in one that the kernel makes again by
 * itself and in this way. A time limit that the arguments give as a duration then counts from the
 * beginning, but for a sleep that tells its rest. */
bool interrupted_again(struct user_regs_struct *regs);

#endif
