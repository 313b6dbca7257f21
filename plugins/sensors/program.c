/*
 * Runs the administrator's program, whose path and arguments are in `args`, parted by blanks. As
 * for plugins of Nagios, exit status 0 is ok, 1 warn, 2 critical, and any other unknown; the first
 * line that it writes is the reason, up to a '|', behind which Nagios has figures. What it writes
 * on standard error is dropped.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../owned.h"
#include "../run.h"
#include "descriptor.h"

enum {
        ARGUMENTS_MAX = 32,
        OUTPUT_MOST_BYTES = 64 * 1024,
};

struct run {
        char *argv[ARGUMENTS_MAX];
        char line[RM_SENSOR_TEXT_BYTES]; /* the first one */
        size_t used;
        bool complete;
        size_t total_bytes;
};

static int split(const struct rm_plugin_host *host, char *text, char **ret_argv) {
        char *saved = NULL;
        size_t n = 0;

        for (char *word = strtok_r(text, " \t", &saved); word; word = strtok_r(NULL, " \t", &saved)) {
                if (n + 1 >= ARGUMENTS_MAX)
                        return host_fail(host, -E2BIG, "[sensors] program_args: too many arguments");
                ret_argv[n++] = word;
        }
        ret_argv[n] = NULL;
        return n > 0 ? 0 : host_fail(host, -EINVAL, "[sensors] program_args: names no program");
}

static void exec_program(void *context) {
        const struct run *run = context;

        (void) execv(run->argv[0], run->argv);
}

static bool take_output(void *context, const char *text, size_t n_bytes) {
        struct run *run = context;

        for (size_t i = 0; i < n_bytes && !run->complete; i++) {
                if (text[i] == '\n' || text[i] == '|')
                        run->complete = true;
                else if (run->used + 1 < sizeof(run->line))
                        run->line[run->used++] = text[i];
        }
        run->total_bytes += n_bytes;
        return run->total_bytes <= OUTPUT_MOST_BYTES;
}

static void end_line(struct run *run) {
        while (run->used > 0 && (run->line[run->used - 1] == ' ' || run->line[run->used - 1] == '\r'))
                run->used--;
        run->line[run->used] = '\0';
}

static int report_status(const struct rm_plugin_host *host, const struct rm_sensor_request *request, const struct run *run,
                         int status) {
        const char *program = run->argv[0];
        static const enum rm_sensor_status statuses[] = { RM_SENSOR_OK, RM_SENSOR_WARN, RM_SENSOR_CRITICAL };

        if (run->total_bytes > OUTPUT_MOST_BYTES)
                return host_fail(host, -EFBIG, "%.240s: killed: it wrote more than 64 KiB", program);
        if (WIFEXITED(status) && WEXITSTATUS(status) < (int) (sizeof(statuses) / sizeof(statuses[0])))
                return request->status(request->context, statuses[WEXITSTATUS(status)], run->line);
        if (WIFSIGNALED(status))
                return host_fail(host, -EIO, "%.240s: killed by signal %d", program, WTERMSIG(status));
        return host_fail(host, -EIO, "%.240s: exit status %d%s%s", program, WEXITSTATUS(status), run->line[0] ? ": " : "",
                         run->line);
}

static int program_read(void *self, const struct rm_sensor_request *request) {
        const struct rm_plugin_host *host = self;
        static const struct run_ops ops = { .exec = exec_program, .take = take_output };
        char *text = strdup(request->args);
        struct run run = { 0 };
        int r = text ? split(host, text, run.argv) : -ENOMEM;
        int status = -1;

        if (r == 0)
                r = owned_check(host, "[sensors] program_args", run.argv[0]);
        if (r == 0 && access(run.argv[0], X_OK) < 0)
                r = host_fail(host, -errno, "%.240s: %s", run.argv[0], strerror(errno));
        if (r == 0 && (r = run_program(&ops, &run, &status)) < 0)
                r = host_fail(host, r, "%.240s: no process can be started", run.argv[0]);
        if (r == 0) {
                end_line(&run);
                r = report_status(host, request, &run, status);
        }
        free(text);
        return r;
}

SENSOR_PLUGIN("program", "a program of the administrator's", program_read);
