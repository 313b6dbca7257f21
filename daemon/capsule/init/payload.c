#include "daemon/capsule/init/payload.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <linux/ioprio.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/error.h"
#include "common/text.h"
#include "common/util.h"
#include "daemon/capsule/init/base/groups.h"
#include "daemon/capsule/init/base/identity.h"
#include "daemon/capsule/init/stdio.h"

#define BEGIN_USEC UINT64_C(30000000)

/* The child says this through the pipe: first its pid, then, only when something fails, what. */
struct failure {
        int code;
        char what[256];
};

static _Noreturn void fail(int pipe_fd, int code, const char *what) {
        struct failure f = { .code = code };

        (void) text_format(f.what, sizeof(f.what), "%s", what);
        (void) write_all(pipe_fd, &f, sizeof(f));
        _exit(127);
}

static _Noreturn void fail_directory(int pipe_fd, int code, const char *cwd) {
        char what[256];

        (void) text_format(what, sizeof(what), "the working directory %s cannot be entered", cwd);
        fail(pipe_fd, -code, what);
}

static void set_limits(const Capsule__Run *run) {
        for (size_t i = 0; i < run->n_limits; i++) {
                const Capsule__Limit *l = run->limits[i];
                struct rlimit limit = { .rlim_cur = l->soft, .rlim_max = l->hard };
                struct rlimit now;

                if (l->resource >= RLIM_NLIMITS || setrlimit(l->resource, &limit) == 0)
                        continue;
                /* A hard limit cannot be raised without CAP_SYS_RESOURCE: then it is set as near as
                 * may be. */
                if (getrlimit(l->resource, &now) < 0)
                        continue;
                limit.rlim_max = limit.rlim_max < now.rlim_max ? limit.rlim_max : now.rlim_max;
                limit.rlim_cur = limit.rlim_cur < limit.rlim_max ? limit.rlim_cur : limit.rlim_max;
                (void) setrlimit(l->resource, &limit);
        }
}

/* The job's owner may give himself all of this, as he did where he started rm-mpirun. */
static void set_scheduling(const Capsule__Run *run) {
        const struct sched_param none = { 0 };

        if (run->nice > 0)
                (void) setpriority(PRIO_PROCESS, 0, (int) run->nice);
        if (run->io_priority > 0)
                (void) syscall(SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0, (int) run->io_priority);
        if (run->scheduling != SCHED_OTHER)
                (void) sched_setscheduler(0, (int) run->scheduling, &none);
}

static void reset_signals(void) {
        sigset_t none;

        for (int signo = 1; signo < NSIG; signo++)
                (void) signal(signo, SIG_DFL);
        sigemptyset(&none);
        (void) sigprocmask(SIG_SETMASK, &none, NULL);
}

/* The root of the tree that is dumped: leader of a session, reaper of its orphans, all it needs
 * inside the capsule. */
static _Noreturn void run_payload(const struct init *init, const Capsule__Run *run, int pipe_fd) {
        char *empty[] = { NULL };
        char **env = run->n_env > 0 ? run->env : empty;
        pid_t pid = getpid();
        int r;

        if (write_all(pipe_fd, &pid, sizeof(pid)) < 0)
                _exit(127);
        (void) setsid();
        (void) prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
        (void) write_text("/proc/self/oom_score_adj", "0");
        (void) umask(run->umask);
        set_scheduling(run);
        set_limits(run);
        reset_signals();
        /* The payload's root is as after a login: no capabilities beyond the user's, and setuid
         * programs work as always. */
        r = identity_become(init->core.spec, 0, IDENTITY_NO_GROUP);
        if (r < 0)
                fail(pipe_fd, r, "cannot become the job's owner");
        r = stdio_attach(run->stdin_null);
        if (r < 0)
                fail(pipe_fd, r, "cannot open the standard streams");
        if (chdir(run->cwd) < 0)
                fail_directory(pipe_fd, errno, run->cwd);
        (void) close_range(3, ~0U, CLOSE_RANGE_CLOEXEC);
        /* execvpe would search our PATH, not the program's. */
        environ = env;
        execvp(run->argv[0], run->argv);
        fail(pipe_fd, -errno, run->argv[0]);
}

/* A time namespace takes effect for the children of who makes it. The go-between ends, and PID 1
 * inherits the payload. */
static _Noreturn void run_between(const struct init *init, const Capsule__Run *run, int pipe_fd) {
        int r = groups_enter(&init->core, LEAF_PAYLOAD, 0);
        pid_t pid = r == 0 ? getpid() : 0;

        if (r < 0) {
                (void) write_all(pipe_fd, &pid, sizeof(pid));
                fail(pipe_fd, r, "cannot enter the control group");
        }
        /* Kernels without time namespaces: the clock may then jump when the capsule moves. */
        (void) unshare(CLONE_NEWTIME);
        pid = fork();
        if (pid == 0)
                run_payload(init, run, pipe_fd);
        _exit(pid < 0 ? 1 : 0);
}

static int check(const Capsule__Run *run, struct rm_error *error) {
        if (run->n_argv == 0 || !*run->argv[0] || *run->cwd != '/')
                return error_set(error, -EINVAL, "a program and an absolute working directory are required");
        return 0;
}

/* argv and env with the NULL at the end that protobuf does not keep. */
static char **terminated(char **strings, size_t n) {
        char **copy = xcalloc(n + 1, sizeof(*copy));

        memcpy(copy, strings, n * sizeof(*copy));
        return copy;
}

int payload_start(struct init *init, const Capsule__Run *run, struct rm_error *error) {
        cleanup_free char **argv = NULL;
        cleanup_free char **env = NULL;
        Capsule__Run command = *run;
        struct failure failure;
        int pipe_fds[2];
        pid_t between;
        pid_t pid = 0;
        int r = check(run, error);

        if (r < 0)
                return r;
        command.argv = argv = terminated(run->argv, run->n_argv);
        command.env = env = terminated(run->env, run->n_env);
        if (pipe2(pipe_fds, O_CLOEXEC) < 0)
                return error_sys(error, -errno, "cannot make a pipe");
        between = fork();
        if (between == 0)
                run_between(init, &command, pipe_fds[1]);
        close(pipe_fds[1]);
        if (between > 0)
                (void) waitpid(between, NULL, 0);
        r = between < 0 ? -EAGAIN : read_all(pipe_fds[0], &pid, sizeof(pid));
        if (r < 0) {
                error_sys(error, r, "cannot start a process");
        } else if (identity_await(pipe_fds[0], BEGIN_USEC) < 0) {
                r = error_set(error, -ETIMEDOUT, "its first process was stopped, or its directory or program does not answer");
                (void) kill(pid, SIGKILL);
        } else if (read_all(pipe_fds[0], &failure, sizeof(failure)) == 0) {
                r = error_sys(error, failure.code, "%.255s", failure.what);
        } else {
                init->core.payload_pid = pid;
        }
        close(pipe_fds[0]);
        return r;
}
