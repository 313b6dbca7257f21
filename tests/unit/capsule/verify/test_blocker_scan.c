/* The blockers that keep a group from being moved. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/error.h"
#include "common/proc_count.h"
#include "common/text.h"
#include "common/util.h"
#include "daemon/capsule/init/base/identity.h"
#include "daemon/capsule/init/verify/blocker_scan.h"
#include "daemon/capsule/init/verify/kernel_file.h"
#include "tests/unit/capsule/verify/holders.h"
#include "tests/unit/mover/fuse_file.h"

/* ---- words ---- */

static void test_texts(void **state) {
        char text[BLOCKER_TEXT_BYTES];
        struct blocker blocker = { .kind = BLOCKER_IO_URING, .pid = 12, .name = "feat", .detail = "unused" };

        (void) state;
        blocker_text(&blocker, text);
        assert_string_equal(text, "process 12 (feat) uses io_uring");
        blocker = (struct blocker) { .kind = BLOCKER_MQUEUE, .detail = "q" };
        blocker_text(&blocker, text);
        assert_string_equal(text, "there is a POSIX message queue (/q)");
        /* The text is sound whatever a program calls itself and its files. */
        for (int kind = 0; kind < BLOCKER_KINDS; kind++) {
                blocker = (struct blocker) { .kind = (enum blocker_kind) kind, .pid = kind % 2 ? INT32_MAX : 0 };
                memset(blocker.name, kind % 3 ? '\n' : '\x9b', sizeof(blocker.name));
                memset(blocker.detail, '%', sizeof(blocker.detail));
                blocker_text(&blocker, text);
                assert_true(strlen(text) > 5 && strlen(text) < sizeof(text));
                for (const char *p = text; *p; p++)
                        assert_true(*p >= ' ' && *p <= '~');
        }
        assert_true(blocker_is_transient(BLOCKER_POSIX_LOCK));
        assert_false(blocker_is_transient(BLOCKER_IO_URING));
}

static void test_links(void **state) {
        (void) state;
        assert_int_equal(blocker_of_link("anon_inode:[io_uring]"), BLOCKER_IO_URING);
        assert_int_equal(blocker_of_link("anon_inode:bpf-map"), BLOCKER_BPF);
        assert_int_equal(blocker_of_link("/secretmem (deleted)"), BLOCKER_MEMFD_SECRET);
        assert_int_equal(blocker_of_link("anon_inode:[eventpoll]"), BLOCKER_NONE);
        assert_int_equal(blocker_of_link("anon_inode:inotify"), BLOCKER_NONE);
        assert_int_equal(blocker_of_link("anon_inode:kvm-vm"), BLOCKER_ANON_FILE);
        assert_int_equal(blocker_of_link("/home/alice/anon_inode:[io_uring]"), BLOCKER_NONE);
        assert_int_equal(blocker_of_link("socket:[1]"), BLOCKER_NONE);
        assert_int_equal(blocker_of_link(""), BLOCKER_NONE);
}

static bool kept_out(const char *link) {
        struct kernel_mounts mounts = { 0 };
        bool out;

        kernel_mounts_parse(&mounts, "24 1 0:22 / /proc rw - proc proc rw\n"
                                     "25 1 0:23 / /sys rw,nosuid shared:7 - sysfs sysfs rw\n"
                                     "26 1 0:24 / /home rw - nfs4 server:/ rw\n"
                                     "27 1 0:25 / /mnt/my\\040bug rw - debugfs none rw\n"
                                     "28 1 0:26 / /cgroup rw - cgroup2\n"
                                     "29 1 0:27 / /tmp\n"
                                     "\n - proc\n");
        assert_int_equal(mounts.n, 6);
        out = kernel_file_is_kept_out(&mounts, link, false);
        if (out)
                assert_true(kernel_file_is_kept_out(&mounts, link, true));
        kernel_mounts_finish(&mounts);
        return out;
}

static void test_kernel_files(void **state) {
        static const char *const out[] = {
                "/proc/1/pagemap",
                "/proc/7/mem",
                "/proc/7/stack",
                "/proc/7/task/8/stack",
                "/proc/7/task/8x",
                "/proc/iomem",
                "/proc/kcore",
                "/proc/kallsyms",
                "/proc/7/maps2",
                "/proc/7x/maps",
                "/proc/7/root",
                "/proc/7/maps (deleted)",
                "/proc/sys/kernel/panic",
                "/sys/bus/pci/devices/0000:00:00.0/config",
                "/sys/devices/pci0000:00/0000:00:00.0/config",
                "/sys/devices/systemd",
                "/sys/kernel/debug/x",
                "/sys/fs/bpf/map",
                "/sys",
                "/mnt/my bug/x",
                "/mnt/my bug",
                "/cgroup/cgroup.procs",
        };
        static const char *const in[] = {
                "/proc/7/maps",
                "/proc/7/task/8/stat",
                "/proc/7/task/8/",
                "/proc/7/task/8",
                "/proc/7",
                "/proc/7/net/dev",
                "/proc/meminfo",
                "/proc",
                "/sys/devices/system/cpu/online",
                "/sys/devices/system",
                "/home/alice/sys/x",
                "/procs",
                "/sysroot/x",
                "/mnt/my bugs/x",
                "/tmp/proc/kcore",
                "",
        };
        struct kernel_mounts none = { 0 };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(out); i++)
                if (!kept_out(out[i]))
                        fail_msg("%s is not kept out", out[i]);
        for (size_t i = 0; i < ARRAY_SIZE(in); i++)
                if (kept_out(in[i]))
                        fail_msg("%s is kept out", in[i]);
        /* These paths are kept out whatever the mounts are. */
        kernel_mounts_parse(&none, "");
        assert_true(kernel_file_is_kept_out(&none, "/proc/kcore", false));
        assert_true(kernel_file_is_kept_out(&none, "/proc/7/maps", true));
        assert_false(kernel_file_is_kept_out(&none, "/home/x", true));
        kernel_mounts_finish(&none);
        assert_int_equal(blocker_of_link("net:[4026531840]"), BLOCKER_KERNEL_FILE);
        assert_int_equal(blocker_of_link("mnt:[4026531841]"), BLOCKER_KERNEL_FILE);
        assert_int_equal(blocker_of_link("anon_inode:[pidfd]"), BLOCKER_NONE);
        assert_int_equal(blocker_of_link("pipe:[1]"), BLOCKER_NONE);
}

