/*
 * rm/fence.h: plugins that make sure that a lost node runs nothing any more.
 *
 * rmd asks the plugin of `[fence] plugin` before it starts a job again that has lost a node, when
 * the node is DOWN and its lease has ended. The plugin may switch the node off, or take it out of
 * the network. Only when it succeeds does the job start again; after a failure rmd asks once more,
 * later each time.
 *
 * It runs as root in a process of its own, of which nothing is taken away, with a time limit: when
 * that is over, rmd kills the process and all of its process group, and takes it for a failure. It
 * may be asked again for a node that it has already fenced, also while an earlier call still runs
 * on another node whose rmd was leader: so a call must be safe to repeat.
 */
#ifndef RM_FENCE_H
#define RM_FENCE_H

#include <stdint.h>

#include "rm/plugin.h"

#ifdef __cplusplus
extern "C" {
#endif

#define RM_FENCE_KIND "fence"
#define RM_FENCE_ABI 1u

/* Owned by the host, read only, valid during one call. All texts are never NULL. */
struct rm_fence_request {
        uint32_t size; /* sizeof(struct rm_fence_request) of the host */
        uint32_t try_number; /* of this leader for this loss of the node, from 1 */
        const char *cluster;
        const char *node; /* its name: 1..63 of [A-Za-z0-9._-], begins with a letter or digit */
        const char *address; /* that its rmd was reached at, IPv4 */
        const char *program; /* [fence] program; may be empty */
        void *context;
        /* Time left, 0 when it is over. */
        uint64_t (*left_usec)(void *context);
};

/* The descriptor of a fence. */
struct rm_fence_plugin {
        struct rm_plugin plugin; /* kind = RM_FENCE_KIND, kind_abi = RM_FENCE_ABI */

        /* 0: nothing runs on the node any more that has run there before, nor will. Or a negative
         * errno: say why through the host's log, as RM_PLUGIN_ERROR, which people are shown. */
        int (*fence)(void *self, const struct rm_fence_request *request);
};

#ifdef __cplusplus
}
#endif

#endif
