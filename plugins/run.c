#include "run.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
        READS_AFTER_END = 16, /* a pipe holds no more that was written before */
        CANNOT_RUN = 127,
};

static void run_child(const struct run_ops *ops, void *context, int output) {
        int null = open("/dev/null", O_RDWR);

        /* The program ends with its parent: a parent that is started again runs the program
         * again. */
        (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (null >= 0 && dup2(null, STDIN_FILENO) >= 0 && dup2(output, STDOUT_FILENO) >= 0 &&
            dup2(ops->errors ? output : null, STDERR_FILENO) >= 0)
                ops->exec(context);
        _exit(CANNOT_RUN);
}

/* Returns false when there is nothing more to be read, or it was too much. */
static bool read_some(const struct run_ops *ops, void *context, int fd, bool *ret_too_much) {
        char text[4096];
        ssize_t n = read(fd, text, sizeof(text));

        if (n <= 0)
                return n < 0 && (errno == EAGAIN || errno == EINTR);
        *ret_too_much = !ops->take(context, text, (size_t) n);
        return !*ret_too_much;
}

/* Returns false if it was too much. */
static bool follow(const struct run_ops *ops, void *context, int pidfd, int fd) {
        struct pollfd polls[] = { { .fd = pidfd, .events = POLLIN }, { .fd = fd, .events = POLLIN } };
        bool too_much = false;

        for (int after_end = 0; after_end < READS_AFTER_END && !too_much;) {
                if (poll(polls, 2, -1) < 0)
                        continue; /* only a signal does that */
                if (polls[0].revents && !polls[1].revents)
                        break;
                if (polls[0].revents)
                        after_end++;
                if (!read_some(ops, context, fd, &too_much))
                        polls[1].fd = -1;
        }
        return !too_much;
}

int run_program(const struct run_ops *ops, void *context, int *ret_status) {
        int pidfd, fds[2], r = 0;
        pid_t child;

        if (pipe2(fds, O_CLOEXEC) < 0)
                return -errno;
        child = fork();
        if (child == 0)
                run_child(ops, context, fds[1]);
        pidfd = child > 0 ? pidfd_open(child, 0) : -1;
        if (pidfd < 0)
                r = -errno;
        (void) close(fds[1]);
        (void) fcntl(fds[0], F_SETFL, O_NONBLOCK);
        if (child > 0 && (r < 0 || !follow(ops, context, pidfd, fds[0])))
                (void) kill(child, SIGKILL);
        (void) close(fds[0]);
        if (pidfd >= 0)
                (void) close(pidfd);
        if (r == 0 && waitpid(child, ret_status, 0) < 0)
                r = -errno;
        return r;
}
