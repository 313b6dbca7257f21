#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/error.h"
#include "common/util.h"
#include "daemon/capsule/init/base/file_identity.h"
#include "daemon/capsule/init/base/identity.h"
#include "daemon/capsule/init/verify/inventory.h"

/* Two inventories side by side; what came from the source may name files that are not in its
 * list. */
struct pair {
        const Capsule__Inventory *before;
        const Capsule__Inventory *now;
        uint32_t pid;
};

static const Capsule__InventoryFile *file_of(const Capsule__Inventory *inventory, uint32_t index) {
        return index < inventory->n_files ? inventory->files[index] : NULL;
}

/* The kernel says that root owns the files below /proc of a process that has ended, and its own
 * owner those of one that runs. That is found when the file is opened or looked up, and CRIU opens
 * files before it lets processes end. */
static bool has_lasting_owner(const Capsule__InventoryFile *file) {
        return strncmp(file->name, "/proc/", 6) != 0 || file->name[6] < '0' || file->name[6] > '9';
}

/* A file that is known again may have another name, where a link stands in the place of it or of
 * its directory, and other permissions; whether its owner can open it is looked at on its own. */
static bool is_known_again(const Capsule__InventoryFile *a, const Capsule__InventoryFile *b) {
        struct file_identity was, is;

        if (!inventory_has_path(a) || !inventory_has_path(b) || (a->mode & S_IFMT) != (b->mode & S_IFMT))
                return false;
        inventory_identity(a, &was);
        inventory_identity(b, &is);
        return was.inode != 0 && is.inode != 0 && (was.bytes > 0 || was.birth_nsec != 0) && file_identity_same(&was, &is);
}

static bool same_file(const Capsule__InventoryFile *a, const Capsule__InventoryFile *b) {
        if (!a || !b || (has_lasting_owner(a) && (a->uid != b->uid || a->gid != b->gid)))
                return false;
        return (a->mode == b->mode && strcmp(a->name, b->name) == 0) || is_known_again(a, b);
}

static char *describe(const Capsule__InventoryFile *file) {
        return file ? xasprintf("%s (mode %" PRIo32 ", user %" PRIu32 ", group %" PRIu32 ")", file->name, file->mode, file->uid,
                                file->gid)
                    : xstrdup("nothing");
}

static int differ(const struct pair *pair, const char *what, uint32_t before, uint32_t now, struct rm_error *error) {
        cleanup_free char *was = describe(file_of(pair->before, before));
        cleanup_free char *is = describe(file_of(pair->now, now));

        error_set(error, -EPERM, "process %" PRIu32 ": %s is %.350s, was %.350s", pair->pid, what, is, was);
        error_clean(error);
        return -EPERM;
}

static int compare_file(const struct pair *pair, const char *what, uint32_t before, uint32_t now, struct rm_error *error) {
        return same_file(file_of(pair->before, before), file_of(pair->now, now)) ? 0 : differ(pair, what, before, now, error);
}

static int compare_descriptors(const struct pair *pair, const Capsule__InventoryTask *before, const Capsule__InventoryTask *now,
                               struct rm_error *error) {
        char what[32];

        for (size_t i = 0; i < before->n_descriptors && i < now->n_descriptors; i++) {
                const Capsule__InventoryDescriptor *a = before->descriptors[i];
                const Capsule__InventoryDescriptor *b = now->descriptors[i];

                snprintf(what, sizeof(what), "descriptor %" PRIu32, b->fd);
                if (a->fd != b->fd)
                        return error_set(error, -EPERM, "process %" PRIu32 ": %s is open but was not before", pair->pid, what);
                if (compare_file(pair, what, a->file, b->file, error) < 0)
                        return -EPERM;
                if (a->flags != b->flags)
                        return error_set(error, -EPERM,
                                         "process %" PRIu32 ": %s is open with flags %" PRIo32 ", was open with %" PRIo32,
                                         pair->pid, what, b->flags, a->flags);
        }
        if (before->n_descriptors == now->n_descriptors)
                return 0;
        return error_set(error, -EPERM, "process %" PRIu32 " has %zu descriptors, had %zu", pair->pid, now->n_descriptors,
                         before->n_descriptors);
}

