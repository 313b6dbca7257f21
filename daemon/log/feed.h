/* The last commands of the log, on a node that keeps it: to bring followers up to date that have
 * missed a few. Pure. */
#ifndef RM_LOG_FEED_H
#define RM_LOG_FEED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/state.pb-c.h"

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

#endif
