/* LaunchBodies on this node's disk, each in a file named after its digest that only root may read.
 * What is read is checked. */
#ifndef RM_JOB_BODY_STORE_H
#define RM_JOB_BODY_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <event2/event.h>

#include "common/error.h"
#include "daemon/state/state.h"

struct body_store;

/* The folder is made when it is not there; bodies that lie there already are taken over. */
int body_store_open(struct event_base *base, const char *dir, struct body_store **ret, struct rm_error *err);
void body_store_close(struct body_store *store); /* NULL ok */

bool body_store_has(const struct body_store *store, const uint8_t *digest);
/* The sum of the bytes of all bodies that are here. */
uint64_t body_store_bytes(const struct body_store *store);

/* Has the disk room for so much, beside what the log may need? */
bool body_store_has_space(const struct body_store *store, size_t size_bytes);

/* Keep it; in memory where the disk does not take it. */
void body_store_put(struct body_store *store, const uint8_t *digest, const uint8_t *data, size_t size_bytes);

typedef void (*body_stored_fn)(void *userdata, int code);
/* Keep it so that it outlives a power failure, also if it was kept otherwise before. `data` is
 * malloc'ed and taken over. `done` is called exactly once, now or from the loop, with 0, -ENOSPC
 * (the disk has no room beside what the log may need), or another negative errno; with -ECANCELED
 * from body_store_close(). */
void body_store_put_safely(struct body_store *store, const uint8_t *digest, uint8_t *data, size_t size_bytes, body_stored_fn done,
                           void *userdata);

/* malloc'ed. -ENOENT: not here, or not what its name says (and so here no more). */
int body_store_get(struct body_store *store, const uint8_t *digest, uint8_t **ret_data, size_t *ret_size_bytes);

/* Remove all that `keep` does not want. */
void body_store_sweep(struct body_store *store, bool (*keep)(void *userdata, const uint8_t *digest), void *userdata);

#endif
