#include "daemon/host/confine.h"

#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/util.h"
#include "daemon/host/host.h"

static int limit(int resource, uint64_t value, const char *name, struct rm_error *err) {
        struct rlimit now, requested = { .rlim_cur = value, .rlim_max = value };

        if (getrlimit((__rlimit_resource_t) resource, &now) == 0 && now.rlim_max < value)
                requested.rlim_cur = requested.rlim_max = now.rlim_max;
        if (setrlimit((__rlimit_resource_t) resource, &requested) < 0)
                return error_sys(err, -errno, "limit on %s", name);
        return 0;
}

static int drop_root(struct rm_error *err) {
        if (geteuid() != 0)
                return 0;
        if (setgroups(0, NULL) < 0 || setresgid(NOBODY, NOBODY, NOBODY) < 0 || setresuid(NOBODY, NOBODY, NOBODY) < 0)
                return error_sys(err, -errno, "becoming user %d", NOBODY);
        return 0;
}

/* ---- system calls ---- */

/* The system calls that a solver, its libraries and threads, the loader and the C library need to
 * compute and to read. All others are refused with EPERM. An architecture may lack some of these;
 * libseccomp passes over them. */
static const int allowed[] = {
        /* memory */
        SCMP_SYS(brk),
        SCMP_SYS(mmap),
        SCMP_SYS(mmap2),
        SCMP_SYS(munmap),
        SCMP_SYS(mremap),
        SCMP_SYS(mprotect),
        SCMP_SYS(madvise),
        SCMP_SYS(membarrier),
        SCMP_SYS(mincore),
        /* open files, and looking at others */
        SCMP_SYS(read),
        SCMP_SYS(readv),
        SCMP_SYS(pread64),
        SCMP_SYS(preadv),
        SCMP_SYS(write),
        SCMP_SYS(writev),
        SCMP_SYS(close),
        SCMP_SYS(close_range),
        SCMP_SYS(lseek),
        SCMP_SYS(_llseek),
        SCMP_SYS(dup),
        SCMP_SYS(dup2),
        SCMP_SYS(dup3),
        SCMP_SYS(pipe),
        SCMP_SYS(pipe2),
        SCMP_SYS(poll),
        SCMP_SYS(ppoll),
        SCMP_SYS(select),
        SCMP_SYS(pselect6),
        SCMP_SYS(eventfd2),
        SCMP_SYS(fstat),
        SCMP_SYS(fstat64),
        SCMP_SYS(stat),
        SCMP_SYS(stat64),
        SCMP_SYS(lstat),
        SCMP_SYS(lstat64),
        SCMP_SYS(newfstatat),
        SCMP_SYS(fstatat64),
        SCMP_SYS(statx),
        SCMP_SYS(statfs),
        SCMP_SYS(fstatfs),
        SCMP_SYS(access),
        SCMP_SYS(faccessat),
        SCMP_SYS(faccessat2),
        SCMP_SYS(readlink),
        SCMP_SYS(readlinkat),
        SCMP_SYS(getcwd),
        SCMP_SYS(getdents),
        SCMP_SYS(getdents64),
        /* threads, and waiting for one another */
        SCMP_SYS(clone),
        SCMP_SYS(futex),
        SCMP_SYS(futex_time64),
        SCMP_SYS(set_robust_list),
        SCMP_SYS(get_robust_list),
        SCMP_SYS(rseq),
        SCMP_SYS(set_tid_address),
        SCMP_SYS(set_thread_area),
        SCMP_SYS(arch_prctl),
        SCMP_SYS(sched_yield),
        SCMP_SYS(sched_getaffinity),
        SCMP_SYS(sched_getparam),
        SCMP_SYS(sched_getscheduler),
        SCMP_SYS(sched_get_priority_max),
        SCMP_SYS(sched_get_priority_min),
        SCMP_SYS(getcpu),
        SCMP_SYS(wait4),
        SCMP_SYS(waitid),
        SCMP_SYS(exit),
        SCMP_SYS(exit_group),
        /* signals to oneself */
        SCMP_SYS(rt_sigaction),
        SCMP_SYS(rt_sigprocmask),
        SCMP_SYS(rt_sigreturn),
        SCMP_SYS(sigreturn),
        SCMP_SYS(sigaltstack),
        SCMP_SYS(tgkill),
        SCMP_SYS(alarm),
        SCMP_SYS(setitimer),
        SCMP_SYS(getitimer),
        SCMP_SYS(restart_syscall),
        /* time, random numbers, and the identity of the process */
        SCMP_SYS(clock_gettime),
        SCMP_SYS(clock_gettime64),
        SCMP_SYS(clock_getres),
        SCMP_SYS(clock_getres_time64),
        SCMP_SYS(clock_nanosleep),
        SCMP_SYS(clock_nanosleep_time64),
        SCMP_SYS(nanosleep),
        SCMP_SYS(gettimeofday),
        SCMP_SYS(time),
        SCMP_SYS(times),
        SCMP_SYS(getrandom),
        SCMP_SYS(getrusage),
        SCMP_SYS(getrlimit),
        SCMP_SYS(ugetrlimit),
        SCMP_SYS(sysinfo),
        SCMP_SYS(uname),
        SCMP_SYS(getpid),
        SCMP_SYS(getppid),
        SCMP_SYS(gettid),
        SCMP_SYS(getuid),
        SCMP_SYS(geteuid),
        SCMP_SYS(getgid),
        SCMP_SYS(getegid),
        SCMP_SYS(getuid32),
        SCMP_SYS(geteuid32),
        SCMP_SYS(getgid32),
        SCMP_SYS(getegid32),
        /* may only take away more */
        SCMP_SYS(seccomp),
};

