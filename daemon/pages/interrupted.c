#include "daemon/pages/interrupted.h"

#include <errno.h>
#include <stddef.h>
#include <sys/syscall.h>

#include "common/util.h"

enum {
        /* These are values of the kernel. */
        ERESTARTNOHAND_VALUE = 514, /* call again, unless a handler was called */
        ERESTART_RESTARTBLOCK_VALUE = 516, /* the same, by restart_syscall(2) */
        CODE_64_BIT = 0x33, /* the segment of 64 bit code */
};

void interrupted_sleep_arguments(long number, uint64_t *rdi, uint64_t rsi, uint64_t *rdx, uint64_t r10) {
        if (number == SYS_nanosleep && rsi != 0)
                *rdi = rsi;
        else if (number == SYS_clock_nanosleep && r10 != 0)
                *rdx = r10;
}

static bool is_one_of(long number, const long *numbers, size_t n) {
        for (size_t i = 0; i < n; i++)
                if (numbers[i] == number)
                        return true;
        return false;
}

/* Calls that end with EINTR when a thread is stopped, though no handler is called (signal(7)). */
static bool ends(long number) {
        static const long numbers[] = {
                SYS_epoll_wait,   SYS_epoll_pwait,   SYS_epoll_pwait2, SYS_semop,  SYS_semtimedop, SYS_rt_sigtimedwait,
                SYS_io_getevents, SYS_io_pgetevents, SYS_read,         SYS_readv,  SYS_write,      SYS_writev,
                SYS_recvfrom,     SYS_recvmsg,       SYS_recvmmsg,     SYS_sendto, SYS_sendmsg,    SYS_sendmmsg,
                SYS_accept,       SYS_accept4,       SYS_futex,        SYS_msgsnd, SYS_msgrcv,
        };

        return is_one_of(number, numbers, ARRAY_SIZE(numbers));
}

/* Calls that the kernel goes on with by restart_syscall(2). What that is then is known to the
 * kernel alone: a dump of the thread cannot have it made again. */
static bool goes_on_unnamed(long number) {
        static const long numbers[] = { SYS_poll, SYS_nanosleep, SYS_clock_nanosleep, SYS_futex };

        return is_one_of(number, numbers, ARRAY_SIZE(numbers));
}

bool interrupted_again(struct user_regs_struct *regs) {
        const long number = (long) regs->orig_rax;
        uint64_t rdi = regs->rdi, rdx = regs->rdx;

        if (regs->cs != CODE_64_BIT)
                return false;
        if ((int64_t) regs->rax == -ERESTART_RESTARTBLOCK_VALUE && goes_on_unnamed(number))
                interrupted_sleep_arguments(number, &rdi, regs->rsi, &rdx, regs->r10);
        else if ((int64_t) regs->rax != -EINTR || !ends(number))
                return false;
        regs->rdi = rdi;
        regs->rdx = rdx;
        regs->rax = (unsigned long long) -ERESTARTNOHAND_VALUE;
        return true;
}
