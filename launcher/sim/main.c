/* rm-sim: replays a trace of jobs against a cluster in virtual time, with the scheduler of rmd and
 * any policy. */
#include <argp.h>
#include <malloc.h>
#include <math.h>
#include <string.h>

#include "common/error.h"
#include "common/log.h"
#include "common/util.h"
#include "launcher/sim/plot.h"
#include "launcher/sim/report.h"
#include "launcher/sim/simulate.h"

enum {
        KEY_DIR = 256,
        KEY_BUDGET,
        KEY_BACKFILL,
        KEY_QUEUE,
        KEY_HORIZON,
        KEY_MOVES,
        KEY_FREEZE,
        KEY_BANDWIDTH,
        KEY_MEMORY,
        KEY_SETTLE,
        KEY_MALLEABLE,
        KEY_RESIZE_INTERVAL,
        KEY_CSV,
        KEY_SVG,
        MAX_POLICIES = 8,
};

struct context {
        const char *trace_path, *cluster, *capacity_path, *csv_path, *svg_path;
        const char *policies[MAX_POLICIES];
        size_t n_policies;
        struct managed_config managed;
        struct world_config world;
        double settle_seconds; /* below 0: as is usual */
        double malleable_share; /* more than 0: with these and without them */
        bool json;
};

/* ---- options ---- */

static double number(struct argp_state *state, const char *option, const char *arg, double min, double max) {
        double value = 0;

        if (parse_decimal(arg, min, max, &value) < 0)
                argp_error(state, "%s: '%s' is no number from %.10g to %.10g", option, arg, min, max);
        return value;
}

static uint32_t whole_number(struct argp_state *state, const char *option, const char *arg, uint32_t min, uint32_t max) {
        double value = number(state, option, arg, min, max);

        if (value != floor(value))
                argp_error(state, "%s: '%s' is no whole number", option, arg);
        return (uint32_t) value;
}

static void add_policy(struct context *context, struct argp_state *state, const char *name) {
        if (context->n_policies == MAX_POLICIES)
                argp_error(state, "--policy: at most %d at a time", MAX_POLICIES);
        else if (strcmp(name, EASY_NAME) != 0 && !name_valid(name))
                argp_error(state, "--policy: '%s' is no name of a policy", name);
        else
                context->policies[context->n_policies++] = name;
}

static enum managed_backfill parse_backfill(struct argp_state *state, const char *arg) {
        static const char *const words[] = { [MANAGED_STRICT] = "no", [MANAGED_LIMITS] = "limits", [MANAGED_ANY] = "any" };

        for (size_t i = 0; i < ARRAY_SIZE(words); i++)
                if (strcmp(arg, words[i]) == 0)
                        return (enum managed_backfill) i;
        argp_error(state, "--backfill: no, limits or any, not '%s'", arg);
        return MANAGED_STRICT;
}

/* "SHARE[:LEAST:MOST]" */
static void parse_malleable(struct context *context, struct argp_state *state, const char *arg) {
        cleanup_free char *copy = xstrdup(arg);
        char *least = strchr(copy, ':'), *most = least ? strchr(least + 1, ':') : NULL;

        if (least)
                *least++ = '\0';
        if (most)
                *most++ = '\0';
        if (least && !most)
                argp_error(state, "--malleable: SHARE or SHARE:LEAST:MOST, not '%s'", arg);
        context->malleable_share = number(state, "--malleable", copy, 0, 1);
        if (!most)
                return;
        context->world.least_ratio = number(state, "--malleable", least, 0, 1);
        context->world.most_ratio = number(state, "--malleable", most, 1, 1000);
}

