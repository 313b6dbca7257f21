/* Files go back to what they were when their processes were saved, by the owner's rights. The tests
 * run as root. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "common/error.h"
#include "common/util.h"
#include "daemon/capsule/init/base/file_identity.h"
#include "daemon/capsule/init/verify/inventory.h"
#include "daemon/capsule/init/verify/rollback.h"
#include "daemon/capsule/init/verify/rollback_closed.h"
#include "daemon/capsule/init/verify/written.h"

enum { OWNER = 4242, SAVED_BYTES = 100, NOW_BYTES = 150, SHARED = 8 };

/* A process of the owner's with one file, as it was saved. */
struct scene {
        char *dir;
        char *path;
        Capsule__Spec spec;
        Capsule__Inventory inventory;
        Capsule__InventoryFile file, *files[1];
        Capsule__InventoryTask task, *tasks[1];
        Capsule__InventoryDescriptor descriptor, *descriptors[1];
        Capsule__InventoryMapping mapping, *mappings[1];
        struct rm_error error;
        char *mismatches;
        int copies_fd;
        Capsule__Restore restore;
        struct file_identity identity;
};

static void put_file(const char *path, uid_t uid, mode_t mode, off_t bytes) {
        cleanup_close int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);

        assert_true(fd >= 0);
        assert_int_equal(ftruncate(fd, bytes), 0);
        assert_int_equal(fchown(fd, uid, uid), 0);
}

static off_t size_of(const char *path) {
        struct stat st;

        assert_int_equal(stat(path, &st), 0);
        return st.st_size;
}

static int setup(void **state) {
        struct scene *s = xcalloc(1, sizeof(*s));

        s->dir = xstrdup("/var/tmp/rmd-rollback-XXXXXX"); /* /tmp is the capsule's own, and is restored with it */
        assert_non_null(mkdtemp(s->dir));
        assert_int_equal(chown(s->dir, OWNER, OWNER), 0);
        s->path = xasprintf("%s/file", s->dir);
        s->copies_fd = -1;
        s->spec = (Capsule__Spec) CAPSULE__SPEC__INIT;
        s->spec.uid = s->spec.gid = OWNER;
        capsule__restore__init(&s->restore);
        capsule__inventory__init(&s->inventory);
        capsule__inventory_file__init(&s->file);
        capsule__inventory_task__init(&s->task);
        capsule__inventory_descriptor__init(&s->descriptor);
        capsule__inventory_mapping__init(&s->mapping);
        s->file.name = s->path;
        s->file.mode = S_IFREG | 0600;
        s->file.uid = s->file.gid = OWNER;
        s->file.size_bytes = SAVED_BYTES;
        s->file.birth_nsec = s->inventory.made_since_nsec = 1; /* the job has made it */
        s->descriptor.flags = O_WRONLY | O_APPEND;
        s->descriptor.position = SAVED_BYTES;
        s->files[0] = &s->file;
        s->tasks[0] = &s->task;
        s->descriptors[0] = &s->descriptor;
        s->mappings[0] = &s->mapping;
        s->inventory.files = s->files;
        s->inventory.tasks = s->tasks;
        s->inventory.n_files = s->inventory.n_tasks = 1;
        s->task.descriptors = s->descriptors;
        s->task.n_descriptors = 1;
        s->task.mappings = s->mappings;
        *state = s;
        return 0;
}

static int teardown(void **state) {
        struct scene *s = *state;

        if (s->copies_fd >= 0)
                (void) close(s->copies_fd);
        assert_int_equal(remove_tree(s->dir), 0);
        free(s->dir);
        free(s->path);
        free(s->mismatches);
        free(s);
        return 0;
}

static int roll_back(struct scene *s) {
        free(take_ptr(s->mismatches));
        s->error = (struct rm_error) { 0 };
        return rollback_files(&s->inventory, &s->spec, s->copies_fd, &s->restore, &s->mismatches, &s->error);
}

static void test_appended(void **state) {
        struct scene *s = *state;

        put_file(s->path, OWNER, 0600, NOW_BYTES);
        assert_int_equal(roll_back(s), 0);
        assert_int_equal(size_of(s->path), SAVED_BYTES);
        assert_string_equal(s->mismatches, "");
        assert_int_equal(roll_back(s), 0); /* once more changes nothing */
        assert_int_equal(size_of(s->path), SAVED_BYTES);
}

/* The size of the file does not show what was overwritten. */
static void test_written_in_place(void **state) {
        struct scene *s = *state;
        struct stat st;

        put_file(s->path, OWNER, 0600, SAVED_BYTES);
        s->descriptor.flags = O_RDWR;
        s->descriptor.position = 10;
        assert_int_equal(roll_back(s), 0);
        assert_string_equal(s->mismatches, s->path);
        assert_int_equal(stat(s->path, &st), 0);
        s->file.mtime_nsec = inventory_mtime_nsec(&st);
        assert_int_equal(roll_back(s), 0);
        assert_string_equal(s->mismatches, ""); /* nobody has written since */

        s->file.mtime_nsec = 1;
        s->task.n_descriptors = 0;
        s->task.n_mappings = 1;
        s->mapping.protection = PROT_READ | PROT_WRITE | SHARED;
        assert_int_equal(roll_back(s), 0);
        assert_string_equal(s->mismatches, s->path);
        s->mapping.protection = PROT_READ | PROT_WRITE; /* what it writes is its own */
        assert_int_equal(roll_back(s), 0);
        assert_string_equal(s->mismatches, "");
}

/* ---- copies ---- */

static int copy(struct scene *s, uint64_t max_bytes) {
        cleanup_free char *dir = xasprintf("%s/copies", s->dir);

        if (s->copies_fd >= 0)
                (void) close(s->copies_fd);
        (void) remove_tree(dir);
        assert_int_equal(mkdir(dir, 0700), 0);
        s->copies_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        assert_true(s->copies_fd >= 0);
        s->error = (struct rm_error) { 0 };
        return rollback_copy(&s->inventory, &s->spec, s->copies_fd, max_bytes, &s->error);
}

/* The contents are those of a file of `bytes`, each of which is `c`. */
static void contents_are(const struct scene *s, char c, size_t bytes) {
        cleanup_free char *found = NULL, *want = xcalloc(1, bytes + 1);
        size_t found_bytes;

        memset(want, c, bytes);
        assert_int_equal(read_file(s->path, 16 << 20, &found, &found_bytes), 0);
        assert_int_equal(found_bytes, bytes);
        assert_memory_equal(found, want, bytes);
}

static void fill(const struct scene *s, char c, size_t bytes) {
        cleanup_free char *data = xcalloc(1, bytes + 1);
        cleanup_close int fd = open(s->path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0640);

        memset(data, c, bytes);
        assert_true(fd >= 0);
        assert_int_equal(write_all(fd, data, bytes), 0);
        assert_int_equal(fchown(fd, OWNER, OWNER), 0);
}

