#include "daemon/capsule/init/verify/rollback.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/error.h"
#include "common/text.h"
#include "common/util.h"
#include "daemon/capsule/init/base/file_identity.h"
#include "daemon/capsule/init/base/identity.h"
#include "daemon/capsule/init/verify/inventory.h"
#include "daemon/capsule/init/verify/rollback_closed.h"
#include "daemon/capsule/init/verify/written.h"

enum {
        MISMATCHES_MAX_BYTES = 1024,
        BLOCK_BYTES = 1 << 20,
        COPY_USEC = 600000000, /* for all of it */
        HASH_USEC = 300000,    /* likewise; the group stands still */
};

/* The use of a file: how it was open. */
struct use {
        bool written;
        bool in_place; /* not only at its end, as far as one can see */
        bool anywhere; /* nothing keeps it from that */
        bool run; /* a program or a library */
};

/* The steps of going back. Each of them is done with all files before the next one begins, so that
 * what stands in the way of one file is found before another one is changed. */
enum step {
        STEP_SCAN,
        STEP_KEEP, /* what is to be cut off, and may be somebody else's, is copied */
        STEP_CHANGE,
};

/* The findings of a child; the numbers of `doubts` files follow, which may differ from what they
 * were, or may not be read. */
struct verdict {
        int error;
        uint32_t file;
        uint32_t mismatches;
        bool keeping; /* the error is that an end cannot be kept */
};

static bool is_regarded(const Capsule__InventoryFile *file) {
        return inventory_has_path(file) && (S_ISREG(file->mode) || S_ISDIR(file->mode) || S_ISFIFO(file->mode)) &&
               !inventory_is_carried(file->name);
}

static void see_descriptors(const Capsule__Inventory *inventory, const Capsule__InventoryTask *task, struct use *uses) {
        for (size_t i = 0; i < task->n_descriptors; i++) {
                const Capsule__InventoryDescriptor *d = task->descriptors[i];

                if (d->file >= inventory->n_files || !inventory_opens_for_writing(d))
                        continue;
                uses[d->file].written = true;
                if (d->flags & O_APPEND)
                        continue;
                uses[d->file].anywhere = true;
                if (d->position < inventory->files[d->file]->size_bytes)
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

                        if (m->file >= inventory->n_files)
                                continue;
                        if (inventory_maps_for_writing(m))
                                uses[m->file].written = uses[m->file].in_place = uses[m->file].anywhere = true;
                        uses[m->file].run |= (m->protection & PROT_EXEC) != 0;
                }
        }
        return uses;
}

/* The child is given this. */
struct task {
        const Capsule__Inventory *inventory;
        const Capsule__Spec *spec;
        int copies_fd;
        uint64_t max_bytes; /* of copies that are made */
        enum step step, last_step;
        bool other_files; /* are taken as well */
        struct rollback_left left;
        const bool *hashed; /* which files are to be hashed */
        struct rollback_kept *kept; /* of each file */
};

/* Is this another file than the job's: has, for example, a program that writes logs anew moved the
 * one that the job had open? */
static bool is_other(const struct task *task, const Capsule__InventoryFile *file, int dir_fd, const char *path,
                     const struct stat *st) {
        struct file_identity was, now;

        if (task->other_files)
                return false;
        inventory_identity(file, &was);
        file_identity_take(dir_fd, path, st, &now);
        return !file_identity_same(&was, &now);
}

static int check_open(const struct task *task, const Capsule__InventoryFile *file, int fd, struct stat *ret_stat) {
        if (fd < 0 || fstat(fd, ret_stat) < 0)
                return -errno;
        if (!S_ISREG(ret_stat->st_mode) || ret_stat->st_uid != file->uid || is_other(task, file, fd, "", ret_stat))
                return ROLLBACK_OTHER_FILE;
        return 0;
}