static error_t parse_figure(int key, char *arg, struct argp_state *state) {
        struct context *context = state->input;

        switch (key) {
        case 'g':
                context->managed.group_size = whole_number(state, "--group-size", arg, 0, SWF_MAX_RANKS);
                return 0;
        case KEY_BUDGET:
                context->managed.budget_usec = (uint64_t) (number(state, "--budget", arg, 0, 1e6) * 1e6);
                return 0;
        case KEY_QUEUE:
                context->managed.queue = whole_number(state, "--queue", arg, 1, 50000);
                return 0;
        case KEY_HORIZON:
                context->managed.horizon_usec = (int64_t) (number(state, "--horizon", arg, 0.001, 1e9) * 1e6);
                return 0;
        case KEY_MALLEABLE:
                parse_malleable(context, state, arg);
                return 0;
        case KEY_RESIZE_INTERVAL:
                context->managed.resize_interval_usec = (int64_t) (number(state, "--resize-interval", arg, 0, 1e6) * 1e6);
                return 0;
        case KEY_MOVES:
                context->managed.moves_at_once = whole_number(state, "--moves-at-once", arg, 0, 1000000);
                return 0;
        case KEY_FREEZE:
                context->world.freeze_usec = (int64_t) (number(state, "--freeze", arg, 0, 1e6) * 1e6);
                return 0;
        case KEY_BANDWIDTH:
                context->world.bytes_per_usec = number(state, "--bandwidth", arg, 1e-6, 1e6);
                return 0;
        case KEY_MEMORY:
                context->world.rank_bytes = (uint64_t) (number(state, "--memory", arg, 0, 1e9) * 1e6);
                return 0;
        case KEY_SETTLE:
                context->settle_seconds = number(state, "--settle", arg, 0, 1e6);
                return 0;
        default:
                return ARGP_ERR_UNKNOWN;
        }
}

static error_t parse_option(int key, char *arg, struct argp_state *state) {
        struct context *context = state->input;

        switch (key) {
        case 'p':
                add_policy(context, state, arg);
                return 0;
        case 'c':
                context->cluster = arg;
                return 0;
        case 'a':
                context->capacity_path = arg;
                return 0;
        case 'j':
                context->json = true;
                return 0;
        case KEY_DIR:
                context->managed.directory = arg;
                return 0;
        case KEY_BACKFILL:
                context->managed.backfill = parse_backfill(state, arg);
                return 0;
        case KEY_CSV:
                context->csv_path = arg;
                return 0;
        case KEY_SVG:
                context->svg_path = arg;
                return 0;
        case ARGP_KEY_ARG:
                if (context->trace_path)
                        argp_error(state, "one trace at a time ('%s')", arg);
                context->trace_path = arg;
                return 0;
        case ARGP_KEY_END:
                if (!context->trace_path || !context->cluster)
                        argp_error(state, "a trace and --cluster are needed");
                if (context->n_policies == 0)
                        context->policies[context->n_policies++] = "greedy";
                return 0;
        default:
                return parse_figure(key, arg, state);
        }
}

static const struct argp_option options[] = {
        { "cluster", 'c', "NxC|FILE", 0, "N nodes with C cores each, or the nodes of a snapshot", 0 },
        { "availability", 'a', "FILE", 0, "Changes of usable cores: lines of seconds, node, cores", 0 },
        { "policy", 'p', "P", 0, "Policy, or easy; can be given several times (default greedy)", 0 },
        { "json", 'j', NULL, 0, "Print JSON", 0 },
        { "csv", KEY_CSV, "FILE", 0, "Write a line for each job", 0 },
        { "svg", KEY_SVG, "FILE", 0, "Draw usable and busy cores over time", 0 },
        { "backfill", KEY_BACKFILL, "HOW", 0, "As in rmd.conf: no, limits (default), any", 1 },
        { "group-size", 'g', "N", 0, "Ranks in a group (default: half the cores of the smallest node)", 1 },
        { "horizon", KEY_HORIZON, "S", 0, "Seconds in which a move by choice must pay for itself (default 600)", 1 },
        { "moves-at-once", KEY_MOVES, "N", 0, "Maximum number of concurrent moves (default 8)", 1 },
        { "resize-interval", KEY_RESIZE_INTERVAL, "S", 0, "Minimum time between changes of a malleable job (default 30)", 1 },
        { "settle", KEY_SETTLE, "S", 0, "Virtual seconds from a change to its round (default 1, more on large clusters)", 1 },
        { "queue", KEY_QUEUE, "N", 0, "Pending jobs that a round considers (default 1000)", 1 },
        { "budget", KEY_BUDGET, "S", 0, "Real seconds for each answer of a policy (default 1)", 1 },
        { "policy-dir", KEY_DIR, "DIR", 0, "Directory of the policies", 1 },
        { "malleable", KEY_MALLEABLE, "SHARE[:LEAST:MOST]", 0,
          "This share of the jobs can have LEAST (default 0.5) to MOST (2) times their ranks; with and without", 2 },
        { "freeze", KEY_FREEZE, "S", 0, "Minimum freeze time of a move in seconds (default 0.2)", 2 },
        { "bandwidth", KEY_BANDWIDTH, "MB/S", 0, "Speed at which a move copies memory (default 1000)", 2 },
        { "memory", KEY_MEMORY, "MB", 0, "Memory of a rank, if not in the trace (default 1000)", 2 },
        { 0 },
};

