#include "daemon/image/attributes.h"

#include <string.h>
#include <sys/xattr.h>

#include "common/util.h"

#define ACL_ACCESS "system.posix_acl_access"
#define ACL_DEFAULT "system.posix_acl_default"

/* The kernel's XATTR_NAME_MAX. */
#define NAME_MAX_BYTES 255U

/* In the header of a chunk, attributes share the room with a path, a role and numbers; objects with
 * attributes have no target. */
_Static_assert(IMAGE_ATTRIBUTES_MAX_BYTES + IMAGE_PATH_MAX_BYTES + IMAGE_ROLE_MAX_BYTES + 128 <= IMAGE_HEADER_MAX_BYTES,
               "the header of an object with attributes must fit");

static bool kind_has_attributes(Rm__ImageKind kind) {
        return kind == RM__IMAGE_KIND__IMAGE_KIND_REGULAR || kind == RM__IMAGE_KIND__IMAGE_KIND_DIRECTORY_END ||
               kind == RM__IMAGE_KIND__IMAGE_KIND_FIFO;
}

/* Only attributes that an ordinary user can set are carried. security.* would give programs
 * capabilities, trusted.* is of root and of file systems. */
static bool carried(Rm__ImageKind kind, const char *name) {
        if (strcmp(name, ACL_ACCESS) == 0)
                return true;
        if (strcmp(name, ACL_DEFAULT) == 0)
                return kind == RM__IMAGE_KIND__IMAGE_KIND_DIRECTORY_END;
        return strncmp(name, "user.", 5) == 0 && name[5] && kind != RM__IMAGE_KIND__IMAGE_KIND_FIFO;
}

static size_t attribute_bytes(const char *name, size_t value_bytes) {
        return strlen(name) + value_bytes + IMAGE_ATTRIBUTE_HEAD_BYTES;
}

int image_attributes_check(const struct image_object *o, struct rm_error *err) {
        size_t left_bytes = IMAGE_ATTRIBUTES_MAX_BYTES;

        if (o->n_attributes > 0 && !kind_has_attributes(o->kind))
                return error_set(err, -EBADMSG, "object '%.300s' is of a kind that has no attributes", o->path);
        for (size_t i = 0; i < o->n_attributes; i++) {
                const struct image_attribute *a = &o->attributes[i];

                if (strlen(a->name) > NAME_MAX_BYTES || !carried(o->kind, a->name))
                        return error_set(err, -EBADMSG, "object '%.300s' with an attribute that is never carried: '%.80s'", o->path,
                                         a->name);
                if (a->value_bytes > left_bytes || attribute_bytes(a->name, a->value_bytes) > left_bytes)
                        return error_set(err, -EBADMSG, "object '%.300s' with more than %u bytes of attributes", o->path,
                                         IMAGE_ATTRIBUTES_MAX_BYTES);
                left_bytes -= attribute_bytes(a->name, a->value_bytes);
        }
        return 0;
}

/* ---- lists ---- */

static void attribute_add(struct image_attributes *to, const char *name, const void *value, size_t value_bytes) {
        void *copy = xcalloc(1, value_bytes + 1);

        if (value_bytes > 0)
                memcpy(copy, value, value_bytes);
        to->list = xgrow(to->list, to->n, sizeof(*to->list));
        to->list[to->n++] = (struct image_attribute) { .name = xstrdup(name), .value = copy, .value_bytes = value_bytes };
}

void image_attributes_copy(const struct image_attribute *list, size_t n, struct image_attributes *ret) {
        *ret = (struct image_attributes) { 0 };
        for (size_t i = 0; i < n; i++)
                attribute_add(ret, list[i].name, list[i].value, list[i].value_bytes);
}

void image_attributes_finish(struct image_attributes *a) {
        for (size_t i = 0; i < a->n; i++) {
                free((char *) a->list[i].name);
                free((void *) a->list[i].value);
        }
        free(a->list);
        *a = (struct image_attributes) { 0 };
}

static bool list_has(const struct image_attribute *list, size_t n, const char *name) {
        for (size_t i = 0; i < n; i++)
                if (strcmp(list[i].name, name) == 0)
                        return true;
        return false;
}

/* ---- the kernel's calls ---- */

/* A file by descriptor, or by a path that leads through one. */
struct file {
        int fd;
        char *path; /* NULL: fd itself */
};

static void file_finish(struct file *f) {
        free(f->path);
}

/* There are no calls that take a directory and a name before Linux 6.13. */
static struct file file_of(int fd, const char *name) {
        return (struct file) { .fd = fd, .path = name ? xasprintf("/proc/self/fd/%d/%s", fd, name) : NULL };
}

static ssize_t file_list(const struct file *f, char *names, size_t size_bytes) {
        return f->path ? llistxattr(f->path, names, size_bytes) : flistxattr(f->fd, names, size_bytes);
}