static void test_installed_files(void **state) {
        char path[BLOCKER_DETAIL_BYTES] = "";
        char text[BLOCKER_TEXT_BYTES];
        struct blocker blocker = { .kind = BLOCKER_REPLACED, .pid = 7, .name = "ring" };

        (void) state;
        assert_false(blocker_of_installed("/usr/lib/libmpi.so.40", path, sizeof(path)));
        assert_false(blocker_of_installed("/home/alice/ring (deleted)", path, sizeof(path)));
        assert_false(blocker_of_installed("/memfd:/usr/x (deleted)", path, sizeof(path)));
        assert_false(blocker_of_installed(" (deleted)", path, sizeof(path)));
        assert_false(blocker_of_installed("", path, sizeof(path)));
        assert_true(blocker_of_installed("/usr/lib/libmpi.so.40 (deleted)", path, sizeof(path)));
        assert_string_equal(path, "/usr/lib/libmpi.so.40");
        (void) snprintf(blocker.detail, sizeof(blocker.detail), "%s", path);
        blocker_text(&blocker, text);
        assert_string_equal(text, "process 7 (ring) uses /usr/lib/libmpi.so.40, which was replaced or removed on this node since");
}

/* No path that a user makes hides what is the matter: the message has its begin and its end, and
 * all that follows it. */
static void test_long_paths(void **state) {
        struct blocker blocker = { .pid = 4194304, .name = "123456789012345" };
        char link[PATH_MAX + 16], path[PATH_MAX], text[BLOCKER_TEXT_BYTES];

        (void) state;
        memset(link, 'd', sizeof(link));
        memcpy(link, "/usr/lib/", 9);
        (void) strcpy(link + 2000, "/libmpi.so.40 (deleted)");
        assert_true(blocker_of_installed(link, path, sizeof(path)));
        assert_int_equal(strlen(path), 2000 + strlen("/libmpi.so.40"));
        assert_memory_equal(path, link, strlen(path));
        for (int kind = BLOCKER_NONE + 1; kind < BLOCKER_KINDS; kind++) {
                blocker.kind = (enum blocker_kind) kind;
                (void) text_format(blocker.detail, sizeof(blocker.detail), "%s", path);
                blocker_text(&blocker, text);
                assert_true(strlen(text) < BLOCKER_TEXT_BYTES - 1);
                if (strstr(text, "/usr/lib/ddd"))
                        assert_non_null(strstr(text, "d" TEXT_CUT_MARK "d"));
        }
        blocker.kind = BLOCKER_REPLACED;
        blocker_text(&blocker, text);
        assert_ptr_equal(strstr(text, "process 4194304 (123456789012345) uses /usr/lib/ddd"), text);
        assert_string_equal(strstr(text, "/libmpi"), "/libmpi.so.40, which was replaced or removed on this node since");
        /* Longer than any path. */
        memset(link, 'd', sizeof(link));
        memcpy(link, "/usr/lib/", 9);
        (void) strcpy(link + PATH_MAX, " (deleted)");
        assert_false(blocker_of_installed(link, path, sizeof(path)));
}

static void test_locks(void **state) {
        dev_t dev = 0;

        (void) state;
        assert_int_equal(blocker_of_lock("lock:\t1: POSIX  ADVISORY  WRITE 5266 fe:1a:10977438 3 7\n", &dev), BLOCKER_POSIX_LOCK);
        assert_int_equal(dev, makedev(0xfe, 0x1a));
        assert_int_equal(blocker_of_lock("lock:\t22: OFDLCK ADVISORY  WRITE -1 00:30:1 10 14\n", &dev), BLOCKER_OFD_LOCK);
        assert_int_equal(blocker_of_lock("lock:\t4: LEASE  ACTIVE    WRITE 5266 fe:00:10977438 0 EOF\n", &dev), BLOCKER_LEASE);
        assert_int_equal(blocker_of_lock("lock:\t1: FLOCK  ADVISORY  READ  0 fe:00:10977438 0 EOF\n", &dev), BLOCKER_FLOCK);
        assert_int_equal(blocker_of_lock("lock:\t1: FLOCK", &dev), BLOCKER_NONE);
        assert_int_equal(blocker_of_lock("pos:\t0\n", &dev), BLOCKER_NONE);
}

/* ---- processes ---- */

static void hold_nothing(void) {
}

static void hold_lock(void) {
        int fd = open("/dev/shm/rmd-test-obstacles", O_RDWR | O_CREAT | O_CLOEXEC, 0600);

        if (fd < 0 || flock(fd, LOCK_EX) < 0)
                _exit(1);
}

static void hold_eventfds(void) {
        if (eventfd(1, 0) < 0 || eventfd(3, EFD_SEMAPHORE) < 0)
                _exit(1);
}

static void hold_both(void) {
        hold_lock();
        hold_eventfds();
}

static void hold_secret(void) {
        if (syscall(SYS_memfd_secret, 0) < 0)
                _exit(1);
}

/* The needs of the last group that was looked at. */
static struct dump_needs needs;

#define WATCHED "/dev/shm/rmd-test-watched"

static void hold_inotify(void) {
        int fds[] = { inotify_init1(IN_CLOEXEC), inotify_init1(IN_CLOEXEC) };

        (void) mkdir(WATCHED, 0700);
        for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
                if (inotify_add_watch(fds[i], "/dev/shm", IN_CREATE) < 0 || inotify_add_watch(fds[i], WATCHED, IN_CREATE) < 0)
                        _exit(1);
}

static void hold_renamed(bool other_name) {
        int fd = open("/dev/shm/rmd-test-obstacles", O_RDWR | O_CREAT | O_CLOEXEC, 0600);

        if (fd < 0 || (other_name && link("/dev/shm/rmd-test-obstacles", "/dev/shm/rmd-test-other") < 0) ||
            unlink("/dev/shm/rmd-test-obstacles") < 0)
                _exit(1);
}

static void hold_linked(void) {
        hold_renamed(true);
}

static void hold_deleted(void) {
        hold_renamed(false);
}

/* The name of the file ends as that of one that has none. */
static void hold_named(void) {
        if (open("/dev/shm/rmd-test-kept (deleted)", O_RDWR | O_CREAT | O_CLOEXEC, 0600) < 0)
                _exit(1);
}

