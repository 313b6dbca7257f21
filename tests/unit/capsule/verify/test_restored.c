/* The comparison of a restored group with the frozen one: its threads and open files. */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/ioprio.h>
#include <malloc.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/error.h"
#include "common/util.h"
#include "daemon/capsule/init/base/identity.h"
#include "daemon/capsule/init/base/mounts.h"
#include "daemon/capsule/init/verify/inventory.h"
#include "daemon/capsule/init/verify/settings.h"

#define STATUS(uid, gid, groups, prm)                                                                                              \
        "Name:\tUid:\t0\nState:\tS\nUid:\t" uid "\nGid:\t" gid "\nGroups:\t" groups " \nCapInh:\t0000000000000000\nCapPrm:\t" prm  \
        "\nCapEff:\t0000000000000000\nCapBnd:\t000001ffffffffff\nCapAmb:\t0000000000000000\nNoNewPrivs:\t0\nSeccomp:\t2\n"
#define NO_CAPS "0000000000000000"

static Capsule__Spec owner(void) {
        static uint32_t groups[] = { 2000, 1000, 27 };
        Capsule__Spec spec = CAPSULE__SPEC__INIT;

        spec.uid = 1000;
        spec.gid = 1000;
        spec.groups = groups;
        spec.n_groups = ARRAY_SIZE(groups);
        return spec;
}

static int check(const char *status, struct rm_error *error) {
        Capsule__Spec spec = owner();
        struct identity identity;
        int r = identity_parse(status, &identity);

        if (r < 0)
                return r;
        r = identity_check(&identity, &spec, error);
        identity_finish(&identity);
        return r;
}

static void capabilities_of_criu(void **state) {
        const uint64_t dump = UINT64_C(1) << CAP_SYS_ADMIN | UINT64_C(1) << CAP_SYS_PTRACE | UINT64_C(1) << CAP_NET_ADMIN;

        (void) state;
        assert_int_equal(identity_criu_capabilities(IDENTITY_DUMP), dump);
        assert_int_equal(identity_criu_capabilities(IDENTITY_RESTORE), dump | UINT64_C(1) << CAP_NET_RAW);
}

static void identities(void **state) {
        static const char *const four = "1000\t1000\t1000\t1000";
        struct rm_error error = { 0 };

        assert_int_equal(check(STATUS("1000\t1000\t1000\t1000", "1000\t1000\t1000\t1000", "27 1000 2000", NO_CAPS), &error), 0);
        /* Each of the four ids counts. */
        for (int i = 0; i < 4; i++) {
                char uids[64], text[1024];

                strcpy(uids, four);
                memcpy(uids + i * 5, "0   ", 4);
                (void) snprintf(text, sizeof(text), STATUS("%s", "1000\t1000\t1000\t1000", "27 1000 2000", NO_CAPS), uids);
                assert_int_equal(check(text, &error), -EPERM);
                (void) snprintf(text, sizeof(text), STATUS("1000\t1000\t1000\t1000", "%s", "27 1000 2000", NO_CAPS), uids);
                assert_int_equal(check(text, &error), -EPERM);
        }
        assert_int_equal(check(STATUS("1000\t1000\t1000\t1000", "1000\t1000\t1000\t1000", "0 27 1000 2000", NO_CAPS), &error),
                         -EPERM);
        assert_int_equal(check(STATUS("1000\t1000\t1000\t1000", "1000\t1000\t1000\t1000", "27 1000", NO_CAPS), &error), -EPERM);
        assert_int_equal(check(STATUS("1000\t1000\t1000\t1000", "1000\t1000\t1000\t1000", "27 1000 2000", "0000000000200000"),
                               &error),
                         -EACCES);
        assert_non_null(strstr(error.text, "200000"));
        assert_int_equal(check("Uid:\t1000\t1000\t1000\t1000\n", &error), -EBADMSG);
}

/* A group of one process that holds `fd`, and a control group of ours that names it. */
struct scene {
        char dir[64];
        int dir_fd;
        Capsule__Spec spec;
};

