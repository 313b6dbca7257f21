#include "daemon/leader/fence_host.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/util.h"
#include "daemon/node/child_run.h"

#define HOST "rm-plugin-host"

enum { ANSWER_MOST_BYTES = 4096 }; /* it says one line of at most 1 KiB */

struct fence_host {
        struct child_run *run;
        uint64_t timeout_usec;
        fence_host_done done;
        void *context;
};

static void on_run_done(void *context, const struct child_end *end) {
        struct fence_host *host = context;
        struct rm_error err = { 0 };
        int r = child_end_error(end, HOST, host->timeout_usec, &err);

        host->done(host->context, r < 0 ? &err : NULL);
        free(host);
}

static int start(struct event_base *base, struct fence_host *host, const struct fence_order *order) {
        char try_number[16], time[32];
        char *const argv[] = { (char *) HOST,
                               (char *) "--kind",
                               (char *) "fence",
                               (char *) "--plugin",
                               (char *) order->plugin,
                               (char *) "--dir",
                               (char *) (order->directory ? order->directory : RM_PLUGIN_DIR),
                               (char *) "--program",
                               (char *) order->program,
                               (char *) "--cluster",
                               (char *) order->cluster,
                               (char *) "--node",
                               (char *) order->node,
                               (char *) "--address",
                               (char *) order->address,
                               (char *) "--try",
                               try_number,
                               (char *) "--time-usec",
                               time,
                               NULL };
        const struct child_run_spec spec = { .program = order->host_program ? order->host_program : RM_LIBEXEC_DIR "/" HOST,
                                             .argv = argv,
                                             .timeout_usec = order->timeout_usec,
                                             .output_most_bytes = ANSWER_MOST_BYTES,
                                             .done = on_run_done,
                                             .context = host };

        (void) snprintf(try_number, sizeof(try_number), "%u", order->try_number);
        (void) snprintf(time, sizeof(time), "%" PRIu64, order->timeout_usec);
        return child_run_start(base, &spec, &host->run);
}

int fence_host_start(struct event_base *base, const struct fence_order *order, fence_host_done done, void *context,
                     struct fence_host **ret, struct rm_error *err) {
        struct fence_host *host = xcalloc(1, sizeof(*host));
        int r;

        *host = (struct fence_host) { .timeout_usec = order->timeout_usec, .done = done, .context = context };
        r = start(base, host, order);
        if (r < 0) {
                free(host);
                return error_sys(err, r, "cannot start " HOST);
        }
        *ret = host;
        return 0;
}

void fence_host_abandon(struct fence_host *host) {
        if (!host)
                return;
        child_run_abandon(host->run);
        free(host);
}
