/* rm-policy-run: runs any policy on a saved snapshot (rmctl snapshot writes one) and shows its
 * plan. Changes nothing. */
#include <argp.h>
#include <inttypes.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "common/error.h"
#include "common/util.h"
#include "launcher/policy-run/child.h"
#include "launcher/policy-run/picture.h"

enum {
        KEY_DIR = 256,
        KEY_HOST,
        MAX_SNAPSHOT_BYTES = 512 * 1024 * 1024,
        GRACE_USEC = 1000 * 1000, /* for what is not the policy: reading, checking, printing */
};

struct context {
        const char *policy, *directory, *host, *path;
        double seconds;
        bool json;
};

static error_t parse_option(int key, char *arg, struct argp_state *state) {
        struct context *context = state->input;

        switch (key) {
        case 'p':
                context->policy = arg;
                return 0;
        case 't':
                if (parse_decimal(arg, 0, 1e6, &context->seconds) < 0)
                        argp_error(state, "--time: '%s' is no number of seconds", arg);
                return 0;
        case 'j':
                context->json = true;
                return 0;
        case KEY_DIR:
                context->directory = arg;
                return 0;
        case KEY_HOST:
                context->host = arg;
                return 0;
        case ARGP_KEY_ARG:
                if (context->path)
                        argp_error(state, "one snapshot at a time ('%s')", arg);
                context->path = arg;
                return 0;
        case ARGP_KEY_END:
                if (!context->path)
                        argp_error(state, "which snapshot? (a file, or - for standard input)");
                return 0;
        default:
                return ARGP_ERR_UNKNOWN;
        }
}

static const struct argp_option options[] = {
        { "policy", 'p', "P", 0, "Policy to run (default distrib)", 0 },
        { "time", 't', "S", 0, "Time for the policy in seconds (default 20)", 0 },
        { "json", 'j', NULL, 0, "Print the plan as JSON", 0 },
        { "policy-dir", KEY_DIR, "DIR", 0, "Directory of the policies", 1 },
        { "policy-host", KEY_HOST, "PROGRAM", 0, "Program that runs the policy", 1 },
        { 0 },
};

static int terminal_width(void) {
        struct winsize size;

        return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 100;
}

static int print(const struct context *context, const char *snapshot, size_t snapshot_bytes, const char *answer,
                 struct rm_error *err) {
        size_t mark_bytes = byte_order_mark_bytes(snapshot, snapshot_bytes);
        json_t *root, *given;
        bool good;

        if (context->json)
                return fputs(answer, stdout) < 0 || fflush(stdout) != 0 ? error_sys(err, -errno, "standard output") : 0;
        root = json_loads(answer, 0, NULL);
        given = json_loadb(snapshot + mark_bytes, snapshot_bytes - mark_bytes, 0, NULL);
        if (root && given)
                picture_print(stdout, given, root, terminal_width());
        else
                (void) error_set(err, -EPROTO, "the policy host's answer is not JSON");
        good = root && given;
        json_decref(root);
        json_decref(given);
        if (good && (fflush(stdout) != 0 || ferror(stdout)))
                return error_sys(err, -errno, "standard output");
        return good ? 0 : err->code;
}

static int run(const struct context *context, struct rm_error *err) {
        cleanup_free char *snapshot = NULL, *answer = NULL;
        uint64_t budget_usec = (uint64_t) (context->seconds * 1e6);
        size_t snapshot_bytes;
        char time[32], what[100];
        char *const argv[] = { (char *) context->host,
                               (char *) "--kind",
                               (char *) "policy",
                               (char *) "--policy",
                               (char *) context->policy,
                               (char *) "--dir",
                               (char *) context->directory,
                               (char *) "--time-usec",
                               time,
                               NULL };
        const char *path = strcmp(context->path, "-") == 0 ? "/dev/stdin" : context->path;
        int r = read_file(path, MAX_SNAPSHOT_BYTES, &snapshot, &snapshot_bytes);

        if (r < 0)
                return error_sys(err, r, "%s", context->path);
        (void) snprintf(time, sizeof(time), "%" PRIu64, budget_usec);
        (void) snprintf(what, sizeof(what), "policy '%s'", context->policy);
        if ((r = child_run(what, argv, snapshot, snapshot_bytes, budget_usec + GRACE_USEC, &answer, err)) < 0) {
                error_prefix(err, "%s", context->path);
                return r;
        }
        return print(context, snapshot, snapshot_bytes, answer, err);
}

int main(int argc, char **argv) {
        static const struct argp argp = {
                .options = options,
                .parser = parse_option,
                .args_doc = "SNAPSHOT",
                .doc = "Run a placement policy on a saved snapshot and print its plan. Changes nothing."
        };
        struct context context = {
                .policy = "distrib", .directory = RM_POLICY_DIR, .host = RM_LIBEXEC_DIR "/rm-plugin-host", .seconds = 20
        };
        struct rm_error err = { 0 };

        stdio_begin();
        argp_err_exit_status = 2;
        (void) argp_parse(&argp, argc, argv, 0, NULL, &context);
        if (run(&context, &err) < 0) {
                (void) fprintf(stderr, "rm-policy-run: %s\n", error_text(&err));
                return 1;
        }
        return 0;
}