/* ---- running ---- */

/* Files that are written, NULL where none is wanted. */
struct outputs {
        FILE *csv, *svg;
        struct plot *plot;
};

struct inputs {
        struct snapshot *cluster;
        struct swf trace;
        struct capacity capacity;
};

static int read_inputs(const struct context *context, struct inputs *inputs, struct rm_error *err) {
        int r;

        if ((r = swf_read(context->trace_path, &inputs->trace, err)) < 0 ||
            (r = cluster_read(context->cluster, &inputs->cluster, err)) < 0)
                return r;
        if (context->capacity_path)
                r = capacity_read(context->capacity_path, snapshot_view(inputs->cluster), &inputs->capacity, err);
        return r;
}

static int open_output(const char *path, FILE **ret, struct rm_error *err) {
        if (!path)
                return 0;
        *ret = fopen(path, "we");
        return *ret ? 0 : error_sys(err, -errno, "%s", path);
}

static int close_output(FILE *file, const char *path, struct rm_error *err) {
        bool failed = file && (ferror(file) != 0);

        if (file && fclose(file) != 0)
                failed = true;
        return failed ? error_set(err, -EIO, "%s: not all of it could be written", path) : 0;
}

static int run_one(const struct context *context, const struct inputs *inputs, const char *policy, double malleable_share,
                   struct outputs *outputs, struct report *ret_report, struct rm_error *err) {
        struct managed_config config = context->managed;
        struct world_config world_config = context->world;
        struct sim_scheduler scheduler;
        struct world *world;
        uint64_t begin = now_usec(), rounds = 0;
        int64_t settle_usec = context->settle_seconds >= 0 ? (int64_t) (context->settle_seconds * 1e6)
                                                           : simulate_usual_settle_usec(snapshot_view(inputs->cluster),
                                                                                        &inputs->trace, &inputs->capacity);
        int r = 0;

        config.policy = policy;
        world_config.malleable_share = malleable_share;
        if (strcmp(policy, EASY_NAME) == 0)
                scheduler = easy_create();
        else if ((r = managed_create(&config, &scheduler, err)) < 0)
                return r;
        world = world_create(snapshot_view(inputs->cluster), &inputs->trace, &inputs->capacity, &world_config);
        r = simulate(world, &scheduler, settle_usec, &rounds, err);
        if (r == 0) {
                *ret_report = report_make(policy, world);
                ret_report->rounds = rounds;
                ret_report->settle_seconds = (double) settle_usec / 1e6;
                ret_report->real_seconds = (double) (now_usec() - begin) / 1e6;
                if (outputs->csv)
                        report_csv(outputs->csv, ret_report->label, world);
                if (outputs->plot)
                        plot_add(outputs->plot, ret_report->label, world);
        }
        scheduler.destroy(scheduler.self);
        world_destroy(world);
        return r;
}

static void print_json(const struct context *context, const struct inputs *inputs, const struct report *reports, size_t n) {
        json_t *runs = json_array();
        json_t *root = json_pack("{s:i, s:s, s:s, s:I, s:o}", "version", 1, "trace", context->trace_path, "cluster",
                                 context->cluster, "skipped_lines", (json_int_t) inputs->trace.n_skipped, "runs", runs);

        for (size_t i = 0; i < n; i++)
                json_array_append_new(runs, report_to_json(&reports[i]));
        (void) json_dumpf(root, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(10));
        (void) fputc('\n', stdout);
        json_decref(root);
}

