/* Compares the files in CRIU's images with those that PID 1 saw open when the group was frozen.
 * CRIU finds them by asking each process, in memory where others of its owner's may write; so it
 * may have been told of files that PID 1 has not checked, and have copied them. Pure. */
#ifndef RM_DAEMON_CRIU_IMAGES_OPEN_FILES_H
#define RM_DAEMON_CRIU_IMAGES_OPEN_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/capsule.pb-c.h"

struct rm_error;

struct criu_image {
        char *name;
        uint8_t *bytes; /* the first of them: open_files_needs() */
        size_t size;
};

enum { OPEN_FILES_IMAGE_BYTES = 64 << 20 }; /* at most, for half a million of files */

/* How many bytes of the image of this name the check needs, from its begin: 0 of most. An image
 * that is longer than OPEN_FILES_IMAGE_BYTES cannot be checked. */
size_t open_files_needs(const char *name);

/* Is each file of these images, which are all that it needs, one of `inventory`: a file without a
 * name, whose contents are in the image, by inode, owner and mode, others by their paths? 0; -EPERM
 * with the file that is not, -EBADMSG when an image is damaged or missing. */
int open_files_check(const struct criu_image *images, size_t n, const Capsule__Inventory *inventory, struct rm_error *error);

#endif
