/*
 * rm-fence-host: asks one fence about one node, in a process that may crash or hang without harm. As root: a fence starts programs and uses the
 * network. rmd kills it, and its process group, when its time is over.
 *
 *      rm-fence-host --plugin NAME --dir DIR --cluster C --node N --address A [--program P] [--try K] [--time-usec T]
 *
 * Exit status: 0 the node is fenced, 1 it is not (one line on stdout says why), 2 usage. What the plugin logs goes to stderr.
 */
#include <argp.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "common/error.h"
#include "common/log.h"
#include "common/text.h"
#include "common/util.h"
#include "daemon/sched/plugin_descriptor.h"
#include "rm/fence.h"

#define FENCE_MIN_BYTES (offsetof(struct rm_fence_plugin, fence) + sizeof(((struct rm_fence_plugin *) 0)->fence))

struct context {
        const char *plugin, *directory;
        struct rm_fence_request request;
        uint64_t time_usec, deadline_usec;
        char said[512]; /* the last error that the plugin told */
};

enum { KEY_DIR = 256, KEY_CLUSTER, KEY_NODE, KEY_ADDRESS, KEY_PROGRAM, KEY_TRY, KEY_TIME };

static const struct argp_option options[] = {
        { "plugin", 'p', "NAME", 0, "Fence to ask", 0 },
        { "dir", KEY_DIR, "DIR", 0, "Where plugins are", 0 },
        { "cluster", KEY_CLUSTER, "NAME", 0, "Cluster of the node", 0 },
        { "node", KEY_NODE, "NAME", 0, "Node to fence", 0 },
        { "address", KEY_ADDRESS, "ADDRESS", 0, "Its address", 0 },
        { "program", KEY_PROGRAM, "PATH", 0, "What [fence] program names", 0 },
        { "try", KEY_TRY, "N", 0, "How often it was asked, with this time (default 1)", 0 },
        { "time-usec", KEY_TIME, "N", 0, "Time budget, from the start of this program (default 60000000)", 0 },
        { 0 },
};

static int64_t number(const char *text, int64_t max, struct argp_state *state) {
        int64_t value = 0;

        if (parse_i64(text, 1, max, &value) < 0)
                argp_error(state, "'%s' is no number from 1 on", text);
        return value;
}

static error_t parse_option(int key, char *arg, struct argp_state *state) {
        struct context *context = state->input;

        switch (key) {
        case 'p':
                context->plugin = arg;
                return 0;
        case KEY_DIR:
                context->directory = arg;
                return 0;
        case KEY_CLUSTER:
                context->request.cluster = arg;
                return 0;
        case KEY_NODE:
                context->request.node = arg;
                return 0;
        case KEY_ADDRESS:
                context->request.address = arg;
                return 0;
        case KEY_PROGRAM:
                context->request.program = arg;
                return 0;
        case KEY_TRY:
                context->request.try_number = (uint32_t) number(arg, UINT32_MAX, state);
                return 0;
        case KEY_TIME:
                context->time_usec = (uint64_t) number(arg, INT64_MAX / 2, state);
                return 0;
        case ARGP_KEY_END:
                if (!context->plugin || !name_valid(context->request.node))
                        argp_error(state, "--plugin NAME and --node NAME are needed");
                return 0;
        default:
                return ARGP_ERR_UNKNOWN;
        }
}

static void on_log(void *data, enum rm_plugin_level level, const char *text) {
        struct context *context = data;

        if (level == RM_PLUGIN_ERROR && text)
                (void) text_format(context->said, sizeof(context->said), "%s", text);
        else
                log_at((int) level, "fence '%s', node %s: %s", context->plugin, context->request.node, text ? text : "");
}

static uint64_t on_left(void *data) {
        const struct context *context = data;
        uint64_t now = now_usec();

        return now < context->deadline_usec ? context->deadline_usec - now : 0;
}

static int load(const struct context *context, const struct rm_fence_plugin **ret_plugin, struct rm_error *err) {
        const struct plugin_kind kind = { RM_FENCE_KIND, RM_FENCE_ABI, FENCE_MIN_BYTES };
        const struct rm_fence_plugin *plugin = NULL;
        const struct rm_plugin *head = NULL;
        int r = descriptor_load(context->directory, context->plugin, &kind, &head, err);

        if (r < 0)
                return r;
        plugin = (const struct rm_fence_plugin *) (const void *) head;
        if (!plugin->fence)
                return error_set(err, -ELIBBAD, "has no fence()");
        *ret_plugin = plugin;
        return 0;
}

static int ask(struct context *context, struct rm_error *err) {
        struct rm_plugin_host host = { .size = sizeof(host), .context = context, .log = on_log };
        const struct rm_fence_plugin *plugin = NULL;
        void *self = NULL;
        int r = load(context, &plugin, err);

        if (r < 0)
                return r;
        if (plugin->plugin.create && (r = plugin->plugin.create(&host, &self)) < 0)
                return error_set(err, r, "cannot start: %s", context->said[0] ? context->said : strerror(-r));
        r = plugin->fence(self, &context->request);
        if (plugin->plugin.destroy)
                plugin->plugin.destroy(self);
        if (r < 0)
                return error_set(err, r, "%s", context->said[0] ? context->said : strerror(-r));
        return r > 0 ? error_set(err, -EPROTO, "fence() returned %d, not 0 or a negative errno", r) : 0;
}

int main(int argc, char **argv) {
        static const struct argp argp = { .options = options,
                                          .parser = parse_option,
                                          .doc = "Ask one fence to make sure that a node runs nothing any more." };
        struct context context = {
                .directory = RM_PLUGIN_DIR,
                .request = { .size = sizeof(context.request),
                             .try_number = 1,
                             .cluster = "",
                             .node = "",
                             .address = "",
                             .program = "",
                             .context = &context,
                             .left_usec = on_left },
                .time_usec = UINT64_C(60000000),
        };
        struct rm_error err = { 0 };
        int answer = dup(STDOUT_FILENO), r;

        argp_err_exit_status = 2;
        (void) prctl(PR_SET_PDEATHSIG, SIGKILL); /* the next leader asks itself */
        (void) argp_parse(&argp, argc, argv, 0, NULL, &context);
        context.deadline_usec = now_usec() + context.time_usec;
        log_setup("rm-fence-host", LOG_INFO);
        (void) write_text("/proc/self/oom_score_adj", "0"); /* not as rmd, which can do without us */
        (void) set_cloexec(answer, true);
        /* A plugin that prints something prints to the log. */
        r = answer < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0 ? error_sys(&err, -errno, "standard output") : ask(&context, &err);
        error_clean(&err);
        if (r < 0)
                (void) write_all(answer, error_text(&err), strlen(error_text(&err)));
        return r < 0;
}
