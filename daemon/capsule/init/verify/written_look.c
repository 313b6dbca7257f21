#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <xxhash.h>

#include "common/capabilities.h"
#include "common/util.h"
#include "daemon/capsule/init/base/identity.h"
#include "daemon/capsule/init/base/mounts.h"
#include "daemon/capsule/init/verify/inventory.h"
#include "daemon/capsule/init/verify/written.h"
#include "daemon/capsule/init/verify/written_internal.h"

enum { SCAN_USEC = 300000, FOUND_MAX_BYTES = 65536 };

union handle {
        struct file_handle head;
        char bytes[sizeof(struct file_handle) + FILE_HANDLE_MAX];
};

/* This struct goes before each file that was found. */
struct found {
        uint32_t index;
        uint32_t bytes;
};

/* A file that is written in place as well as added to, as HDF5, NetCDF and SQLite do it, has
 * another begin then. */
uint64_t written_hash(int fd, uint64_t size_bytes) {
        uint8_t parts[2 * WRITTEN_PART_BYTES];
        size_t bytes = size_bytes < WRITTEN_PART_BYTES ? (size_t) size_bytes : WRITTEN_PART_BYTES;
        uint64_t hash;

        if (bytes == 0 || pread(fd, parts, bytes, 0) != (ssize_t) bytes ||
            pread(fd, parts + bytes, bytes, (off_t) (size_bytes - bytes)) != (ssize_t) bytes)
                return 0;
        hash = XXH3_64bits(parts, 2 * bytes);
        return hash != 0 ? hash : 1;
}

/* ---- the child: where a file is ---- */

static int open_directory(const char *mount, const struct written_handle *directory) {
        cleanup_close int mount_fd = open(mount, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        union handle handle;

        if (mount_fd < 0)
                return -1;
        handle.head.handle_type = directory->type;
        handle.head.handle_bytes = directory->bytes;
        memcpy(handle.head.f_handle, directory->handle, directory->bytes);
        return open_by_handle_at(mount_fd, &handle.head, O_PATH | O_CLOEXEC);
}

/* A file system may be mounted several times, with another part each. */
static char *find_path(const struct written_scan *scan, const struct written_file *file) {
        if (file->directory.bytes == 0)
                return xstrdup(file->name);
        for (size_t i = 0; i < scan->n_mounts; i++) {
                cleanup_close int fd = -1;
                char link[64], path[PATH_MAX];
                ssize_t n;

                if (scan->mounts[i].file_system != file->directory.file_system)
                        continue;
                fd = open_directory(scan->mounts[i].path, &file->directory);
                (void) snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
                n = fd < 0 ? -1 : readlink(link, path, sizeof(path) - 1);
                path[n > 0 ? n : 0] = '\0';
                if (n > 0 && path_is_below(path, scan->mounts[i].path))
                        return xasprintf("%s/%s", strcmp(path, "/") == 0 ? "" : path, file->name);
        }
        return NULL;
}

/* ---- the child: what it is ---- */

static bool has_handle(const struct written_file *file, const struct file_identity *identity) {
        return file->key.type == identity->type && file->key.bytes == identity->bytes &&
               memcmp(file->key.handle, identity->handle, identity->bytes) == 0;
}

/* Returns false when another file has its name now, or the owner may not read it. */
static bool describe(const struct written_file *file, const char *path, struct file_identity *identity, Capsule__ClosedFile *ret) {
        cleanup_close int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        struct stat st;

        if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
                return false;
        file_identity_take(fd, "", &st, identity);
        if (!has_handle(file, identity))
                return false;
        ret->hash = written_hash(fd, (uint64_t) st.st_size);
        ret->file->mode = st.st_mode;
        ret->file->uid = st.st_uid;
        ret->file->gid = st.st_gid;
        ret->file->size_bytes = (uint64_t) st.st_size;
        ret->file->mtime_nsec = inventory_mtime_nsec(&st);
        inventory_set_identity(ret->file, identity);
        return true;
}

static void report_file(const struct written_file *file, size_t index, char *path, int report_fd) {
        Capsule__ClosedFile closed = CAPSULE__CLOSED_FILE__INIT;
        Capsule__InventoryFile description = CAPSULE__INVENTORY_FILE__INIT;
        cleanup_free uint8_t *data = NULL;
        struct file_identity identity;
        struct found found = { .index = (uint32_t) index };

        closed.file = &description;
        description.name = path;
        if (!describe(file, path, &identity, &closed))
                return;
        found.bytes = (uint32_t) capsule__closed_file__get_packed_size(&closed);
        data = xcalloc(1, found.bytes + sizeof(found));
        memcpy(data, &found, sizeof(found));
        (void) capsule__closed_file__pack(&closed, data + sizeof(found));
        (void) write_all(report_fd, data, found.bytes + sizeof(found));
}

/* The child may do more than the owner only to find paths. It ends afterwards, and frees
 * nothing. */
static void scan_as_owner(int error, int report_fd, const void *arg) {
        const struct written_scan *scan = arg;
        char **paths = xcalloc(scan->n, sizeof(*paths));

        for (size_t i = 0; i < scan->n && error == 0; i++)
                paths[i] = find_path(scan, scan->files[i]);
        if (error < 0 || capabilities_keep(0) < 0)
                return;
        for (size_t i = 0; i < scan->n; i++)
                if (paths[i])
                        report_file(scan->files[i], i, paths[i], report_fd);
}

/* ---- PID 1 ---- */

static bool take_found(int fd, size_t n, written_found_fn fn, void *arg) {
        cleanup_free uint8_t *data = NULL;
        Capsule__ClosedFile *closed;
        struct found found;

        if (read_all(fd, &found, sizeof(found)) < 0 || found.index >= n || found.bytes > FOUND_MAX_BYTES)
                return false;
        data = xcalloc(1, found.bytes + 1);
        if (read_all(fd, data, found.bytes) < 0)
                return false;
        closed = capsule__closed_file__unpack(NULL, found.bytes, data);
        if (closed)
                fn(arg, found.index, closed);
        return closed;
}

static bool has_ended(int pidfd) {
        struct pollfd process = { .fd = pidfd, .events = POLLIN };

        return poll(&process, 1, 0) != 0;
}

/* A child that a file system keeps is not waited for, and no other one is sent after it. */
static void end_child(struct written_scan *scan, pid_t pid, int fd, bool answered) {
        if (answered) {
                identity_child_end(pid, fd);
                return;
        }
        (void) close(fd);
        scan->stuck_fd = (int) syscall(SYS_pidfd_open, pid, 0);
        (void) kill(pid, SIGKILL);
}

void written_scan(struct written_scan *scan, written_found_fn found, void *arg) {
        uint64_t end_usec = now_usec() + SCAN_USEC;
        pid_t pid;
        int fd;

        if (scan->stuck_fd >= 0 && !has_ended(scan->stuck_fd))
                return;
        cleanup_close_fd(&scan->stuck_fd);
        if (identity_child(scan->spec, CAPABILITY(CAP_DAC_READ_SEARCH), scan_as_owner, scan, &pid, &fd) < 0)
                return;
        for (;;) {
                uint64_t now = now_usec();

                if (now >= end_usec || identity_await(fd, end_usec - now) < 0) {
                        end_child(scan, pid, fd, false);
                        return;
                }
                if (!take_found(fd, scan->n, found, arg))
                        break;
        }
        end_child(scan, pid, fd, true);
}
