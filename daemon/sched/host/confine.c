#include "daemon/sched/host/confine.h"

#include <fcntl.h>
#include <grp.h>
#include <seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "common/util.h"

enum { NOBODY = 65534 };

static int limit(int resource, uint64_t value, const char *name, struct rm_error *err) {
        struct rlimit now, wanted = { .rlim_cur = value, .rlim_max = value };

        if (getrlimit((__rlimit_resource_t) resource, &now) == 0 && now.rlim_max < value)
                wanted.rlim_cur = wanted.rlim_max = now.rlim_max;
        if (setrlimit((__rlimit_resource_t) resource, &wanted) < 0)
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

/* A list of what is refused, not of what is allowed: which calls a solver's libraries make is not ours to know. */
static void refuse_calls(void) {
        static const int refused[] = {
                SCMP_SYS(socket), SCMP_SYS(connect),   SCMP_SYS(execve),   SCMP_SYS(execveat), SCMP_SYS(ptrace),
                SCMP_SYS(kill),   SCMP_SYS(tkill),     SCMP_SYS(unlink),   SCMP_SYS(unlinkat), SCMP_SYS(rename),
                SCMP_SYS(mount),  SCMP_SYS(renameat2), SCMP_SYS(mkdirat),  SCMP_SYS(linkat),   SCMP_SYS(symlinkat),
                SCMP_SYS(chmod),  SCMP_SYS(fchmodat),  SCMP_SYS(truncate), SCMP_SYS(creat),    SCMP_SYS(pidfd_send_signal),
        };
        scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);

        if (!filter)
                return;
        for (size_t i = 0; i < ARRAY_SIZE(refused); i++)
                (void) seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), refused[i], 0);
        (void) seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(openat), 1,
                                SCMP_A2(SCMP_CMP_MASKED_EQ, O_ACCMODE, O_WRONLY));
        (void) seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(openat), 1, SCMP_A2(SCMP_CMP_MASKED_EQ, O_ACCMODE, O_RDWR));
        (void) seccomp_load(filter);
        seccomp_release(filter);
}

int confine(uint64_t cpu_usec, uint64_t memory_bytes, struct rm_error *err) {
        int r;

        (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
        if ((r = limit(RLIMIT_CORE, 0, "core files", err)) < 0 ||
            (r = limit(RLIMIT_CPU, cpu_usec / 1000000 + 2, "CPU time", err)) < 0 ||
            (memory_bytes > 0 && (r = limit(RLIMIT_AS, memory_bytes, "memory", err)) < 0) || (r = drop_root(err)) < 0)
                return r;
        /* Changing the user has cleared it. */
        (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void) prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        refuse_calls();
        return 0;
}
