#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "common/capabilities.h"
#include "common/util.h"
#include "daemon/capsule/init/identity.h"
#include "daemon/capsule/init/inventory.h"
#include "daemon/capsule/init/mounts.h"
#include "daemon/capsule/init/written.h"
#include "daemon/capsule/init/written_internal.h"

enum { LOOK_USEC = 300000, LOOK_MAX_BYTES = 4 * 1024 * 1024 };

union handle {
        struct file_handle head;
        char bytes[sizeof(struct file_handle) + FILE_HANDLE_MAX];
};

uint64_t written_tail_hash(int fd, uint64_t size_bytes) {
        uint8_t tail[WRITTEN_TAIL_BYTES];
        size_t bytes = size_bytes < sizeof(tail) ? (size_t) size_bytes : sizeof(tail);
        uint64_t hash;

        if (pread(fd, tail, bytes, (off_t) (size_bytes - bytes)) != (ssize_t) bytes)
                return 0;
        hash = XXH3_64bits(tail, bytes);
        return hash != 0 ? hash : 1;
}

/* ---- the child: where a file is ---- */

/* The directory by this path of a mount, or -1. A server does not answer at once; the rest of them are not looked at then. */
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
static char *find_path(const struct written_look *look, const struct written_file *file) {
        if (file->directory.bytes == 0)
                return xstrdup(file->name);
        for (size_t i = 0; i < look->n_mounts; i++) {
                cleanup_close int fd = -1;
                char link[64], path[PATH_MAX];
                ssize_t n;

                if (look->mounts[i].file_system != file->directory.file_system)
                        continue;
                fd = open_directory(look->mounts[i].path, &file->directory);
                (void) snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
                n = fd < 0 ? -1 : readlink(link, path, sizeof(path) - 1);
                path[n > 0 ? n : 0] = '\0';
                if (n > 0 && path_is_below(path, look->mounts[i].path))
                        return xasprintf("%s/%s", strcmp(path, "/") == 0 ? "" : path, file->name);
        }
        return NULL;
}

/* ---- the child: what it is ---- */

static bool has_handle(const struct written_file *file, const struct file_identity *identity) {
        return file->key.type == identity->type && file->key.bytes == identity->bytes &&
               memcmp(file->key.handle, identity->handle, identity->bytes) == 0;
}

/* False: another file has its name now, or nobody may read it. */
static bool describe(const struct written_file *file, const char *path, Capsule__ClosedFile *ret) {
        cleanup_close int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        struct file_identity *identity = xcalloc(1, sizeof(*identity)); /* lent to `ret`, until the child ends */
        struct stat st;

        if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
                return false;
        file_identity_take(fd, "", &st, identity);
        if (!has_handle(file, identity))
                return false;
        ret->tail_hash = written_tail_hash(fd, (uint64_t) st.st_size);
        if (ret->tail_hash == 0)
                return false;
        ret->file->mode = st.st_mode;
        ret->file->uid = st.st_uid;
        ret->file->gid = st.st_gid;
        ret->file->size_bytes = (uint64_t) st.st_size;
        ret->file->mtime_nsec = inventory_mtime_nsec(&st);
        inventory_set_identity(ret->file, identity);
        return true;
}

static Capsule__ClosedFile *closed_file(void) {
        Capsule__ClosedFile *closed = xcalloc(1, sizeof(*closed));

        capsule__closed_file__init(closed);
        closed->file = xcalloc(1, sizeof(*closed->file));
        capsule__inventory_file__init(closed->file);
        return closed;
}

static void send_all(int report_fd, const Capsule__Inventory *found) {
        uint64_t size = capsule__inventory__get_packed_size(found);
        cleanup_free uint8_t *data = xcalloc(1, (size_t) size + 1);

        (void) capsule__inventory__pack(found, data);
        if (write_all(report_fd, &size, sizeof(size)) == 0)
                (void) write_all(report_fd, data, (size_t) size);
}

/* Only to find the paths it may do more than the owner. It ends, and frees nothing. */
static void look_as_owner(int error, int report_fd, const void *arg) {
        const struct written_look *look = arg;
        Capsule__ClosedFile *list[WRITTEN_FILES_MAX];
        Capsule__Inventory found = CAPSULE__INVENTORY__INIT;
        char *paths[WRITTEN_FILES_MAX];
        const struct written_file *file;

        found.closed_files = list;
        for (file = look->files; file && error == 0; file = file->hh.next) {
                list[found.n_closed_files] = closed_file();
                paths[found.n_closed_files++] = find_path(look, file);
        }
        if (error < 0 || capabilities_keep(0) < 0)
                return;
        file = look->files;
        for (size_t i = 0; i < found.n_closed_files; i++, file = file->hh.next)
                if (paths[i] && describe(file, paths[i], list[i]))
                        list[i]->file->name = paths[i];
        send_all(report_fd, &found);
}

/* ---- PID 1 ---- */

Capsule__Inventory *written_look(const struct written_look *look) {
        cleanup_free uint8_t *data = NULL;
        Capsule__Inventory *found = NULL;
        uint64_t size = 0;
        pid_t pid;
        int fd;

        if (identity_child(look->spec, CAPABILITY(CAP_DAC_READ_SEARCH), look_as_owner, look, &pid, &fd) < 0)
                return NULL;
        if (identity_await(fd, LOOK_USEC) == 0 && read_all(fd, &size, sizeof(size)) == 0 && size <= LOOK_MAX_BYTES) {
                data = xcalloc(1, (size_t) size + 1);
                if (read_all(fd, data, (size_t) size) == 0)
                        found = capsule__inventory__unpack(NULL, (size_t) size, data);
        }
        identity_child_end(pid, fd);
        if (found && found->n_closed_files != HASH_COUNT(look->files)) {
                capsule__inventory__free_unpacked(found, NULL);
                found = NULL;
        }
        return found;
}
