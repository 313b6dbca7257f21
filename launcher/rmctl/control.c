/* rmctl cancel-job, attach-job, migrate-job */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "common/util.h"
#include "launcher/client/frontend.h"
#include "launcher/rmctl/human.h"
#include "launcher/rmctl/move.h"

#define AWAY_USEC (UINT64_C(600) * 1000000U)

/* "TERM", "SIGTERM" or "15". */
static int read_signal(struct call *call, uint32_t *ret_signal) {
        const char *text = call_flag(call, "signal");
        int64_t number = 0;

        if (!text)
                return 0;
        if (parse_i64(text, 1, SIGRTMAX, &number) == 0) {
                *ret_signal = (uint32_t) number;
                return 0;
        }
        for (int i = 1; i < NSIG; i++) {
                const char *name = sigabbrev_np(i);

                if (!name || (strcasecmp(text, name) != 0 && (strncasecmp(text, "SIG", 3) != 0 || strcasecmp(text + 3, name) != 0)))
                        continue;
                *ret_signal = (uint32_t) i;
                return 0;
        }
        return call_usage(call, "--signal: unknown signal '%s'", text);
}

static int run_cancel(struct call *call) {
        cleanup_free uint64_t *jobs = NULL;
        uint32_t signo = 0;
        json_t *done = NULL;
        int r = read_signal(call, &signo);

        if (r == 0)
                r = call_jobs(call, &jobs);
        if (r < 0)
                return r;
        done = json_array();
        for (size_t i = 0; r == 0 && i < call->n_args; i++) {
                Rm__CancelJob cancel = RM__CANCEL_JOB__INIT;

                cancel.job = jobs[i];
                cancel.signal = signo;
                r = call_request_ok(call, &cancel.base, NULL);
                if (r == 0)
                        (void) json_array_append_new(done, json_integer((json_int_t) jobs[i]));
        }
        if (call->json && r == 0)
                call_print_json("cancelled", done);
        else
                json_decref(done);
        return r;
}

static int run_attach(struct call *call) {
        bool watch = call_flag(call, "watch") != NULL;
        struct attachment_config config = { .program = "rmctl", .release = !watch, .away_usec = AWAY_USEC };
        struct frontend *frontend = NULL;
        int code;
        int r = call_job(call, &config.job);

        if (r == 0)
                r = call_connect(call);
        if (r == 0)
                r = frontend_create(!watch, &frontend, &call->err);
        if (r < 0)
                return r;
        call_disconnect(call);
        config.input = !watch && !call_flag(call, "no-input") && frontend_has_input();
        code = frontend_run(frontend, &config);
        frontend_destroy(frontend);
        return code;
}

static int read_group(struct call *call, int32_t *ret_group) {
        const char *text = call_flag(call, "group");
        int64_t number = 0;

        if (!text)
                return call_usage(call, "--group is missing: a group's number, or 'head' (see 'rmctl show-job')");
        if (strcmp(text, "head") == 0)
                number = -1;
        else if (parse_i64(text, -1, INT32_MAX, &number) < 0)
                return call_usage(call, "--group: '%s' is neither a group's number nor 'head'", text);
        *ret_group = (int32_t) number;
        return 0;
}

static int migrate_request(struct call *call, uint64_t job, int32_t group, const char *to, const char *mode, uint64_t *ret_move) {
        Rm__MigrateJob migrate = RM__MIGRATE_JOB__INIT;

        migrate.job = job;
        migrate.group = group;
        migrate.to = (char *) to;
        migrate.mode = (char *) mode;
        return call_request_ok(call, &migrate.base, ret_move);
}

static int run_migrate(struct call *call) {
        const char *to = call_flag(call, "to");
        const char *mode = call_flag(call, "mode") ? call_flag(call, "mode") : "";
        uint64_t timeout_usec = 0;
        uint64_t job = 0;
        uint64_t move = 0;
        int32_t group = 0;
        int r = call_job(call, &job);

        if (r == 0)
                r = read_group(call, &group);
        if (r == 0 && !to)
                r = call_usage(call, "--to is missing: the node to move to");
        if (r == 0 && !name_valid(to))
                r = call_usage(call, "--to: '%s' is not a node's name", to);
        if (r == 0 && *mode && strcmp(mode, "live") != 0 && strcmp(mode, "stop") != 0)
                r = call_usage(call, "--mode: '%s' is neither 'live' nor 'stop'", mode);
        if (r == 0)
                r = call_duration(call, "timeout", &timeout_usec);
        if (r == 0)
                r = migrate_request(call, job, group, to, mode, &move);
        if (r < 0 || !call_flag(call, "wait"))
                return r;
        return move_wait(call, job, move, timeout_usec);
}

const struct verb verb_cancel_job = {
        .name = "cancel-job",
        .args = "JOBS",
        .min_args = 1,
        .max_args = SIZE_MAX,
        .role = ROLE_OWNER,
        .help = "end pending or running jobs",
        .flags = { { "signal", "SIGNAL", "signal to send (default TERM)" } },
        .run = run_cancel,
};

const struct verb verb_attach_job = {
        .name = "attach-job",
        .args = "JOB",
        .min_args = 1,
        .max_args = 1,
        .role = ROLE_OWNER,
        .help = "attach this terminal to a job that runs detached or lost its rm-mpirun\n"
                "Output is printed from the beginning; input, signals and exit status are as with rm-mpirun: Ctrl-C ends "
                "the job.",
        .flags = { { "watch", NULL, "send no input; Ctrl-C does not end the job" },
                   { "no-input", NULL, "send no standard input" } },
        .run = run_attach,
};

const struct verb verb_migrate_job = {
        .name = "migrate-job",
        .args = "JOB",
        .min_args = 1,
        .max_args = 1,
        .role = ROLE_OWNER,
        .help = "move one group of a job to another node\n"
                "For a minute, the scheduler moves no group of the job by choice; afterwards it may.",
        .flags = { { "group", "G", "required: number of the group, or 'head' for mpirun" },
                   { "to", "NODE", "required: destination" },
                   { "mode", "live|stop", "live (default): copy memory before the freeze; stop: only in the freeze" },
                   { "wait", NULL, "return when it has moved, or with exit status 1 if the move failed" },
                   { "timeout", "TIME", "stop waiting after TIME; the move continues" } },
        .run = run_migrate,
};
