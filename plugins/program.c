/*
 * A fence that runs the administrator's program, [fence] program, with the node's name as its only
 * argument, and in its environment
 *
 *      RM_FENCE_NODE, RM_FENCE_ADDRESS, RM_FENCE_CLUSTER, RM_FENCE_TRY
 *
 * Exit status 0: the node is fenced. What the program writes goes to rmd's log; the last line is
 * told as the reason of a failure.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host_log.h"
#include "owned.h"
#include "rm/fence.h"
#include "run.h"

enum {
        LINE_BYTES = 400, /* more of a line is left out */
        LINES_MAX = 200, /* of one run: it is to say what it does, not to fill the log */
};

struct run {
        const struct rm_plugin_host *host;
        const struct rm_fence_request *request;
        char line[LINE_BYTES]; /* that is being read */
        size_t used;
        char last[LINE_BYTES]; /* that was not empty */
        unsigned lines;
};

static void set_environment(const struct rm_fence_request *request) {
        char number[16];

        (void) snprintf(number, sizeof(number), "%u", request->try_number);
        (void) setenv("RM_FENCE_NODE", request->node, 1);
        (void) setenv("RM_FENCE_ADDRESS", request->address, 1);
        (void) setenv("RM_FENCE_CLUSTER", request->cluster, 1);
        (void) setenv("RM_FENCE_TRY", number, 1);
}

static void exec_program(void *context) {
        const struct run *run = context;

        set_environment(run->request);
        (void) execl(run->request->program, run->request->program, run->request->node, (char *) NULL);
        (void) fprintf(stderr, "cannot be run: %s\n", strerror(errno));
}

static void end_line(struct run *run) {
        run->line[run->used] = '\0';
        if (run->used > 0)
                (void) snprintf(run->last, sizeof(run->last), "%s", run->line);
        if (run->used > 0 && run->lines++ < LINES_MAX)
                host_log(run->host, RM_PLUGIN_INFO, "%s", run->line);
        run->used = 0;
}

static bool take_output(void *context, const char *text, size_t n_bytes) {
        struct run *run = context;

        for (size_t i = 0; i < n_bytes; i++) {
                if (text[i] == '\n')
                        end_line(run);
                else if (run->used + 1 < sizeof(run->line))
                        run->line[run->used++] = text[i];
        }
        return true;
}

static int judge(const struct run *run, const char *program, int status) {
        char how[64];

        if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
                return 0;
        if (WIFSIGNALED(status))
                (void) snprintf(how, sizeof(how), "killed by signal %d", WTERMSIG(status));
        else
                (void) snprintf(how, sizeof(how), "exit status %d", WEXITSTATUS(status));
        host_log(run->host, RM_PLUGIN_ERROR, "%s: %s%s%s", program, how, run->last[0] ? ": " : "", run->last);
        return -EIO;
}

static int program_fence(void *self, const struct rm_fence_request *request) {
        static const struct run_ops ops = { .exec = exec_program, .take = take_output, .errors = true };
        struct run run = { .host = self, .request = request };
        int r = owned_check(self, "[fence] program", request->program);
        int status = -1;

        if (r == 0)
                r = run_program(&ops, &run, &status);
        if (r < 0)
                return r;
        end_line(&run);
        return judge(&run, request->program, status);
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
                .create = host_keep,
        },
        .fence = program_fence,
};