static int compare_mappings(const struct pair *pair, const Capsule__InventoryTask *before, const Capsule__InventoryTask *now,
                            struct rm_error *error) {
        char what[64];

        for (size_t i = 0; i < before->n_mappings && i < now->n_mappings; i++) {
                const Capsule__InventoryMapping *a = before->mappings[i];
                const Capsule__InventoryMapping *b = now->mappings[i];

                snprintf(what, sizeof(what), "the mapping at %" PRIx64, b->start);
                if (a->start != b->start || a->bytes != b->bytes || a->offset != b->offset || a->protection != b->protection)
                        return error_set(error, -EPERM,
                                         "process %" PRIu32 ": a mapping is %" PRIx64 "+%" PRIx64 " of offset %" PRIx64
                                         ", protection %" PRIu32 ", and was %" PRIx64 "+%" PRIx64 " of offset %" PRIx64
                                         ", protection %" PRIu32,
                                         pair->pid, b->start, b->bytes, b->offset, b->protection, a->start, a->bytes, a->offset,
                                         a->protection);
                if (compare_file(pair, what, a->file, b->file, error) < 0)
                        return -EPERM;
        }
        if (before->n_mappings == now->n_mappings)
                return 0;
        return error_set(error, -EPERM, "process %" PRIu32 " has %zu file mappings, had %zu", pair->pid, now->n_mappings,
                         before->n_mappings);
}

static int compare_threads(const struct pair *pair, const Capsule__InventoryTask *before, const Capsule__InventoryTask *now,
                           struct rm_error *error) {
        if (before->n_threads != now->n_threads)
                return error_set(error, -EPERM, "process %" PRIu32 " has %zu threads, had %zu", pair->pid, now->n_threads,
                                 before->n_threads);
        for (size_t i = 0; i < before->n_threads; i++) {
                const Capsule__InventoryThread *a = before->threads[i];
                const Capsule__InventoryThread *b = now->threads[i];

                if (a->tid != b->tid || a->no_new_privs != b->no_new_privs || a->seccomp != b->seccomp ||
                    a->bounding != b->bounding)
                        return error_set(error, -EPERM,
                                         "thread %" PRIu32 " of process %" PRIu32 " has other restrictions than before", b->tid,
                                         pair->pid);
        }
        return 0;
}

static int compare_task(const struct pair *pair, const Capsule__InventoryTask *before, const Capsule__InventoryTask *now,
                        struct rm_error *error) {
        int r = compare_threads(pair, before, now, error);

        /* A process that has ended and waits for its parent has nothing open, and no files that its
         * fields could name. */
        if (r < 0 || (before->n_mappings == 0 && now->n_mappings == 0 && before->n_descriptors == 0 && now->n_descriptors == 0))
                return r;
        r = compare_file(pair, "the working directory", before->cwd, now->cwd, error);
        if (r == 0)
                r = compare_file(pair, "the root directory", before->root, now->root, error);
        if (r == 0)
                r = compare_file(pair, "the program", before->exe, now->exe, error);
        if (r == 0)
                r = compare_descriptors(pair, before, now, error);
        return r == 0 ? compare_mappings(pair, before, now, error) : r;
}

int inventory_compare(const Capsule__Inventory *before, const Capsule__Inventory *now, struct rm_error *error) {
        struct pair pair = { .before = before, .now = now };
        int r = 0;

        if (before->n_tasks != now->n_tasks)
                return error_set(error, -EPERM, "%zu processes, expected %zu", now->n_tasks, before->n_tasks);
        for (size_t i = 0; i < now->n_tasks && r == 0; i++) {
                pair.pid = now->tasks[i]->pid;
                if (before->tasks[i]->pid != pair.pid)
                        return error_set(error, -EPERM, "process %" PRIu32 " did not exist before", pair.pid);
                r = compare_task(&pair, before->tasks[i], now->tasks[i], error);
        }
        return r;
}

/* ---- the same files? ---- */

static int compare_written(const struct pair *pair, uint32_t before, uint32_t now, struct rm_error *error) {
        const Capsule__InventoryFile *a = file_of(pair->before, before);
        const Capsule__InventoryFile *b = file_of(pair->now, now);
        struct file_identity was, is;

        if (!a || !b || !S_ISREG(a->mode) || !inventory_has_path(a) || inventory_is_carried(a->name))
                return 0;
        inventory_identity(a, &was);
        inventory_identity(b, &is);
        if (file_identity_same(&was, &is))
                return 0;
        error_set(error, -EXDEV, "process %" PRIu32 " writes to %.350s, which is another file on this node", pair->pid, a->name);
        error_clean(error);
        return -EXDEV;
}

