#include "daemon/capsule/init/base/mounts.h"

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

/* The mounts that setup.c made for this capsule, and /dev: CRIU gives terminals their owners there
 * and takes EROFS for a failure. */
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

/* Only a mount can be writable where what is around it is not. What is mounted below it comes
 * along. */
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

/* The real paths of spec->writable, NULL for what the node does not have; the names are the
 * administrator's. */
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

static bool is_own(const char *path) {
        for (size_t i = 0; i < ARRAY_SIZE(own); i++)
                if (path_is_below(path, own[i]))
                        return true;
        return false;
}

static bool is_writable(const char *path, char *const *writable, size_t n) {
        for (size_t i = 0; i < n; i++)
                if (writable[i] && path_is_below(path, writable[i]))
                        return true;
        return false;
}

int mounts_each(mounts_fn fn, void *arg, struct rm_error *error) {
        cleanup_file FILE *f = fopen("/proc/self/mountinfo", "re");
        cleanup_free char *line = NULL;
        size_t size = 0;
        int r = 0;

        if (!f)
                return error_sys(error, -errno, "cannot read the mounts");
        while (r == 0 && getline(&line, &size, f) > 0) {
                const char *behind = strstr(line, " - ");
                char path[PATH_MAX], options[4] = "", type[64] = "";

                if (sscanf(line, "%*s %*s %*s %*s %4095s %3s", path, options) < 1)
                        continue;
                mounts_unescape(path);
                if (behind)
                        (void) sscanf(behind, " - %63s", type);
                r = fn(&(struct mount_seen) { path, type, strcmp(options, "ro") == 0 || strcmp(options, "ro,") == 0 }, arg, error);
        }
        return r;
}

struct directories {
        char **paths;
        size_t n;
};

/* The kernel tells all who watch the mounts of a change even if a mount has these flags already. */
static int protect_mount(const struct mount_seen *mount, void *arg, struct rm_error *error) {
        struct mount_attr attributes = { .attr_set = MOUNT_ATTR_RDONLY };
        const struct directories *writable = arg;

        if (mount->read_only || is_own(mount->path) || is_writable(mount->path, writable->paths, writable->n))
                return 0;
        /* A mount that is gone, or hidden below another, is out of reach. */
        if (mount_setattr(AT_FDCWD, mount->path, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, &attributes, sizeof(attributes)) == 0 ||
            errno == ENOENT || errno == EINVAL)
                return 0;
        return error_sys(error, -errno, "cannot make %s read-only", mount->path);
}

int mounts_protect(const Capsule__Spec *spec, struct rm_error *error) {
        cleanup_free char **paths = xcalloc(spec->n_writable + 1, sizeof(*paths));
        struct directories writable = { paths, spec->n_writable };
        int r = find_writable(spec, paths, error);

        if (r == 0)
                r = mounts_each(protect_mount, &writable, error);
        for (size_t i = 0; i < spec->n_writable; i++)
                free(paths[i]);
        return r;
}

struct listing {
        struct directories writable, found;
};

static int list_mount(const struct mount_seen *mount, void *arg, struct rm_error *error) {
        struct listing *listing = arg;
        struct directories *found = &listing->found;

        if (is_own(mount->path) || !is_writable(mount->path, listing->writable.paths, listing->writable.n))
                return 0;
        found->paths = xgrow(found->paths, found->n, sizeof(*found->paths));
        found->paths[found->n++] = xstrdup(mount->path);
        return 0;
}

size_t mounts_list_writable(const Capsule__Spec *spec, char ***ret) {
        cleanup_free char **paths = xcalloc(spec->n_writable + 1, sizeof(*paths));
        struct listing listing = { .writable = { paths, spec->n_writable } };

        for (size_t i = 0; i < spec->n_writable; i++)
                paths[i] = realpath(spec->writable[i], NULL);
        (void) mounts_each(list_mount, &listing, NULL);
        for (size_t i = 0; i < spec->n_writable; i++)
                free(paths[i]);
        *ret = listing.found.paths;
        return listing.found.n;
}