static void test_copied(void **state) {
        enum { BYTES = 3000000 };
        struct scene *s = *state;
        struct stat st;

        fill(s, 'a', BYTES);
        s->file.size_bytes = BYTES;
        s->file.mode = S_IFREG | 0640;
        s->descriptor.flags = O_RDWR;
        s->descriptor.position = BYTES; /* it may go back */
        assert_int_equal(copy(s, BYTES), 0);
        assert_true(s->file.copied);

        fill(s, 'b', BYTES); /* overwritten */
        assert_int_equal(roll_back(s), 0);
        contents_are(s, 'a', BYTES);
        assert_string_equal(s->mismatches, "");
        fill(s, 'a', BYTES + 1); /* longer */
        assert_int_equal(roll_back(s), 0);
        contents_are(s, 'a', BYTES);
        fill(s, 'a', 10); /* shorter */
        assert_int_equal(roll_back(s), 0);
        contents_are(s, 'a', BYTES);
        assert_int_equal(unlink(s->path), 0); /* gone */
        assert_int_equal(roll_back(s), 0);
        contents_are(s, 'a', BYTES);
        assert_int_equal(stat(s->path, &st), 0);
        assert_int_equal(st.st_uid, OWNER);
        fill(s, 'b', BYTES);
        assert_int_equal(chmod(s->path, 0200), 0); /* not to be read */
        assert_int_equal(roll_back(s), 0);
        contents_are(s, 'a', BYTES);

        assert_int_equal(unlinkat(s->copies_fd, "0", 0), 0);
        assert_int_equal(roll_back(s), -ENODATA);
        assert_non_null(strstr(s->error.text, s->path));
}

static void test_mapping_copied(void **state) {
        struct scene *s = *state;

        fill(s, 'a', SAVED_BYTES);
        s->task.n_descriptors = 0;
        s->task.n_mappings = 1;
        s->mapping.protection = PROT_READ | PROT_WRITE | SHARED;
        assert_int_equal(copy(s, SAVED_BYTES), 0);
        assert_true(s->file.copied);
        fill(s, 'b', SAVED_BYTES);
        assert_int_equal(roll_back(s), 0);
        contents_are(s, 'a', SAVED_BYTES);
}

/* A file that only grows is cut back, one that is only read stays, and the capsule's own goes with
 * it. */
static void test_not_copied(void **state) {
        struct scene *s = *state;

        fill(s, 'a', SAVED_BYTES);
        assert_int_equal(copy(s, SAVED_BYTES), 0);
        assert_false(s->file.copied);
        s->descriptor.flags = O_RDONLY;
        assert_int_equal(copy(s, SAVED_BYTES), 0);
        assert_false(s->file.copied);
        s->descriptor.flags = O_WRONLY;
        assert_int_equal(chmod(s->path, 0200), 0); /* he may not read it himself */
        assert_int_equal(copy(s, SAVED_BYTES), 0);
        assert_false(s->file.copied);
        s->descriptor.flags = O_RDWR;
        s->file.name = (char *) "/tmp/file";
        assert_int_equal(copy(s, SAVED_BYTES), 0);
        assert_false(s->file.copied);
}

static void test_too_large(void **state) {
        struct scene *s = *state;

        fill(s, 'a', SAVED_BYTES);
        s->descriptor.flags = O_RDWR;
        assert_int_equal(copy(s, SAVED_BYTES - 1), -EFBIG);
        assert_non_null(strstr(s->error.text, s->path));
        /* The file has become larger meanwhile: no more is read than it had. */
        fill(s, 'a', NOW_BYTES);
        assert_int_equal(copy(s, SAVED_BYTES), 0);
        assert_int_equal(roll_back(s), 0);
        contents_are(s, 'a', SAVED_BYTES);
}

/* Root could read it, and write it. */
static void test_copy_of_anothers(void **state) {
        struct scene *s = *state;
        cleanup_free char *theirs = xasprintf("%s/theirs", s->dir);

        put_file(theirs, 0, 0600, SAVED_BYTES);
        assert_int_equal(symlink(theirs, s->path), 0);
        s->descriptor.flags = O_RDWR;
        assert_int_equal(copy(s, SAVED_BYTES), 0);
        assert_false(s->file.copied);
        assert_int_equal(unlink(s->path), 0);
        fill(s, 'a', SAVED_BYTES);
        assert_int_equal(copy(s, SAVED_BYTES), 0);
        assert_int_equal(unlink(s->path), 0);
        assert_int_equal(symlink(theirs, s->path), 0);
        assert_true(roll_back(s) < 0);
        assert_int_equal(size_of(theirs), SAVED_BYTES);
}

/* ---- another file under that name ---- */

/* The inventory has it as it is now. */
static void save(struct scene *s) {
        struct stat st;

        assert_int_equal(stat(s->path, &st), 0);
        file_identity_take(AT_FDCWD, s->path, &st, &s->identity);
        s->file.inode = st.st_ino;
        s->file.birth_nsec = s->identity.birth_nsec;
        s->file.size_bytes = (uint64_t) st.st_size;
        s->file.mtime_nsec = inventory_mtime_nsec(&st);
        s->file.handle_type = s->identity.type;
        s->file.handle.data = s->identity.handle;
        s->file.handle.len = s->identity.bytes;
}

/* Replaces the file as logrotate does. `bytes` of a `c` each are in the new one. */
static void replace(struct scene *s, char c, size_t bytes) {
        cleanup_free char *moved = xasprintf("%s.1", s->path);

        assert_int_equal(rename(s->path, moved), 0);
        fill(s, c, bytes);
}

/* A log is another than it was, and with it the other one stays too. */
static void test_all_or_nothing(void **state) {
        struct scene *s = *state;
        cleanup_free char *second = xasprintf("%s/second", s->dir);
        Capsule__InventoryFile file = s->file, *files[] = { &s->file, &file };
        Capsule__InventoryDescriptor descriptor = s->descriptor, *descriptors[] = { &s->descriptor, &descriptor };

        descriptor.file = 1;
        file.name = second;
        s->inventory.files = files;
        s->task.descriptors = descriptors;
        s->inventory.n_files = s->task.n_descriptors = 2;
        put_file(s->path, OWNER, 0600, NOW_BYTES);
        put_file(second, OWNER, 0600, SAVED_BYTES - 1);
        assert_int_equal(roll_back(s), -ERANGE);
        assert_non_null(strstr(s->error.text, second));
        assert_int_equal(size_of(s->path), NOW_BYTES);
        s->restore.other_files = true; /* it is shorter, says the user */
        assert_int_equal(roll_back(s), 0);
        assert_int_equal(size_of(s->path), SAVED_BYTES);
        assert_int_equal(size_of(second), SAVED_BYTES - 1);
}

/* Data of the job's pipe must not get into another user's. */
static void test_pipe(void **state) {
        struct scene *s = *state;
        struct stat st;

        assert_int_equal(mkfifo(s->path, 0600), 0);
        assert_int_equal(stat(s->path, &st), 0);
        file_identity_take(AT_FDCWD, s->path, &st, &s->identity);
        s->file.mode = S_IFIFO | 0600;
        s->file.inode = st.st_ino;
        s->file.handle_type = s->identity.type;
        s->file.handle.data = s->identity.handle;
        s->file.handle.len = s->identity.bytes;
        assert_int_equal(roll_back(s), 0);
        assert_int_equal(unlink(s->path), 0);
        assert_int_equal(roll_back(s), -ENOENT);
        assert_int_equal(mkfifo(s->path, 0600), 0);
        assert_int_equal(stat(s->path, &st), 0);
        s->file.inode = st.st_ino + 1; /* or it may have got its number, without a handle of its own */
        assert_int_equal(roll_back(s), ROLLBACK_OTHER_FILE);
}

