/* A call of the fence plugin for one node: a run of rm-plugin-host. Nothing here blocks. */
#ifndef RM_LEADER_FENCE_HOST_H
#define RM_LEADER_FENCE_HOST_H

#include <stdint.h>

#include "common/error.h"

struct event_base;
struct fence_host;

struct fence_order {
        const char *host_program; /* NULL: the installed one */
        const char *directory;    /* of the plugins; NULL: the installed one */
        const char *plugin;
        const char *program; /* for the plugin; "" ok */
        const char *cluster, *node, *address;
        unsigned try_number; /* from 1 */
        uint64_t timeout_usec;
};

/* Called once, from the event loop: the node is fenced (`error` NULL), or why not: one line, also
 * when the time was over. The run is over then, and its handle must not be used any more. */
typedef void (*fence_host_done)(void *context, const struct rm_error *error);

/* Negative errno: it was not begun, and `done` is not called. Copies what it needs. */
int fence_host_start(struct event_base *base, const struct fence_order *order, fence_host_done done, void *context,
                     struct fence_host **ret, struct rm_error *err);
/* Kills it with all of its process group; `done` is not called any more. NULL ok. */
void fence_host_abandon(struct fence_host *host);

#endif