int inventory_compare_written(const Capsule__Inventory *before, const Capsule__Inventory *now, struct rm_error *error) {
        struct pair pair = { .before = before, .now = now };
        int r = 0;

        for (size_t t = 0; t < before->n_tasks && t < now->n_tasks; t++) {
                const Capsule__InventoryTask *a = before->tasks[t], *b = now->tasks[t];

                pair.pid = b->pid;
                for (size_t i = 0; i < a->n_descriptors && i < b->n_descriptors && r == 0; i++)
                        if (inventory_opens_for_writing(a->descriptors[i]))
                                r = compare_written(&pair, a->descriptors[i]->file, b->descriptors[i]->file, error);
                for (size_t i = 0; i < a->n_mappings && i < b->n_mappings && r == 0; i++)
                        if (inventory_maps_for_writing(a->mappings[i]))
                                r = compare_written(&pair, a->mappings[i]->file, b->mappings[i]->file, error);
        }
        return r;
}

/* ---- can the owner reach it himself? ---- */

/* As a descriptor opens it: for reading, writing or both. O_PATH needs no right over the file. */
static int access_of(uint32_t flags) {
        if (flags & O_PATH)
                return F_OK;
        switch (flags & O_ACCMODE) {
        case O_RDONLY:
                return R_OK;
        case O_WRONLY:
                return W_OK;
        default:
                return R_OK | W_OK;
        }
}

/* Below /proc a path means what the one who looks is; no file there outlives its process. */
static bool is_checked(const Capsule__InventoryFile *file) {
        return inventory_has_path(file) && strncmp(file->name, "/proc/", 6) != 0;
}

static int reach(const Capsule__InventoryFile *file, int access) {
        struct stat st;

        if (!is_checked(file))
                return 0;
        /* A link is open itself only by O_PATH and O_NOFOLLOW. */
        if (fstatat(AT_FDCWD, file->name, &st, S_ISLNK(file->mode) ? AT_SYMLINK_NOFOLLOW : 0) < 0)
                return -errno;
        if (st.st_mode != file->mode || st.st_uid != file->uid || st.st_gid != file->gid)
                return -ESTALE;
        return access != F_OK && faccessat(AT_FDCWD, file->name, access, AT_EACCESS) < 0 ? -errno : 0;
}

#define REACH_USEC UINT64_C(30000000)

/* The findings of a child. */
struct verdict {
        int error;
        uint32_t file;
};

static void reach_all(const Capsule__Inventory *inventory, struct verdict *verdict) {
        cleanup_free int *access = xcalloc(inventory->n_files + 1, sizeof(*access));

        for (size_t t = 0; t < inventory->n_tasks; t++)
                for (size_t i = 0; i < inventory->tasks[t]->n_descriptors; i++) {
                        const Capsule__InventoryDescriptor *d = inventory->tasks[t]->descriptors[i];

                        access[d->file] |= access_of(d->flags);
                }
        for (uint32_t f = 0; f < inventory->n_files && verdict->error == 0; f++) {
                verdict->error = reach(inventory->files[f], access[f]);
                verdict->file = f;
        }
}

static void reach_as_owner(int error, int report_fd, const void *arg) {
        struct verdict verdict = { .error = error };

        if (error == 0)
                reach_all(arg, &verdict);
        (void) write_all(report_fd, &verdict, sizeof(verdict));
}

int inventory_reach(const Capsule__Inventory *inventory, const Capsule__Spec *spec, struct rm_error *error) {
        struct verdict verdict = { 0 };
        int r = identity_ask(spec, 0, reach_as_owner, inventory, REACH_USEC, &verdict, sizeof(verdict));

        if (r < 0)
                verdict = (struct verdict) { .error = r };
        if (verdict.error == 0)
                return 0;
        error_set(error, -EPERM, "%.400s: its owner cannot access it: %s",
                  inventory->n_files > 0 ? inventory->files[verdict.file]->name : "?",
                  verdict.error == -ESTALE ? "another file has that name now" : strerror(-verdict.error));
        error_clean(error);
        return -EPERM;
}