/* As the handles and numbers of file systems are. */
static void test_identity(void **state) {
        const struct file_identity ext4 = { .inode = 7, .birth_nsec = 5, .type = 1, .bytes = 2, .handle = { 7, 1 } };
        const struct file_identity again = { .inode = 7, .birth_nsec = 6, .type = 1, .bytes = 2, .handle = { 7, 2 } };
        const struct file_identity nfs = { .inode = 7, .type = 9, .bytes = 8, .handle = { 1, 2, 3 } };
        const struct file_identity nfs_again = { .inode = 7, .type = 9, .bytes = 8, .handle = { 1, 2, 4 } };
        const struct file_identity fuse = { .inode = 7, .type = 0x81, .bytes = 3, .handle = { 1 } };
        const struct file_identity fuse_there = { .inode = 7, .type = 0x81, .bytes = 3, .handle = { 2 } };
        const struct file_identity fuse_other = { .inode = 8, .type = 0x81, .bytes = 3, .handle = { 3 } };
        const struct file_identity none = { .inode = 7 }, unknown = { 0 };

        (void) state;
        assert_true(file_identity_same(&ext4, &ext4));
        assert_false(file_identity_same(&ext4, &again));
        assert_true(file_identity_same(&ext4, &nfs)); /* its server and a client */
        assert_false(file_identity_same(&nfs, &nfs_again));
        assert_true(file_identity_same(&fuse, &fuse_there));
        assert_false(file_identity_same(&fuse, &fuse_other));
        assert_true(file_identity_same(&ext4, &none));
        assert_true(file_identity_same(&ext4, &unknown));
}

/* Removes the only name of a file, whose number the next file may get. */
static void remove_and_make(struct scene *s, char c, size_t bytes) {
        assert_int_equal(unlink(s->path), 0);
        fill(s, c, bytes);
}

/* The other file is as long as it was or longer, and stays as it is. */
static void is_left_alone(struct scene *s, void (*change)(struct scene *s, char c, size_t bytes)) {
        fill(s, 'a', SAVED_BYTES);
        save(s);
        assert_int_equal(roll_back(s), 0);
        change(s, 'b', NOW_BYTES);
        assert_int_equal(roll_back(s), ROLLBACK_OTHER_FILE);
        assert_non_null(strstr(s->error.text, s->path));
        assert_int_equal(rollback_scan(&s->inventory, &s->spec, s->copies_fd, &s->error), ROLLBACK_OTHER_FILE);
        contents_are(s, 'b', NOW_BYTES);
        s->restore.other_files = true;
        assert_int_equal(roll_back(s), 0);
        s->restore.other_files = false;
        assert_int_equal(unlink(s->path), 0);
}

static void test_other_file(void **state) {
        struct scene *s = *state;

        is_left_alone(s, replace);
        is_left_alone(s, remove_and_make);
        s->descriptor.flags = O_RDWR;
        s->descriptor.position = 10;
        is_left_alone(s, replace);
        s->task.n_descriptors = 0;
        s->task.n_mappings = 1;
        s->mapping.protection = PROT_READ | PROT_WRITE | SHARED;
        is_left_alone(s, replace);
        s->mapping.protection = PROT_READ; /* as a program that was compiled again */
        is_left_alone(s, replace);
        s->task.n_descriptors = 1;
        s->task.n_mappings = 0;
        s->descriptor.flags = O_RDONLY;
        is_left_alone(s, remove_and_make);
}

/* The file has another name as well, and has been written to: it is the same. */
static void test_linked_file(void **state) {
        struct scene *s = *state;
        cleanup_free char *other = xasprintf("%s/other", s->dir);

        fill(s, 'a', SAVED_BYTES);
        save(s);
        assert_int_equal(rename(s->path, other), 0);
        assert_int_equal(symlink("other", s->path), 0);
        fill(s, 'b', NOW_BYTES);
        assert_int_equal(roll_back(s), 0);
        assert_int_equal(size_of(other), SAVED_BYTES);
        assert_int_equal(unlink(s->path), 0);
        assert_int_equal(link(other, s->path), 0);
        fill(s, 'b', NOW_BYTES);
        assert_int_equal(roll_back(s), 0);
        assert_int_equal(size_of(other), SAVED_BYTES);
}

/* On the disks of two nodes, as rsync -a copies it. */
static void test_copy_on_another_node(void **state) {
        struct scene *s = *state;
        struct timespec times[2];

        fill(s, 'a', SAVED_BYTES);
        save(s);
        s->descriptor.flags = O_RDONLY;
        replace(s, 'a', SAVED_BYTES);
        assert_int_equal(roll_back(s), ROLLBACK_OTHER_FILE);
        times[0] = times[1] = (struct timespec) { s->file.mtime_nsec / 1000000000, s->file.mtime_nsec % 1000000000 };
        assert_int_equal(utimensat(AT_FDCWD, s->path, times, 0), 0);
        assert_int_equal(roll_back(s), 0);
}

/* A copy of its contents does not allow to overwrite another file; what was made from the copy
 * before is none. */
static void test_other_file_than_copied(void **state) {
        struct scene *s = *state;

        fill(s, 'a', SAVED_BYTES);
        save(s);
        s->descriptor.flags = O_RDWR;
        assert_int_equal(copy(s, SAVED_BYTES), 0);
        replace(s, 'b', NOW_BYTES);
        assert_int_equal(roll_back(s), ROLLBACK_OTHER_FILE);
        contents_are(s, 'b', NOW_BYTES);
        assert_int_equal(unlink(s->path), 0);
        assert_int_equal(roll_back(s), 0);
        contents_are(s, 'a', SAVED_BYTES);
        assert_int_equal(roll_back(s), 0);
        s->restore.other_files = true;
        fill(s, 'b', NOW_BYTES);
        assert_int_equal(roll_back(s), 0);
        contents_are(s, 'a', SAVED_BYTES);
}

static void add(const struct scene *s, char c, size_t bytes) {
        cleanup_free char *data = xcalloc(1, bytes + 1);
        cleanup_close int fd = open(s->path, O_WRONLY | O_APPEND | O_CLOEXEC);

        memset(data, c, bytes);
        assert_true(fd >= 0);
        assert_int_equal(write_all(fd, data, bytes), 0);
}

static int scan(struct scene *s) {
        s->error = (struct rm_error) { 0 };
        return rollback_scan(&s->inventory, &s->spec, s->copies_fd, &s->error);
}

static void test_only_read(void **state) {
        struct scene *s = *state;

        put_file(s->path, OWNER, 0600, NOW_BYTES);
        s->descriptor.flags = O_RDONLY;
        assert_int_equal(roll_back(s), 0);
        assert_int_equal(size_of(s->path), NOW_BYTES);
}

static void test_another_program(void **state) {
        struct scene *s = *state;

        put_file(s->path, 0, 0755, SAVED_BYTES);
        s->file.uid = 0;
        s->task.n_descriptors = 0;
        s->task.n_mappings = 1;
        s->mapping.protection = PROT_READ | PROT_EXEC;
        assert_int_equal(roll_back(s), 0);
        assert_int_equal(truncate(s->path, NOW_BYTES), 0);
        assert_int_equal(roll_back(s), ROLLBACK_CHANGED);
        assert_non_null(strstr(s->error.text, s->path));
}

/* A program of the owner's was copied over the one that the job runs. What it has not read yet of
 * its data may be written to. */
static void test_program_changed(void **state) {
        struct scene *s = *state;

        fill(s, 'a', SAVED_BYTES);
        save(s);
        s->task.n_descriptors = 0;
        s->task.n_mappings = 1;
        s->mapping.protection = PROT_READ | PROT_EXEC;
        assert_int_equal(roll_back(s), 0);
        fill(s, 'b', SAVED_BYTES);
        assert_int_equal(roll_back(s), ROLLBACK_CHANGED);
        assert_int_equal(scan(s), ROLLBACK_CHANGED);
        fill(s, 'b', NOW_BYTES);
        assert_int_equal(roll_back(s), ROLLBACK_CHANGED);
        s->mapping.protection = PROT_READ;
        assert_int_equal(roll_back(s), 0);
        s->mapping.protection = PROT_READ | PROT_EXEC;
        s->restore.other_files = true;
        assert_int_equal(roll_back(s), 0);
        contents_are(s, 'b', NOW_BYTES);
}