static void scene_init(struct scene *scene) {
        cleanup_free char *procs = NULL;
        cleanup_free char *pid = xasprintf("%d\n", (int) getpid());

        strcpy(scene->dir, "/tmp/rmd-test-restored.XXXXXX");
        assert_non_null(mkdtemp(scene->dir));
        procs = xasprintf("%s/cgroup.procs", scene->dir);
        assert_int_equal(write_file_atomic(procs, pid, strlen(pid), 0600, false), 0);
        scene->dir_fd = open(scene->dir, O_RDONLY | O_DIRECTORY);
        assert_true(scene->dir_fd >= 0);
        scene->spec = (Capsule__Spec) CAPSULE__SPEC__INIT; /* the tests run as root */
        scene->spec.uid = getuid();
        scene->spec.gid = getgid();
}

static void scene_finish(struct scene *scene) {
        (void) close(scene->dir_fd);
        (void) remove_tree(scene->dir);
}

/* Another process than the one that is looked at takes the inventory: it has descriptors of its
 * own meanwhile. `path`: where it goes, packed. */
static int take_into(const struct scene *scene, const char *path, struct rm_error *error) {
        Capsule__Inventory *inventory = NULL;
        cleanup_free uint8_t *data = NULL;
        int r = inventory_take(scene->dir_fd, &scene->spec, &inventory, error);
        size_t size;

        if (r < 0)
                return r;
        size = capsule__inventory__get_packed_size(inventory);
        data = xcalloc(1, size + 1);
        (void) capsule__inventory__pack(inventory, data);
        capsule__inventory__free_unpacked(inventory, NULL);
        return write_file_atomic(path, data, size, 0600, false);
}

/* Takes the inventory as it goes from node to node. */
static Capsule__Inventory *take(const struct scene *scene) {
        cleanup_free char *path = xasprintf("%s/inventory", scene->dir), *data = NULL;
        Capsule__Inventory *copy;
        size_t size;
        int status;
        pid_t pid = fork();

        assert_true(pid >= 0);
        if (pid == 0) {
                struct rm_error error = { 0 };
                int r = take_into(scene, path, &error);

                if (r < 0)
                        (void) fprintf(stderr, "%s\n", error_text(&error));
                _exit(r < 0);
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
        assert_int_equal(read_file(path, 4 << 20, &data, &size), 0);
        assert_int_equal(unlink(path), 0);
        copy = capsule__inventory__unpack(NULL, size, (const uint8_t *) data);
        assert_non_null(copy);
        return copy;
}

enum { OWNER = 4242 };

/* A process of another user's, which has this directory open, until it is killed. */
static pid_t start_holder(const struct scene *scene, const char *path) {
        cleanup_free char *procs = xasprintf("%s/cgroup.procs", scene->dir), *text = NULL;
        int ready[2];
        char byte = 0;
        pid_t pid;

        assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
        pid = fork();
        if (pid == 0) {
                if (open(path, O_RDONLY | O_DIRECTORY) >= 0 && setgroups(0, NULL) == 0 && setresgid(OWNER, OWNER, OWNER) == 0 &&
                    setresuid(OWNER, OWNER, OWNER) == 0 && prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) == 0)
                        (void) write_all(ready[1], &byte, 1);
                for (;;)
                        (void) pause();
        }
        assert_true(pid > 0);
        (void) close(ready[1]);
        assert_int_equal(read(ready[0], &byte, 1), 1);
        (void) close(ready[0]);
        text = xasprintf("%d\n", (int) pid);
        assert_int_equal(write_file_atomic(procs, text, strlen(text), 0600, false), 0);
        return pid;
}

/* Returns what the inventory of a process tells of the directory that it has open. */
static uint64_t top_of(const struct scene *scene, const char *path) {
        Capsule__Inventory *inventory = NULL;
        struct rm_error error = { 0 };
        uint64_t top = 0;
        bool found = false;

        if (inventory_take(scene->dir_fd, &scene->spec, &inventory, &error) < 0)
                fail_msg("%s", error.text);
        for (size_t i = 0; i < inventory->n_files; i++)
                if (strcmp(inventory->files[i]->name, path) == 0) {
                        top = inventory->files[i]->top;
                        found = true;
                }
        assert_true(found);
        capsule__inventory__free_unpacked(inventory, NULL);
        return top;
}