/* May be written only, where the owner may not read it. */
static int open_written(const char *name) {
        int fd = open(name, O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

        return fd < 0 && errno == EACCES ? open(name, O_WRONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY) : fd;
}

/* Is something else there now where the file begins, or where it ended? What cannot be read is
 * not. */
static bool is_changed(const Capsule__InventoryFile *file, int fd) {
        uint64_t hash = file->hash != 0 ? written_hash(fd, file->size_bytes) : 0;

        return hash != 0 && hash != file->hash;
}

/* Where another directory stands in the place of one that programs have open, or work in, they
 * would find and make other files. Directories of others are the nodes'; in another cluster, and on
 * a disk of another node, all are other ones. */
static int check_directory(const struct task *task, const Capsule__InventoryFile *file) {
        struct stat st;

        if (file->uid != task->spec->uid)
                return 0;
        if (stat(file->name, &st) < 0)
                return -errno;
        if (!S_ISDIR(st.st_mode))
                return ROLLBACK_OTHER_FILE;
        return file->top != 0 && is_other(task, file, AT_FDCWD, file->name, &st) &&
                               inventory_top(file->name, file->uid) == file->top
                       ? ROLLBACK_OTHER_FILE
                       : 0;
}

/* A pipe must still be the job's: data that was saved of it would be read by whoever reads from the
 * one that has its name. */
static int check_pipe(const struct task *task, const Capsule__InventoryFile *file) {
        struct stat st;

        if (stat(file->name, &st) < 0)
                return -errno;
        return !S_ISFIFO(st.st_mode) || is_other(task, file, AT_FDCWD, file->name, &st) ? ROLLBACK_OTHER_FILE : 0;
}

/* Files that the owner does not write, such as programs and libraries, are the same on all nodes. A
 * file may have been written to by others, and is another file if another one has come in its
 * place; a copy that keeps the time, as on disks of nodes, is none. But of a program the pages that
 * were not used yet are read from its file. */
static int check_unwritten(const struct task *task, const Capsule__InventoryFile *file, const struct use *use) {
        bool own = file->uid == task->spec->uid;
        struct stat st;

        if (stat(file->name, &st) < 0)
                return -errno;
        if (task->other_files ||
            ((uint64_t) st.st_size == file->size_bytes && (!own || inventory_mtime_nsec(&st) == file->mtime_nsec)))
                return 0;
        if (is_other(task, file, AT_FDCWD, file->name, &st))
                return ROLLBACK_OTHER_FILE;
        return use->run ? ROLLBACK_CHANGED : 0;
}

/* ---- copies ---- */

static void copy_name(uint32_t file, char ret[static 16]) {
        (void) snprintf(ret, 16, "%" PRIu32, file);
}

/* Reads no more than the size of then, whatever it has become. */
static int make_copy(const struct task *task, uint32_t f) {
        const Capsule__InventoryFile *file = task->inventory->files[f];
        cleanup_close int from = open(file->name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY), to = -1;
        char name[16];
        struct stat st;
        off_t at = 0;
        int r = check_open(task, file, from, &st);

        if (r < 0)
                return r;
        copy_name(f, name);
        to = openat(task->copies_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (to < 0)
                return -errno;
        while ((uint64_t) at < file->size_bytes) {
                ssize_t n = sendfile(to, from, &at, file->size_bytes - (uint64_t) at);

                if (n <= 0)
                        return n < 0 ? -errno : -ERANGE;
        }
        return 0;
}

static void copy_as_owner(int error, int report_fd, const void *arg) {
        const struct task *task = arg;
        cleanup_free uint32_t *unread = xcalloc(task->inventory->n_files + 1, sizeof(*unread));
        struct verdict verdict = { .error = error };
        uint64_t left = task->max_bytes;

        for (uint32_t f = 0; f < task->inventory->n_files && verdict.error == 0; f++) {
                const Capsule__InventoryFile *file = task->inventory->files[f];

                if (!file->copied)
                        continue;
                verdict.file = f;
                verdict.error = file->size_bytes > left ? -EFBIG : make_copy(task, f);
                if (verdict.error == 0)
                        left -= file->size_bytes;
                if (verdict.error == -EACCES) {
                        verdict.error = 0;
                        unread[verdict.mismatches++] = f;
                }
        }
        (void) write_all(report_fd, &verdict, sizeof(verdict));
        (void) write_all(report_fd, unread, verdict.mismatches * sizeof(*unread));
}

static ssize_t read_block(int fd, uint8_t *block, size_t bytes, off_t at) {
        size_t got = 0;

        while (got < bytes) {
                ssize_t n = pread(fd, block + got, bytes - got, at + (off_t) got);

                if (n < 0 && errno != EINTR)
                        return -errno;
                if (n == 0)
                        break;
                got += n > 0 ? (size_t) n : 0;
        }
        return (ssize_t) got;
}

static int write_block(int fd, const uint8_t *block, size_t bytes, off_t at) {
        for (size_t put = 0; put < bytes;) {
                ssize_t n = pwrite(fd, block + put, bytes - put, at + (off_t) put);

                if (n < 0 && errno != EINTR)
                        return -errno;
                put += n > 0 ? (size_t) n : 0;
        }
        return 0;
}

/* Writes only what differs: most of a large file may not have changed. A file that may not be read
 * is written as a whole. */
static int copy_back(int from, int to) {
        cleanup_free uint8_t *then = xcalloc(2, BLOCK_BYTES);
        uint8_t *now = then + BLOCK_BYTES;
        off_t at = 0;

        for (;;) {
                ssize_t n = read_block(from, then, BLOCK_BYTES, at);
                int r = 0;

                if (n <= 0)
                        return n < 0 ? (int) n : ftruncate(to, at) < 0 ? -errno : 0;
                if (read_block(to, now, (size_t) n, at) != n || memcmp(then, now, (size_t) n) != 0)
                        r = write_block(to, then, (size_t) n, at);
                if (r < 0)
                        return r;
                at += n;
        }
}

/* Have both files the same contents, as where a file that was gone has been made anew from its copy
 * before? */
static bool is_same(int from, int to) {
        cleanup_free uint8_t *then = xcalloc(2, BLOCK_BYTES);
        uint8_t *now = then + BLOCK_BYTES;
        ssize_t n = BLOCK_BYTES;

        for (off_t at = 0; n == BLOCK_BYTES; at += n) {
                n = read_block(from, then, BLOCK_BYTES, at);
                if (n < 0 || read_block(to, now, BLOCK_BYTES, at) != n || memcmp(then, now, (size_t) n) != 0)
                        return false;
        }
        return true;
}

/* A name that nobody has taken meanwhile. */
static int give_name(const char *made, const char *name) {
        if (link(made, name) == 0)
                return 0;
        if (errno == EPERM || errno == EOPNOTSUPP || errno == EMLINK) /* it has no links */
                return renameat2(AT_FDCWD, made, AT_FDCWD, name, RENAME_NOREPLACE) < 0 ? -errno : 0;
        return -errno;
}

/* Under its name it is whole: other capsules of the job may look for it at the same time, and this
 * may end at any time. */
static int make_again(int from, const Capsule__InventoryFile *file) {
        const char *base = strrchr(file->name, '/');
        cleanup_free char *made = xasprintf("%.*s/.rmd-XXXXXX", (int) (base - file->name), file->name);
        cleanup_close int to = mkostemp(made, O_CLOEXEC);
        int r = to < 0 || fchown(to, (uid_t) -1, file->gid) < 0 || fchmod(to, file->mode & 07777) < 0 ? -errno : 0;

        if (to < 0)
                return r;
        if (r == 0)
                r = copy_back(from, to);
        if (r == 0)
                r = give_name(made, file->name);
        (void) unlink(made);
        return r;
}

/* ---- ends of files ---- */

/* Only who adds to the file has it open, so what others have added has come between. A file that
 * the job has made is its own; of which it is not known when it was made, is not. */
static bool is_shared(const struct task *task, const Capsule__InventoryFile *file, const struct use *use,
                      const struct rollback_clock *clock) {
        return !use->anywhere && !rollback_made_since(clock, file->birth_nsec, task->inventory->made_since_nsec);
}

/* Has the file become longer, perhaps by what others have added? */
static bool is_of_others(const struct task *task, const Capsule__InventoryFile *file, const struct use *use, int fd,
                         const struct stat *st) {
        uint64_t left_ago_usec = rollback_left_ago_usec(&task->left); /* not a moment later than the clock is read */
        struct rollback_clock clock;

        if ((uint64_t) st->st_size <= file->size_bytes)
                return false;
        clock = rollback_clock_read(fd, st);
        return is_shared(task, file, use, &clock) || rollback_by_others(&clock, inventory_mtime_nsec(st), left_ago_usec);
}

/* An end that cannot be kept is not cut off, unless whoever lets the job go on has decided that for
 * all files. */
static int give_up_end(const struct task *task, uint32_t f, int r) {
        rollback_kept_drop(&task->kept[f]);
        return task->other_files ? 0 : r;
}

static int keep_end(const struct task *task, uint32_t f, int fd) {
        int r = rollback_keep_end(fd, task->inventory->files[f], &task->kept[f]);

        if (r == 0 && fsync(task->kept[f].fd) < 0)
                r = task->kept[f].error = -errno;
        return r < 0 ? give_up_end(task, f, r) : 0;
}

/* The copy also takes what others have added since STEP_KEEP, or have only begun to add then.
 * `copy_fd`: the file gets the contents of this one; -1: it is cut. */
static int change_end(const struct task *task, uint32_t f, int fd, bool of_others, int copy_fd) {
        const Capsule__InventoryFile *file = task->inventory->files[f];
        struct rollback_kept *kept = &task->kept[f];
        int r = of_others ? rollback_keep_end(fd, file, kept) : 0;

        if (r < 0)
                r = give_up_end(task, f, r);
        if (r == 0)
                r = copy_fd < 0 ? rollback_cut(fd, file) : copy_back(copy_fd, fd);
        if (kept->name && rollback_kept_finish(kept) < 0 && r == 0)
                r = -EIO;
        return r;
}

/* `ret_doubt`: whether somebody should look at the file. A file that the job only adds to, and that
 * begins or ends otherwise now, was written anew. */
static int cut_back(const struct task *task, uint32_t f, const struct use *use, bool *ret_doubt) {
        const Capsule__InventoryFile *file = task->inventory->files[f];
        cleanup_close int fd = open_written(file->name);
        bool changed, of_others;
        struct stat st;
        int r = check_open(task, file, fd, &st);

        if (r < 0)
                return r;
        if ((uint64_t) st.st_size < file->size_bytes)
                return task->other_files ? 0 : -ERANGE;
        changed = is_changed(file, fd);
        if (changed && !use->anywhere && !task->other_files)
                return ROLLBACK_CHANGED;
        if (task->step == STEP_SCAN)
                return 0;
        of_others = is_of_others(task, file, use, fd, &st);
        if (task->step == STEP_KEEP)
                return of_others ? keep_end(task, f, fd) : 0;
        *ret_doubt = changed || of_others || (use->in_place && inventory_mtime_nsec(&st) != file->mtime_nsec);
        return (uint64_t) st.st_size > file->size_bytes ? change_end(task, f, fd, of_others, -1) : 0;
}

static int put_back(const struct task *task, uint32_t f, const struct use *use, bool *ret_doubt) {
        const Capsule__InventoryFile *file = task->inventory->files[f];
        cleanup_close int from = -1, to = open_written(file->name);
        bool gone = to < 0 && errno == ENOENT;
        struct stat st = { 0 };
        char name[16];
        int r;

        copy_name(f, name);
        from = task->copies_fd < 0 ? -1 : openat(task->copies_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
        if (from < 0)
                return -ENODATA;
        if (gone) {
                r = task->step != STEP_CHANGE ? 0 : make_again(from, file);
                if (r != -EEXIST)
                        return r;
                to = open_written(file->name);
        }
        r = check_open(task, file, to, &st);
        if (r == ROLLBACK_OTHER_FILE && S_ISREG(st.st_mode) && is_same(from, to))
                return 0;
        if (r < 0 || task->step == STEP_SCAN)
                return r;
        *ret_doubt = is_of_others(task, file, use, to, &st);
        if (task->step == STEP_KEEP)
                return *ret_doubt ? keep_end(task, f, to) : 0;
        return change_end(task, f, to, *ret_doubt, from);
}

/* ---- hashes ---- */

/* The child tells this of each file that it could read. */
struct hashed {
        uint32_t file;
        uint64_t hash;
};

/* `ret_any`: whether there is any; malloc'ed, by the index in the inventory. */
static bool *choose_hashed(const Capsule__Inventory *inventory, bool *ret_any) {
        bool *chosen = inventory_find_written(inventory);

        *ret_any = false;
        for (size_t f = 0; f < inventory->n_files; f++) {
                chosen[f] &= S_ISREG(inventory->files[f]->mode) && is_regarded(inventory->files[f]);
                *ret_any |= chosen[f];
        }
        return chosen;
}

static void hash_as_owner(int error, int report_fd, const void *arg) {
        const struct task *task = arg;

        for (uint32_t f = 0; f < task->inventory->n_files && error == 0; f++) {
                const Capsule__InventoryFile *file = task->inventory->files[f];
                struct hashed hashed = { .file = f };
                cleanup_close int fd = -1;
                struct stat st;

                if (!task->hashed[f])
                        continue;
                fd = open(file->name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
                if (check_open(task, file, fd, &st) == 0)
                        hashed.hash = written_hash(fd, file->size_bytes);
                if (hashed.hash != 0)
                        (void) write_all(report_fd, &hashed, sizeof(hashed));
        }
}

void rollback_hash(Capsule__Inventory *inventory, const Capsule__Spec *spec) {
        uint64_t end_usec = now_usec() + HASH_USEC;
        bool any;
        cleanup_free bool *chosen = choose_hashed(inventory, &any);
        const struct task task = { .inventory = inventory, .spec = spec, .copies_fd = -1, .hashed = chosen };
        struct hashed hashed;
        pid_t pid;
        int fd;

        if (!any || identity_child(spec, 0, hash_as_owner, &task, &pid, &fd) < 0)
                return;
        for (uint64_t now = now_usec(); now < end_usec; now = now_usec()) {
                if (identity_await(fd, end_usec - now) < 0 || read_all(fd, &hashed, sizeof(hashed)) < 0 ||
                    hashed.file >= inventory->n_files)
                        break;
                inventory->files[hashed.file]->hash = hashed.hash;
        }
        identity_child_end(pid, fd);
}

/* ---- all of them ---- */

static int roll_back(const struct task *task, uint32_t f, const struct use *use, bool *ret_doubt) {
        const Capsule__InventoryFile *file = task->inventory->files[f];

        if (S_ISFIFO(file->mode))
                return check_pipe(task, file);
        if (S_ISDIR(file->mode))
                return check_directory(task, file);
        if (use->written && file->copied)
                return put_back(task, f, use, ret_doubt);
        return use->written ? cut_back(task, f, use, ret_doubt) : check_unwritten(task, file, use);
}

static void roll_all_back(const struct task *task, const struct use *uses, struct verdict *verdict, uint32_t *mismatches) {
        const Capsule__Inventory *inventory = task->inventory;

        for (uint32_t f = 0; f < inventory->n_files && verdict->error == 0; f++) {
                bool doubt = false;

                if (!is_regarded(inventory->files[f]))
                        continue;
                verdict->error = roll_back(task, f, &uses[f], &doubt);
                verdict->file = f;
                if (doubt && task->step == STEP_CHANGE)
                        mismatches[verdict->mismatches++] = f;
        }
}

static void drop_kept(const struct task *task) {
        for (size_t f = 0; f < task->inventory->n_files; f++)
                rollback_kept_drop(&task->kept[f]);
}

/* Rolls the files back, as their owner. Nothing is changed where something stands in the way. */
static void roll_back_as_owner(int error, int report_fd, const void *arg) {
        struct task task = *(const struct task *) arg;
        const Capsule__Inventory *inventory = task.inventory;
        cleanup_free uint32_t *mismatches = xcalloc(inventory->n_files + 1, sizeof(*mismatches));
        cleanup_free struct use *uses = uses_of(inventory);
        struct verdict verdict = { .error = error };

        task.kept = xcalloc(inventory->n_files + 1, sizeof(*task.kept));
        for (task.step = STEP_SCAN; task.step <= task.last_step && verdict.error == 0; task.step++) {
                roll_all_back(&task, uses, &verdict, mismatches);
                if (verdict.error < 0 && task.step == STEP_KEEP)
                        drop_kept(&task);
        }
        verdict.keeping = verdict.error < 0 && verdict.file < inventory->n_files && task.kept[verdict.file].error < 0;
        free(task.kept);
        (void) write_all(report_fd, &verdict, sizeof(verdict));
        (void) write_all(report_fd, mismatches, verdict.mismatches * sizeof(*mismatches));
}

static char *names_of(const Capsule__Inventory *inventory, const bool *doubtful) {
        char *text = xstrdup("");

        for (size_t f = 0; f < inventory->n_files; f++) {
                if (!doubtful[f])
                        continue;
                text = text_add_word(text, " ", inventory->files[f]->name);
                if (strlen(text) > MISMATCHES_MAX_BYTES) {
                        text[MISMATCHES_MAX_BYTES] = '\0';
                        break;
                }
        }
        return text;
}

static int explain(const Capsule__Inventory *inventory, const struct verdict *verdict, struct rm_error *error) {
        const Capsule__InventoryFile *file = verdict->file < inventory->n_files ? inventory->files[verdict->file] : NULL;

        if (verdict->keeping)
                error_set(error, verdict->error,
                          "%.400s: others may have added to it, and that cannot be kept beside it (%s): make room there, or take "
                          "the end of the file away",
                          file ? file->name : "its files", strerror(-verdict->error));
        else
                error_set(error, verdict->error, "%.400s: %s", file ? file->name : "its files",
                          verdict->error == ROLLBACK_OTHER_FILE && file && S_ISDIR(file->mode)
                                  ? "it is another directory than the one that the job had open when it was saved"
                          : verdict->error == ROLLBACK_OTHER_FILE
                                  ? "it is another file than the one that the job had open when it was saved"
                          : verdict->error == ROLLBACK_CHANGED ? "its contents were changed since the job was saved"
                          : verdict->error == -ERANGE          ? "it was made shorter since the job was saved"
                          : verdict->error == -ENODATA         ? "its copy is not there"
                          : verdict->error == -EFBIG ? "this and other files that are written in place are too large to be copied"
                                                     : strerror(-verdict->error));
        error_clean(error);
        return verdict->error;
}

/* `ret_mismatches`: for each file. */
static int as_owner(identity_child_fn fn, const struct task *task, bool *ret_mismatches, struct rm_error *error) {
        struct verdict verdict = { .error = -ECHILD };
        int fd, r;
        pid_t pid;

        /* Below a directory that only root can enter. */
        if (task->copies_fd >= 0 && fchown(task->copies_fd, task->spec->uid, (gid_t) -1) < 0)
                return error_sys(error, -errno, "cannot give the owner the directory of copies");
        r = identity_child(task->spec, 0, fn, task, &pid, &fd);
        if (r < 0)
                return error_sys(error, r, "cannot start a process of the owner's");
        if (identity_await(fd, COPY_USEC) == 0 && read_all(fd, &verdict, sizeof(verdict)) == 0 && verdict.error == 0)
                for (uint32_t i = 0, f; i < verdict.mismatches && read_all(fd, &f, sizeof(f)) == 0 && f < task->inventory->n_files;
                     i++)
                        ret_mismatches[f] = true;
        identity_child_end(pid, fd);
        return verdict.error == 0 ? 0 : explain(task->inventory, &verdict, error);
}

int rollback_copy(Capsule__Inventory *inventory, const Capsule__Spec *spec, int dir_fd, uint64_t max_bytes,
                  struct rm_error *error) {
        const struct task task = { .inventory = inventory, .spec = spec, .copies_fd = dir_fd, .max_bytes = max_bytes };
        cleanup_free bool *unread = xcalloc(inventory->n_files + 1, sizeof(*unread));
        cleanup_free struct use *uses = uses_of(inventory);
        bool any = false;
        int r;

        for (size_t f = 0; f < inventory->n_files; f++) {
                inventory->files[f]->copied =
                        uses[f].anywhere && S_ISREG(inventory->files[f]->mode) && is_regarded(inventory->files[f]);
                any |= inventory->files[f]->copied;
        }
        r = any ? as_owner(copy_as_owner, &task, unread, error) : 0;
        for (size_t f = 0; f < inventory->n_files; f++)
                inventory->files[f]->copied &= !unread[f];
        return r;
}

int rollback_files(const Capsule__Inventory *inventory, const Capsule__Spec *spec, int copies_fd, const Capsule__Restore *restore,
                   char **ret_mismatches, struct rm_error *error) {
        const struct task task = { .inventory = inventory,
                                   .spec = spec,
                                   .copies_fd = copies_fd,
                                   .last_step = STEP_CHANGE,
                                   .other_files = restore->other_files,
                                   .left = { restore->left_ago_usec, now_usec() } };
        cleanup_free bool *doubtful = xcalloc(inventory->n_files + 1, sizeof(*doubtful));
        int r = as_owner(roll_back_as_owner, &task, doubtful, error);

        if (r == 0)
                *ret_mismatches = names_of(inventory, doubtful);
        return r;
}

int rollback_scan(const Capsule__Inventory *inventory, const Capsule__Spec *spec, int copies_fd, struct rm_error *error) {
        const struct task task = { .inventory = inventory, .spec = spec, .copies_fd = copies_fd };
        cleanup_free bool *doubtful = xcalloc(inventory->n_files + 1, sizeof(*doubtful));

        return as_owner(roll_back_as_owner, &task, doubtful, error);
}
