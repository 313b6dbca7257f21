/* Copies of those of CRIU's images that tell which files are in a dump, to be compared with what
 * PID 1 saw (daemon/criu_images/open_files.h). */
#ifndef RM_MOVER_KEPT_IMAGES_H
#define RM_MOVER_KEPT_IMAGES_H

#include <stddef.h>

#include "common/error.h"

struct kept_images;

struct kept_images *kept_images_create(void);
void kept_images_destroy(struct kept_images *k); /* NULL ok */

/* Another image begins: a number for it, 0 if it is not kept. */
size_t kept_images_begin(struct kept_images *k, const char *name);
/* Adds data that follows in the image; no more of it is kept than is needed. */
void kept_images_add(struct kept_images *k, size_t number, const void *data, size_t size_bytes);

/* Do they have only files of the inventory in this packed Capsule__SavedState? 0, -EPERM or
 * -EBADMSG. */
int kept_images_check(const struct kept_images *k, const void *saved_state, size_t saved_state_bytes, struct rm_error *err);

#endif
