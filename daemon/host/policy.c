/*
 * Policies: the host runs one on one snapshot.
 *
 *      rm-plugin-host --kind policy --policy NAME [--dir DIR] [--time-usec N] [--memory-bytes N]
 *              snapshot on stdin, plan on stdout
 *      rm-plugin-host --kind policy --list [--dir DIR]
 *              policies in DIR, as JSON
 *
 * --standard-dir DIR: where the policy is that runs models, if DIR has it not (default: where rmd's
 * own policies are installed).
 *
 * NAME is NAME.so in DIR, or the model NAME.mod, which is read before this process gives up what it
 * may do; a snapshot with the field "x_model": "text" brings its own.
 *
 * If the host fails, one line on stderr says why.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/lsan_interface.h>
#endif

#include "common/log.h"
#include "common/text.h"
#include "common/util.h"
#include "daemon/host/confine.h"
#include "daemon/host/host.h"
#include "daemon/sched/fields.h"
#include "daemon/sched/memory_limits.h"
#include "daemon/sched/plan.h"
#include "daemon/sched/policy_load.h"
#include "daemon/sched/policy_model.h"
#include "daemon/sched/snapshot.h"
#include "placement/cost.h"

struct context {
        struct host host;
        struct policy_folders folders;
        bool list;
        uint64_t memory_bytes;
};

enum { KEY_MEMORY = 256, KEY_LIST, KEY_STANDARD };

static error_t parse_option(int key, char *arg, struct argp_state *state) {
        struct context *context = state->input;
        int64_t value = 0;

        switch (key) {
        case 'p':
                context->host.plugin = arg;
                return 0;
        case KEY_STANDARD:
                context->folders.standard = arg;
                return 0;
        case KEY_LIST:
                context->list = true;
                return 0;
        case KEY_MEMORY:
                if (parse_i64(arg, 0, INT64_MAX / 2, &value) < 0)
                        argp_error(state, "--memory-bytes: '%s' is no number", arg);
                context->memory_bytes = (uint64_t) value;
                return 0;
        case ARGP_KEY_END:
                if (!context->list && !context->host.plugin)
                        argp_error(state, "--policy NAME or --list is needed");
                return 0;
        default:
                return ARGP_ERR_UNKNOWN;
        }
}

static const struct argp_option options[] = {
        { "policy", 'p', "NAME", 0, "Policy to run", 0 },
        { "standard-dir", KEY_STANDARD, "DIR", 0, "Where the policy is that runs models, if not in that of --dir", 0 },
        { "list", KEY_LIST, NULL, 0, "List the policies as JSON", 0 },
        { "memory-bytes", KEY_MEMORY, "N", 0, "Limit on address space (default none)", 0 },
        { 0 },
};

#ifdef __SANITIZE_ADDRESS__
/* Looking for leaks needs what confine() takes away. The sanitizer asks this when a process of any
 * kind ends; --kind is the first option. */
int __lsan_is_turned_off(void) {
        static const char kind[] = "\0--kind\0" RM_POLICY_KIND; /* with the NUL at its end */
        cleanup_close int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
        char text[8192];
        ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text));
        const char *end = n > 0 ? memchr(text, '\0', (size_t) n) : NULL; /* of the program's name */

        return end && text + n - end >= (ssize_t) sizeof(kind) && memcmp(end, kind, sizeof(kind)) == 0;
}
#endif

/* ---- one run ---- */