/* Opening writes nothing: no access but to read, nothing made, nothing cut off. */
#define OPEN_WRITES (O_ACCMODE | O_CREAT | O_TRUNC | (O_TMPFILE & ~O_DIRECTORY))

static int allow_with_arguments(scmp_filter_ctx filter) {
        static const int fcntls[] = { F_GETFD, F_SETFD, F_GETFL, F_SETFL, F_DUPFD, F_DUPFD_CLOEXEC };
        static const int prctls[] = {
                PR_SET_NAME, PR_GET_NAME, PR_SET_VMA, PR_SET_NO_NEW_PRIVS, PR_GET_NO_NEW_PRIVS, PR_SET_SECCOMP
        };
        int r = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(openat), 1, SCMP_A2(SCMP_CMP_MASKED_EQ, OPEN_WRITES, O_RDONLY));

        if (r == 0)
                r = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(open), 1, SCMP_A1(SCMP_CMP_MASKED_EQ, OPEN_WRITES, O_RDONLY));
        for (size_t i = 0; r == 0 && i < ARRAY_SIZE(fcntls); i++)
                r = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(fcntl), 1, SCMP_A1(SCMP_CMP_EQ, (scmp_datum_t) fcntls[i]));
        for (size_t i = 0; r == 0 && i < ARRAY_SIZE(prctls); i++)
                r = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(prctl), 1, SCMP_A0(SCMP_CMP_EQ, (scmp_datum_t) prctls[i]));
        if (r == 0) /* isatty() */
                r = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(ioctl), 1, SCMP_A1(SCMP_CMP_EQ, TCGETS));
        if (r == 0) /* one's own limits */
                r = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(prlimit64), 1, SCMP_A0(SCMP_CMP_EQ, 0));
        if (r == 0) /* its flags cannot be looked at; without it the C library takes clone */
                r = seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);
        return r;
}

static int load(scmp_filter_ctx filter, int r, struct rm_error *err) {
        if (r == 0)
                r = seccomp_load(filter);
        seccomp_release(filter);
        return r < 0 ? error_sys(err, r, "the kernel does not support system call filters (seccomp): policies cannot run") : 0;
}

static int allow_calls(struct rm_error *err) {
        scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ERRNO(EPERM));
        int r = 0;

        if (!filter)
                return error_set(err, -ENOMEM, "no memory for a filter of system calls");
        for (size_t i = 0; r == 0 && i < ARRAY_SIZE(allowed); i++)
                r = seccomp_rule_add(filter, SCMP_ACT_ALLOW, allowed[i], 0);
        if (r == 0)
                r = allow_with_arguments(filter);
        return load(filter, r, err);
}

int confine_alone(struct rm_error *err) {
        scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
        int r;

        if (!filter)
                return error_set(err, -ENOMEM, "no memory for a filter of system calls");
        r = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(clone), 1, SCMP_A0(SCMP_CMP_MASKED_EQ, CLONE_THREAD, 0));
        if (r == 0)
                r = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(tgkill), 1,
                                     SCMP_A0(SCMP_CMP_NE, (scmp_datum_t) getpid()));
        return load(filter, r, err);
}

/* ---- all of it ---- */

/* A descriptor that is open already may be a file, if the host was started by hand. */
static bool writes_to_file(void) {
        struct stat st;

        for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
                if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
                        return true;
        return false;
}

int confine(uint64_t cpu_usec, uint64_t memory_bytes, struct rm_error *err) {
        int r;

        (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
        if ((r = limit(RLIMIT_CORE, 0, "core files", err)) < 0 ||
            (r = limit(RLIMIT_CPU, cpu_usec / 1000000 + 2, "CPU time", err)) < 0 ||
            (!writes_to_file() && (r = limit(RLIMIT_FSIZE, 0, "written files", err)) < 0) ||
            (memory_bytes > 0 && (r = limit(RLIMIT_AS, memory_bytes, "memory", err)) < 0) || (r = drop_root(err)) < 0)
                return r;
        /* Changing the user has cleared it. */
        (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
                return error_sys(err, -errno, "setting no_new_privs");
        return allow_calls(err);
}