static enum blocker_kind found_in(void (*hold)(void), const struct blocker_scope *scope) {
        pid_t pid = start_holder(hold);
        const pid_t pids[] = { 999999999, pid };
        struct blocker blocker;

        blockers_of_processes(scope, pids, ARRAY_SIZE(pids), &blocker, &needs);
        if (blocker.kind != BLOCKER_NONE) {
                assert_int_equal(blocker.pid, pid);
                assert_memory_equal(blocker.name, program_invocation_short_name, strlen(blocker.name)); /* its first 15 bytes */
                assert_true(strlen(blocker.name) >= 14);
        }
        (void) kill(pid, SIGKILL);
        (void) waitpid(pid, NULL, 0);
        return blocker.kind;
}

/* The cache for CRIU: magic numbers, and entries with device, inode and path. */
static void scan_cache(const struct watches *watches, const Capsule__Spec *spec) {
        char dir[] = "/tmp/rmd-test-watches.XXXXXX";
        cleanup_free char *path = NULL, *cache = NULL;
        cleanup_close int dir_fd = -1;
        static const struct watches none;
        Capsule__Spec other = CAPSULE__SPEC__INIT;
        struct rm_error err = { 0 };
        static const uint32_t magics[] = { 0x55105940, 0x57004059 };
        size_t size;

        assert_non_null(mkdtemp(dir));
        path = xasprintf("%s/irmap-cache", dir);
        dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        assert_int_equal(watches_report(watches, spec, dir_fd, NULL), 0);
        assert_int_equal(watches_report(watches, spec, dir_fd, NULL), 0);
        assert_int_equal(read_file(path, 4096, &cache, &size), 0);
        assert_memory_equal(cache, magics, sizeof(magics));
        assert_non_null(memmem(cache, size, "/dev/shm", 8));
        assert_non_null(memmem(cache, size, WATCHED, strlen(WATCHED)));
        /* A directory that has been put out of his reach. */
        free(take_ptr(cache));
        other.uid = other.gid = 65534;
        assert_int_equal(mkdir("/dev/shm/rmd-test-closed", 0700), 0);
        assert_int_equal(rename(WATCHED, "/dev/shm/rmd-test-closed/hidden-name"), 0);
        assert_int_equal(watches_report(watches, &other, dir_fd, &err), -ENOENT);
        assert_non_null(strstr(error_text(&err), "its owner cannot reach now"));
        assert_int_equal(read_file(path, 4096, &cache, &size), 0);
        assert_null(memmem(cache, size, "hidden-name", 11));
        (void) rmdir("/dev/shm/rmd-test-closed/hidden-name");
        (void) rmdir("/dev/shm/rmd-test-closed");
        assert_int_equal(watches_report(&none, spec, dir_fd, NULL), 0);
        assert_int_equal(access(path, F_OK), -1);
        (void) rmdir(dir);
}

static void test_watches(void **state) {
        static const char line[] = "inotify wd:1 ino:11 sdev:58 mask:100 ignored_mask:0 fhandle-bytes:c fhandle-type:1 "
                                   "f_handle:884756ca1100000000000000\n";
        struct watches watches = { 0 };
        char text[512];

        (void) state;
        assert_true(watches_add(&watches, "pos:\t0\n") && watches_add(&watches, "") && watches_add(&watches, "inotify wd:1"));
        assert_int_equal(watches.n, 0);
        for (size_t cut = 1; cut < sizeof(line); cut++) {
                (void) snprintf(text, sizeof(text), "%.*s", (int) (sizeof(line) - 1 - cut), line);
                assert_true(watches_add(&watches, text));
                assert_true(cut < 3 || watches.n == 1);
                watches.n = cut < 3 ? 0 : watches.n;
                if (cut == 2)
                        assert_true(watches_add(&watches, line));
        }
        assert_true(watches_add(&watches, line));
        assert_int_equal(watches.n, 1);
        assert_int_equal(watches.handles[0].inode, 0x11);
        assert_int_equal(watches.handles[0].device, 0x58);
        assert_int_equal(watches.handles[0].bytes, 12);
        assert_memory_equal(watches.handles[0].handle, "\x88\x47\x56\xca\x11\0\0\0\0\0\0\0", 12);
        /* More bytes than a handle has. */
        assert_true(watches_add(&watches,
                                "inotify wd:1 ino:12 sdev:58 mask:100 ignored_mask:0 fhandle-bytes:81 fhandle-type:1 f_handle:88"));
        assert_int_equal(watches.n, 1);
        for (unsigned i = 0; i < 2 * WATCHES_MAX; i++) {
                (void) snprintf(text, sizeof(text),
                                "inotify wd:1 ino:%x sdev:58 mask:1 ignored_mask:0 fhandle-bytes:1 fhandle-type:1 f_handle:01",
                                0x100 + i);
                assert_true(watches_add(&watches, text) == (i + 1 < WATCHES_MAX));
        }
        assert_int_equal(watches.n, WATCHES_MAX);
        watches_finish(&watches);
}

/* A look that ends only by its limit on processor time. The caller closes `proc`. */
static struct blocker_scope all_of(const Capsule__Spec *spec, uint64_t cpu_usec) {
        return (struct blocker_scope) { .proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC),
                                        .spec = spec,
                                        .frozen = true,
                                        .budget = SIZE_MAX,
                                        .cpu_usec = cpu_usec };
}

