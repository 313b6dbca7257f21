/* The receiving end of files that were sent ahead. They lie in their tree's file system without a
 * name until they get one: so each of their contents is there once, and nothing has to be
 * copied. */
#ifndef RM_IMAGE_PLACE_AHEAD_H
#define RM_IMAGE_PLACE_AHEAD_H

#include "daemon/image/format.h"

struct place_ahead;

struct place_ahead *place_ahead_create(void); /* never NULL */
void place_ahead_destroy(struct place_ahead *a); /* NULL ok; what has no name is gone */
void place_ahead_release(struct place_ahead *a); /* closes all: what has no name is gone */

/* The file that object `o`, of kind AHEAD, is: an empty one in the tree's directory `tree_fd` when
 * it is not known yet. `ret_fd` is the caller's. */
int place_ahead_open(struct place_ahead *a, int tree_fd, const struct image_object *o, int *ret_fd, struct rm_error *err);

/* Sets the final size of a file that came ahead: 0 forgets it. */
void place_ahead_close(struct place_ahead *a, const char *number, uint64_t size_bytes);

/* The file that the regular file `o` begins with, which gets `name` in `dir_fd` in place of what
 * has it, and is not known by its number any more. -EBADMSG: there is none of that number in that
 * tree. `ret_fd` is the caller's. */
int place_ahead_link(struct place_ahead *a, const struct image_object *o, int dir_fd, const char *name, int *ret_fd,
                     struct rm_error *err);

#endif