/* Data of another user or root that is read, and grows. */
static void test_read_of_another(void **state) {
        struct scene *s = *state;

        fill(s, 'a', SAVED_BYTES);
        assert_int_equal(chown(s->path, 0, 0), 0);
        assert_int_equal(chmod(s->path, 0644), 0);
        save(s);
        s->file.uid = 0;
        s->descriptor.flags = O_RDONLY;
        assert_int_equal(roll_back(s), 0);
        assert_int_equal(truncate(s->path, NOW_BYTES), 0);
        assert_int_equal(roll_back(s), 0);
        assert_int_equal(truncate(s->path, SAVED_BYTES - 1), 0);
        assert_int_equal(roll_back(s), 0);
        replace(s, 'b', NOW_BYTES);
        assert_int_equal(roll_back(s), ROLLBACK_OTHER_FILE);
        s->restore.other_files = true;
        assert_int_equal(roll_back(s), 0);
}

/* The job would go on where nothing is of what it had there. */
static void test_other_directory(void **state) {
        struct scene *s = *state;
        cleanup_free char *moved = xasprintf("%s/moved", s->dir), *data = xasprintf("%s/data", s->path);
        struct file_identity identity;
        struct stat st;

        assert_int_equal(mkdir(s->path, 0700), 0);
        assert_int_equal(chown(s->path, OWNER, OWNER), 0);
        assert_int_equal(stat(s->path, &st), 0);
        file_identity_take(AT_FDCWD, s->path, &st, &identity);
        inventory_set_identity(&s->file, &identity);
        s->file.mode = S_IFDIR | 0700;
        s->file.top = inventory_top(s->path, OWNER);
        assert_int_not_equal(s->file.top, 0);
        assert_int_equal(s->file.top, inventory_top(s->dir, OWNER));
        assert_int_equal(inventory_top(s->path, OWNER + 1), 0);
        s->descriptor.flags = O_RDONLY;
        assert_int_equal(roll_back(s), 0);
        put_file(data, OWNER, 0600, 1);
        assert_int_equal(chmod(s->path, 0755), 0);
        assert_int_equal(roll_back(s), 0);
        assert_int_equal(rename(s->path, moved), 0);
        assert_int_equal(roll_back(s), -ENOENT);
        assert_int_equal(symlink("moved", s->path), 0);
        assert_int_equal(roll_back(s), 0);
        assert_int_equal(unlink(s->path), 0);
        assert_int_equal(mkdir(s->path, 0755), 0);
        assert_int_equal(roll_back(s), ROLLBACK_OTHER_FILE);
        assert_non_null(strstr(s->error.text, "another directory"));
        s->restore.other_files = true;
        assert_int_equal(roll_back(s), 0);
        s->restore.other_files = false;
        s->file.top++; /* in another cluster */
        assert_int_equal(roll_back(s), 0);
        s->file.top--;
        s->file.uid = 0; /* such as "/" */
        assert_int_equal(roll_back(s), 0);
        s->file.handle.len = 0;
}

/* Mounts there what keeps whoever asks for it for ever. Returns -1 where there is no FUSE. */
static int mount_unanswered(const struct scene *s, const char *path) {
        cleanup_free char *device = xasprintf("%s/fuse", s->dir), *options = NULL;
        int fd;

        assert_int_equal(mknod(device, S_IFCHR | 0600, makedev(10, 229)), 0);
        fd = open(device, O_RDWR | O_CLOEXEC);
        options = xasprintf("fd=%d,rootmode=40700,user_id=%d,group_id=%d,allow_other", fd, OWNER, OWNER);
        if (fd >= 0)
                assert_int_equal(mount("fuse", path, "fuse", MS_NOSUID | MS_NODEV, options), 0);
        return fd;
}

/* A file system that does not answer keeps nobody but the owner's child. */
static void test_unanswered(void **state) {
        struct scene *s = *state;
        cleanup_free char *file = xasprintf("%s/file", s->path);
        uint64_t begin_usec;
        int fd;

        assert_int_equal(mkdir(s->path, 0700), 0);
        fd = mount_unanswered(s, s->path);
        if (fd < 0)
                skip();
        s->file.name = file;
        begin_usec = now_usec();
        rollback_hash(&s->inventory, &s->spec);
        assert_int_equal(s->file.hash, 0);
        assert_true(now_usec() - begin_usec < 5000000); /* it would be for ever */
        (void) close(fd);
        assert_int_equal(umount2(s->path, MNT_DETACH), 0);
}

/* A file that begins or ends otherwise was not only added to: of one that the job only adds to
 * nothing is cut then, as it was emptied and written anew; one that the job may write anywhere is
 * named. */
static void test_hashed(void **state) {
        struct scene *s = *state;
        cleanup_close int fd = -1;

        fill(s, 'a', SAVED_BYTES);
        save(s);
        rollback_hash(&s->inventory, &s->spec);
        assert_int_not_equal(s->file.hash, 0);
        add(s, 'b', 5);
        assert_int_equal(roll_back(s), 0);
        assert_string_equal(s->mismatches, "");
        contents_are(s, 'a', SAVED_BYTES);
        fill(s, 'b', NOW_BYTES);
        assert_int_equal(roll_back(s), ROLLBACK_CHANGED);
        contents_are(s, 'b', NOW_BYTES);
        s->descriptor.flags = O_RDWR; /* at its end, and yet it has a header */
        assert_int_equal(roll_back(s), 0);
        assert_string_equal(s->mismatches, s->path);
        contents_are(s, 'b', SAVED_BYTES);
        s->descriptor.flags = O_WRONLY | O_APPEND;
        assert_int_equal(roll_back(s), ROLLBACK_CHANGED);
        s->restore.other_files = true;
        assert_int_equal(roll_back(s), 0);
        s->restore.other_files = false;

        fill(s, 'a', SAVED_BYTES);
        fd = open(s->path, O_WRONLY | O_CLOEXEC);
        assert_int_equal(pwrite(fd, "b", 1, SAVED_BYTES - 1), 1);
        assert_int_equal(roll_back(s), ROLLBACK_CHANGED);
        assert_int_equal(chmod(s->path, 0200), 0); /* cannot be compared */
        assert_int_equal(roll_back(s), 0);
        s->file.hash = 0;
        rollback_hash(&s->inventory, &s->spec);
        assert_int_equal(s->file.hash, 0);
        s->descriptor.flags = O_RDONLY;
        assert_int_equal(chmod(s->path, 0600), 0);
        rollback_hash(&s->inventory, &s->spec);
        assert_int_equal(s->file.hash, 0); /* only read */
}

static void test_shorter(void **state) {
        struct scene *s = *state;

        put_file(s->path, OWNER, 0600, SAVED_BYTES - 1);
        assert_int_equal(roll_back(s), -ERANGE);
        assert_non_null(strstr(s->error.text, s->path));
        assert_int_equal(size_of(s->path), SAVED_BYTES - 1);
        assert_int_equal(unlink(s->path), 0);
        assert_int_equal(roll_back(s), -ENOENT);
        assert_int_equal(mkfifo(s->path, 0666), 0); /* it is not waited for */
        assert_true(roll_back(s) < 0);
}

