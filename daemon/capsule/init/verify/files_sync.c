#include "daemon/capsule/init/verify/files_sync.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/error.h"
#include "common/util.h"
#include "daemon/capsule/init/base/identity.h"
#include "daemon/capsule/init/base/mounts.h"
#include "daemon/capsule/init/verify/inventory.h"

/* A task is what a child is to do, and a verdict what it says of it. */
struct task {
        const Capsule__Inventory *inventory;
        bool *requested; /* by the index in the inventory */
};

struct verdict {
        int error;
        uint32_t file;
};

bool files_sync_is_remote(const char *type) {
        static const char *const types[] = {
                "nfs",      "nfs4",   "cifs",  "smb3",  "ceph",     "lustre", "gpfs",  "afs",    "9p",
                "virtiofs", "beegfs", "panfs", "pvfs2", "orangefs", "gfs2",   "ocfs2", "wekafs", "fuse",
        };

        for (size_t i = 0; i < ARRAY_SIZE(types); i++)
                if (strcmp(type, types[i]) == 0)
                        return true;
        return strncmp(type, "fuse.", 5) == 0;
}

/* ---- which files ---- */

struct mount_point {
        char *path;
        bool remote;
};

struct mount_points {
        struct mount_point *list; /* one that hides others comes after them */
        size_t n;
};

static int add_mount(const struct mount_seen *mount, void *arg, struct rm_error *error) {
        struct mount_points *mounts = arg;

        mounts->list = xgrow(mounts->list, mounts->n, sizeof(*mounts->list));
        mounts->list[mounts->n++] = (struct mount_point) { xstrdup(mount->path), files_sync_is_remote(mount->type) };
        return 0;
}

static bool is_remote(const struct mount_points *mounts, const char *path) {
        size_t longest = 0;
        bool remote = false;

        for (size_t i = 0; i < mounts->n; i++)
                if (path_is_below(path, mounts->list[i].path) && strlen(mounts->list[i].path) >= longest) {
                        longest = strlen(mounts->list[i].path);
                        remote = mounts->list[i].remote;
                }
        return remote;
}

static void mount_points_finish(struct mount_points *mounts) {
        for (size_t i = 0; i < mounts->n; i++)
                free(mounts->list[i].path);
        free(mounts->list);
}

/* Returns whether there is any; `wanted` then says which. */
static bool choose(const Capsule__Inventory *inventory, bool *requested) {
        struct mount_points mounts = { 0 };
        bool any = false;

        (void) mounts_each(add_mount, &mounts, NULL);
        for (size_t f = 0; f < inventory->n_files; f++) {
                const Capsule__InventoryFile *file = inventory->files[f];

                requested[f] = requested[f] && S_ISREG(file->mode) && inventory_has_path(file) &&
                               !inventory_is_carried(file->name) && is_remote(&mounts, file->name);
                any |= requested[f];
        }
        mount_points_finish(&mounts);
        return any;
}

/* ---- the child ---- */

/* Reading is enough for it, and disturbs nobody. A file that the owner may not open any more is
 * none that a move or a restart could open. */
static int sync_one(const char *path) {
        cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

        if (fd < 0 && errno == EACCES)
                fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        if (fd < 0)
                return errno == EACCES || errno == EPERM || errno == ENOENT ? 0 : -errno;
        return fsync(fd) < 0 ? -errno : 0;
}

static void sync_as_owner(int error, int report_fd, const void *arg) {
        const struct task *task = arg;
        struct verdict verdict = { .error = error };

        for (uint32_t f = 0; f < task->inventory->n_files && verdict.error == 0; f++)
                if (task->requested[f]) {
                        verdict.error = sync_one(task->inventory->files[f]->name);
                        verdict.file = f;
                }
        (void) write_all(report_fd, &verdict, sizeof(verdict));
}

/* ---- PID 1 ---- */

int files_sync(const Capsule__Inventory *inventory, const Capsule__Spec *spec, uint64_t limit_usec, struct rm_error *error) {
        cleanup_free bool *requested = inventory_find_written(inventory);
        const struct task task = { inventory, requested };
        struct verdict verdict = { 0 };
        int r;

        if (!choose(inventory, requested))
                return 0;
        r = identity_ask(spec, 0, sync_as_owner, &task, limit_usec, &verdict, sizeof(verdict));
        if (r < 0)
                return error_set(error, r, "what it has written is not written back to the server of its files in time");
        if (verdict.error == 0)
                return 0;
        error_set(error, -EIO, "%.400s cannot be written back: %s", inventory->files[verdict.file]->name, strerror(-verdict.error));
        error_clean(error);
        return -EIO;
}
