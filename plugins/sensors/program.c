/*
 * Runs the administrator's program, whose path and arguments are in `args`, parted by blanks. As for plugins of Nagios, exit status 0 is ok,
 * 1 warn, 2 critical, and any other unknown; the first line that it writes is the reason, up to a '|', behind which Nagios has figures. What it
 * writes on standard error is dropped.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../owned.h"
#include "rm/sensor.h"

enum {
        ARGUMENTS_MAX = 32,
        OUTPUT_MOST_BYTES = 64 * 1024,
        READS_AFTER_END = 16, /* a pipe holds no more that was written before */
        CANNOT_RUN = 127,
};

struct output {
        char line[RM_SENSOR_TEXT_BYTES]; /* the first one */
        size_t used;
        bool complete;
        size_t total_bytes;
};

static int program_create(const struct rm_plugin_host *host, void **ret_self) {
        *ret_self = (void *) host;
        return 0;
}

static int fail(const struct rm_plugin_host *host, int code, const char *what, const char *why) {
        char text[512];

        (void) snprintf(text, sizeof(text), "%.240s: %.240s", what, why);
        host->log(host->context, RM_PLUGIN_ERROR, text);
        return code;
}

static int split(const struct rm_plugin_host *host, char *text, char **ret_argv) {
        char *saved = NULL;
        size_t n = 0;

        for (char *word = strtok_r(text, " \t", &saved); word; word = strtok_r(NULL, " \t", &saved)) {
                if (n + 1 >= ARGUMENTS_MAX)
                        return fail(host, -E2BIG, "[sensors] program_args", "too many arguments");
                ret_argv[n++] = word;
        }
        ret_argv[n] = NULL;
        return n > 0 ? 0 : fail(host, -EINVAL, "[sensors] program_args", "names no program");
}

static void run_child(char *const *argv, int output) {
        int null = open("/dev/null", O_RDWR);

        (void) prctl(PR_SET_PDEATHSIG, SIGKILL); /* its time is over with that of its parent */
        if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(output, STDOUT_FILENO) < 0 || dup2(null, STDERR_FILENO) < 0)
                _exit(CANNOT_RUN);
        (void) execv(argv[0], argv);
        _exit(CANNOT_RUN);
}

/* Returns false at the end, or after too much. */
static bool read_output(struct output *out, int fd) {
        char text[4096];
        ssize_t n = read(fd, text, sizeof(text));

        for (ssize_t i = 0; i < n && !out->complete; i++) {
                if (text[i] == '\n' || text[i] == '|')
                        out->complete = true;
                else if (out->used + 1 < sizeof(out->line))
                        out->line[out->used++] = text[i];
        }
        out->total_bytes += n > 0 ? (size_t) n : 0;
        return (n > 0 && out->total_bytes <= OUTPUT_MOST_BYTES) || (n < 0 && (errno == EAGAIN || errno == EINTR));
}

/* Until the child ends or writes too much: what it has started may keep the pipe open. */
static void follow(struct output *out, int pidfd, int fd) {
        struct pollfd polls[] = { { .fd = pidfd, .events = POLLIN }, { .fd = fd, .events = POLLIN } };

        for (int after_end = 0; after_end < READS_AFTER_END && out->total_bytes <= OUTPUT_MOST_BYTES;) {
                if (poll(polls, 2, -1) < 0)
                        continue; /* only a signal does that */
                if (polls[0].revents && !polls[1].revents)
                        break;
                if (polls[0].revents)
                        after_end++;
                if (!read_output(out, fd))
                        polls[1].fd = -1;
        }
        while (out->used > 0 && (out->line[out->used - 1] == ' ' || out->line[out->used - 1] == '\r'))
                out->used--;
        out->line[out->used] = '\0';
}

static int judge(const struct rm_plugin_host *host, const struct rm_sensor_request *request, const struct output *out,
                 const char *program, int status) {
        static const enum rm_sensor_word words[] = { RM_SENSOR_OK, RM_SENSOR_WARN, RM_SENSOR_CRITICAL };
        char how[64 + RM_SENSOR_TEXT_BYTES];

        if (out->total_bytes > OUTPUT_MOST_BYTES)
                return fail(host, -EFBIG, program, "killed: it wrote more than 64 KiB");
        if (WIFEXITED(status) && WEXITSTATUS(status) < (int) (sizeof(words) / sizeof(words[0])))
                return request->word(request->context, words[WEXITSTATUS(status)], out->line);
        if (WIFSIGNALED(status))
                (void) snprintf(how, sizeof(how), "killed by signal %d", WTERMSIG(status));
        else
                (void) snprintf(how, sizeof(how), "exit status %d%s%s", WEXITSTATUS(status), out->line[0] ? ": " : "", out->line);
        return fail(host, -EIO, program, how);
}

static int run(const struct rm_plugin_host *host, const struct rm_sensor_request *request, char *const *argv) {
        struct output out = { 0 };
        int status = -1, pidfd, fds[2];
        pid_t child;

        if (pipe2(fds, O_CLOEXEC) < 0)
                return -errno;
        child = fork();
        if (child == 0)
                run_child(argv, fds[1]);
        (void) close(fds[1]);
        pidfd = child > 0 ? pidfd_open(child, 0) : -1;
        if (pidfd < 0) {
                (void) close(fds[0]);
                if (child > 0)
                        (void) kill(child, SIGKILL);
                return fail(host, -EAGAIN, argv[0], "no process can be started");
        }
        (void) fcntl(fds[0], F_SETFL, O_NONBLOCK);
        follow(&out, pidfd, fds[0]);
        (void) close(fds[0]);
        (void) close(pidfd);
        if (out.total_bytes > OUTPUT_MOST_BYTES)
                (void) kill(child, SIGKILL);
        if (waitpid(child, &status, 0) < 0)
                return -errno;
        return judge(host, request, &out, argv[0], status);
}

static int program_read(void *self, const struct rm_sensor_request *request) {
        const struct rm_plugin_host *host = self;
        char *argv[ARGUMENTS_MAX], *text = strdup(request->args);
        int r = text ? split(host, text, argv) : -ENOMEM;

        if (r == 0)
                r = owned_check(host, "[sensors] program_args", argv[0]);
        if (r == 0 && access(argv[0], X_OK) < 0)
                r = fail(host, -errno, argv[0], strerror(errno));
        if (r == 0)
                r = run(host, request, argv);
        free(text);
        return r;
}

RM_PLUGIN_EXPORT extern const struct rm_sensor_plugin rm_plugin;
const struct rm_sensor_plugin rm_plugin = {
        .plugin = {
                .abi = RM_PLUGIN_ABI,
                .size = sizeof(struct rm_sensor_plugin),
                .name = "program",
                .kind = RM_SENSOR_KIND,
                .kind_abi = RM_SENSOR_ABI,
                .description = "a program of the administrator's",
                .create = program_create,
        },
        .read = program_read,
};
