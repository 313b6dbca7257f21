#include "daemon/capsule/init/verify/rollback_closed.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#include "common/text.h"
#include "common/util.h"
#include "daemon/capsule/init/base/file_identity.h"
#include "daemon/capsule/init/base/identity.h"
#include "daemon/capsule/init/verify/inventory.h"
#include "daemon/capsule/init/verify/written.h"

enum {
        KEPT_MAX_BYTES = 16 * 1024 * 1024, /* what has more stays as it is */
        MISMATCHES_MAX_BYTES = 1024,
        CUT_USEC = 30000000,
};

#define SECOND_NSEC INT64_C(1000000000)
#define SEEN_NSEC SECOND_NSEC /* five looks at events */

struct closed_task {
        const Capsule__Inventory *inventory;
        const Capsule__Spec *spec;
        struct rollback_left left;
};

/* ---- the child ---- */

/* Only its owner may set a file's time of modification alone. */
struct rollback_clock rollback_clock_read(int fd, const struct stat *st) {
        const struct timespec now[] = { { .tv_nsec = UTIME_OMIT }, { .tv_nsec = UTIME_NOW } };
        const struct timespec then[] = { { .tv_nsec = UTIME_OMIT }, st->st_mtim };
        struct rollback_clock clock = { 0 };
        struct stat touched;

        if (futimens(fd, now) < 0)
                return clock;
        if (fstat(fd, &touched) == 0) {
                clock.now_nsec = inventory_mtime_nsec(&touched);
                clock.ahead_nsec = clock.now_nsec - (int64_t) now_real_usec() * 1000;
        }
        (void) futimens(fd, then);
        return clock;
}

bool rollback_by_others(const struct rollback_clock *clock, int64_t mtime_nsec, uint64_t left_ago_usec) {
        if (left_ago_usec == 0)
                return false;
        if (mtime_nsec % SECOND_NSEC == 0) /* the file system counts whole seconds, as older ones do */
                mtime_nsec += SECOND_NSEC - 1;
        return clock->now_nsec == 0 || clock->now_nsec - mtime_nsec < (int64_t) left_ago_usec * 1000;
}