static void test_processes(void **state) {
        gid_t group_list[256];
        int n_groups = getgroups(ARRAY_SIZE(group_list), group_list);
        uint32_t groups[ARRAY_SIZE(group_list)];
        Capsule__Spec spec = CAPSULE__SPEC__INIT;
        struct blocker_scope scope = all_of(&spec, 60000000);
        struct stat st;

        (void) state;
        assert_true(scope.proc >= 0 && n_groups >= 0);
        for (int i = 0; i < n_groups; i++)
                groups[i] = group_list[i];
        spec.uid = getuid();
        spec.gid = getgid();
        spec.groups = groups;
        spec.n_groups = (size_t) n_groups;
        assert_int_equal(found_in(hold_nothing, &scope), BLOCKER_NONE);
        assert_false(needs.watches.n > 0 || needs.remap);
        assert_int_equal(found_in(hold_inotify, &scope), BLOCKER_NONE);
        assert_true(needs.watches.n == 2 && !needs.remap);
        scan_cache(&needs.watches, &spec);
        (void) rmdir(WATCHED);
        dump_needs_finish(&needs);
        assert_int_equal(found_in(hold_deleted, &scope), BLOCKER_NONE);
        assert_false(needs.watches.n > 0 || needs.remap);
        assert_int_equal(found_in(hold_linked, &scope), BLOCKER_NONE);
        assert_true(needs.watches.n == 0 && needs.remap);
        assert_non_null(strstr(needs.linked, "/dev/shm/rmd-test-obstacles")); /* which keeps it from being saved */
        dump_needs_finish(&needs);
        (void) unlink("/dev/shm/rmd-test-other");
        assert_int_equal(found_in(hold_named, &scope), BLOCKER_NONE);
        assert_false(needs.remap || needs.linked);
        (void) unlink("/dev/shm/rmd-test-kept (deleted)");
        assert_int_equal(found_in(hold_eventfds, &scope), BLOCKER_EVENTFD_SEMAPHORE);
        assert_int_equal(found_in(hold_secret, &scope), BLOCKER_MEMFD_SECRET);
        assert_int_equal(found_in(hold_lock, &scope), BLOCKER_FLOCK);
        assert_int_equal(found_in(hold_both, &scope), BLOCKER_EVENTFD_SEMAPHORE);
        /* On a file system of the capsule's own. */
        assert_int_equal(stat("/dev/shm/rmd-test-obstacles", &st), 0);
        scope.own = &st.st_dev;
        scope.n_own = 1;
        assert_int_equal(found_in(hold_lock, &scope), BLOCKER_NONE);
        (void) unlink("/dev/shm/rmd-test-obstacles");
        assert_int_equal(found_in(hold_linked, &scope), BLOCKER_NONE);
        assert_true(needs.remap && !needs.linked);
        (void) unlink("/dev/shm/rmd-test-other");
        scope.budget = 2; /* one thread, and the first descriptor */
        assert_int_equal(found_in(hold_eventfds, &scope), BLOCKER_NONE);
        scope.budget = SIZE_MAX;
        spec.uid++;
        assert_int_equal(found_in(hold_nothing, &scope), BLOCKER_OTHER_USER);
        spec.uid--;
        spec.gid++;
        assert_int_equal(found_in(hold_nothing, &scope), BLOCKER_OTHER_USER);
        (void) close(scope.proc);
}

/* ---- what would take long to look at ---- */

static void raise_limit(void) {
        struct rlimit limit;

        if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
                _exit(1);
        limit.rlim_cur = limit.rlim_max;
        if (setrlimit(RLIMIT_NOFILE, &limit) < 0)
                _exit(1);
}

static void hold_many(int first, int n) {
        raise_limit();
        for (int i = 0; i < n; i++)
                if (dup(first) < 0)
                        _exit(1);
}

static void hold_many_files(void) {
        hold_many(open("/etc/passwd", O_RDONLY), PROC_DESCRIPTORS_MAX);
}

static void hold_many_sockets(void) {
        hold_many(socket(AF_UNIX, SOCK_STREAM, 0), PROC_DESCRIPTORS_MAX);
}

/* Few, but with high numbers: the table of descriptors is large. */
static void hold_high_numbers(void) {
        raise_limit();
        if (dup2(STDERR_FILENO, PROC_DESCRIPTORS_MAX + 100) < 0)
                _exit(1);
}

static void hold_some(void) {
        hold_many(open("/etc/passwd", O_RDONLY), PROC_GROUP_DESCRIPTORS_MAX / 5 + 1);
}

/* All locks are shown with each descriptor of the file. */
static void hold_locks(void) {
        int fd = open("/dev/shm/rmd-test-obstacles", O_RDWR | O_CREAT | O_CLOEXEC, 0600);

        for (off_t i = 0; i < 4000; i++) {
                struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 2 * i, .l_len = 1 };

                if (fd < 0 || fcntl(fd, F_SETLK, &lock) < 0)
                        _exit(1);
        }
        hold_many(fd, 4000);
}

static void hold_mappings(void) {
        enum { N = 60000, PAGE = 4096 };
        char *memory = mmap(NULL, (size_t) N * PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

        for (size_t i = 0; i < N; i += 2)
                if (memory == MAP_FAILED || mprotect(memory + i * PAGE, PAGE, PROT_NONE) < 0)
                        _exit(1);
}

static uint64_t scan_group(void (*const holds[])(void), size_t n, const struct blocker_scope *scope, struct blocker *ret) {
        uint64_t began_usec;
        pid_t pids[8];

        assert_true(n <= ARRAY_SIZE(pids));
        for (size_t i = 0; i < n; i++)
                pids[i] = start_holder(holds[i]);
        began_usec = thread_cpu_usec();
        blockers_of_processes(scope, pids, n, ret, NULL);
        began_usec = thread_cpu_usec() - began_usec;
        for (size_t i = 0; i < n; i++) {
                assert_int_equal(kill(pids[i], SIGKILL), 0);
                assert_int_equal(waitpid(pids[i], NULL, 0), pids[i]);
        }
        return began_usec;
}

static void test_too_many(void **state) {
        static void (*const some[])(void) = { hold_some, hold_some, hold_some, hold_some, hold_some, hold_nothing };
        static const struct {
                void (*hold)(void);
                const char *text; /* NULL: none */
        } cases[] = {
                { hold_many_files, "descriptors in a process, and there may be 16384" },
                { hold_many_sockets, "descriptors in a process, and there may be 16384" },
                { hold_high_numbers, NULL },
                { hold_locks, "open files, locks and mappings take too long" },
        };
        Capsule__Spec spec = CAPSULE__SPEC__INIT;
        struct blocker_scope scope = all_of(&spec, 300000);
        struct blocker blocker;
        struct stat st;

        (void) state;
        assert_int_equal(stat("/dev/shm", &st), 0);
        scope.own = &st.st_dev;
        scope.n_own = 1;
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                uint64_t took_usec = scan_group(&cases[i].hold, 1, &scope, &blocker);

                if (blocker.kind != (cases[i].text ? BLOCKER_TOO_MANY : BLOCKER_NONE) ||
                    (cases[i].text && !strstr(blocker.detail, cases[i].text)) || took_usec > 2 * scope.cpu_usec)
                        fail_msg("case %zu: %d (%s) after %llu us", i, (int) blocker.kind, blocker.detail,
                                 (unsigned long long) took_usec);
        }
        /* Each process has fewer than it may have. They are counted, not looked at. */
        assert_true(scan_group(some, ARRAY_SIZE(some), &scope, &blocker) < 100000);
        assert_int_equal(blocker.kind, BLOCKER_TOO_MANY);
        assert_non_null(strstr(blocker.detail, "descriptors in the group"));
        (void) unlink("/dev/shm/rmd-test-obstacles");
        (void) close(scope.proc);
}