/* Root looks at directories above those of a process with its owner's rights. */
static void directories_of_the_owner(void **state) {
        struct scene scene;
        cleanup_free char *closed = NULL, *below = NULL, *deep = NULL;
        uint64_t top;
        pid_t pid;

        (void) state;
        scene_init(&scene);
        scene.spec.uid = scene.spec.gid = OWNER;
        closed = xasprintf("%s/closed", scene.dir);
        below = xasprintf("%s/below", closed);
        deep = xasprintf("%s/deep", below);
        assert_int_equal(chmod(scene.dir, 0755), 0);
        assert_int_equal(mkdir(closed, 0755), 0);
        assert_int_equal(mkdir(below, 0755), 0);
        assert_int_equal(mkdir(deep, 0755), 0);
        assert_int_equal(chown(below, OWNER, OWNER), 0);
        assert_int_equal(chown(deep, OWNER, OWNER), 0);
        pid = start_holder(&scene, deep);
        top = top_of(&scene, deep);
        assert_int_equal(top, inventory_top(below, OWNER));
        assert_int_equal(chmod(below, 0), 0); /* he may not enter his own */
        assert_int_equal(top_of(&scene, deep), inventory_top(below, OWNER));
        assert_int_equal(chmod(closed, 0700), 0); /* only root may search it */
        assert_int_equal(top_of(&scene, deep), 0);
        assert_int_equal(chmod(closed, 0755), 0);
        assert_int_equal(chown(closed, OWNER + 1, OWNER), 0);
        assert_int_equal(chmod(closed, 0705), 0); /* another user has shut out its group */
        assert_int_equal(top_of(&scene, deep), 0);
        assert_int_equal(chmod(closed, 0755), 0);
        assert_int_equal(chown(deep, OWNER + 1, OWNER), 0); /* it is not his */
        assert_int_equal(top_of(&scene, deep), 0);
        (void) kill(pid, SIGKILL);
        (void) waitpid(pid, NULL, 0);
        scene_finish(&scene);
}

/* The names of open files are a program's own choice, and PID 1, which keeps them, is root's: 16
 * MiB here, and any number else. */
static void large_inventory(void **state) {
        enum { FILES = 4200, PARTS = 15, PART_BYTES = 250 };
        Capsule__Inventory *inventory = NULL;
        struct rm_error error = { 0 };
        struct rlimit limit, more;
        struct scene scene;
        int fds[FILES], dir;
        char part[PART_BYTES + 1];
        size_t before;

        (void) state;
        scene_init(&scene);
        assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
        more = limit;
        more.rlim_cur = limit.rlim_max;
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &more), 0);
        dir = dup(scene.dir_fd);
        memset(part, 'n', PART_BYTES);
        part[PART_BYTES] = '\0';
        for (int i = 0; i < PARTS; i++) {
                int next;

                assert_int_equal(mkdirat(dir, part, 0700), 0);
                next = openat(dir, part, O_RDONLY | O_DIRECTORY);
                assert_true(next >= 0);
                (void) close(dir);
                dir = next;
        }
        for (int i = 0; i < FILES; i++) {
                char name[16];

                (void) snprintf(name, sizeof(name), "%d", i);
                fds[i] = openat(dir, name, O_RDWR | O_CREAT, 0600);
                assert_true(fds[i] >= 0);
        }
        before = mallinfo2().arena + mallinfo2().hblkhd;
        assert_int_equal(inventory_take(scene.dir_fd, &scene.spec, &inventory, &error), -EFBIG);
        assert_non_null(strstr(error.text, "too many open files"));
        assert_true(mallinfo2().arena + mallinfo2().hblkhd - before < (12U << 20));
        for (int i = 0; i < FILES; i++)
                (void) close(fds[i]);
        (void) close(dir);
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
        scene_finish(&scene);
}

/* The comparison finds the change that `change` makes. */
static void expect_difference(const struct scene *scene, const Capsule__Inventory *before, const char *text) {
        Capsule__Inventory *now = take(scene);
        struct rm_error error = { 0 };
        int r = inventory_compare(before, now, &error);

        if (!text) {
                if (r != 0)
                        fail_msg("%s", error.text);
        } else {
                assert_int_equal(r, -EPERM);
                if (!strstr(error.text, text))
                        fail_msg("'%s' does not tell of '%s'", error.text, text);
        }
        capsule__inventory__free_unpacked(now, NULL);
}

