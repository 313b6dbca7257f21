/* Extended attributes of what is in a tree: those that users can give, access control lists among
 * them. */
#ifndef RM_IMAGE_ATTRIBUTES_H
#define RM_IMAGE_ATTRIBUTES_H

#include "daemon/image/format.h"

struct image_attributes {
        struct image_attribute *list;
        size_t n;
};

/* Copies names and values. */
void image_attributes_copy(const struct image_attribute *list, size_t n, struct image_attributes *ret);
void image_attributes_finish(struct image_attributes *a); /* leaves it empty */

/* The rules of ImageOpen for the object's attributes. 0 or -EBADMSG. */
int image_attributes_check(const struct image_object *o, struct rm_error *err);

/* Which of two is meant in the calls below: `name` in the directory `fd`, not followed if it is a
 * symlink, or, with NULL, `fd` itself, which must not be O_PATH. FIFOs are only to be named, since
 * opening one can be seen at its other end. */

/* Reads those attributes of an object that are carried. `o` gives its kind, and the name in
 * messages. Where the file system has none, there are none. -E2BIG: more than an image takes. */
int image_attributes_read(const struct image_object *o, int fd, const char *name, struct image_attributes *ret,
                          struct rm_error *err);

/* Sets those of `list`, and removes all others that are carried for this kind; the rest is left
 * alone. To be called behind chown and chmod, which change an access control list. `label` is for
 * messages. */
int image_attributes_set(Rm__ImageKind kind, int fd, const char *name, const struct image_attribute *list, size_t n,
                         const char *label, struct rm_error *err);

#endif