static void test_directory(void **state) {
        struct scene *s = *state;
        cleanup_free char *moved = xasprintf("%s.1", s->dir);

        put_file(s->path, OWNER, 0600, NOW_BYTES);
        assert_int_equal(chmod(s->dir, 0), 0);
        assert_int_equal(roll_back(s), -EACCES);
        assert_int_equal(chmod(s->dir, 0700), 0);
        assert_int_equal(rename(s->dir, moved), 0);
        assert_int_equal(roll_back(s), -ENOENT);
        assert_non_null(strstr(s->error.text, s->path));
        assert_int_equal(rename(moved, s->dir), 0);
        assert_int_equal(size_of(s->path), NOW_BYTES);
}

/* The owner can put another's file in its place, which root could cut. */
static void test_file_of_another(void **state) {
        struct scene *s = *state;
        cleanup_free char *theirs = xasprintf("%s/theirs", s->dir), *shared = xasprintf("%s/shared", s->dir);

        put_file(theirs, 0, 0600, NOW_BYTES);
        assert_int_equal(symlink(theirs, s->path), 0);
        assert_int_equal(roll_back(s), -EACCES);
        assert_int_equal(size_of(theirs), NOW_BYTES);
        assert_int_equal(unlink(s->path), 0);
        assert_int_equal(link(theirs, s->path), 0);
        assert_int_equal(roll_back(s), -EACCES);
        assert_int_equal(size_of(theirs), NOW_BYTES);
        assert_int_equal(unlink(s->path), 0);

        put_file(shared, 0, 0666, NOW_BYTES);
        assert_int_equal(chmod(shared, 0666), 0); /* whatever the umask is */
        assert_int_equal(symlink(shared, s->path), 0);
        assert_int_equal(roll_back(s), ROLLBACK_OTHER_FILE);
        assert_int_equal(size_of(shared), NOW_BYTES);
}

/* Restored with the capsule, whatever this node has under that name. */
static void test_own_file_systems(void **state) {
        struct scene *s = *state;
        char name[] = "/tmp/rmd-rollback-XXXXXX";
        int fd = mkstemp(name);

        assert_true(fd >= 0);
        assert_int_equal(ftruncate(fd, NOW_BYTES), 0);
        assert_int_equal(fchown(fd, OWNER, OWNER), 0);
        assert_int_equal(close(fd), 0);
        s->file.name = name;
        assert_int_equal(roll_back(s), 0);
        assert_int_equal(size_of(name), NOW_BYTES);
        assert_int_equal(unlink(name), 0);
}

/* A mere look changes nothing. */
static void test_only_looked_at(void **state) {
        struct scene *s = *state;

        assert_int_equal(scan(s), -ENOENT);
        put_file(s->path, OWNER, 0600, NOW_BYTES);
        assert_int_equal(scan(s), 0);
        assert_int_equal(size_of(s->path), NOW_BYTES);
        s->file.size_bytes = NOW_BYTES + 1;
        assert_int_equal(scan(s), -ERANGE);
        s->file.size_bytes = SAVED_BYTES;
        s->file.copied = true;
        assert_int_equal(scan(s), -ENODATA); /* there is no copy */
        s->file.copied = false;
        assert_int_equal(chmod(s->path, 0), 0);
        assert_int_equal(scan(s), -EACCES);
        assert_non_null(strstr(s->error.text, s->path));
        assert_int_equal(size_of(s->path), NOW_BYTES);
}

/* ---- files that were closed ---- */

/* The file was closed when it was saved, has `bytes` of an 'a', and was made by the job if that is
 * so. */
static void save_closed(struct scene *s, Capsule__ClosedFile *closed, size_t bytes, bool made) {
        static Capsule__ClosedFile *list[1];
        cleanup_close int fd = -1;

        fill(s, 'a', bytes);
        save(s);
        fd = open(s->path, O_RDONLY | O_CLOEXEC);
        capsule__closed_file__init(closed);
        closed->file = &s->file;
        closed->hash = written_hash(fd, bytes);
        closed->writes = 2;
        closed->first_nsec = s->file.birth_nsec;
        list[0] = closed;
        s->inventory.n_files = s->inventory.n_tasks = 0;
        s->inventory.closed_files = list;
        s->inventory.n_closed_files = 1;
        s->inventory.made_since_nsec = made ? 1 : INT64_MAX;
}

static void take_back(struct scene *s, const char *mismatches) {
        free(s->mismatches);
        s->mismatches = rollback_closed(&s->inventory, &s->spec, s->restore.left_ago_usec);
        assert_string_equal(s->mismatches, mismatches);
}

static void test_closed(void **state) {
        static const size_t sizes[] = { 1, SAVED_BYTES, WRITTEN_PART_BYTES, 3 * WRITTEN_PART_BYTES + 7 };
        struct scene *s = *state;
        Capsule__ClosedFile closed;

        for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
                save_closed(s, &closed, sizes[i], true);
                closed.writes = 1;
                take_back(s, "");
                contents_are(s, 'a', sizes[i]);
                add(s, 'b', NOW_BYTES);
                take_back(s, "");
                contents_are(s, 'a', sizes[i]);
        }
}

/* The name of the only file in the directory beside the one that it is about, or NULL. */
static char *other_name(const struct scene *s) {
        DIR *dir = opendir(s->dir);
        struct dirent *entry;
        char *name = NULL;

        assert_non_null(dir);
        while ((entry = readdir(dir)))
                if (entry->d_name[0] != '.' && strcmp(entry->d_name, "file") != 0 && strcmp(entry->d_name, "copies") != 0)
                        name = xstrdup(entry->d_name);
        (void) closedir(dir);
        return name;
}

/* Several jobs add to one file, which each has open. */
static void test_shared_by_jobs(void **state) {
        struct scene *s = *state;
        cleanup_free char *kept = NULL, *path = NULL, *found = NULL;
        size_t bytes;

        fill(s, 'a', SAVED_BYTES);
        save(s);
        if (s->identity.birth_nsec == 0)
                skip(); /* its file system does not tell */
        s->inventory.made_since_nsec = s->identity.birth_nsec; /* the job has made it */
        add(s, 'b', 7);
        assert_int_equal(roll_back(s), 0);
        assert_string_equal(s->mismatches, "");
        assert_null(other_name(s));
        s->inventory.made_since_nsec = INT64_MAX;
        assert_int_equal(roll_back(s), 0);
        assert_null(other_name(s)); /* nobody has added anything */
        add(s, 'b', 7);
        assert_int_equal(roll_back(s), 0);
        assert_string_equal(s->mismatches, s->path);
        contents_are(s, 'a', SAVED_BYTES);
        kept = other_name(s);
        assert_non_null(kept);
        path = xasprintf("%s/%s", s->dir, kept);
        assert_int_equal(read_file(path, 100, &found, &bytes), 0);
        assert_string_equal(found, "bbbbbbb");
        assert_int_equal(unlink(path), 0);
        s->file.birth_nsec = 0; /* not known, as of NFS */
        s->inventory.made_since_nsec = 1;
        add(s, 'b', 7);
        assert_int_equal(roll_back(s), 0);
        free(take_ptr(kept));
        free(take_ptr(path));
        kept = other_name(s);
        assert_non_null(kept);
        path = xasprintf("%s/%s", s->dir, kept);
        assert_int_equal(unlink(path), 0);
        s->descriptor.flags = O_WRONLY; /* who writes to the end of then writes over what others have added */
        add(s, 'b', 7);
        assert_int_equal(roll_back(s), 0);
        assert_null(other_name(s));
}