static int open_in(const struct scene *scene, const char *name, int flags) {
        int fd = openat(scene->dir_fd, name, flags | O_CREAT, 0640);

        assert_true(fd >= 0);
        return fd;
}

static void replace(int fd, int other) {
        assert_int_equal(dup2(other, fd), fd);
        (void) close(other);
}

static void inventories(void **state) {
        struct scene scene;
        Capsule__Inventory *before;
        int pipe_fds[2];
        int fd;

        scene_init(&scene);
        fd = open_in(&scene, "a", O_RDONLY);
        before = take(&scene);
        expect_difference(&scene, before, NULL);
        /* Another file, the same for writing, another kind of thing, more of them. */
        replace(fd, open_in(&scene, "b", O_RDONLY));
        expect_difference(&scene, before, "/b (mode 100640");
        replace(fd, open_in(&scene, "b (deleted)", O_RDONLY)); /* which it is not */
        expect_difference(&scene, before, "/b (deleted) (mode 100640");
        replace(fd, open_in(&scene, "a", O_RDWR));
        expect_difference(&scene, before, "flags");
        assert_int_equal(pipe(pipe_fds), 0);
        (void) close(pipe_fds[1]);
        replace(fd, pipe_fds[0]);
        expect_difference(&scene, before, "is pipe");
        replace(fd, open_in(&scene, "a", O_RDONLY));
        expect_difference(&scene, before, NULL);
        assert_int_equal(dup2(fd, fd + 20), fd + 20);
        expect_difference(&scene, before, "descriptor");
        (void) close(fd + 20);
        /* The same file with other rights, and through a link. */
        assert_int_equal(fchmod(fd, 0666), 0);
        expect_difference(&scene, before, NULL);
        assert_int_equal(renameat(scene.dir_fd, "a", scene.dir_fd, "moved"), 0);
        expect_difference(&scene, before, NULL);
        assert_int_equal(symlinkat("moved", scene.dir_fd, "a"), 0);
        replace(fd, open_in(&scene, "a", O_RDONLY));
        expect_difference(&scene, before, NULL);
        assert_int_equal(unlinkat(scene.dir_fd, "a", 0), 0);
        replace(fd, open_in(&scene, "a", O_RDONLY)); /* another one of the name */
        assert_int_equal(fchmod(fd, 0666), 0);
        expect_difference(&scene, before, "mode 100666");
        replace(fd, open_in(&scene, "moved", O_RDONLY));
        assert_int_equal(chdir(scene.dir), 0);
        expect_difference(&scene, before, "the working directory");
        assert_int_equal(chdir("/"), 0);
        capsule__inventory__free_unpacked(before, NULL);
        (void) close(fd);
        scene_finish(&scene);
}

static void set_owner(Capsule__Inventory *inventory, const char *name, uint32_t uid) {
        bool found = false;

        for (size_t i = 0; i < inventory->n_files; i++)
                if (strcmp(inventory->files[i]->name, name) == 0) {
                        inventory->files[i]->uid = inventory->files[i]->gid = uid;
                        found = true;
                }
        assert_true(found);
}

/* Whether a process has ended decides who owns its files below /proc; others have one owner. */
static void files_of_processes(void **state) {
        struct scene scene;
        Capsule__Inventory *before;
        cleanup_free char *of_process = xasprintf("/proc/%d/stat", (int) getpid());
        cleanup_free char *path = NULL;
        int fds[3];

        (void) state;
        scene_init(&scene);
        path = xasprintf("%s/a", scene.dir);
        fds[0] = open_in(&scene, "a", O_RDONLY);
        fds[1] = open(of_process, O_RDONLY);
        fds[2] = open("/proc/uptime", O_RDONLY);
        before = take(&scene);
        set_owner(before, of_process, 1000);
        expect_difference(&scene, before, NULL);
        set_owner(before, "/proc/uptime", 1000);
        expect_difference(&scene, before, "/proc/uptime");
        set_owner(before, "/proc/uptime", 0);
        set_owner(before, path, 1000);
        expect_difference(&scene, before, "/a (mode");
        set_owner(before, path, 0);
        (void) close(fds[1]);
        assert_int_equal(open("/proc/self/maps", O_RDONLY), fds[1]);
        expect_difference(&scene, before, "/maps (mode");
        capsule__inventory__free_unpacked(before, NULL);
        for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
                (void) close(fds[i]);
        scene_finish(&scene);
}

