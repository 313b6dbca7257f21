/* The Unix sockets of an image that have names on file systems that others see too: CRIU binds each
 * anew, and removes whatever has its name. */
#ifndef RM_DAEMON_CAPSULE_INIT_VERIFY_IMAGE_SOCKETS_H
#define RM_DAEMON_CAPSULE_INIT_VERIFY_IMAGE_SOCKETS_H

#include <errno.h>
#include <stddef.h>

#include "proto/capsule.pb-c.h"

struct rm_error;

struct image_sockets {
        char **paths; /* absolute, as the image has them */
        size_t n;
};

/* Reads the names from CRIU's list of open files in the directory `images_fd`; without those on
 * file systems of the capsule's own. Free the result with image_sockets_finish(), also after a
 * failure. 0, -ENODATA without such a list, or -errno. */
int image_sockets_read(int images_fd, struct image_sockets *ret, struct rm_error *error);
void image_sockets_finish(struct image_sockets *sockets);

/* Returns 0 when nothing but a socket has one of their names now, or -EEXIST with a text that names
 * the file that does. A child looks with the rights of the owner. */
int image_sockets_check(const struct image_sockets *sockets, const Capsule__Spec *spec, struct rm_error *error);

#endif
