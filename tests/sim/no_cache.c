/* This file is in place of daemon/cluster/state_cache.c: the nodes of a simulation keep no copy of
 * the state on a disk. */
#include "daemon/cluster/state_cache.h"

#include <errno.h>
#include <stddef.h>

struct state_cache *state_cache_create(struct event_base *base, const char *path,
                                       const Rm__State *(*get)(void *userdata, uint64_t *ret_log), void *userdata) {
        return NULL;
}

void state_cache_destroy(struct state_cache *cache) {
}

int state_cache_load(const char *path, Rm__State **ret, uint64_t *ret_log) {
        return -ENOENT;
}

void state_cache_touch(struct state_cache *cache) {
}