/* Each value is what a thread may not do, or who it is, alone. */
static void threads(void **state) {
        struct scene scene;
        Capsule__Inventory *before;
        Capsule__InventoryThread *thread;
        Capsule__InventoryTask *task;

        scene_init(&scene);
        before = take(&scene);
        task = before->tasks[0];
        assert_int_equal(task->n_threads, 1);
        thread = task->threads[0];
        thread->tid++;
        expect_difference(&scene, before, "restrictions");
        thread->tid--;
        thread->no_new_privs = !thread->no_new_privs;
        expect_difference(&scene, before, "restrictions");
        thread->no_new_privs = !thread->no_new_privs;
        thread->seccomp += 2;
        expect_difference(&scene, before, "restrictions");
        thread->seccomp -= 2;
        thread->bounding ^= 1;
        expect_difference(&scene, before, "restrictions");
        thread->bounding ^= 1;
        expect_difference(&scene, before, NULL);
        task->n_threads = 0;
        expect_difference(&scene, before, "has 1 threads, had 0");
        task->n_threads = 1;
        capsule__inventory__free_unpacked(before, NULL);
        scene_finish(&scene);
}

static void use_settings(unsigned io_priority, unsigned long slack_nsec, const char *filter) {
        int fd = open("/proc/self/coredump_filter", O_WRONLY);

        assert_int_equal(write(fd, filter, strlen(filter)), strlen(filter));
        (void) close(fd);
        assert_int_equal(prctl(PR_SET_TIMERSLACK, slack_nsec), 0);
        assert_int_equal(syscall(SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0, io_priority), 0);
}

/* Settings that CRIU does not know are as they were; an inventory of an older rmd has none. */
static void settings(void **state) {
        const unsigned idle = IOPRIO_PRIO_VALUE(IOPRIO_CLASS_IDLE, 7);
        struct scene scene;
        Capsule__Inventory *before, *now;
        struct rm_error error = { 0 };

        scene_init(&scene);
        use_settings(idle, 70000, "0x15");
        before = take(&scene);
        use_settings(0, 50000, "0x33");
        before->tasks[0]->settings = false;
        assert_int_equal(settings_make(before, &error), 0);
        assert_int_equal(prctl(PR_GET_TIMERSLACK), 50000);
        before->tasks[0]->settings = true;
        if (settings_make(before, &error) < 0)
                fail_msg("%s", error.text);
        now = take(&scene);
        assert_int_equal(now->tasks[0]->coredump_filter, 0x15);
        assert_int_equal(prctl(PR_GET_TIMERSLACK), 70000);
        assert_int_equal(syscall(SYS_ioprio_get, IOPRIO_WHO_PROCESS, 0), idle);
        before->tasks[0]->threads[0]->io_priority = IOPRIO_PRIO_VALUE(7, 0);
        assert_int_equal(settings_make(before, &error), -EINVAL);
        assert_non_null(strstr(error.text, "cannot have the I/O priority 0xe000"));
        before->tasks[0]->threads[0]->io_priority = 0;
        assert_int_equal(settings_make(before, &error), 0);
        use_settings(0, 50000, "0x33");
        capsule__inventory__free_unpacked(now, NULL);
        capsule__inventory__free_unpacked(before, NULL);
        scene_finish(&scene);
}

/* The mappings of a file: where they are, how much of it, from where in the file, and with which
 * rights. */
