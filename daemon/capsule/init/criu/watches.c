#include "daemon/capsule/init/criu/watches.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/error.h"
#include "common/util.h"
#include "daemon/capsule/init/base/identity.h"
#include "daemon/capsule/init/base/mounts.h"
#include "daemon/criu_images/fields.h"

#define CACHE "irmap-cache"
#define ANSWER_USEC UINT64_C(3000000)

enum {
        SERVICE_MAGIC = 0x55105940, /* of an image that is not a part of a dump */
        CACHE_MAGIC = 0x57004059,
        ENTRY_DEVICE = 1, /* irmap_cache_entry */
        ENTRY_INODE = 2,
        ENTRY_PATH = 3,
        NUMBER_BYTES = CRIU_VARINT_BYTES + 1, /* with a key of one byte */
};

void watches_finish(struct watches *watches) {
        free(watches->handles);
        *watches = (struct watches) { 0 };
}

static bool is_known(const struct watches *watches, const struct watch_handle *handle) {
        for (size_t i = 0; i < watches->n; i++)
                if (watches->handles[i].inode == handle->inode && watches->handles[i].device == handle->device)
                        return true;
        return false;
}

static bool parse(const char *line, struct watch_handle *ret) {
        int end = 0;

        if (sscanf(line,
                   "inotify wd:%*x ino:%" SCNx64 " sdev:%" SCNx32 " mask:%*x ignored_mask:%*x fhandle-bytes:%" SCNx32
                   " fhandle-type:%" SCNx32 " f_handle:%n",
                   &ret->inode, &ret->device, &ret->bytes, (uint32_t *) &ret->type, &end) != 4 ||
            end == 0 || ret->bytes > sizeof(ret->handle))
                return false;
        for (size_t i = 0; i < ret->bytes; i++)
                if (sscanf(line + end + 2 * i, "%2" SCNx8, &ret->handle[i]) != 1)
                        return false;
        return true;
}

bool watches_add(struct watches *watches, const char *line) {
        struct watch_handle handle = { 0 };

        if (!parse(line, &handle) || is_known(watches, &handle))
                return true;
        if (watches->n == WATCHES_MAX)
                return false;
        watches->handles = xgrow(watches->handles, watches->n, sizeof(*watches->handles));
        watches->handles[watches->n++] = handle;
        return true;
}

/* ---- paths ---- */

/* A mount may show a part of its file system only, or be hidden; and a directory on the way may be
 * closed. */
static bool is_at(const char *path, const struct watch_handle *handle) {
        struct stat st;

        return path[0] == '/' && lstat(path, &st) == 0 && st.st_ino == handle->inode;
}

/* The path of what a handle names, by way of a directory of its file system, or NULL. */
static char *find_path(const struct watch_handle *handle, const char *point) {
        cleanup_free struct file_handle *kernel = xcalloc(1, sizeof(*kernel) + sizeof(handle->handle));
        cleanup_close int mount_fd = open(point, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK);
        cleanup_close int fd = -1;
        char link[64], path[PATH_MAX];
        ssize_t n;

        kernel->handle_bytes = handle->bytes;
        kernel->handle_type = handle->type;
        memcpy(kernel->f_handle, handle->handle, handle->bytes);
        fd = mount_fd < 0 ? -1 : open_by_handle_at(mount_fd, kernel, O_PATH | O_CLOEXEC);
        (void) snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
        n = fd < 0 ? -1 : readlink(link, path, PATH_MAX - 1);
        path[n > 0 ? n : 0] = '\0';
        return is_at(path, handle) ? xstrdup(path) : NULL;
}

/* A line of mountinfo: its file system and where it is mounted. */
static void find_in_mount(const struct watches *watches, char **paths, const char *line) {
        unsigned major_number, minor_number;
        char point[PATH_MAX];

        if (sscanf(line, "%*s %*s %u:%u %*s %4095s", &major_number, &minor_number, point) != 3)
                return;
        mounts_unescape(point);
        for (size_t i = 0; i < watches->n; i++)
                if (!paths[i] && watches->handles[i].device == (major_number << 20 | minor_number))
                        paths[i] = find_path(&watches->handles[i], point);
}