static ssize_t file_get(const struct file *f, const char *name, void *value, size_t size_bytes) {
        return f->path ? lgetxattr(f->path, name, value, size_bytes) : fgetxattr(f->fd, name, value, size_bytes);
}

static int file_set(const struct file *f, const struct image_attribute *a) {
        return f->path ? lsetxattr(f->path, a->name, a->value, a->value_bytes, 0)
                       : fsetxattr(f->fd, a->name, a->value, a->value_bytes, 0);
}

static int file_remove(const struct file *f, const char *name) {
        return f->path ? lremovexattr(f->path, name) : fremovexattr(f->fd, name);
}

/* Names, each with a NUL; `*ret_names` NULL: none. Returns their bytes or negative errno. */
static ssize_t names_read(const struct file *f, char **ret_names) {
        ssize_t n = file_list(f, NULL, 0);
        char *names;

        if (n < 0)
                return errno == EOPNOTSUPP ? 0 : -errno;
        if (n == 0)
                return 0;
        names = xcalloc(1, (size_t) n);
        n = file_list(f, names, (size_t) n);
        if (n < 0) {
                n = -errno;
                free(names);
                return n;
        }
        *ret_names = names;
        return n;
}

/* ---- reading ---- */

static int too_much(const struct image_object *o, struct rm_error *err) {
        return error_set(err, -E2BIG, "%s:%.300s has more than %u bytes of extended attributes: cannot be moved", o->role, o->path,
                         IMAGE_ATTRIBUTES_MAX_BYTES);
}

static int value_read(const struct image_object *o, const struct file *f, const char *name, size_t *left_bytes,
                      struct image_attributes *to, struct rm_error *err) {
        char value[IMAGE_ATTRIBUTES_MAX_BYTES];
        ssize_t n = file_get(f, name, value, sizeof(value));

        if (n < 0 && errno != ERANGE)
                return error_sys(err, -errno, "read attribute %s of %s:%.300s", name, o->role, o->path);
        if (n < 0 || attribute_bytes(name, (size_t) n) > *left_bytes)
                return too_much(o, err);
        *left_bytes -= attribute_bytes(name, (size_t) n);
        attribute_add(to, name, value, (size_t) n);
        return 0;
}

int image_attributes_read(const struct image_object *o, int fd, const char *name, struct image_attributes *ret,
                          struct rm_error *err) {
        struct file f = file_of(fd, name);
        struct image_attributes found = { 0 };
        size_t left_bytes = IMAGE_ATTRIBUTES_MAX_BYTES;
        cleanup_free char *names = NULL;
        ssize_t n = names_read(&f, &names);
        int r = 0;

        if (n == -E2BIG)
                r = too_much(o, err);
        else if (n < 0)
                r = error_sys(err, (int) n, "list the attributes of %s:%.300s", o->role, o->path);
        for (const char *p = names; r == 0 && p && p < names + n; p += strlen(p) + 1)
                if (carried(o->kind, p))
                        r = value_read(o, &f, p, &left_bytes, &found, err);
        file_finish(&f);
        if (r < 0) {
                image_attributes_finish(&found);
                return r;
        }
        *ret = found;
        return 0;
}

/* ---- setting ---- */

/* Removes attributes that are there and should not be: an older file had them, or a directory's
 * default list gave them to a new one. */
static int stale_remove(Rm__ImageKind kind, const struct file *f, const struct image_attribute *list, size_t n, const char *label,
                        struct rm_error *err) {
        cleanup_free char *names = NULL;
        ssize_t names_bytes = names_read(f, &names);

        if (names_bytes < 0)
                return error_sys(err, (int) names_bytes, "list the attributes of %s", label);
        for (const char *p = names; p && p < names + names_bytes; p += strlen(p) + 1)
                if (carried(kind, p) && !list_has(list, n, p) && file_remove(f, p) < 0)
                        return error_sys(err, -errno, "remove attribute %s of %s", p, label);
        return 0;
}

static int attribute_set(const struct file *f, const struct image_attribute *a, const char *label, struct rm_error *err) {
        if (file_set(f, a) == 0)
                return 0;
        if (errno == EOPNOTSUPP)
                return error_set(err, -EOPNOTSUPP,
                                 "%s has the attribute %s, which the file system of the destination does not have: cannot be moved "
                                 "there (tmpfs has user.* from Linux 6.6 on)",
                                 label, a->name);
        return error_sys(err, -errno, "set attribute %s of %s", a->name, label);
}

int image_attributes_set(Rm__ImageKind kind, int fd, const char *name, const struct image_attribute *list, size_t n,
                         const char *label, struct rm_error *err) {
        struct file f = file_of(fd, name);
        int r = stale_remove(kind, &f, list, n, label, err);

        for (size_t i = 0; r == 0 && i < n; i++)
                r = attribute_set(&f, &list[i], label, err);
        file_finish(&f);
        return r;
}