/* Several processes, as the kernel lets one have no more than 65,530 by default. */
static void test_too_many_mappings(void **state) {
        static void (*const holds[])(void) = { hold_mappings, hold_mappings, hold_mappings, hold_mappings, hold_mappings };
        Capsule__Spec spec = CAPSULE__SPEC__INIT;
        struct blocker_scope scope = all_of(&spec, 60000000);
        struct blocker blocker;

        (void) state;
        (void) scan_group(holds, 2, &scope, &blocker);
        assert_int_equal(blocker.kind, BLOCKER_NONE);
        (void) scan_group(holds, ARRAY_SIZE(holds), &scope, &blocker);
        assert_int_equal(blocker.kind, BLOCKER_TOO_MANY);
        assert_non_null(strstr(blocker.detail, "262145 mappings in the group"));
        (void) close(scope.proc);
}

/* ---- what its owner could not read himself ---- */

enum { OWNER = 65534 };

/* The process becomes the owner's as after an exec() of his; descriptors that were opened before
 * stay open, as if they had been passed to him. */
static void become_owner(void) {
        if (setgroups(0, NULL) < 0 || setresgid(OWNER, OWNER, OWNER) < 0 || setresuid(OWNER, OWNER, OWNER) < 0 ||
            prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) < 0)
                _exit(1);
}

static const char *hidden_file(mode_t mode) {
        static char path[64];
        int fd;

        (void) snprintf(path, sizeof(path), "/dev/shm/rmd-test-hidden.%d", (int) getpid());
        fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (fd < 0 || write(fd, "secret", 6) != 6 || fchmod(fd, mode) < 0)
                _exit(1);
        (void) close(fd);
        return path;
}

static void hold_file(mode_t mode, int flags, bool deleted) {
        const char *path = hidden_file(mode);

        if (open(path, flags) < 0)
                _exit(1);
        if (deleted)
                (void) unlink(path);
        become_owner();
}

static void hold_path_of_deleted(void) {
        hold_file(0600, O_PATH, true);
}

static void hold_path_of_named(void) {
        hold_file(0600, O_PATH, false);
}

static void hold_written_only(void) {
        hold_file(0622, O_WRONLY | O_APPEND, true);
}

static void hold_readable(void) {
        hold_file(0604, O_PATH, true);
}

/* He can read it anyway. */
static void hold_read(void) {
        hold_file(0600, O_RDWR, true);
}

/* The owner of a file may give himself the right to read it. */
static void hold_own_for_writing(void) {
        const char *path = hidden_file(0200);

        if (open(path, O_WRONLY) < 0 || chown(path, OWNER, OWNER) < 0)
                _exit(1);
        (void) unlink(path);
        become_owner();
}

/* A file of the owner's that has got another mode since it was opened, as all have that were made
 * for reading only and opened for writing by one call. */
static int hold_own(mode_t mode, int flags) {
        const char *path = hidden_file(0600);
        int fd = open(path, flags);

        if (fd < 0 || chown(path, OWNER, OWNER) < 0 || chmod(path, mode) < 0)
                _exit(1);
        (void) unlink(path);
        return fd;
}

static void hold_own_read_only(void) {
        (void) hold_own(0444, O_RDWR);
        become_owner();
}

static void hold_own_of_others(void) {
        (void) hold_own(0077, O_RDONLY);
        become_owner();
}

static void hold_own_write_only(void) {
        (void) hold_own(0200, O_RDWR | O_APPEND);
        become_owner();
}

static void hold_own_read(void) {
        (void) hold_own(0400, O_RDONLY);
        become_owner();
}

static void map_own(mode_t mode, int protection, int flags) {
        int fd = hold_own(mode, O_RDWR);

        if (mmap(NULL, 4096, protection, flags, fd, 0) == MAP_FAILED || close(fd) < 0)
                _exit(1);
        become_owner();
}

static void hold_own_mapped(void) {
        map_own(0444, PROT_READ | PROT_WRITE, MAP_SHARED);
}

static void hold_own_copied(void) {
        map_own(0444, PROT_READ | PROT_WRITE, MAP_PRIVATE);
}

static void hold_memory(void) {
        become_owner();
        (void) prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
}

/* The process is what a program that was set-user-ID root becomes. */
static void hold_memory_of_root(void) {
        if (setresgid(OWNER, OWNER, OWNER) < 0 || setgroups(0, NULL) < 0 || setresuid(OWNER, OWNER, OWNER) < 0)
                _exit(1);
}

static void send_descriptor(int to, int fd) {
        char byte = 0, control[CMSG_SPACE(sizeof(int))] = { 0 };
        struct iovec part = { &byte, 1 };
        struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control) };
        struct cmsghdr *c = CMSG_FIRSTHDR(&message);

        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(c), &fd, sizeof(fd));
        if (sendmsg(to, &message, 0) != 1)
                _exit(1);
        (void) close(fd);
}

static void hold_under_way(int type) {
        const char *path = hidden_file(0600);
        int ends[2];

        if (socketpair(AF_UNIX, type, 0, ends) < 0)
                _exit(1);
        send_descriptor(ends[0], open(path, O_PATH));
        (void) unlink(path);
        become_owner();
}

static void hold_in_stream(void) {
        hold_under_way(SOCK_STREAM);
}

static void hold_in_datagrams(void) {
        hold_under_way(SOCK_DGRAM);
}

/* Both ends of the inner one are in the queue of the outer one. */
static void hold_in_socket_in_socket(void) {
        int inner[2], outer[2];

        if (socketpair(AF_UNIX, SOCK_STREAM, 0, inner) < 0 || socketpair(AF_UNIX, SOCK_STREAM, 0, outer) < 0)
                _exit(1);
        send_descriptor(inner[0], open("/etc/passwd", O_PATH));
        send_descriptor(outer[0], inner[1]);
        send_descriptor(outer[0], inner[0]);
        become_owner();
}