static void find_paths(const struct watches *watches, char **paths) {
        cleanup_file FILE *mounts = fopen("/proc/self/mountinfo", "re");
        cleanup_free char *line = NULL;
        size_t size = 0;

        while (mounts && getline(&line, &size, mounts) > 0)
                find_in_mount(watches, paths, line);
}

/* ---- the cache ---- */

static int put_entry(FILE *cache, const struct watch_handle *handle, const char *path) {
        uint8_t head[3 * NUMBER_BYTES];
        uint8_t *end = criu_put_varint(criu_put_varint(head, ENTRY_DEVICE << 3), handle->device);
        size_t path_bytes = strlen(path);
        uint32_t size;

        end = criu_put_varint(criu_put_varint(end, ENTRY_INODE << 3), handle->inode);
        end = criu_put_varint(criu_put_varint(end, ENTRY_PATH << 3 | CRIU_WIRE_BYTES), path_bytes);
        size = (uint32_t) ((size_t) (end - head) + path_bytes);
        (void) fwrite(&size, sizeof(size), 1, cache);
        (void) fwrite(head, 1, (size_t) (end - head), cache);
        return fwrite(path, 1, path_bytes, cache) == path_bytes ? 0 : -EIO;
}

/* A child calls it, and ends with it. What the owner cannot reach now, since it was moved to where
 * he may not look, he is not told of either: CRIU speaks of it in its messages, and in the
 * image. */
static int write_cache(const struct watches *watches, const Capsule__Spec *spec, int dir_fd) {
        static const uint32_t magics[] = { SERVICE_MAGIC, CACHE_MAGIC };
        char **paths = xcalloc(watches->n, sizeof(*paths));
        int cache_fd = openat(dir_fd, CACHE, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
        cleanup_file FILE *cache = cache_fd < 0 ? NULL : fdopen(cache_fd, "w");
        int r = cache && fchmod(cache_fd, 0644) == 0 && fwrite(magics, sizeof(magics), 1, cache) == 1 ? 0 : -EIO;

        find_paths(watches, paths);
        if (r == 0)
                r = identity_borrow(spec, 0);
        for (size_t i = 0; i < watches->n && r == 0; i++)
                r = paths[i] && is_at(paths[i], &watches->handles[i]) ? put_entry(cache, &watches->handles[i], paths[i]) : -ENOENT;
        return r == 0 && fflush(cache) != 0 ? -errno : r;
}

struct telling {
        const struct watches *watches;
        const Capsule__Spec *spec;
        int dir_fd;
};

static void write_and_report(int error, int report_fd, const void *arg) {
        const struct telling *telling = arg;

        error = write_cache(telling->watches, telling->spec, telling->dir_fd);
        (void) write_all(report_fd, &error, sizeof(error));
}

/* A child writes: a file system of the owner's own may not answer. */
static int write_in_time(const struct watches *watches, const Capsule__Spec *spec, int dir_fd) {
        const struct telling telling = { watches, spec, dir_fd };
        int error = 0;
        int r = identity_ask(NULL, 0, write_and_report, &telling, ANSWER_USEC, &error, sizeof(error));

        return r < 0 ? r : error;
}

int watches_report(const struct watches *watches, const Capsule__Spec *spec, int dir_fd, struct rm_error *error) {
        int r = unlinkat(dir_fd, CACHE, 0) < 0 && errno != ENOENT ? -errno : 0;

        if (r == 0 && watches->n > 0)
                r = write_in_time(watches, spec, dir_fd);
        if (r == -ENOENT)
                return error_set(
                        error, r,
                        "a process watches a file (inotify) that has no name any more, or that its owner cannot reach now");
        return r < 0 ? error_sys(error, r, "cannot tell CRIU what the group watches (inotify)") : 0;
}
