#include "daemon/capsule/init/criu/fd_broker.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/error.h"
#include "common/util.h"
#include "daemon/capsule/init/base/identity.h"
#include "daemon/capsule/init/criu/clocks.h"

enum { REPORT_FD = FD_BROKER_FD + 1, REPORT_USEC = 10000000 };

/* Arranges the descriptors so that only the directory and the report are open, at known numbers. */
static int arrange_descriptors(int fd, int report_fd) {
        int high = fcntl(report_fd, F_DUPFD_CLOEXEC, REPORT_FD + 2);
        int dir = fcntl(fd, F_DUPFD_CLOEXEC, REPORT_FD + 2);

        if (high < 0 || dir < 0 || dup2(dir, FD_BROKER_FD) < 0 || dup2(high, REPORT_FD) < 0)
                return -errno;
        return close_range(REPORT_FD + 1, ~0U, 0) < 0 ? -errno : 0;
}

static int become_fd_broker(const Capsule__Spec *spec) {
        int r = identity_refuse_core(true);

        if (r == 0)
                r = identity_become(spec, identity_criu_capabilities(IDENTITY_RESTORE), IDENTITY_NO_GROUP);
        /* Changing ids has made /proc/PID root's; CRIU must be able to enter it. */
        return r == 0 && prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) < 0 ? -errno : r;
}

/* The report of the new process about itself. */
struct report {
        int error;
        pid_t pid;
};

static _Noreturn void lend(const Capsule__Spec *spec, int fd, int report_fd) {
        struct report report = { .pid = getpid() };

        report.error = arrange_descriptors(fd, report_fd);
        if (report.error < 0)
                _exit(1);
        report.error = become_fd_broker(spec);
        (void) write_all(REPORT_FD, &report, sizeof(report));
        (void) close(REPORT_FD);
        while (report.error == 0)
                (void) pause();
        _exit(1);
}

/* A time namespace takes effect for the children of who makes it, and it is the descriptor broker's
 * own that CRIU joins. */
static _Noreturn void be_between(const Capsule__Spec *spec, int fd, int report_fd, const struct clocks *clocks) {
        struct report report = { 0 };

        if (clocks)
                report.error = clocks_unshare(clocks);
        if (report.error < 0)
                (void) write_all(report_fd, &report, sizeof(report));
        else if (fork() == 0)
                lend(spec, fd, report_fd);
        _exit(0);
}

pid_t fd_broker_start(const Capsule__Spec *spec, int fd, const struct clocks *clocks, struct rm_error *error) {
        struct report report = { .error = -ECHILD };
        int pipe_fds[2];
        pid_t between;

        if (pipe2(pipe_fds, O_CLOEXEC) < 0)
                return error_sys(error, -errno, "cannot make a pipe");
        between = fork();
        if (between == 0)
                be_between(spec, fd, pipe_fds[1], clocks);
        (void) close(pipe_fds[1]);
        if (between > 0)
                (void) waitpid(between, NULL, 0);
        if (between > 0 && identity_await(pipe_fds[0], REPORT_USEC) == 0)
                (void) read_all(pipe_fds[0], &report, sizeof(report));
        (void) close(pipe_fds[0]);
        return report.error < 0 ? error_sys(error, report.error, "cannot give CRIU its images and a time namespace") : report.pid;
}

void fd_broker_end(pid_t pid) {
        if (pid > 0)
                (void) kill(pid, SIGKILL);
}