static void mappings(void **state) {
        struct scene scene;
        Capsule__Inventory *before;
        Capsule__InventoryMapping *mapping;

        scene_init(&scene);
        before = take(&scene);
        assert_true(before->tasks[0]->n_mappings > 0);
        mapping = before->tasks[0]->mappings[0];
        mapping->start ^= 4096;
        expect_difference(&scene, before, "a mapping is");
        mapping->start ^= 4096;
        mapping->bytes += 4096;
        expect_difference(&scene, before, "a mapping is");
        mapping->bytes -= 4096;
        mapping->offset += 4096;
        expect_difference(&scene, before, "a mapping is");
        mapping->offset -= 4096;
        mapping->protection ^= PROT_WRITE;
        expect_difference(&scene, before, "a mapping is");
        mapping->protection ^= PROT_WRITE;
        mapping->file = UINT32_MAX;
        expect_difference(&scene, before, "the mapping at");
        capsule__inventory__free_unpacked(before, NULL);
        scene_finish(&scene);
}

/* Numbers from another node that name nothing here. */
static void inventory_with_bad_numbers(void **state) {
        struct scene scene;
        Capsule__Inventory *before;

        scene_init(&scene);
        before = take(&scene);
        before->tasks[0]->descriptors[0]->file = 1U << 31;
        expect_difference(&scene, before, "was nothing");
        before->tasks[0]->exe = UINT32_MAX;
        expect_difference(&scene, before, "the program");
        before->tasks[0]->pid++;
        expect_difference(&scene, before, "did not exist before");
        capsule__inventory__free_unpacked(before, NULL);
        scene_finish(&scene);
}

static void owner_reaches(void **state) {
        struct scene scene;
        Capsule__Inventory *now;
        struct rm_error error = { 0 };
        Capsule__Spec stranger;
        int fd;

        scene_init(&scene);
        fd = open_in(&scene, "a", O_RDWR);
        now = take(&scene);
        assert_int_equal(inventory_reach(now, &scene.spec, &error), 0);
        /* A user who may not enter the directory; one who may enter it, but not open the file. */
        stranger = scene.spec;
        stranger.uid = stranger.gid = 4242;
        assert_int_equal(inventory_reach(now, &stranger, &error), -EPERM);
        assert_int_equal(chmod(scene.dir, 0755), 0);
        assert_int_equal(inventory_reach(now, &stranger, &error), -EPERM);
        /* Another file under that name. */
        assert_int_equal(unlinkat(scene.dir_fd, "a", 0), 0);
        assert_int_equal(symlinkat("/etc/passwd", scene.dir_fd, "a"), 0);
        assert_int_equal(inventory_reach(now, &scene.spec, &error), -EPERM);
        assert_non_null(strstr(error.text, "another file"));
        capsule__inventory__free_unpacked(now, NULL);
        (void) close(fd);
        /* A link that is open itself, and leads nowhere. */
        assert_int_equal(symlinkat("nothing", scene.dir_fd, "link"), 0);
        fd = open_in(&scene, "link", O_PATH | O_NOFOLLOW);
        now = take(&scene);
        assert_int_equal(inventory_reach(now, &scene.spec, &error), 0);
        assert_int_equal(unlinkat(scene.dir_fd, "link", 0), 0);
        assert_int_equal(inventory_reach(now, &scene.spec, &error), -EPERM);
        capsule__inventory__free_unpacked(now, NULL);
        (void) close(fd);
        scene_finish(&scene);
}

static void paths_of_mounts(void **state) {
        char text[] = "/a\\040b\\134c\\01";

        mounts_unescape(text);
        assert_string_equal(text, "/a b\\c\\01");
        assert_true(path_is_below("/home", "/home"));
        assert_true(path_is_below("/home/alice", "/home"));
        assert_false(path_is_below("/homes", "/home"));
        assert_false(path_is_below("/", "/home"));
        assert_true(path_is_below("/etc", "/"));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(capabilities_of_criu),
                cmocka_unit_test(identities),
                cmocka_unit_test(inventories),
                cmocka_unit_test(files_of_processes),
                cmocka_unit_test(directories_of_the_owner),
                cmocka_unit_test(large_inventory),
                cmocka_unit_test(threads),
                cmocka_unit_test(settings),
                cmocka_unit_test(mappings),
                cmocka_unit_test(inventory_with_bad_numbers),
                cmocka_unit_test(owner_reaches),
                cmocka_unit_test(paths_of_mounts),
        };

        return cmocka_run_group_tests_name("restored", tests, NULL, NULL);
}
