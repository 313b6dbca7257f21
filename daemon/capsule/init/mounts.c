#include "daemon/capsule/init/mounts.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "common/error.h"
#include "common/util.h"

/* Made by setup.c for this capsule, and /dev: CRIU gives terminals their owners there and takes EROFS for a failure. */
static const char *const own[] = { "/dev", "/proc", "/run", "/tmp" };

bool path_is_below(const char *path, const char *directory) {
        size_t n = strlen(directory);

        if (strcmp(directory, "/") == 0)
                return true;
        return strncmp(path, directory, n) == 0 && (path[n] == '\0' || path[n] == '/');
}

static bool is_octal(const char *text) {
        for (int i = 0; i < 3; i++)
                if (text[i] < '0' || text[i] > '7')
                        return false;
        return true;
}

void mounts_unescape(char *path) {
        char *to = path;

        for (const char *from = path; *from; to++) {
                if (*from == '\\' && is_octal(from + 1)) {
                        *to = (char) ((from[1] - '0') * 64 + (from[2] - '0') * 8 + (from[3] - '0'));
                        from += 4;
                } else
                        *to = *from++;
        }
        *to = '\0';
}

/* Only a mount can be writable where what is around it is not. What is mounted below it comes along. */
static int make_mount(const char *path, struct rm_error *error) {
        struct statx st;

        if (statx(AT_FDCWD, path, AT_NO_AUTOMOUNT, STATX_TYPE, &st) < 0)
                return error_sys(error, -errno, "%s", path);
        if (!S_ISDIR(st.stx_mode))
                return error_set(error, -ENOTDIR, "%s is not a directory", path);
        if ((st.stx_attributes_mask & STATX_ATTR_MOUNT_ROOT) && (st.stx_attributes & STATX_ATTR_MOUNT_ROOT))
                return 0;
        return mount(path, path, NULL, MS_BIND | MS_REC, NULL) < 0 ? error_sys(error, -errno, "cannot keep %s writable", path) : 0;
}

/* The real paths of spec->writable, NULL for what the node does not have; the names are the administrator's. */
static int find_writable(const Capsule__Spec *spec, char **ret_paths, struct rm_error *error) {
        for (size_t i = 0; i < spec->n_writable; i++) {
                int r;

                ret_paths[i] = realpath(spec->writable[i], NULL);
                if (!ret_paths[i])
                        continue;
                r = make_mount(ret_paths[i], error);
                if (r < 0)
                        return r;
        }
        return 0;
}

static bool stays_writable(const char *path, char *const *writable, size_t n) {
        for (size_t i = 0; i < ARRAY_SIZE(own); i++)
                if (path_is_below(path, own[i]))
                        return true;
        for (size_t i = 0; i < n; i++)
                if (writable[i] && path_is_below(path, writable[i]))
                        return true;
        return false;
}

static int protect_mount(const char *path, struct rm_error *error) {
        struct mount_attr attributes = { .attr_set = MOUNT_ATTR_RDONLY };

        /* One that is gone, or hidden below another, is out of reach. */
        if (mount_setattr(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, &attributes, sizeof(attributes)) == 0 ||
            errno == ENOENT || errno == EINVAL)
                return 0;
        return error_sys(error, -errno, "cannot make %s read-only", path);
}

static int protect_all(char *const *writable, size_t n, struct rm_error *error) {
        cleanup_file FILE *f = fopen("/proc/self/mountinfo", "re");
        cleanup_free char *line = NULL;
        size_t size = 0;
        int r = 0;

        if (!f)
                return error_sys(error, -errno, "cannot read the mounts");
        while (r == 0 && getline(&line, &size, f) > 0) {
                char path[PATH_MAX];

                if (sscanf(line, "%*s %*s %*s %*s %4095s", path) != 1)
                        continue;
                mounts_unescape(path);
                if (!stays_writable(path, writable, n))
                        r = protect_mount(path, error);
        }
        return r;
}

int mounts_protect(const Capsule__Spec *spec, struct rm_error *error) {
        cleanup_free char **writable = xcalloc(spec->n_writable + 1, sizeof(*writable));
        int r = find_writable(spec, writable, error);

        if (r == 0)
                r = protect_all(writable, spec->n_writable, error);
        for (size_t i = 0; i < spec->n_writable; i++)
                free(writable[i]);
        return r;
}