/* The file has become longer by so many bytes, which others may have added. */
static void share(struct scene *s, off_t bytes) {
        fill(s, 'a', SAVED_BYTES);
        save(s);
        s->inventory.made_since_nsec = INT64_MAX;
        assert_int_equal(truncate(s->path, SAVED_BYTES + bytes), 0);
}

/* The job waits, and nothing was done. */
static void expect_waits(struct scene *s, int error, off_t bytes) {
        cleanup_free char *kept = NULL;

        assert_int_equal(roll_back(s), error);
        assert_non_null(strstr(s->error.text, "cannot be kept"));
        assert_non_null(strstr(s->error.text, s->path));
        assert_int_equal(size_of(s->path), SAVED_BYTES + bytes);
        kept = other_name(s);
        assert_null(kept);
}

/* The end of a file that may be somebody else's is kept, however much it is. */
static void test_much_of_others(void **state) {
        enum { BYTES = (16 << 20) + 1 };
        struct scene *s = *state;
        cleanup_free char *kept = NULL, *path = NULL;

        share(s, BYTES);
        if (s->identity.birth_nsec == 0)
                skip(); /* its file system does not tell */
        assert_int_equal(roll_back(s), 0);
        contents_are(s, 'a', SAVED_BYTES);
        assert_string_equal(s->mismatches, s->path);
        kept = other_name(s);
        assert_non_null(kept);
        path = xasprintf("%s/%s", s->dir, kept);
        assert_int_equal(size_of(path), BYTES);
}

/* The copy of the end, of which the mode and the group are these when it is made of a file with the
 * mode 0640. */
static void expect_kept_with(struct scene *s, mode_t mode, gid_t gid) {
        cleanup_free char *kept = NULL, *path = NULL;
        struct stat st;

        assert_int_equal(truncate(s->path, SAVED_BYTES + 5), 0);
        assert_int_equal(roll_back(s), 0);
        kept = other_name(s);
        assert_non_null(kept);
        path = xasprintf("%s/%s", s->dir, kept);
        assert_int_equal(stat(path, &st), 0);
        assert_int_equal(st.st_mode & 07777, mode);
        assert_int_equal(st.st_gid, gid);
        assert_int_equal(unlink(path), 0);
}

/* A user does not read by the copy what he could not read in the file, which has another group than
 * its owner makes files with. */
static void test_kept_from_the_same_users(void **state) {
        enum { GROUP = 4243 };
        /* user::rw- user:OWNER+1:r-- group::--- mask::r-- other::--- */
        static const struct {
                uint32_t version;
                struct {
                        uint16_t tag, permissions;
                        uint32_t id;
                } entries[5];
        } list = { 2, { { 1, 6, -1U }, { 2, 4, OWNER + 1 }, { 4, 0, -1U }, { 16, 4, -1U }, { 32, 0, -1U } } };
        struct scene *s = *state;
        uint32_t groups[] = { GROUP };
        struct stat st;

        s->spec.groups = groups;
        s->spec.n_groups = 1;
        share(s, 0);
        assert_int_equal(chmod(s->path, 0640), 0);
        s->file.birth_nsec = 0;
        assert_int_equal(chown(s->path, OWNER, GROUP), 0);
        expect_kept_with(s, 0640, GROUP);
        assert_int_equal(chmod(s->path, 0604), 0); /* since it was saved */
        expect_kept_with(s, 0604, GROUP);
        assert_int_equal(chmod(s->path, 0640), 0);
        assert_int_equal(chown(s->path, OWNER, GROUP + 1), 0); /* which is not his */
        expect_kept_with(s, 0600, OWNER);
        if (setxattr(s->path, "system.posix_acl_access", &list, sizeof(list), 0) == 0) {
                assert_int_equal(chown(s->path, OWNER, OWNER), 0);
                expect_kept_with(s, 0600, OWNER);
        }

        assert_int_equal(unlink(s->path), 0); /* made anew */
        fill(s, 'a', SAVED_BYTES);
        assert_int_equal(chown(s->path, OWNER, GROUP), 0);
        save(s);
        s->file.gid = GROUP;
        s->file.mode = S_IFREG | 0640;
        s->descriptor.flags = O_RDWR;
        assert_int_equal(copy(s, SAVED_BYTES), 0);
        assert_int_equal(unlink(s->path), 0);
        assert_int_equal(roll_back(s), 0);
        assert_int_equal(stat(s->path, &st), 0);
        assert_int_equal(st.st_gid, GROUP);
        assert_int_equal(st.st_mode & 07777, 0640);
}

/* Where that cannot be, nothing is cut. */
static void test_no_room_for_others(void **state) {
        enum { BYTES = 600 * 1024 };
        struct scene *s = *state;

        share(s, BYTES);
        if (s->identity.birth_nsec == 0)
                skip(); /* its file system does not tell */
        assert_int_equal(chown(s->dir, 0, 0), 0);
        assert_int_equal(chmod(s->dir, 0755), 0);
        expect_waits(s, -EACCES, BYTES);
        assert_int_equal(chown(s->dir, OWNER, OWNER), 0);
        assert_int_equal(chmod(s->path, 0200), 0); /* not to be read */
        expect_waits(s, -EACCES, BYTES);
        assert_int_equal(chmod(s->path, 0600), 0);

        if (mount("none", s->dir, "tmpfs", 0, "size=1m") < 0)
                skip(); /* the test may not */
        assert_int_equal(chown(s->dir, OWNER, OWNER), 0);
        share(s, 0);
        add(s, 'b', BYTES);
        expect_waits(s, -ENOSPC, BYTES);
        s->restore.other_files = true; /* that is for whoever says so to decide */
        assert_int_equal(roll_back(s), 0);
        assert_string_equal(s->mismatches, s->path);
        contents_are(s, 'a', SAVED_BYTES);
        assert_null(other_name(s));
        assert_int_equal(umount2(s->dir, MNT_DETACH), 0);
}

/* Two files are shared, and one of them cannot be kept: the other one stays, too. */
static void test_all_or_nothing_is_kept(void **state) {
        struct scene *s = *state;
        cleanup_free char *closed = xasprintf("%s/closed", s->dir), *second = xasprintf("%s/second", closed);
        Capsule__InventoryFile file, *files[] = { &s->file, &file };
        Capsule__InventoryDescriptor descriptor = s->descriptor, *descriptors[] = { &s->descriptor, &descriptor };

        share(s, 5);
        if (s->identity.birth_nsec == 0)
                skip(); /* its file system does not tell */
        assert_int_equal(mkdir(closed, 0755), 0);
        put_file(second, OWNER, 0600, NOW_BYTES);
        file = s->file;
        file.name = second;
        file.inode = 0;
        descriptor.file = 1;
        s->inventory.files = files;
        s->task.descriptors = descriptors;
        s->inventory.n_files = s->task.n_descriptors = 2;
        assert_int_equal(roll_back(s), -EACCES);
        assert_non_null(strstr(s->error.text, second));
        assert_int_equal(size_of(s->path), SAVED_BYTES + 5);
        assert_int_equal(remove_tree(closed), 0);
        assert_null(other_name(s));
        s->inventory.files = s->files;
        s->task.descriptors = s->descriptors;
        s->inventory.n_files = s->task.n_descriptors = 1;
        assert_int_equal(roll_back(s), 0);
        contents_are(s, 'a', SAVED_BYTES);
}

