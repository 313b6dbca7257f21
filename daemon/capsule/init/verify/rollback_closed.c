#include "daemon/capsule/init/verify/rollback_closed.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/util.h"
#include "daemon/capsule/init/base/file_identity.h"
#include "daemon/capsule/init/base/identity.h"
#include "daemon/capsule/init/verify/inventory.h"
#include "daemon/capsule/init/verify/written.h"

enum {
        KEPT_MAX_BYTES = 16 * 1024 * 1024,
        MISMATCHES_MAX_BYTES = 1024,
        CUT_USEC = 30000000,
};

struct closed_task {
        const Capsule__Inventory *inventory;
        uint64_t left_usec;
};

/* ---- the child ---- */

bool rollback_by_others(const struct stat *st, uint64_t left_usec) {
        return left_usec > 0 && inventory_mtime_nsec(st) > (int64_t) (left_usec * 1000);
}

int rollback_cut(int fd, const Capsule__InventoryFile *file) {
        const struct timespec times[] = { { .tv_nsec = UTIME_OMIT },
                                          { .tv_sec = file->mtime_nsec / 1000000000, .tv_nsec = file->mtime_nsec % 1000000000 } };

        if (ftruncate(fd, (off_t) file->size_bytes) < 0)
                return -errno;
        if (file->mtime_nsec > 0)
                (void) futimens(fd, times);
        return 0;
}

bool rollback_keep_end(int fd, const Capsule__InventoryFile *file, uint64_t size_bytes) {
        cleanup_free char *name = xasprintf("%s.cut-XXXXXX", file->name);
        off_t at = (off_t) file->size_bytes;
        cleanup_close int to = -1;
        ssize_t n = 1;

        if (size_bytes - file->size_bytes > KEPT_MAX_BYTES)
                return false;
        to = mkostemp(name, O_CLOEXEC);
        if (to < 0)
                return false;
        while (n > 0 && (uint64_t) at < size_bytes)
                n = sendfile(to, fd, &at, size_bytes - (uint64_t) at);
        if (n > 0 && fchmod(to, file->mode & 0777) == 0)
                return true;
        (void) unlink(name);
        return false;
}

static bool is_the_jobs(const Capsule__Inventory *inventory, const Capsule__ClosedFile *closed, bool *ret_made) {
        *ret_made = closed->file->birth_nsec != 0 && closed->file->birth_nsec >= inventory->made_since_nsec;
        return !closed->others && closed->hash != 0 && closed->file->size_bytes > 0 && (*ret_made || closed->writes > 1);
}

/* Returns whether somebody should look at the file. */
static bool cut_back(const struct closed_task *task, const Capsule__ClosedFile *closed) {
        const Capsule__InventoryFile *file = closed->file;
        cleanup_close int fd = open(file->name, O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        struct file_identity was, now;
        struct stat st;
        bool made;

        if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_uid != file->uid)
                return false;
        inventory_identity(file, &was);
        file_identity_take(fd, "", &st, &now);
        if (!file_identity_same(&was, &now) || (uint64_t) st.st_size <= file->size_bytes)
                return false;
        if (!is_the_jobs(task->inventory, closed, &made) || written_hash(fd, file->size_bytes) != closed->hash)
                return true;
        made = made && !rollback_by_others(&st, task->left_usec);
        if (!made && !rollback_keep_end(fd, file, (uint64_t) st.st_size))
                return true;
        return rollback_cut(fd, file) < 0 || !made;
}

/* The child says of each file, in their order, whether somebody should look at it. */
static void cut_as_owner(int error, int report_fd, const void *arg) {
        const struct closed_task *task = arg;

        for (size_t i = 0; i < task->inventory->n_closed_files && error == 0; i++) {
                bool doubt = cut_back(task, task->inventory->closed_files[i]);

                (void) write_all(report_fd, &doubt, sizeof(doubt));
        }
}

/* ---- PID 1 ---- */

static void add_name(char **text, const char *name) {
        char *longer;

        if (strlen(*text) + strlen(name) >= MISMATCHES_MAX_BYTES)
                return;
        longer = xasprintf("%s%s%s", *text, **text ? " " : "", name);
        free(*text);
        *text = longer;
}

char *rollback_closed(const Capsule__Inventory *inventory, const Capsule__Spec *spec, uint64_t left_usec) {
        const struct closed_task task = { inventory, left_usec };
        uint64_t end_usec = now_usec() + CUT_USEC;
        char *mismatches = xstrdup("");
        size_t i = 0;
        pid_t pid;
        int fd;

        if (inventory->n_closed_files == 0 || identity_child(spec, 0, cut_as_owner, &task, &pid, &fd) < 0)
                return mismatches;
        for (; i < inventory->n_closed_files; i++) {
                uint64_t now = now_usec();
                bool doubt;

                if (now >= end_usec || identity_await(fd, end_usec - now) < 0 || read_all(fd, &doubt, sizeof(doubt)) < 0)
                        break;
                if (doubt)
                        add_name(&mismatches, inventory->closed_files[i]->file->name);
        }
        identity_child_end(pid, fd);
        for (; i < inventory->n_closed_files; i++)
                add_name(&mismatches, inventory->closed_files[i]->file->name);
        return mismatches;
}