static void on_log(void *data, enum rm_plugin_level level, const char *text) {
        if (!host_keep_error(data, level, text))
                log_at((int) level, "%s", text ? text : "");
}

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
        struct rm_policy_run run = { .size = sizeof(run), .context = context, .left_usec = host_left };
        uint64_t begin = now_usec();
        char text[160];
        int r;

        memory_lower_limits(asked);
        answer->plan = plan_create(snapshot);
        r = policy->plugin->place(policy->self, snapshot_view(asked), &run, answer->plan);
        answer->time_usec = now_usec() - begin;
        clean_text(context->host.said, sizeof(context->host.said));
        if (r < 0)
                return error_set(err, r, "policy '%s': %s", context->host.plugin,
                                 context->host.said[0] ? context->host.said
                                 : r == -ENOSPC        ? too_full(snapshot, text, sizeof(text))
                                                       : strerror(-r));
        if (context->host.said[0])
                log_write(LOG_ERR, "%s", context->host.said);
        clean_text(answer->plan->method, sizeof(answer->plan->method));
        for (uint32_t j = 0; j < snapshot->n_jobs; j++)
                clean_text(answer->plan->jobs[j].reason, sizeof(answer->plan->jobs[j].reason));
        if ((r = plan_validate(snapshot, answer->plan, err)) < 0) {
                error_prefix(err, "policy '%s': invalid answer", context->host.plugin);
                return r;
        }
        (void) snprintf(answer->policy, sizeof(answer->policy), "%s", context->host.plugin);
        return cost_plan(snapshot, answer->plan, &answer->cost);
}

static int print(struct context *context, json_t *root, struct rm_error *err) {
        cleanup_free char *text = root ? json_dumps(root, JSON_COMPACT) : NULL;
        int r = text ? write_all(context->host.answer_fd, text, strlen(text)) : -EINVAL;

        json_decref(root);
        return r < 0 ? error_sys(err, r, "writing the answer") : write_all(context->host.answer_fd, "\n", 1);
}

/* The snapshot may come with the model. */
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

static int run_policy(struct context *context, char **text, struct rm_error *err) {
        cleanup_free char *data = NULL, *text_name = xasprintf("%s" MODEL_SUFFIX, context->host.plugin);
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
        context->host.offer.text = *text;
        context->host.offer.text_name = *text ? text_name : NULL;
        if ((r = policy_load(&context->folders, context->host.plugin, &context->host.offer, &policy, err)) < 0) {
                clean_text(context->host.said, sizeof(context->host.said));
                return context->host.said[0] ? error_set(err, r, "policy '%s': %s", context->host.plugin, context->host.said) : r;
        }
        r = place(context, &policy, snapshot_view(snapshot), &answer, err);
        if (r == 0)
                r = print(context, plan_to_json(&answer, snapshot_view(snapshot)), err);
        plan_answer_finish(&answer);
        policy_unload(&policy);
        return r;
}

static int run_list(struct context *context, struct rm_error *err) {
        json_t *list;
        int r = policy_list(&context->folders, &context->host.offer, confine_alone, &list, err);

        return r < 0 ? r : print(context, list, err);
}

/* First what needs root. */
static int run(struct context *context, struct rm_error *err) {
        cleanup_free char *text = NULL;
        int r;

        (void) write_text("/proc/self/oom_score_adj", "0"); /* not as rmd, which can do without us */
        if ((r = host_keep_output(&context->host, err)) < 0 ||
            (!context->list && (r = model_read(context->folders.own, context->host.plugin, &text, err)) < 0) ||
            (r = confine(context->host.time_usec, context->memory_bytes, err)) < 0)
                return r;
        if (context->list)
                return run_list(context, err);
        return (r = confine_alone(err)) < 0 ? r : run_policy(context, &text, err);
}

int host_run_policy(int argc, char **argv) {
        static const struct argp argp = { .options = options,
                                          .parser = parse_option,
                                          .doc = "Run one placement policy on a snapshot (stdin) and print its plan (stdout)." };
        struct context context = {
                .host = { .directory = RM_POLICY_DIR,
                          .time_usec = UINT64_C(5000000),
                          .offer = { .size = sizeof(context.host.offer), .context = &context, .log = on_log } },
                .folders.standard = RM_POLICY_DIR,
        };
        struct rm_error err = { 0 };
        int r;

        host_parse(&context.host, &argp, argc, argv);
        context.folders.own = context.host.directory;
        r = run(&context, &err);
        if (r < 0)
                (void) fprintf(stderr, "rm-plugin-host: %s\n", error_text(&err));
        return r < 0;
}
