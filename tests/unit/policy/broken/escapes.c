#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "tests/unit/policy/broken/broken.h"

#define ESCAPED "/tmp/rm-policy-escaped"

/* By number, as what the C library would make of it is not what is tried. */
#define TRY(number, ...)                                                                                                           \
        do {                                                                                                                       \
                errno = 0;                                                                                                         \
                if (syscall(number, __VA_ARGS__) >= 0 || (errno != EPERM && errno != ENOSYS)) {                                    \
                        (void) fprintf(stderr, "escapes: %s is not refused: %m\n", #number);                                       \
                        abort();                                                                                                   \
                }                                                                                                                  \
        } while (0)

static void try_files(void) {
        struct open_how how = { .flags = O_WRONLY | O_CREAT, .mode = 0600 };

        TRY(SYS_openat, AT_FDCWD, ESCAPED, O_WRONLY | O_CREAT, 0600);
        TRY(SYS_openat, AT_FDCWD, ESCAPED, O_RDONLY | O_CREAT, 0600);
        TRY(SYS_openat, AT_FDCWD, "/tmp", O_TMPFILE | O_RDWR, 0600);
        TRY(SYS_openat2, AT_FDCWD, ESCAPED, &how, sizeof(how));
        TRY(SYS_linkat, AT_FDCWD, "/proc/self/exe", AT_FDCWD, ESCAPED, AT_SYMLINK_FOLLOW);
        TRY(SYS_symlinkat, "/", AT_FDCWD, ESCAPED);
        TRY(SYS_mkdirat, AT_FDCWD, ESCAPED, 0700);
        TRY(SYS_mknodat, AT_FDCWD, ESCAPED, S_IFIFO | 0600, 0);
        TRY(SYS_unlinkat, AT_FDCWD, ESCAPED, 0);
        TRY(SYS_renameat2, AT_FDCWD, ESCAPED, AT_FDCWD, ESCAPED "2", 0);
        TRY(SYS_truncate, ESCAPED, 0);
        TRY(SYS_fchmodat, AT_FDCWD, ESCAPED, 0777);
        TRY(SYS_memfd_create, "escaped", 0);
        TRY(SYS_fcntl, STDERR_FILENO, F_SETOWN, getppid());
#ifdef SYS_open
        TRY(SYS_open, ESCAPED, O_WRONLY | O_CREAT, 0600);
        TRY(SYS_creat, ESCAPED, 0600);
        TRY(SYS_link, "/proc/self/exe", ESCAPED);
        TRY(SYS_symlink, "/", ESCAPED);
        TRY(SYS_mkdir, ESCAPED, 0700);
        TRY(SYS_mknod, ESCAPED, S_IFIFO | 0600, 0);
#endif
}

static void try_others(void) {
        char byte = 0;
        struct iovec one = { &byte, 1 };
        char ring[256] = { 0 }; /* struct io_uring_params */
        char *none[] = { NULL };

        TRY(SYS_socket, AF_INET, SOCK_STREAM, 0);
        TRY(SYS_socketpair, AF_UNIX, SOCK_STREAM, 0, (int[2]) { 0 });
        TRY(SYS_connect, STDIN_FILENO, NULL, 0);
        TRY(SYS_io_uring_setup, 1, ring);
        TRY(SYS_process_vm_readv, getppid(), &one, 1, &one, 1, 0);
        TRY(SYS_process_vm_writev, getppid(), &one, 1, &one, 1, 0);
        TRY(SYS_ptrace, PTRACE_SEIZE, getppid(), 0, 0);
        TRY(SYS_kill, getppid(), 0);
        TRY(SYS_tgkill, getppid(), getppid(), 0);
        TRY(SYS_tkill, getppid(), 0);
        TRY(SYS_pidfd_open, getppid(), 0);
        TRY(SYS_prlimit64, getppid(), RLIMIT_CPU, NULL, &(struct rlimit) { 0 });
        TRY(SYS_setpriority, PRIO_PROCESS, getppid(), 19);
        TRY(SYS_prctl, PR_SET_DUMPABLE, 1, 0, 0, 0);
        TRY(SYS_unshare, CLONE_NEWUSER);
        TRY(SYS_mount, "/", "/", "none", 0, NULL);
        TRY(SYS_clone, SIGCHLD, 0, 0, 0, 0);
        TRY(SYS_clone3, NULL, 0);
        TRY(SYS_execve, "/bin/true", none, none);
        TRY(SYS_execveat, AT_FDCWD, "/bin/true", none, none, 0);
        TRY(SYS_ioctl, STDERR_FILENO, 0x5412 /* TIOCSTI */, &byte);
#ifdef SYS_fork
        TRY(SYS_fork, 0);
        TRY(SYS_vfork, 0);
#endif
}

/* Tries what a policy has no business doing; answers only when all of it was refused. */
static int place(void *self, const struct rm_snapshot *snapshot, const struct rm_policy_run *run, struct rm_plan *plan) {
        try_files();
        try_others();
        if (geteuid() == 0)
                abort();
        return place_nothing(self, snapshot, run, plan);
}

BROKEN_POLICY("escapes", place);