bool rollback_made_since(const struct rollback_clock *clock, int64_t birth_nsec, int64_t since_nsec) {
        return birth_nsec != 0 && clock->now_nsec != 0 && birth_nsec - clock->ahead_nsec >= since_nsec;
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

/* A user who could not read the file is not to read the copy. Where the file has an access control
 * list, what looks like the rights of its group are the most that anybody has by that list. */
static int protect(int fd, int kept_fd) {
        struct stat st;
        mode_t mode;

        if (fstat(fd, &st) < 0)
                return -errno;
        mode = st.st_mode & 0707;
        if (fgetxattr(fd, "system.posix_acl_access", NULL, 0) <= 0 && fchown(kept_fd, (uid_t) -1, st.st_gid) == 0)
                mode = st.st_mode & 0777;
        return fchmod(kept_fd, mode) < 0 ? -errno : 0;
}

static int make_kept(int fd, const Capsule__InventoryFile *file, struct rollback_kept *kept) {
        char *name = xasprintf("%s.cut-XXXXXX", file->name);

        kept->fd = mkostemp(name, O_CLOEXEC);
        if (kept->fd < 0) {
                free(name);
                return -errno;
        }
        kept->name = name;
        kept->end = (off_t) file->size_bytes;
        return protect(fd, kept->fd);
}

int rollback_keep_end(int fd, const Capsule__InventoryFile *file, struct rollback_kept *kept) {
        int r = kept->name ? 0 : make_kept(fd, file, kept);
        struct stat st;

        while (r == 0 && (r = fstat(fd, &st) < 0 ? -errno : 0) == 0 && st.st_size > kept->end) {
                ssize_t n = sendfile(kept->fd, fd, &kept->end, (size_t) (st.st_size - kept->end));

                if (n == 0 || (n < 0 && errno != EINTR))
                        r = n == 0 ? -EIO : errno == EBADF ? -EACCES : -errno; /* the owner may only write to it */
        }
        kept->error = r;
        return r;
}

int rollback_kept_finish(struct rollback_kept *kept) {
        int r = fsync(kept->fd) < 0 ? -errno : 0;

        (void) close(kept->fd);
        free(kept->name);
        *kept = (struct rollback_kept) { 0 };
        return r;
}

void rollback_kept_drop(struct rollback_kept *kept) {
        if (!kept->name)
                return;
        (void) unlink(kept->name);
        (void) close(kept->fd);
        free(kept->name);
        *kept = (struct rollback_kept) { .error = kept->error };
}

/* Returns whether the file was cut back, and all that was cut off is kept. */
static bool keep_and_cut(int fd, const Capsule__InventoryFile *file) {
        struct rollback_kept kept = { 0 };
        bool done = rollback_keep_end(fd, file, &kept) == 0 && fsync(kept.fd) == 0 && rollback_keep_end(fd, file, &kept) == 0 &&
                    rollback_cut(fd, file) == 0;

        if (done)
                (void) rollback_kept_finish(&kept);
        else
                rollback_kept_drop(&kept);
        return done;
}

/* The job has made a file of its owner's that was made since the job began, and no sooner than it
 * was first seen to write it: who makes a file to write a line, and closes it, is seen soon
 * (written.c). Of what had been there for longer somebody else may have made some, and may go on
 * to add to it. */
static bool is_made_by_the_job(const struct closed_task *task, const Capsule__ClosedFile *closed,
                               const struct rollback_clock *clock) {
        const Capsule__InventoryFile *file = closed->file;

        return rollback_made_since(clock, file->birth_nsec, task->inventory->made_since_nsec) && closed->first_nsec != 0 &&
               rollback_made_since(clock, file->birth_nsec, closed->first_nsec - SEEN_NSEC) && file->uid == task->spec->uid;
}

static bool is_the_jobs(const struct closed_task *task, const Capsule__ClosedFile *closed, const struct rollback_clock *clock,
                        bool *ret_made) {
        *ret_made = is_made_by_the_job(task, closed, clock);
        return !closed->others && closed->hash != 0 && closed->file->size_bytes > 0 && (*ret_made || closed->writes > 1);
}

/* Returns whether somebody should look at the file. */
static bool cut_back(const struct closed_task *task, const Capsule__ClosedFile *closed) {
        const Capsule__InventoryFile *file = closed->file;
        cleanup_close int fd = open(file->name, O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        struct file_identity was, now;
        struct rollback_clock clock;
        uint64_t left_ago_usec;
        struct stat st;
        bool made;

        if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_uid != file->uid)
                return false;
        inventory_identity(file, &was);
        file_identity_take(fd, "", &st, &now);
        if (!file_identity_same(&was, &now) || (uint64_t) st.st_size <= file->size_bytes)
                return false;
        left_ago_usec = rollback_left_ago_usec(&task->left);
        clock = rollback_clock_read(fd, &st);
        if (!is_the_jobs(task, closed, &clock, &made) || written_hash(fd, file->size_bytes) != closed->hash)
                return true;
        made = made && !rollback_by_others(&clock, inventory_mtime_nsec(&st), left_ago_usec);
        if (made)
                return rollback_cut(fd, file) < 0;
        if ((uint64_t) st.st_size - file->size_bytes <= KEPT_MAX_BYTES)
                (void) keep_and_cut(fd, file);
        return true;
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
        if (strlen(*text) + strlen(name) < MISMATCHES_MAX_BYTES)
                *text = text_add_word(*text, " ", name);
}

char *rollback_closed(const Capsule__Inventory *inventory, const Capsule__Spec *spec, uint64_t left_ago_usec) {
        const struct closed_task task = { inventory, spec, { left_ago_usec, now_usec() } };
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
