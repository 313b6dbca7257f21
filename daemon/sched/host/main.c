/*
 * rm-policy-host: runs one policy on one snapshot, in a process that may crash or hang without harm.
 *
 *      rm-policy-host --policy NAME [--dir DIR] [--time-usec N] [--memory-bytes N]    snapshot on stdin, plan on stdout
 *      rm-policy-host --list [--dir DIR]                                              policies in DIR, as JSON
 *
 * --standard-dir DIR: where the policy is that runs models, if DIR has it not (default: where rmd's own policies are installed).
 *
 * NAME is NAME.so in DIR, or the model NAME.mod, which is read before this process gives up what it may do; a snapshot with the field
 * "x_model": "text" brings its own.
 *
 * Exit status: 0 done, 1 failed (one line on stderr says why), 2 usage.
 */
#include <argp.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "common/error.h"
#include "common/log.h"
#include "common/text.h"
#include "common/util.h"
#include "daemon/sched/fields.h"
#include "daemon/sched/host/confine.h"
#include "daemon/sched/memory_limits.h"
#include "daemon/sched/plan.h"
#include "daemon/sched/policy_load.h"
#include "daemon/sched/policy_model.h"
#include "daemon/sched/snapshot.h"
#include "placement/cost.h"

struct context {
        struct policy_folders folders;
        const char *policy;
        bool list;
        uint64_t time_usec, memory_bytes, deadline_usec;
        char said[512]; /* the last error the policy told of */
        int answer_fd; /* the real stdout: a policy that prints something prints to stderr */
};

enum { KEY_TIME = 256, KEY_MEMORY, KEY_LIST, KEY_STANDARD };

static int parse_u64(const char *arg, uint64_t *ret_value) {
        int64_t value;
        int r = parse_i64(arg, 0, INT64_MAX / 2, &value);

        if (r == 0)
                *ret_value = (uint64_t) value;
        return r;
}

static error_t parse_option(int key, char *arg, struct argp_state *state) {
        struct context *context = state->input;

        switch (key) {
        case 'p':
                context->policy = arg;
                return 0;
        case 'd':
                context->folders.own = arg;
                return 0;
        case KEY_STANDARD:
                context->folders.standard = arg;
                return 0;
        case KEY_LIST:
                context->list = true;
                return 0;
        case KEY_TIME:
                if (parse_u64(arg, &context->time_usec) < 0)
                        argp_error(state, "--time-usec: '%s' is no number", arg);
                return 0;
        case KEY_MEMORY:
                if (parse_u64(arg, &context->memory_bytes) < 0)
                        argp_error(state, "--memory-bytes: '%s' is no number", arg);
                return 0;
        case ARGP_KEY_END:
                if (!context->list && !context->policy)
                        argp_error(state, "--policy NAME or --list is needed");
                return 0;
        default:
                return ARGP_ERR_UNKNOWN;
        }
}

static const struct argp_option options[] = {
        { "policy", 'p', "NAME", 0, "Policy to run", 0 },
        { "dir", 'd', "DIR", 0, "Where policies are", 0 },
        { "standard-dir", KEY_STANDARD, "DIR", 0, "Where the policy is that runs models, if not there", 0 },
        { "list", KEY_LIST, NULL, 0, "List the policies in DIR as JSON", 0 },
        { "time-usec", KEY_TIME, "N", 0, "Time budget, from the start of this program (default 5000000)", 0 },
        { "memory-bytes", KEY_MEMORY, "N", 0, "Limit on address space (default none)", 0 },
        { 0 },
};

#ifdef __SANITIZE_ADDRESS__
/* Looking for leaks needs what confine() takes away. */
const char *__asan_default_options(void);
const char *__asan_default_options(void) {
        return "detect_leaks=0";
}
#endif

/* ---- what the policy may call ---- */

static void on_log(void *data, enum rm_plugin_level level, const char *text) {
        struct context *context = data;

        if (level == RM_PLUGIN_ERROR && text)
                (void) text_format(context->said, sizeof(context->said), "%s", text);
        else
                log_at((int) level, "%s", text ? text : "");
}

