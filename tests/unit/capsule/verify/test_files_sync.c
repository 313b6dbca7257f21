/* Data that a group has written to a file of a server is there before another node opens the
 * file. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/error.h"
#include "common/util.h"
#include "daemon/capsule/init/verify/files_sync.h"
#include "tests/unit/mover/fuse_file.h"

/* A group that has one file open. */
struct group {
        Capsule__Spec spec;
        Capsule__Inventory inventory;
        Capsule__InventoryFile file, *files[1];
        Capsule__InventoryTask task, *tasks[1];
        Capsule__InventoryDescriptor descriptor, *descriptors[1];
};

static void have_open(struct group *g, const char *path, uint32_t flags) {
        capsule__spec__init(&g->spec);
        capsule__inventory__init(&g->inventory);
        capsule__inventory_file__init(&g->file);
        capsule__inventory_task__init(&g->task);
        capsule__inventory_descriptor__init(&g->descriptor);
        g->files[0] = &g->file;
        g->tasks[0] = &g->task;
        g->descriptors[0] = &g->descriptor;
        g->file.name = (char *) path;
        g->file.mode = S_IFREG | 0600;
        g->descriptor.flags = flags;
        g->task.descriptors = g->descriptors;
        g->inventory.files = g->files;
        g->inventory.tasks = g->tasks;
        g->task.n_descriptors = g->inventory.n_files = g->inventory.n_tasks = 1;
}

static void test_types(void **state) {
        static const char *const remote[] = { "nfs", "nfs4", "lustre", "fuse.sshfs", "fuse", "ceph" };
        static const char *const local[] = { "ext4", "xfs", "tmpfs", "btrfs", "overlay", "nfsd", "fusectl", "fuseblk", "" };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(remote); i++)
                assert_true(files_sync_is_remote(remote[i]));
        for (size_t i = 0; i < ARRAY_SIZE(local); i++)
                assert_false(files_sync_is_remote(local[i]));
}

static void test_local(void **state) {
        struct group g;

        (void) state;
        have_open(&g, "/var/tmp/there-is-no-such-file", O_WRONLY);
        assert_int_equal(files_sync(&g.inventory, &g.spec, 1000000, NULL), 0);
}

/* Syncs in a child, as this process is the server: its exit status is 0, or the error. */
static pid_t begin_sync(const struct fuse_file *file, const struct group *g, uint64_t limit_usec) {
        pid_t pid = fork();

        if (pid == 0) {
                struct rm_error error = { 0 };
                int r;

                (void) close(file->fd); /* so that a test that fails does not leave the file for ever */
                r = files_sync(&g->inventory, &g->spec, limit_usec, &error);
                _exit(r == 0 ? 0 : -r);
        }
        return pid;
}

static int end_sync(pid_t pid) {
        int status = 0;

        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFEXITED(status));
        return WEXITSTATUS(status);
}

static void test_served(void **state) {
        char dir[] = "/var/tmp/rmd-test-fuse.XXXXXX";
        struct fuse_file file;
        struct group g;
        pid_t pid;

        (void) state;
        assert_non_null(mkdtemp(dir));
        assert_int_equal(unshare(CLONE_NEWNS), 0);
        assert_int_equal(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), 0);
        if (mount("test", dir, "tmpfs", 0, NULL) < 0 || !fuse_file_begin(&file, dir)) {
                (void) umount2(dir, MNT_DETACH);
                (void) rmdir(dir);
                skip();
        }
        have_open(&g, file.path, O_RDONLY); /* it has written nothing */
        assert_int_equal(end_sync(begin_sync(&file, &g, 5000000)), 0);
        have_open(&g, file.path, O_RDWR);
        pid = begin_sync(&file, &g, 20000000);
        (void) alarm(20);
        fuse_file_await(&file, FUSE_FSYNC);
        fuse_file_fail(&file, EIO);
        assert_int_equal(end_sync(pid), EIO);
        pid = begin_sync(&file, &g, 200000); /* a server that does not answer */
        fuse_file_await(&file, FUSE_FSYNC);
        assert_int_equal(end_sync(pid), ETIMEDOUT);
        fuse_file_fail(&file, 0);
        pid = begin_sync(&file, &g, 20000000);
        fuse_file_await(&file, FUSE_FSYNC);
        fuse_file_fail(&file, 0);
        assert_int_equal(end_sync(pid), 0);
        (void) alarm(0);
        fuse_file_end(&file);
        assert_int_equal(umount2(dir, MNT_DETACH), 0);
        assert_int_equal(rmdir(dir), 0);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_types),
                cmocka_unit_test(test_local),
                cmocka_unit_test(test_served),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