/* Data that was added to the file may be another user's. */
static void test_closed_of_others(void **state) {
        struct scene *s = *state;
        cleanup_free char *kept = NULL, *path = NULL, *found = NULL;
        Capsule__ClosedFile closed;
        size_t bytes;

        save_closed(s, &closed, SAVED_BYTES, false);
        closed.writes = 1; /* it need not be the job's at all */
        add(s, 'b', 7);
        take_back(s, s->path);
        assert_int_equal(size_of(s->path), SAVED_BYTES + 7);
        assert_null(other_name(s));
        closed.writes = 2;
        closed.others = true;
        take_back(s, s->path);
        assert_int_equal(size_of(s->path), SAVED_BYTES + 7);
        closed.others = false;
        take_back(s, s->path);
        contents_are(s, 'a', SAVED_BYTES);
        kept = other_name(s);
        assert_non_null(kept);
        assert_true(strncmp(kept, "file.cut-", 9) == 0);
        path = xasprintf("%s/%s", s->dir, kept);
        assert_int_equal(read_file(path, 100, &found, &bytes), 0);
        assert_string_equal(found, "bbbbbbb");
        assert_int_equal(unlink(path), 0);
        assert_int_equal(truncate(s->path, SAVED_BYTES + (16 << 20) + 1), 0); /* too much to be kept */
        take_back(s, s->path);
        assert_int_equal(size_of(s->path), SAVED_BYTES + (16 << 20) + 1);
        assert_null(other_name(s));
}

static void expect_kept(struct scene *s, bool kept) {
        cleanup_free char *name = other_name(s), *path = NULL, *found = NULL;
        size_t bytes;

        contents_are(s, 'a', SAVED_BYTES);
        assert_int_equal(name != NULL, kept);
        if (!kept)
                return;
        assert_string_equal(s->mismatches, s->path);
        path = xasprintf("%s/%s", s->dir, name);
        assert_int_equal(read_file(path, 100, &found, &bytes), 0);
        assert_string_equal(found, "bbbbbbb");
        assert_int_equal(unlink(path), 0);
}

/* The file was made by others after the job began, who add to it before the job has left. */
static void test_closed_of_others_since(void **state) {
        static const int64_t second = 1000000000;
        struct scene *s = *state;
        Capsule__ClosedFile closed;

        save_closed(s, &closed, SAVED_BYTES, true);
        add(s, 'b', 7);
        take_back(s, "");
        expect_kept(s, false); /* the job's own */
        closed.first_nsec = s->file.birth_nsec + second / 2;
        add(s, 'b', 7);
        take_back(s, "");
        expect_kept(s, false);
        closed.first_nsec = s->file.birth_nsec + 2 * second; /* it had been there before the job wrote to it */
        add(s, 'b', 7);
        take_back(s, s->path);
        expect_kept(s, true);
        closed.first_nsec = 0; /* not known */
        add(s, 'b', 7);
        take_back(s, s->path);
        expect_kept(s, true);
        closed.first_nsec = s->file.birth_nsec;
        s->file.birth_nsec = 0; /* likewise, as of NFS */
        add(s, 'b', 7);
        take_back(s, s->path);
        expect_kept(s, true);
        s->file.birth_nsec = closed.first_nsec;
        assert_int_equal(chown(s->path, OWNER + 1, OWNER), 0); /* another user has made it, for all */
        assert_int_equal(chmod(s->path, 0666), 0);
        s->file.uid = OWNER + 1;
        add(s, 'b', 7);
        take_back(s, s->path);
        expect_kept(s, true);
}

#define LEFT_AGO_USEC UINT64_C(3600000000)

/* The file has become longer so many seconds after the job had left (negative: before). */
static void add_then(struct scene *s, int seconds) {
        const time_t left = (time_t) ((now_real_usec() - LEFT_AGO_USEC) / 1000000);
        const struct timespec times[] = { { .tv_nsec = UTIME_OMIT }, { .tv_sec = left + seconds } };

        add(s, 'b', 7);
        assert_int_equal(utimensat(AT_FDCWD, s->path, times, 0), 0);
}

/* A note was added to a file of the job's while it was stopped. */
static void test_added_after_the_job_left(void **state) {
        static const int32_t flags[] = { O_WRONLY | O_APPEND, O_WRONLY, O_RDWR };
        struct scene *s = *state;
        Capsule__ClosedFile closed;

        fill(s, 'a', SAVED_BYTES);
        save(s);
        s->inventory.made_since_nsec = 1; /* the job has made it */
        for (size_t i = 0; i < ARRAY_SIZE(flags); i++) {
                s->descriptor.flags = flags[i];
                s->restore.left_ago_usec = LEFT_AGO_USEC;
                add_then(s, -10);
                assert_int_equal(roll_back(s), 0);
                expect_kept(s, false);
                add_then(s, 1);
                assert_int_equal(roll_back(s), 0);
                expect_kept(s, true);
                add_then(s, 0); /* in doubt */
                assert_int_equal(roll_back(s), 0);
                expect_kept(s, true);
                s->restore.left_ago_usec = 0; /* not known */
                add_then(s, 1);
                assert_int_equal(roll_back(s), 0);
                expect_kept(s, false);
        }
        save_closed(s, &closed, SAVED_BYTES, true);
        s->restore.left_ago_usec = LEFT_AGO_USEC;
        add_then(s, -10);
        take_back(s, "");
        expect_kept(s, false);
        add_then(s, 1);
        take_back(s, s->path);
        expect_kept(s, true);
}

/* The file gets its contents of then from a copy, which has nothing of what others have added. */
static void test_added_to_a_copied_file(void **state) {
        struct scene *s = *state;

        fill(s, 'a', SAVED_BYTES);
        save(s);
        s->inventory.made_since_nsec = 1;
        s->descriptor.flags = O_RDWR;
        assert_int_equal(copy(s, SAVED_BYTES), 0);
        s->restore.left_ago_usec = LEFT_AGO_USEC;
        add_then(s, -10);
        assert_int_equal(roll_back(s), 0);
        expect_kept(s, false);
        add_then(s, 1);
        assert_int_equal(roll_back(s), 0);
        expect_kept(s, true);
        assert_int_equal(roll_back(s), 0); /* once more changes nothing */
        expect_kept(s, false);
}

/* The clock of a file server is ahead of the node's, or behind, by so many seconds. */
static void test_clocks(void **state) {
        static const int64_t second = 1000000000, aheads[] = { 0, 3, 3600, -3, -3600 };
        static const uint64_t ago_usec = 60000000; /* so long ago the job has left, and has begun so long before */
        static const int64_t node_now = 1000000 * 1000000000LL + 7, began = node_now - 120 * 1000000000LL;

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(aheads); i++) {
                const struct rollback_clock clock = { node_now + aheads[i] * second, aheads[i] * second };

                assert_true(rollback_by_others(&clock, clock.now_nsec, ago_usec));
                assert_true(rollback_by_others(&clock, clock.now_nsec - 59 * second, ago_usec));
                assert_true(rollback_by_others(&clock, clock.now_nsec - 60 * second + 1, ago_usec));
                assert_false(rollback_by_others(&clock, clock.now_nsec - 60 * second - 1, ago_usec));
                assert_true(rollback_by_others(&clock, clock.now_nsec / second * second - 60 * second, ago_usec)); /* in doubt */
                assert_false(rollback_by_others(&clock, clock.now_nsec / second * second - 62 * second, ago_usec));
                assert_false(rollback_by_others(&clock, clock.now_nsec, 0)); /* not known */
                assert_true(rollback_made_since(&clock, clock.now_nsec - 119 * second, began));
                assert_false(rollback_made_since(&clock, clock.now_nsec - 121 * second, began));
                assert_false(rollback_made_since(&clock, 0, began)); /* not known */
        }
}