/* The descriptor is in a connection that was never accepted, and whose other end is closed. */
static void hold_unaccepted(void) {
        struct sockaddr_un name = { .sun_family = AF_UNIX };
        int listening = socket(AF_UNIX, SOCK_STREAM, 0), fd = socket(AF_UNIX, SOCK_STREAM, 0);

        (void) snprintf(name.sun_path + 1, sizeof(name.sun_path) - 1, "rmd-test-hidden.%d", (int) getpid());
        if (bind(listening, (struct sockaddr *) &name, sizeof(name)) < 0 || listen(listening, 4) < 0 ||
            connect(fd, (struct sockaddr *) &name, sizeof(name)) < 0)
                _exit(1);
        send_descriptor(fd, open("/etc/passwd", O_PATH));
        (void) close(fd);
        become_owner();
}

static void hold_ordinary(void) {
        int ends[2];

        if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) < 0 || write(ends[0], "data", 4) != 4 || open("/etc/passwd", O_PATH) < 0 ||
            open("/etc", O_PATH) < 0)
                _exit(1);
        become_owner();
}

static void hold_opened(const char *path, int flags) {
        if (open(path, flags) < 0)
                _exit(1);
        become_owner();
}

static void hold_pagemap(void) {
        hold_opened("/proc/self/pagemap", O_RDONLY);
}

static void hold_physical_map(void) {
        hold_opened("/proc/iomem", O_RDONLY);
}

static void hold_symbols(void) {
        hold_opened("/proc/kallsyms", O_RDONLY);
}

static void hold_sysfs(void) {
        hold_opened("/sys/kernel/uevent_seqnum", O_RDONLY);
}

static void hold_namespace(void) {
        hold_opened("/proc/self/ns/net", O_RDONLY);
}

/* The file is one of those that may be kept, but not so. */
static void hold_written(void) {
        hold_opened("/proc/self/comm", O_RDWR);
}

static void hold_directory(void) {
        if (chdir("/sys/kernel") < 0)
                _exit(1);
        become_owner();
}

static void hold_tables(void) {
        if (open("/proc/self/maps", O_RDONLY) < 0 || open("/proc/self/task", O_RDONLY) < 0 || open("/proc/meminfo", O_RDONLY) < 0 ||
            open("/sys/devices/system/cpu/online", O_RDONLY) < 0)
                _exit(1);
        become_owner();
}

static void test_hidden(void **state) {
        static const struct {
                void (*hold)(void);
                enum blocker_kind kind;
        } cases[] = {
                { hold_ordinary, BLOCKER_NONE },
                { hold_path_of_deleted, BLOCKER_UNREADABLE },
                { hold_path_of_named, BLOCKER_UNREADABLE },
                { hold_written_only, BLOCKER_UNREADABLE },
                { hold_readable, BLOCKER_NONE },
                { hold_read, BLOCKER_NONE },
                { hold_own_for_writing, BLOCKER_NONE },
                { hold_own_read_only, BLOCKER_MODE },
                { hold_own_of_others, BLOCKER_MODE },
                { hold_own_write_only, BLOCKER_MODE },
                { hold_own_mapped, BLOCKER_MODE },
                { hold_own_copied, BLOCKER_NONE },
                { hold_own_read, BLOCKER_NONE },
                { hold_memory, BLOCKER_NOT_DUMPABLE },
                { hold_memory_of_root, BLOCKER_NOT_DUMPABLE },
                { hold_in_stream, BLOCKER_UNDER_WAY },
                { hold_in_datagrams, BLOCKER_UNDER_WAY },
                { hold_in_socket_in_socket, BLOCKER_UNDER_WAY },
                { hold_unaccepted, BLOCKER_UNDER_WAY },
                { hold_pagemap, BLOCKER_KERNEL_FILE },
                { hold_physical_map, BLOCKER_KERNEL_FILE },
                { hold_symbols, BLOCKER_KERNEL_FILE },
                { hold_sysfs, BLOCKER_KERNEL_FILE },
                { hold_namespace, BLOCKER_KERNEL_FILE },
                { hold_written, BLOCKER_KERNEL_FILE },
                { hold_directory, BLOCKER_KERNEL_FILE },
                { hold_tables, BLOCKER_NONE },
        };
        Capsule__Spec spec = CAPSULE__SPEC__INIT;
        struct blocker_scope scope = all_of(&spec, 60000000);

        (void) state;
        spec.uid = spec.gid = OWNER;
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                enum blocker_kind kind = found_in(cases[i].hold, &scope);

                if (kind != cases[i].kind)
                        fail_msg("case %zu: %d, not %d", i, (int) kind, (int) cases[i].kind);
        }
        (void) close(scope.proc);
        (void) !system("rm -f /dev/shm/rmd-test-hidden.*");
}

static void hold_readable_named(void) {
        hold_file(0604, O_PATH, false);
}

static void hold_readable_for_writing(void) {
        hold_file(0606, O_WRONLY, true);
}

/* Looks at the process where this system call does not work. */
static enum blocker_kind found_without(unsigned call, unsigned action, pid_t pid, const struct blocker_scope *scope) {
        struct sock_filter steps[] = {
                BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
                BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1),
                BPF_STMT(BPF_RET | BPF_K, action),
                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        };
        const struct sock_fprog filter = { ARRAY_SIZE(steps), steps };
        pid_t scanner = fork();
        int status = -1;

        if (scanner == 0) {
                struct blocker blocker;

                if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) < 0)
                        _exit(255);
                blockers_of_processes(scope, &pid, 1, &blocker, NULL);
                _exit((int) blocker.kind);
        }
        assert_int_equal(waitpid(scanner, &status, 0), scanner);
        assert_true(WIFEXITED(status));
        return (enum blocker_kind) WEXITSTATUS(status);
}

/* The owner may not be able to read what he cannot be asked of, since the child that asks cannot
 * become him, cannot be made, or ends without an answer. */