static uint64_t on_left(void *data) {
        const struct context *context = data;
        uint64_t now = now_usec();

        return now < context->deadline_usec ? context->deadline_usec - now : 0;
}

/* ---- one run ---- */

static int read_stdin(char **ret_data, size_t *ret_size_bytes, struct rm_error *err) {
        cleanup_free char *data = NULL;
        size_t used = 0, allocated = 0;
        ssize_t n;

        do {
                if (used == allocated) {
                        if (allocated > SNAPSHOT_MAX_BYTES)
                                return error_set(err, -EFBIG, "snapshot: more than %u bytes", SNAPSHOT_MAX_BYTES);
                        allocated = allocated ? allocated * 2 : 1 << 16;
                        data = xrealloc(data, allocated);
                }
                n = read(STDIN_FILENO, data + used, allocated - used);
                if (n < 0 && errno != EINTR)
                        return error_sys(err, -errno, "reading the snapshot");
                used += n > 0 ? (size_t) n : 0;
        } while (n != 0);
        *ret_data = take_ptr(data);
        *ret_size_bytes = used;
        return 0;
}

/* Texts of a policy go to people and into JSON. */
static void clean_text(char *text, size_t size_bytes) {
        text[size_bytes - 1] = '\0';
        for (; *text; text++)
                if (*text < ' ' || *text > '~')
                        *text = '?';
}

static const char *too_full(const struct rm_snapshot *snapshot, char *text, size_t size_bytes) {
        uint64_t ranks = 0, cores = 0;

        for (uint32_t s = 0; s < snapshot->n_nodes; s++)
                cores += snapshot->nodes[s].cores;
        for (uint32_t j = 0; j < snapshot->n_jobs; j++)
                ranks += job_runs(&snapshot->jobs[j]) ? snapshot->jobs[j].ranks : 0;
        (void) snprintf(text, size_bytes, "running jobs do not fit: they have %" PRIu64 " ranks, and %" PRIu64 " cores may be used",
                        ranks, cores);
        return text;
}

static int place(struct context *context, const struct loaded_policy *policy, const struct rm_snapshot *snapshot,
                 struct plan_answer *answer, struct rm_error *err) {
        cleanup_snapshot struct snapshot *asked = snapshot_copy(snapshot, NULL);
        struct rm_policy_run run = { .size = sizeof(run), .context = context, .left_usec = on_left };
        uint64_t begin = now_usec();
        char text[160];
        int r;

        memory_lower_limits(asked);
        answer->plan = plan_create(snapshot);
        r = policy->plugin->place(policy->self, snapshot_view(asked), &run, answer->plan);
        answer->time_usec = now_usec() - begin;
        clean_text(context->said, sizeof(context->said));
        if (r < 0)
                return error_set(err, r, "policy '%s': %s", context->policy,
                                 context->said[0] ? context->said
                                 : r == -ENOSPC   ? too_full(snapshot, text, sizeof(text))
                                                  : strerror(-r));
        if (context->said[0])
                log_write(LOG_ERR, "%s", context->said);
        clean_text(answer->plan->method, sizeof(answer->plan->method));
        for (uint32_t j = 0; j < snapshot->n_jobs; j++)
                clean_text(answer->plan->jobs[j].reason, sizeof(answer->plan->jobs[j].reason));
        if ((r = plan_validate(snapshot, answer->plan, err)) < 0) {
                error_prefix(err, "policy '%s': invalid answer", context->policy);
                return r;
        }
        (void) snprintf(answer->policy, sizeof(answer->policy), "%s", context->policy);
        return cost_plan(snapshot, answer->plan, &answer->cost);
}

static int print(struct context *context, json_t *root, struct rm_error *err) {
        cleanup_free char *text = root ? json_dumps(root, JSON_COMPACT) : NULL;
        int r = text ? write_all(context->answer_fd, text, strlen(text)) : -EINVAL;

        json_decref(root);
        return r < 0 ? error_sys(err, r, "writing the answer") : write_all(context->answer_fd, "\n", 1);
}

