#include "daemon/capsule/init/rollback.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/error.h"
#include "common/util.h"
#include "daemon/capsule/init/identity.h"
#include "daemon/capsule/init/inventory.h"

enum {
        PROTECTION_SHARED = 8, /* as InventoryMapping.protection */
        DOUBTS_MAX_BYTES = 1024,
};

/* How a file was open. */
struct use {
        bool written;
        bool in_place; /* not only at its end */
};

/* What a child finds out; `doubts` files follow, each a number. */
struct verdict {
        int error;
        uint32_t file;
        uint32_t doubts;
};

/* The capsule's own file systems are restored with it. */
static bool is_carried(const char *name) {
        static const char *const mounts[] = { "/tmp/", "/dev/shm/", "/run/", "/proc/", "/dev/" };

        for (size_t i = 0; i < ARRAY_SIZE(mounts); i++)
                if (strncmp(name, mounts[i], strlen(mounts[i])) == 0)
                        return true;
        return false;
}

static bool is_regarded(const Capsule__InventoryFile *file) {
        return inventory_has_path(file) && S_ISREG(file->mode) && !is_carried(file->name);
}

static void see_descriptors(const Capsule__Inventory *inventory, const Capsule__InventoryTask *task, struct use *uses) {
        for (size_t i = 0; i < task->n_descriptors; i++) {
                const Capsule__InventoryDescriptor *d = task->descriptors[i];

                if (d->file >= inventory->n_files || (d->flags & O_PATH) || (d->flags & O_ACCMODE) == O_RDONLY)
                        continue;
                uses[d->file].written = true;
                if (!(d->flags & O_APPEND) && d->position < inventory->files[d->file]->size_bytes)
                        uses[d->file].in_place = true;
        }
}

static struct use *uses_of(const Capsule__Inventory *inventory) {
        struct use *uses = xcalloc(inventory->n_files + 1, sizeof(*uses));

        for (size_t t = 0; t < inventory->n_tasks; t++) {
                const Capsule__InventoryTask *task = inventory->tasks[t];

                see_descriptors(inventory, task, uses);
                for (size_t i = 0; i < task->n_mappings; i++) {
                        const Capsule__InventoryMapping *m = task->mappings[i];

                        if (m->file < inventory->n_files && (m->protection & PROTECTION_SHARED) && (m->protection & PROT_WRITE))
                                uses[m->file].written = uses[m->file].in_place = true;
                }
        }
        return uses;
}

/* `ret_written`: since it was saved. */
static int cut_back(const Capsule__InventoryFile *file, bool *ret_written) {
        cleanup_close int fd = open(file->name, O_WRONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        struct stat st;

        if (fd < 0 || fstat(fd, &st) < 0)
                return -errno;
        if (!S_ISREG(st.st_mode) || st.st_uid != file->uid || (uint64_t) st.st_size < file->size_bytes)
                return -ESTALE;
        *ret_written = inventory_mtime_nsec(&st) != file->mtime_nsec;
        return (uint64_t) st.st_size > file->size_bytes && ftruncate(fd, (off_t) file->size_bytes) < 0 ? -errno : 0;
}

/* What the owner does not write, such as programs and libraries, is the same on all nodes. */
static int check_size(const Capsule__InventoryFile *file, const Capsule__Spec *spec) {
        struct stat st;

        if (file->uid == spec->uid)
                return 0;
        if (stat(file->name, &st) < 0)
                return -errno;
        return (uint64_t) st.st_size == file->size_bytes ? 0 : -ESTALE;
}

/* What the child is given. */
struct task {
        const Capsule__Inventory *inventory;
        const Capsule__Spec *spec;
};

static void roll_back_as_owner(int error, int report_fd, const void *arg) {
        const struct task *task = arg;
        const Capsule__Inventory *inventory = task->inventory;
        cleanup_free uint32_t *doubts = xcalloc(inventory->n_files + 1, sizeof(*doubts));
        cleanup_free struct use *uses = uses_of(inventory);
        struct verdict verdict = { .error = error };

        for (uint32_t f = 0; f < inventory->n_files && verdict.error == 0; f++) {
                bool written = false;

                if (!is_regarded(inventory->files[f]))
                        continue;
                verdict.error =
                        uses[f].written ? cut_back(inventory->files[f], &written) : check_size(inventory->files[f], task->spec);
                verdict.file = f;
                if (written && uses[f].in_place)
                        doubts[verdict.doubts++] = f;
        }
        (void) write_all(report_fd, &verdict, sizeof(verdict));
        (void) write_all(report_fd, doubts, verdict.doubts * sizeof(*doubts));
}

static char *read_doubts(int fd, const Capsule__Inventory *inventory, uint32_t n) {
        char *text = xstrdup("");

        for (uint32_t i = 0, f; i < n && read_all(fd, &f, sizeof(f)) == 0 && f < inventory->n_files; i++) {
                char *longer = xasprintf("%s%s%s", text, *text ? " " : "", inventory->files[f]->name);

                free(text);
                text = longer;
                if (strlen(text) > DOUBTS_MAX_BYTES) {
                        text[DOUBTS_MAX_BYTES] = '\0';
                        break;
                }
        }
        return text;
}

static int explain(const Capsule__Inventory *inventory, const struct verdict *verdict, struct rm_error *error) {
        error_set(error, verdict->error, "%.400s: %s",
                  verdict->file < inventory->n_files ? inventory->files[verdict->file]->name : "its files",
                  verdict->error == -ESTALE ? "it is another file than when the job was saved, or was made shorter since"
                                            : strerror(-verdict->error));
        error_clean(error);
        return verdict->error;
}

int rollback_files(const Capsule__Inventory *inventory, const Capsule__Spec *spec, char **ret_doubts, struct rm_error *error) {
        const struct task task = { inventory, spec };
        struct verdict verdict = { .error = -ECHILD };
        int fd, r;
        pid_t pid;

        r = identity_child(spec, roll_back_as_owner, &task, &pid, &fd);
        if (r < 0)
                return error_sys(error, r, "cannot start a process of the owner's");
        if (read_all(fd, &verdict, sizeof(verdict)) == 0 && verdict.error == 0)
                *ret_doubts = read_doubts(fd, inventory, verdict.doubts);
        identity_child_end(pid, fd);
        return verdict.error == 0 ? 0 : explain(inventory, &verdict, error);
}
