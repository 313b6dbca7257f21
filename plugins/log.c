/* A fence that fences nothing: it logs what it was asked for, and calls that a success. An example,
 * and for tests; with it, jobs start again as if there were no fence. */
#include <stdio.h>

#include "rm/fence.h"

static int log_create(const struct rm_plugin_host *host, void **ret_self) {
        *ret_self = (void *) host;
        return 0;
}

static int log_fence(void *self, const struct rm_fence_request *request) {
        const struct rm_plugin_host *host = self;
        char text[512];

        (void) snprintf(text, sizeof(text), "node %s (%s) of cluster %s would be fenced now, try %u", request->node,
                        request->address, request->cluster, request->try_number);
        host->log(host->context, RM_PLUGIN_WARNING, text);
        return 0;
}

RM_PLUGIN_EXPORT extern const struct rm_fence_plugin rm_plugin;
const struct rm_fence_plugin rm_plugin = {
        .plugin = {
                .abi = RM_PLUGIN_ABI,
                .size = sizeof(struct rm_fence_plugin),
                .name = "log",
                .kind = RM_FENCE_KIND,
                .kind_abi = RM_FENCE_ABI,
                .description = "only logs that a node would be fenced",
                .create = log_create,
        },
        .fence = log_fence,
};