/* Who sends the snapshot may send the model with it. */
static int take_model(const char *data, size_t size_bytes, char **text, struct rm_error *err) {
        const char *model;
        json_t *root;

        if (!memmem(data, size_bytes, "\"" MODEL_FIELD "\"", strlen(MODEL_FIELD) + 2))
                return 0;
        if (fields_parse(data, size_bytes, SNAPSHOT_MAX_BYTES, &root, err) < 0)
                return err->code;
        model = json_string_value(json_object_get(root, MODEL_FIELD));
        if (model) {
                free(*text);
                *text = xstrdup(model);
        }
        json_decref(root);
        return 0;
}

static int run_policy(struct context *context, struct rm_plugin_host *host, char **text, struct rm_error *err) {
        cleanup_free char *data = NULL, *text_name = xasprintf("%s" MODEL_SUFFIX, context->policy);
        cleanup_snapshot struct snapshot *snapshot = NULL;
        struct plan_answer answer = { 0 };
        struct loaded_policy policy;
        size_t size_bytes = 0;
        int r;

        if ((r = read_stdin(&data, &size_bytes, err)) < 0)
                return r;
        if ((r = snapshot_parse(data, size_bytes, &snapshot, err)) < 0) {
                error_prefix(err, "snapshot");
                return r;
        }
        if ((r = take_model(data, size_bytes, text, err)) < 0)
                return r;
        host->text = *text;
        host->text_name = *text ? text_name : NULL;
        if ((r = policy_load(&context->folders, context->policy, host, &policy, err)) < 0) {
                clean_text(context->said, sizeof(context->said));
                return context->said[0] ? error_set(err, r, "policy '%s': %s", context->policy, context->said) : r;
        }
        r = place(context, &policy, snapshot_view(snapshot), &answer, err);
        if (r == 0)
                r = print(context, plan_to_json(&answer, snapshot_view(snapshot)), err);
        plan_answer_finish(&answer);
        policy_unload(&policy);
        return r;
}

static int run_list(struct context *context, const struct rm_plugin_host *host, struct rm_error *err) {
        json_t *list;
        int r = policy_list(&context->folders, host, confine_alone, &list, err);

        return r < 0 ? r : print(context, list, err);
}

int main(int argc, char **argv) {
        static const struct argp argp = { .options = options,
                                          .parser = parse_option,
                                          .doc = "Run one placement policy on a snapshot (stdin) and print its plan (stdout)." };
        struct context context = { .folders = { RM_POLICY_DIR, RM_POLICY_DIR }, .time_usec = 5 * 1000 * 1000 };
        struct rm_plugin_host host = { .size = sizeof(host), .context = &context, .log = on_log };
        cleanup_free char *text = NULL;
        struct rm_error err = { 0 };
        int r;

        argp_err_exit_status = 2;
        (void) argp_parse(&argp, argc, argv, 0, NULL, &context);
        context.deadline_usec = now_usec() + context.time_usec;
        log_setup("rm-policy-host", LOG_INFO);
        (void) write_text("/proc/self/oom_score_adj", "0"); /* not as rmd, which can do without us */
        context.answer_fd = dup(STDOUT_FILENO);
        if (context.answer_fd < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
                r = error_sys(&err, -errno, "standard output");
        else if (!context.list && (r = model_read(context.folders.own, context.policy, &text, &err)) < 0)
                ; /* said below */
        else if ((r = confine(context.time_usec, context.memory_bytes, &err)) == 0 &&
                 (context.list || (r = confine_alone(&err)) == 0))
                r = context.list ? run_list(&context, &host, &err) : run_policy(&context, &host, &text, &err);
        if (r < 0)
                (void) fprintf(stderr, "rm-policy-host: %s\n", error_text(&err));
        return r < 0;
}