static void test_owner_not_asked(void **state) {
        static const struct {
                void (*hold)(void);
                enum blocker_kind kind;
        } cases[] = {
                { hold_readable, BLOCKER_UNREADABLE },
                { hold_readable_named, BLOCKER_UNREADABLE },
                { hold_readable_for_writing, BLOCKER_UNREADABLE },
                { hold_read, BLOCKER_NONE },
        };
        Capsule__Spec spec = CAPSULE__SPEC__INIT;
        struct blocker_scope scope = all_of(&spec, 60000000);

        (void) state;
        spec.uid = spec.gid = OWNER;
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                pid_t pid = start_holder(cases[i].hold);

                assert_int_equal(found_without(SYS_reboot, SECCOMP_RET_ALLOW, pid, &scope), BLOCKER_NONE);
                assert_int_equal(found_without(SYS_setgroups, SECCOMP_RET_ERRNO | EPERM, pid, &scope), cases[i].kind);
                assert_int_equal(found_without(SYS_pipe2, SECCOMP_RET_ERRNO | EMFILE, pid, &scope), cases[i].kind);
                assert_int_equal(found_without(SYS_setgroups, SECCOMP_RET_KILL_PROCESS, pid, &scope), cases[i].kind);
                (void) kill(pid, SIGKILL);
                assert_int_equal(waitpid(pid, NULL, 0), pid);
        }
        (void) close(scope.proc);
        (void) !system("rm -f /dev/shm/rmd-test-hidden.*");
}

#define NAMES "/dev/shm/rmd-test-names"
#define CLOSED "/dev/shm/rmd-test-closed" /* only root may search it */

/* The file has the name `rest`, and has lost the one that it was opened by; what the kernel calls
 * it now is a link to `to`. */
static void hold_lost(const char *rest, const char *to) {
        if (mkdir(NAMES, 0755) < 0 || mkdir(CLOSED, 0700) < 0 || open(NAMES "/file", O_RDWR | O_CREAT, 0600) < 0 ||
            link(NAMES "/file", rest) < 0 || unlink(NAMES "/file") < 0 || chown(rest, OWNER, OWNER) < 0 ||
            symlink(to, NAMES "/file (deleted)") < 0)
                _exit(1);
        become_owner();
}

static void hold_lost_kept(void) {
        hold_lost(NAMES "/other", "other");
}

static void hold_lost_foreign(void) {
        hold_lost(CLOSED "/other", CLOSED "/other");
}

static void hold_lost_through_foreign(void) {
        if (mkdir(CLOSED, 0700) < 0 || symlink(NAMES, CLOSED "/link") < 0 || rename(CLOSED, CLOSED ".1") < 0)
                _exit(1);
        hold_lost(NAMES "/other", CLOSED ".1/link/other");
}

static void hold_named_in_foreign(void) {
        if (mkdir(NAMES, 0700) < 0 || open(NAMES "/file (deleted)", O_RDWR | O_CREAT, 0600) < 0 ||
            chown(NAMES "/file (deleted)", OWNER, OWNER) < 0)
                _exit(1);
        become_owner();
}

/* Whether a file has still a name is seen with its owner's rights: root could follow his links to
 * where he may not look. */
static void test_names_are_the_owners(void **state) {
        static const struct {
                void (*hold)(void);
                bool lost;
        } cases[] = {
                { hold_lost_kept, false },
                { hold_lost_foreign, true },
                { hold_lost_through_foreign, true },
                { hold_named_in_foreign, true },
        };
        Capsule__Spec spec = CAPSULE__SPEC__INIT;
        struct blocker_scope scope = all_of(&spec, 60000000);

        (void) state;
        spec.uid = spec.gid = OWNER;
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                (void) !system("rm -rf " NAMES " " CLOSED " " CLOSED ".1");
                assert_int_equal(found_in(cases[i].hold, &scope), BLOCKER_NONE);
                if (needs.remap != cases[i].lost || (needs.linked != NULL) != cases[i].lost)
                        fail_msg("case %zu: lost: %d", i, (int) needs.remap);
                dump_needs_finish(&needs);
        }
        (void) close(scope.proc);
        (void) !system("rm -rf " NAMES " " CLOSED " " CLOSED ".1");
}

/* A child says this of itself. */
struct child {
        int error;
        int of_root;  /* errno of opening what only root may read */
        int of_all;   /* of what everybody may */
        uint64_t capabilities; /* permitted and effective */
};

static void try_as_owner(int error, int report_fd, const void *arg) {
        struct child child = { .error = error };
        cleanup_free char *status = NULL;
        struct identity identity;

        child.of_root = open(arg, O_RDONLY) < 0 ? errno : 0;
        child.of_all = open("/etc/passwd", O_RDONLY) < 0 ? errno : 0;
        if (read_file("/proc/self/status", 65536, &status, NULL) < 0 || identity_parse(status, &identity) < 0)
                _exit(1);
        child.capabilities = identity.permitted | identity.effective;
        (void) write_all(report_fd, &child, sizeof(child));
        for (;;)
                (void) pause();
}

/* The owner can neither stop nor end it, whatever it may, and it does not keep anybody waiting. */
static void child_of_owner(uint64_t capabilities) {
        const char *path = hidden_file(0600);
        Capsule__Spec spec = CAPSULE__SPEC__INIT;
        struct child child = { .error = -1 };
        int fd, status;
        pid_t pid, other;

        spec.uid = spec.gid = OWNER;
        assert_int_equal(identity_child(&spec, capabilities, try_as_owner, path, &pid, &fd), 0);
        assert_int_equal(identity_await(fd, 60000000), 0);
        assert_int_equal(read_all(fd, &child, sizeof(child)), 0);
        assert_int_equal(child.error, 0);
        assert_int_equal(child.of_root, EACCES);
        assert_int_equal(child.of_all, 0);
        assert_int_equal(child.capabilities, capabilities);
        other = fork();
        if (other == 0) {
                become_owner();
                _exit(kill(pid, SIGSTOP) == 0 || errno != EPERM || kill(pid, SIGKILL) == 0 || errno != EPERM);
        }
        assert_int_equal(waitpid(other, &status, 0), other);
        assert_int_equal(status, 0);
        assert_int_equal(identity_await(fd, 50000), -ETIMEDOUT);
        identity_child_end(pid, fd);
        assert_int_equal(kill(pid, 0), -1);
        (void) unlink(path);
}

static void test_child_of_owner(void **state) {
        (void) state;
        child_of_owner(0);
        child_of_owner(UINT64_C(1) << CAP_SYS_PTRACE);
}

static void read_as_owner(int error, int report_fd, const void *arg) {
        const struct fuse_file *file = arg;
        int fd = open(file->path, O_RDONLY | O_CLOEXEC);
        char byte;

        (void) close(file->fd); /* so that a test that fails does not leave it for ever */
        error = read(fd, &byte, 1) < 0 ? -errno : 0;
        (void) write_all(report_fd, &error, sizeof(error));
}

