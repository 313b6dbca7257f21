#include "daemon/image/place_ahead.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/util.h"

struct ahead {
        int fd; /* -1: there is none */
        char *role;
};

struct place_ahead {
        struct ahead files[IMAGE_AHEAD_MAX + 1]; /* by number, which image_object_check() has looked at */
};

struct place_ahead *place_ahead_create(void) {
        struct place_ahead *a = xcalloc(1, sizeof(*a));

        for (size_t i = 0; i < ARRAY_SIZE(a->files); i++)
                a->files[i].fd = -1;
        return a;
}

static void ahead_forget(struct ahead *ahead) {
        cleanup_close_fd(&ahead->fd);
        free(ahead->role);
        ahead->role = NULL;
}

void place_ahead_release(struct place_ahead *a) {
        for (size_t i = 0; i < ARRAY_SIZE(a->files); i++)
                ahead_forget(&a->files[i]);
}

void place_ahead_destroy(struct place_ahead *a) {
        if (!a)
                return;
        place_ahead_release(a);
        free(a);
}

static struct ahead *ahead_of(struct place_ahead *a, const char *number) {
        return &a->files[strtoul(number, NULL, 10) % ARRAY_SIZE(a->files)];
}

static int duplicate(int fd, int *ret_fd, struct rm_error *err) {
        *ret_fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
        return *ret_fd < 0 ? error_sys(err, -errno, "keep a file that comes ahead") : 0;
}

int place_ahead_open(struct place_ahead *a, int tree_fd, const struct image_object *o, int *ret_fd, struct rm_error *err) {
        struct ahead *ahead = ahead_of(a, o->path);

        if (ahead->fd >= 0 && strcmp(ahead->role, o->role) != 0)
                return error_set(err, -EBADMSG, "the image stream is damaged: file %s, which came ahead, is of '%s' and of '%s'",
                                 o->path, ahead->role, o->role);
        if (ahead->fd < 0) {
                ahead->fd = openat(tree_fd, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
                if (ahead->fd < 0)
                        return error_sys(err, -errno, "make a file in '%s' for what comes ahead", o->role);
                ahead->role = xstrdup(o->role);
        }
        return duplicate(ahead->fd, ret_fd, err);
}

void place_ahead_close(struct place_ahead *a, const char *number, uint64_t size_bytes) {
        if (size_bytes == 0)
                ahead_forget(ahead_of(a, number));
}

int place_ahead_link(struct place_ahead *a, const struct image_object *o, int dir_fd, const char *name, int *ret_fd,
                     struct rm_error *err) {
        struct ahead *ahead = &a->files[o->ahead % ARRAY_SIZE(a->files)];
        char path[64];
        int r;

        if (ahead->fd < 0 || strcmp(ahead->role, o->role) != 0)
                return error_set(err, -EBADMSG, "the image stream is damaged: no file %u of '%s' came ahead", o->ahead, o->role);
        (void) snprintf(path, sizeof(path), "/proc/self/fd/%d", ahead->fd);
        r = linkat(AT_FDCWD, path, dir_fd, name, AT_SYMLINK_FOLLOW);
        if (r < 0 && errno == EEXIST && (unlinkat(dir_fd, name, 0) == 0 || unlinkat(dir_fd, name, AT_REMOVEDIR) == 0))
                r = linkat(AT_FDCWD, path, dir_fd, name, AT_SYMLINK_FOLLOW);
        if (r < 0)
                return error_sys(err, -errno, "name file %s:%s, which came ahead", o->role, o->path);
        r = duplicate(ahead->fd, ret_fd, err);
        ahead_forget(ahead);
        return r;
}
