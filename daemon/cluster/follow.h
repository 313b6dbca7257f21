/* How nodes that keep no log follow the one that does. At the leader: the last commands, to bring those up to date who have missed
 * a few. At a follower: a copy of the state on disk, so that it knows the last state before the leader answers. */
#ifndef RM_CLUSTER_FOLLOW_H
#define RM_CLUSTER_FOLLOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <event2/event.h>

#include "proto/state.pb-c.h"

/* ---- at the leader ---- */

struct feed;

struct feed *feed_create(size_t max_entries, size_t max_bytes);
void feed_destroy(struct feed *feed); /* NULL ok */
/* Forget all; entries up to and with `index` are not held. */
void feed_reset(struct feed *feed, uint64_t index);
void feed_push(struct feed *feed, uint64_t index, const Rm__Command *command);
/* Are all commands after `index` here? */
bool feed_covers(const struct feed *feed, uint64_t index);
/* The first command after entry `after`, the caller's; NULL when there is none. */
Rm__Command *feed_next(const struct feed *feed, uint64_t after, uint64_t *ret_index);

/* ---- at a follower ---- */

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
