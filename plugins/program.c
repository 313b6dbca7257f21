/*
 * A fence that runs the administrator's program, [fence] program, with the node's name as its only argument, and in its environment
 *
 *      RM_FENCE_NODE, RM_FENCE_ADDRESS, RM_FENCE_CLUSTER, RM_FENCE_TRY
 *
 * Exit status 0: the node is fenced. What the program writes goes to rmd's log; the last line is told as the reason of a failure.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "owned.h"
#include "rm/fence.h"

enum {
        LINE_BYTES = 400, /* more of a line is left out */
        LINES_MAX = 200, /* of one run: it is to say what it does, not to fill the log */
        READS_AFTER_END = 16, /* a pipe holds no more that was written before */
        CANNOT_RUN = 127,
};

struct output {
        const struct rm_plugin_host *host;
        char line[LINE_BYTES]; /* that is being read */
        size_t used;
        char last[LINE_BYTES]; /* that was not empty */
        unsigned lines;
};

static int program_create(const struct rm_plugin_host *host, void **ret_self) {
        *ret_self = (void *) host;
        return 0;
}

static void tell(const struct rm_plugin_host *host, enum rm_plugin_level level, const char *fmt, ...)
        __attribute__((format(printf, 3, 4)));

static void tell(const struct rm_plugin_host *host, enum rm_plugin_level level, const char *fmt, ...) {
        char text[2 * LINE_BYTES];
        va_list ap;

        va_start(ap, fmt);
        (void) vsnprintf(text, sizeof(text), fmt, ap);
        va_end(ap);
        host->log(host->context, level, text);
}

static void set_environment(const struct rm_fence_request *request) {
        char number[16];

        (void) snprintf(number, sizeof(number), "%u", request->try_number);
        (void) setenv("RM_FENCE_NODE", request->node, 1);
        (void) setenv("RM_FENCE_ADDRESS", request->address, 1);
        (void) setenv("RM_FENCE_CLUSTER", request->cluster, 1);
        (void) setenv("RM_FENCE_TRY", number, 1);
}

static void run_child(const struct rm_fence_request *request, int output) {
        int null = open("/dev/null", O_RDONLY);

        /* The host may be killed when this leader is none any more: the next one runs the program itself. */
        (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
        set_environment(request);
        if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(output, STDOUT_FILENO) < 0 || dup2(output, STDERR_FILENO) < 0)
                _exit(CANNOT_RUN);
        (void) execl(request->program, request->program, request->node, (char *) NULL);
        (void) fprintf(stderr, "cannot be run: %s\n", strerror(errno));
        _exit(CANNOT_RUN);
}

static void end_line(struct output *out) {
        out->line[out->used] = '\0';
        if (out->used > 0)
                (void) snprintf(out->last, sizeof(out->last), "%s", out->line);
        if (out->used > 0 && out->lines++ < LINES_MAX)
                tell(out->host, RM_PLUGIN_INFO, "%s", out->line);
        out->used = 0;
}

/* Returns false at the end. */
static bool read_output(struct output *out, int fd) {
        char text[4096];
        ssize_t n = read(fd, text, sizeof(text));

        for (ssize_t i = 0; i < n; i++) {
                if (text[i] == '\n')
                        end_line(out);
                else if (out->used + 1 < sizeof(out->line))
                        out->line[out->used++] = text[i];
        }
        return n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR));
}

/* Until the child ends: what it has started may keep the pipe open. */
static void follow(struct output *out, int pidfd, int fd) {
        struct pollfd polls[] = { { .fd = pidfd, .events = POLLIN }, { .fd = fd, .events = POLLIN } };

        for (int after_end = 0; after_end < READS_AFTER_END;) {
                if (poll(polls, 2, -1) < 0)
                        continue; /* only a signal does that */
                if (polls[0].revents && !polls[1].revents)
                        break;
                if (polls[0].revents)
                        after_end++;
                if (!read_output(out, fd))
                        polls[1].fd = -1;
        }
        end_line(out);
}

static int judge(const struct output *out, const char *program, int status) {
        char how[64];

        if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
                return 0;
        if (WIFSIGNALED(status))
                (void) snprintf(how, sizeof(how), "killed by signal %d", WTERMSIG(status));
        else
                (void) snprintf(how, sizeof(how), "exit status %d", WEXITSTATUS(status));
        tell(out->host, RM_PLUGIN_ERROR, "%s: %s%s%s", program, how, out->last[0] ? ": " : "", out->last);
        return -EIO;
}

static int program_fence(void *self, const struct rm_fence_request *request) {
        struct output out = { .host = self };
        int r = owned_check(self, "[fence] program", request->program);
        int status = -1, pidfd, fds[2];
        pid_t child;

        if (r < 0)
                return r;
        if (pipe2(fds, O_CLOEXEC) < 0)
                return -errno;
        child = fork();
        if (child == 0)
                run_child(request, fds[1]);
        (void) close(fds[1]);
        pidfd = child > 0 ? pidfd_open(child, 0) : -1;
        if (pidfd < 0) {
                r = -errno;
                (void) close(fds[0]);
                if (child > 0)
                        (void) kill(child, SIGKILL);
                return r;
        }
        (void) fcntl(fds[0], F_SETFL, O_NONBLOCK);
        follow(&out, pidfd, fds[0]);
        (void) close(fds[0]);
        (void) close(pidfd);
        if (waitpid(child, &status, 0) < 0)
                return -errno;
        return judge(&out, request->program, status);
}

RM_PLUGIN_EXPORT extern const struct rm_fence_plugin rm_plugin;
const struct rm_fence_plugin rm_plugin = {
        .plugin = {
                .abi = RM_PLUGIN_ABI,
                .size = sizeof(struct rm_fence_plugin),
                .name = "program",
                .kind = RM_FENCE_KIND,
                .kind_abi = RM_FENCE_ABI,
                .description = "runs [fence] program with the node's name",
                .create = program_create,
        },
        .fence = program_fence,
};
