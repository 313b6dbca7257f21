/* A fence that fences nothing: it logs what it was asked for, and calls that a success. An example,
 * and for tests; with it, jobs start again as if there were no fence. */
#include "host_log.h"
#include "rm/fence.h"

static int log_fence(void *self, const struct rm_fence_request *request) {
        host_log(self, RM_PLUGIN_WARNING, "node %s (%s) of cluster %s would be fenced now, try %u", request->node, request->address,
                 request->cluster, request->try_number);
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
                .create = host_keep,
        },
        .fence = log_fence,
};
