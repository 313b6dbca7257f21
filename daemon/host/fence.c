/*
 * Fences: the host asks one about one node, as root, because a fence starts programs and uses the
 * network. rmd kills the host, and its process group, when its time is over.
 *
 *      rm-plugin-host --kind fence --plugin NAME --dir DIR --cluster C --node N --address A
 *                     [--program P] [--try K] [--time-usec T]
 *
 * Exit status: 0 the node is fenced, 1 it is not (one line on stdout says why), 2 usage. What the
 * plugin logs goes to stderr.
 */
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "common/log.h"
#include "common/util.h"
#include "daemon/host/host.h"
#include "rm/fence.h"

static const struct plugin_kind kind = { RM_FENCE_KIND, RM_FENCE_ABI, "fence", offsetof(struct rm_fence_plugin, fence) };

struct context {
        struct host host;
        struct rm_fence_request request;
};

enum { KEY_CLUSTER = 256, KEY_NODE, KEY_ADDRESS, KEY_PROGRAM, KEY_TRY };

static const struct argp_option options[] = {
        { "plugin", 'p', "NAME", 0, "Fence to ask", 0 },
        { "cluster", KEY_CLUSTER, "NAME", 0, "Cluster of the node", 0 },
        { "node", KEY_NODE, "NAME", 0, "Node to fence", 0 },
        { "address", KEY_ADDRESS, "ADDRESS", 0, "Its address", 0 },
        { "program", KEY_PROGRAM, "PATH", 0, "What [fence] program names", 0 },
        { "try", KEY_TRY, "N", 0, "How often it was asked, with this time (default 1)", 0 },
        { 0 },
};

static error_t parse_option(int key, char *arg, struct argp_state *state) {
        struct context *context = state->input;
        int64_t value = 0;

        switch (key) {
        case 'p':
                context->host.plugin = arg;
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
                if (parse_i64(arg, 1, UINT32_MAX, &value) < 0)
                        argp_error(state, "'%s' is no number from 1 on", arg);
                context->request.try_number = (uint32_t) value;
                return 0;
        case ARGP_KEY_END:
                if (!context->host.plugin || !name_valid(context->request.node))
                        argp_error(state, "--plugin NAME and --node NAME are needed");
                return 0;
        default:
                return ARGP_ERR_UNKNOWN;
        }
}

static void on_log(void *data, enum rm_plugin_level level, const char *text) {
        struct context *context = data;

        if (!host_keep_error(&context->host, level, text))
                log_at((int) level, "fence '%s', node %s: %s", context->host.plugin, context->request.node, text ? text : "");
}

static int ask(struct context *context, struct rm_error *err) {
        const struct rm_plugin *head = NULL;
        void *self = NULL;
        int r = host_load(&context->host, &kind, &head, &self, err);

        if (r < 0)
                return r;
        r = ((const struct rm_fence_plugin *) (const void *) head)->fence(self, &context->request);
        return host_unload(&context->host, &kind, head, self, r, err);
}

int host_run_fence(int argc, char **argv) {
        static const struct argp argp = { .options = options,
                                          .parser = parse_option,
                                          .doc = "Ask one fence to make sure that a node runs nothing any more." };
        struct context context = {
                .host = { .directory = RM_PLUGIN_DIR,
                          .least_time_usec = 1,
                          .time_usec = UINT64_C(60000000),
                          .offer = { .size = sizeof(context.host.offer), .context = &context, .log = on_log } },
                .request = { .size = sizeof(context.request),
                             .try_number = 1,
                             .cluster = "",
                             .node = "",
                             .address = "",
                             .program = "",
                             .context = &context,
                             .left_usec = host_left },
        };
        struct rm_error err = { 0 };
        int r;

        (void) prctl(PR_SET_PDEATHSIG, SIGKILL); /* the next leader asks itself */
        host_parse(&context.host, &argp, argc, argv);
        (void) write_text("/proc/self/oom_score_adj", "0"); /* not as rmd, which can do without us */
        r = host_keep_output(&context.host, &err);
        if (r == 0)
                r = ask(&context, &err);
        return host_report(&context.host, r, &err);
}