/* The clock of a file system is read, and the times of the file stay; where it cannot be read, as
 * from another user's file, nothing is taken for the job's. */
static void test_clock_is_read(void **state) {
        struct scene *s = *state;
        struct rollback_clock clock;
        struct stat before, after;
        cleanup_close int fd = -1;
        int64_t now;

        fill(s, 'a', SAVED_BYTES);
        add_then(s, 5);
        assert_int_equal(stat(s->path, &before), 0);
        fd = open(s->path, O_WRONLY | O_APPEND | O_CLOEXEC);
        clock = rollback_clock_read(fd, &before);
        now = (int64_t) now_real_usec() * 1000;
        assert_int_equal(stat(s->path, &after), 0);
        assert_int_equal(inventory_mtime_nsec(&after), inventory_mtime_nsec(&before));
        assert_true(clock.now_nsec <= now && clock.now_nsec > now - 10000000000);
        assert_true(clock.ahead_nsec < 1000000000 && clock.ahead_nsec > -1000000000);
        clock = (struct rollback_clock) { 0 };
        assert_true(rollback_by_others(&clock, 1, 1));
        assert_false(rollback_made_since(&clock, now, 1));
}

/* Two groups of a job have the file open, and were saved one after the other: what the first one to
 * go back cuts off is nobody else's to the second. */
static void test_cut_by_another_group(void **state) {
        struct scene *s = *state;

        fill(s, 'a', SAVED_BYTES + 3);
        save(s);
        s->inventory.made_since_nsec = 1;
        s->restore.left_ago_usec = LEFT_AGO_USEC;
        s->file.mtime_nsec = (int64_t) (now_real_usec() - LEFT_AGO_USEC - 10000000) * 1000;
        s->file.size_bytes = SAVED_BYTES + 3;
        add_then(s, -10);
        assert_int_equal(roll_back(s), 0);
        assert_int_equal(size_of(s->path), SAVED_BYTES + 3);
        s->file.size_bytes = SAVED_BYTES;
        s->file.hash = 0;
        assert_int_equal(roll_back(s), 0);
        assert_string_equal(s->mismatches, "");
        expect_kept(s, false);
}

/* A file that is longer, but no longer what it was, is left alone. */
static void test_closed_and_changed(void **state) {
        struct scene *s = *state;
        cleanup_free char *theirs = xasprintf("%s/theirs", s->dir);
        cleanup_close int fd = -1;
        Capsule__ClosedFile closed;

        save_closed(s, &closed, SAVED_BYTES, true);
        fill(s, 'b', NOW_BYTES); /* written anew */
        take_back(s, s->path);
        contents_are(s, 'b', NOW_BYTES);
        fill(s, 'b', SAVED_BYTES - 1); /* shorter */
        take_back(s, "");
        contents_are(s, 'b', SAVED_BYTES - 1);
        save_closed(s, &closed, 3 * WRITTEN_PART_BYTES, true);
        add(s, 'a', 1);
        fd = open(s->path, O_WRONLY | O_CLOEXEC);
        assert_int_equal(pwrite(fd, "b", 1, 5), 1); /* its begin tells how much it has, as in HDF5 */
        take_back(s, s->path);
        assert_int_equal(size_of(s->path), 3 * WRITTEN_PART_BYTES + 1);
        save_closed(s, &closed, 0, true); /* nothing tells that it only grew */
        add(s, 'a', 1);
        take_back(s, s->path);
        contents_are(s, 'a', 1);
        save_closed(s, &closed, SAVED_BYTES, true);
        fill(s, 'a', NOW_BYTES);
        assert_int_equal(chmod(s->path, 0), 0); /* not to be opened */
        take_back(s, "");
        assert_int_equal(size_of(s->path), NOW_BYTES);
        replace(s, 'a', NOW_BYTES); /* another one */
        take_back(s, "");
        contents_are(s, 'a', NOW_BYTES);
        assert_int_equal(chown(s->path, OWNER + 1, OWNER), 0); /* another owner */
        s->file.inode = 0;
        take_back(s, "");
        assert_int_equal(size_of(s->path), NOW_BYTES);
        assert_int_equal(rename(s->path, theirs), 0); /* gone */
        take_back(s, "");
        assert_int_equal(symlink(theirs, s->path), 0);
        take_back(s, "");
        assert_int_equal(size_of(theirs), NOW_BYTES);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_appended, setup, teardown),
                cmocka_unit_test_setup_teardown(test_written_in_place, setup, teardown),
                cmocka_unit_test_setup_teardown(test_copied, setup, teardown),
                cmocka_unit_test_setup_teardown(test_mapping_copied, setup, teardown),
                cmocka_unit_test_setup_teardown(test_not_copied, setup, teardown),
                cmocka_unit_test_setup_teardown(test_too_large, setup, teardown),
                cmocka_unit_test_setup_teardown(test_copy_of_anothers, setup, teardown),
                cmocka_unit_test_setup_teardown(test_other_file, setup, teardown),
                cmocka_unit_test_setup_teardown(test_all_or_nothing, setup, teardown),
                cmocka_unit_test_setup_teardown(test_pipe, setup, teardown),
                cmocka_unit_test(test_identity),
                cmocka_unit_test_setup_teardown(test_linked_file, setup, teardown),
                cmocka_unit_test_setup_teardown(test_copy_on_another_node, setup, teardown),
                cmocka_unit_test_setup_teardown(test_other_file_than_copied, setup, teardown),
                cmocka_unit_test_setup_teardown(test_only_read, setup, teardown),
                cmocka_unit_test_setup_teardown(test_another_program, setup, teardown),
                cmocka_unit_test_setup_teardown(test_program_changed, setup, teardown),
                cmocka_unit_test_setup_teardown(test_read_of_another, setup, teardown),
                cmocka_unit_test_setup_teardown(test_other_directory, setup, teardown),
                cmocka_unit_test_setup_teardown(test_unanswered, setup, teardown),
                cmocka_unit_test_setup_teardown(test_hashed, setup, teardown),
                cmocka_unit_test_setup_teardown(test_shared_by_jobs, setup, teardown),
                cmocka_unit_test_setup_teardown(test_much_of_others, setup, teardown),
                cmocka_unit_test_setup_teardown(test_kept_from_the_same_users, setup, teardown),
                cmocka_unit_test_setup_teardown(test_no_room_for_others, setup, teardown),
                cmocka_unit_test_setup_teardown(test_all_or_nothing_is_kept, setup, teardown),
                cmocka_unit_test_setup_teardown(test_shorter, setup, teardown),
                cmocka_unit_test_setup_teardown(test_directory, setup, teardown),
                cmocka_unit_test_setup_teardown(test_file_of_another, setup, teardown),
                cmocka_unit_test_setup_teardown(test_own_file_systems, setup, teardown),
                cmocka_unit_test_setup_teardown(test_only_looked_at, setup, teardown),
                cmocka_unit_test_setup_teardown(test_closed, setup, teardown),
                cmocka_unit_test_setup_teardown(test_closed_of_others, setup, teardown),
                cmocka_unit_test_setup_teardown(test_closed_of_others_since, setup, teardown),
                cmocka_unit_test_setup_teardown(test_added_after_the_job_left, setup, teardown),
                cmocka_unit_test_setup_teardown(test_added_to_a_copied_file, setup, teardown),
                cmocka_unit_test(test_clocks),
                cmocka_unit_test_setup_teardown(test_clock_is_read, setup, teardown),
                cmocka_unit_test_setup_teardown(test_cut_by_another_group, setup, teardown),
                cmocka_unit_test_setup_teardown(test_closed_and_changed, setup, teardown),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
