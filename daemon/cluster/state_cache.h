/* The copy of the state on the disk of a node that keeps no log, so that it knows the last state
 * before the leader answers. */
#ifndef RM_CLUSTER_STATE_CACHE_H
#define RM_CLUSTER_STATE_CACHE_H

#include <event2/event.h>

#include "proto/state.pb-c.h"

struct state_cache;

/* `path` is the file's. `get` is asked for the state when it is time to write it. */
struct state_cache *state_cache_create(struct event_base *base, const char *path,
                                       const Rm__State *(*get)(void *userdata, uint64_t *ret_log), void *userdata);
/* Writes what is not yet written. NULL ok. */
void state_cache_destroy(struct state_cache *cache);
/* -ENOENT or -EBADMSG: nothing of use there. The state is the caller's. */
int state_cache_load(const char *path, Rm__State **ret, uint64_t *ret_log);
/* The state has changed: write it soon, once for many changes. */
void state_cache_touch(struct state_cache *cache);

#endif