/* The process is seen where it runs, as the freezer would wait for it, and is the same blocker
 * later. */
static void scan_stuck(pid_t pid) {
        Capsule__Spec spec = CAPSULE__SPEC__INIT;
        struct blocker_scope scope = all_of(&spec, 60000000);
        struct blocker blocker, later;

        blockers_of_processes(&scope, &pid, 1, &blocker, NULL);
        assert_int_equal(blocker.kind, BLOCKER_NONE);
        scope.waits = true;
        for (int i = 0; i < 1000 && blocker.kind == BLOCKER_NONE; i++) { /* until SIGKILL has reached it */
                usleep(10000);
                blockers_of_processes(&scope, &pid, 1, &blocker, NULL);
        }
        assert_int_equal(blocker.kind, BLOCKER_STUCK);
        blockers_of_processes(&scope, &pid, 1, &later, NULL);
        assert_true(blocker_is_still(&blocker, &later));
        later.mark++;
        assert_false(blocker_is_still(&blocker, &later));
        (void) close(scope.proc);
}

/* A request that a server of FUSE has taken and does not answer keeps the reader in the kernel, and
 * SIGKILL does not help before it does. */
static void test_child_in_a_file_system(void **state) {
        char dir[] = "/dev/shm/rmd-test-fuse.XXXXXX";
        Capsule__Spec spec = CAPSULE__SPEC__INIT;
        uint64_t began_usec = now_usec();
        struct fuse_file file;
        pid_t pid;
        int fd;

        (void) state;
        assert_non_null(mkdtemp(dir));
        if (mount("test", dir, "tmpfs", 0, NULL) < 0 || !fuse_file_begin(&file, dir)) {
                (void) umount2(dir, MNT_DETACH);
                (void) rmdir(dir);
                skip();
        }
        assert_int_equal(identity_child(&spec, 0, read_as_owner, &file, &pid, &fd), 0);
        fuse_file_await_read(&file);
        assert_int_equal(identity_await(fd, 50000), -ETIMEDOUT);
        (void) alarm(20);
        identity_child_end(pid, fd);
        (void) alarm(0);
        assert_true(now_usec() - began_usec < 10000000);
        assert_int_equal(waitpid(pid, NULL, WNOHANG), 0); /* it is in the kernel still */
        scan_stuck(pid);
        fuse_file_answer(&file, 0, 1);
        assert_int_equal(waitpid(pid, NULL, 0), pid);
        fuse_file_end(&file);
        assert_int_equal(umount2(dir, MNT_DETACH), 0);
        assert_int_equal(rmdir(dir), 0);
}

/* The first process of a pid namespace, with a /proc of its own: it has a userfaultfd, and says
 * so. */
static _Noreturn void hold_inside(int reported) {
        pid_t pid;
        char byte = 0;
        int ready[2];

        if (pipe(ready) < 0 || unshare(CLONE_NEWPID | CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
                _exit(1);
        pid = fork();
        if (pid == 0) {
                if (mount("proc", "/proc", "proc", 0, NULL) < 0 || syscall(SYS_userfaultfd, 1 | O_CLOEXEC) < 0)
                        _exit(1);
                (void) write_all(ready[1], &byte, 1);
                for (;;)
                        (void) pause();
        }
        (void) close(ready[1]);
        _exit(read(ready[0], &byte, 1) != 1 || write_all(reported, &pid, sizeof(pid)) < 0);
}

/* The descriptor is one that rm-mover has in a process whose pages it begins to track. */
static void test_descriptor_of_tracker(void **state) {
        Capsule__Spec spec = CAPSULE__SPEC__INIT;
        struct blocker_scope scope = { .spec = &spec, .frozen = true, .budget = SIZE_MAX, .cpu_usec = 60000000 };
        const pid_t inner = 1;
        struct blocker blocker;
        int reported[2], status;
        char path[64];
        pid_t pid = -1, first;

        (void) state;
        assert_int_equal(pipe2(reported, O_CLOEXEC), 0);
        first = fork();
        if (first == 0)
                hold_inside(reported[1]);
        assert_int_equal(read(reported[0], &pid, sizeof(pid)), sizeof(pid));
        (void) waitpid(first, NULL, 0);
        (void) snprintf(path, sizeof(path), "/proc/%d/root/proc", (int) pid);
        scope.proc = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        assert_true(scope.proc >= 0);
        blockers_of_processes(&scope, &inner, 1, &blocker, NULL);
        assert_int_equal(blocker.kind, BLOCKER_USERFAULTFD);
        /* Where it runs, rm-mover may be making it just now. */
        scope.frozen = false;
        blockers_of_processes(&scope, &inner, 1, &blocker, NULL);
        assert_int_equal(blocker.kind, BLOCKER_NONE);
        scope.frozen = true;
        assert_int_equal(ptrace(PTRACE_SEIZE, pid, NULL, NULL), 0);
        assert_int_equal(ptrace(PTRACE_INTERRUPT, pid, NULL, NULL), 0);
        assert_int_equal(waitpid(pid, &status, __WALL), pid);
        blockers_of_processes(&scope, &inner, 1, &blocker, NULL);
        assert_int_equal(blocker.kind, BLOCKER_NONE);
        assert_int_equal(ptrace(PTRACE_DETACH, pid, NULL, NULL), 0);
        blockers_of_processes(&scope, &inner, 1, &blocker, NULL);
        assert_int_equal(blocker.kind, BLOCKER_USERFAULTFD);
        (void) kill(pid, SIGKILL);
        (void) close(scope.proc);
        (void) close(reported[0]);
        (void) close(reported[1]);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_texts),
                cmocka_unit_test(test_links),
                cmocka_unit_test(test_kernel_files),
                cmocka_unit_test(test_installed_files),
                cmocka_unit_test(test_long_paths),
                cmocka_unit_test(test_locks),
                cmocka_unit_test(test_watches),
                cmocka_unit_test(test_processes),
                cmocka_unit_test(test_too_many),
                cmocka_unit_test(test_too_many_mappings),
                cmocka_unit_test(test_hidden),
                cmocka_unit_test(test_owner_not_asked),
                cmocka_unit_test(test_names_are_the_owners),
                cmocka_unit_test(test_child_of_owner),
                cmocka_unit_test(test_child_in_a_file_system),
                cmocka_unit_test(test_descriptor_of_tracker),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