static void print_table(const struct inputs *inputs, const struct report *reports, size_t n) {
        report_print(stdout, reports, n);
        if (inputs->trace.n_skipped > 0)
                (void) printf("%zu incomplete lines of the trace were ignored\n", inputs->trace.n_skipped);
}

static int run_all(const struct context *context, const struct inputs *inputs, struct outputs *outputs, struct rm_error *err) {
        struct report reports[2 * MAX_POLICIES];
        size_t n = 0;
        int r;

        if (outputs->csv)
                report_csv_head(outputs->csv);
        for (size_t i = 0; i < context->n_policies; i++) {
                const char *policy = context->policies[i];
                bool with = context->malleable_share > 0 && strcmp(policy, EASY_NAME) != 0;

                if ((r = run_one(context, inputs, policy, 0, outputs, &reports[n++], err)) < 0)
                        return r;
                if (with && (r = run_one(context, inputs, policy, context->malleable_share, outputs, &reports[n++], err)) < 0)
                        return r;
        }
        if (context->json)
                print_json(context, inputs, reports, n);
        else
                print_table(inputs, reports, n);
        if (outputs->svg)
                plot_write(outputs->plot, outputs->svg);
        return fflush(stdout) == 0 ? 0 : error_sys(err, -errno, "standard output");
}

static int run(const struct context *context, struct rm_error *err) {
        struct outputs outputs = { .plot = context->svg_path ? plot_create() : NULL };
        struct inputs inputs = { 0 };
        struct rm_error later = { 0 };
        int r = read_inputs(context, &inputs, err);

        if (r == 0)
                r = open_output(context->csv_path, &outputs.csv, err);
        if (r == 0)
                r = open_output(context->svg_path, &outputs.svg, err);
        if (r == 0)
                r = run_all(context, &inputs, &outputs, err);
        if (close_output(outputs.csv, context->csv_path, &later) < 0 || close_output(outputs.svg, context->svg_path, &later) < 0)
                r = r < 0 ? r : error_set(err, later.code, "%s", later.text);
        plot_destroy(outputs.plot);
        snapshot_destroy(inputs.cluster);
        swf_finish(&inputs.trace);
        capacity_finish(&inputs.capacity);
        return r;
}

int main(int argc, char **argv) {
        static const struct argp argp = { .options = options,
                                          .parser = parse_option,
                                          .args_doc = "TRACE",
                                          .doc = "Simulate the scheduler of rmd, with any policy, on a trace of jobs (Standard "
                                                 "Workload Format) in virtual time. Prints waiting times, slowdown and moves." };
        struct context context = {
                .managed = { .directory = RM_POLICY_DIR,
                             .budget_usec = 1000000,
                             .horizon_usec = 600000000,
                             .resize_interval_usec = 30000000,
                             .moves_at_once = 8,
                             .queue = 1000,
                             .backfill = MANAGED_LIMITS },
                .world = { .rank_bytes = 1000000000,
                           .bytes_per_usec = 1000,
                           .freeze_usec = 200000,
                           .least_ratio = 0.5,
                           .most_ratio = 2 },
                .settle_seconds = -1,
        };
        struct rm_error err = { 0 };

        /* A round takes some megabytes and gives them back: to itself, not to the kernel. */
        (void) mallopt(M_MMAP_THRESHOLD, 64 << 20);
        (void) mallopt(M_TRIM_THRESHOLD, 256 << 20);
        stdio_begin();
        argp_err_exit_status = 2;
        (void) argp_parse(&argp, argc, argv, 0, NULL, &context);
        log_setup("rm-sim", LOG_INFO);
        log_write_all();
        if (run(&context, &err) < 0) {
                (void) fprintf(stderr, "rm-sim: %s\n", error_text(&err));
                return 1;
        }
        return 0;
}
