/* The library in CRIU, asked as CRIU asks: its openat64(), ioctl(), linkat(), fstat64() and
 * fstatat64() are those of this program. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/fs.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/util.h"
#include "daemon/capsule/pages_preload/preload.h"
#include "daemon/pages/vmflags.h"
#include "tests/unit/pages/child.h"

enum { PAGE = 4096, PAGES = 64, REGIONS = 4096 };

#define LAST_ADDRESS UINT64_C(0x7ffffffff000)

struct fixture {
        char dir[32];
        int dir_fd;
        pid_t pid; /* a process with memory */
        int proc_fd; /* its directory */
        char *lazy; /* in it, every second page written: restored lazily */
        char *eager; /* likewise: of a file, which CRIU saves */
};

static _Noreturn void stand_still(void) {
        (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void) raise(SIGSTOP);
        _exit(0);
}

static char *map(int flags, int fd) {
        char *at = mmap(NULL, (size_t) PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | flags, fd, 0);

        assert_ptr_not_equal(at, MAP_FAILED);
        for (size_t page = 0; page < PAGES; page += 2)
                at[page * PAGE] = 1;
        return at;
}

static void write_report_file(const struct fixture *f, const char *text) {
        cleanup_free char *path = xasprintf("%s/pages", f->dir);

        child_assert(write_file_atomic(path, text, strlen(text), 0644, false) == 0);
        child_assert(setenv(PAGES_VARIABLE, path, 1) == 0);
}

/* Tells the library its directory as PID 1 does. */
static void report(const struct fixture *f) {
        cleanup_free char *text = xasprintf("%s\n", f->dir);

        write_report_file(f, text);
}

static char *kept_path(const struct fixture *f) {
        return xasprintf("%s/%d", f->dir, (int) f->pid);
}

static void save(const struct fixture *f) {
        cleanup_free char *name = xasprintf("%d", (int) f->pid);

        child_assert(vmflags_save(f->proc_fd, f->dir_fd, name) == 0);
}

/* Replaces a text in the kept flags by another of the same length, so that it is known again. */
static void change_kept(const struct fixture *f, const char *from, const char *to) {
        cleanup_free char *path = kept_path(f);
        cleanup_free char *text = NULL;
        size_t size;
        char *at;

        child_assert(read_file(path, 1 << 20, &text, &size) == 0);
        while ((at = strstr(text, from)))
                memcpy(at, to, strlen(to));
        child_assert(write_file_atomic(path, text, size, 0644, false) == 0);
}

static int setup(void **state) {
        static struct fixture fixture;
        struct fixture *f = &fixture;
        cleanup_close int memfd = memfd_create("test-preload", MFD_CLOEXEC | MFD_NOEXEC_SEAL);
        cleanup_free char *proc = NULL;

        /* mkdtemp() asks for random numbers, whose state lies in droppable memory, and flags of
         * that are not trusted. */
        (void) snprintf(f->dir, sizeof(f->dir), "/tmp/test-preload-%d", (int) getpid());
        assert_int_equal(mkdir(f->dir, 0700), 0);
        f->dir_fd = open(f->dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
        assert_int_equal(ftruncate(memfd, (off_t) PAGES * PAGE), 0);
        f->lazy = map(MAP_ANONYMOUS, -1);
        f->eager = map(0, memfd);
        f->pid = fork();
        if (f->pid == 0)
                stand_still();
        assert_int_equal(waitpid(f->pid, NULL, WUNTRACED), f->pid);
        proc = xasprintf("/proc/%d", (int) f->pid);
        f->proc_fd = open(proc, O_PATH | O_DIRECTORY | O_CLOEXEC);
        *state = f;
        return 0;
}

static int teardown(void **state) {
        const struct fixture *f = *state;

        (void) kill(f->pid, SIGKILL);
        (void) waitpid(f->pid, NULL, 0);
        (void) munmap(f->lazy, (size_t) PAGES * PAGE);
        (void) munmap(f->eager, (size_t) PAGES * PAGE);
        (void) close(f->proc_fd);
        (void) close(f->dir_fd);
        return remove_tree(f->dir);
}

static char *smaps_of(int proc_fd) {
        cleanup_close int fd = openat64(proc_fd, "smaps", O_RDONLY | O_CLOEXEC);
        char *text = NULL;

        child_assert(fd >= 0);
        child_assert(vmflags_read_file(fd, &text, NULL) == 0);
        return text;
}

static struct pm_scan_arg question(struct page_region *regions, size_t n) {
        return (struct pm_scan_arg) {
                .size = sizeof(struct pm_scan_arg),
                .end = LAST_ADDRESS,
                .vec = (uintptr_t) regions,
                .vec_len = n,
                .category_inverted = PAGE_IS_PFNZERO | PAGE_IS_FILE,
                .category_mask = PAGE_IS_PFNZERO | PAGE_IS_FILE,
                .category_anyof_mask = PAGE_IS_PRESENT | PAGE_IS_SWAPPED,
                .return_mask = PAGE_IS_PRESENT | PAGE_IS_SWAPPED,
        };
}

/* Scans all of it. The kernel may stop before the end although there is room for more. */
static int scan(int proc_fd, struct page_region *regions) {
        cleanup_close int fd = openat64(proc_fd, "pagemap", O_RDONLY | O_CLOEXEC);
        struct pm_scan_arg argument = question(regions, REGIONS);
        int n = 0;

        while (argument.start < LAST_ADDRESS) {
                int r = ioctl(fd, PAGEMAP_SCAN, &argument);

                child_assert(r >= 0 && n + r < REGIONS && argument.walk_end > argument.start);
                n += r;
                argument.start = argument.walk_end;
                argument.vec = (uintptr_t) (regions + n);
                argument.vec_len = (uint64_t) (REGIONS - n);
        }
        return n;
}

static size_t pages_in(const struct page_region *regions, int n, const char *start) {
        uint64_t low = (uintptr_t) start, high = low + (uint64_t) PAGES * PAGE;
        size_t pages = 0;

        for (int i = 0; i < n; i++)
                for (uint64_t at = regions[i].start; at < regions[i].end; at += PAGE)
                        pages += at >= low && at < high;
        return pages;
}

/* The answer for CRIU: private memory has no pages, or all of them. */
static void expect_hidden(const struct fixture *f, bool hidden) {
        static struct page_region regions[REGIONS];
        int n = scan(f->proc_fd, regions);

        child_assert(pages_in(regions, n, f->lazy) == (hidden ? 0 : PAGES / 2));
        child_assert(pages_in(regions, n, f->eager) == PAGES / 2);
}

static void expect_untouched(const struct fixture *f) {
        cleanup_free char *text = smaps_of(f->proc_fd);

        child_assert(strstr(text, "\nRss:") != NULL);
        expect_hidden(f, false);
}

static void expect_from_kernel(const struct fixture *f) {
        cleanup_free char *text = smaps_of(f->proc_fd);

        child_assert(strstr(text, "\nRss:") == NULL);
        child_assert(strstr(text, "\nVmFlags:") != NULL);
        child_assert(strstr(text, " zz ") == NULL);
        expect_hidden(f, true);
}

static void expect_from_kept(const struct fixture *f) {
        cleanup_free char *text = smaps_of(f->proc_fd);

        child_assert(strstr(text, "\nRss:") == NULL);
        child_assert(strstr(text, " zz ") != NULL);
        expect_hidden(f, true);
}

/* The library decides once in the life of a process, so each test is a child. */
static void in_child(const struct fixture *f, void (*test)(const struct fixture *f)) {
        int status;
        pid_t pid = fork();

        if (pid == 0) {
                test(f);
                _exit(0);
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
}

static void not_reported(const struct fixture *f) {
        save(f);
        expect_untouched(f);
        child_assert(setenv(PAGES_VARIABLE, "/nonexistent", 1) == 0);
        expect_untouched(f);
}

static void reported_nothing(const struct fixture *f) {
        write_report_file(f, "\n");
        expect_untouched(f);
}

static void nothing_kept(const struct fixture *f) {
        report(f);
        expect_from_kernel(f);
}

static void all_kept(const struct fixture *f) {
        report(f);
        save(f);
        change_kept(f, " ac ", " zz ");
        expect_from_kept(f);
        /* Again, as CRIU may. */
        expect_from_kept(f);
}

static void one_not_kept(const struct fixture *f) {
        report(f);
        save(f);
        change_kept(f, " ac ", " zz ");
        change_kept(f, "/memfd:test-preload", "/memfd:text-preload");
        expect_from_kernel(f);
}

static void locked_since(const struct fixture *f) {
        report(f);
        save(f);
        change_kept(f, " ac ", " lo ");
        expect_from_kernel(f);
}

static void shadow_stack(const struct fixture *f) {
        report(f);
        save(f);
        change_kept(f, " ac ", " ss ");
        child_assert(openat64(f->proc_fd, "smaps", O_RDONLY | O_CLOEXEC) == -1);
        child_assert(errno == EOPNOTSUPP);
}

static void other_process(const struct fixture *f) {
        static struct page_region regions[REGIONS];
        cleanup_close int proc_fd = open("/proc/self", O_PATH | O_DIRECTORY | O_CLOEXEC);
        cleanup_free char *text = NULL;

        report(f);
        text = smaps_of(f->proc_fd);
        child_assert(pages_in(regions, scan(proc_fd, regions), f->lazy) == PAGES / 2);
}

static void other_questions(const struct fixture *f) {
        static struct page_region regions[REGIONS];
        cleanup_close int fd = openat64(f->proc_fd, "pagemap", O_RDONLY | O_CLOEXEC);
        cleanup_free char *text = NULL;
        struct pm_scan_arg argument = question(regions, REGIONS);

        report(f);
        text = smaps_of(f->proc_fd);
        argument.category_mask = argument.category_inverted = 0;
        child_assert(pages_in(regions, ioctl(fd, PAGEMAP_SCAN, &argument), f->lazy) == PAGES / 2);
        argument = question(regions, REGIONS);
        argument.category_anyof_mask = PAGE_IS_PRESENT;
        child_assert(pages_in(regions, ioctl(fd, PAGEMAP_SCAN, &argument), f->lazy) == PAGES / 2);
        argument = question(regions, REGIONS);
        argument.max_pages = PAGES * REGIONS;
        child_assert(pages_in(regions, ioctl(fd, PAGEMAP_SCAN, &argument), f->lazy) == PAGES / 2);
}

/* A scan with room for few answers stops and goes on, and all is reported in the same order. */
static void little_space(const struct fixture *f) {
        static struct page_region all[REGIONS];
        cleanup_close int fd = openat64(f->proc_fd, "pagemap", O_RDONLY | O_CLOEXEC);
        cleanup_free char *text = NULL;
        int n;

        report(f);
        text = smaps_of(f->proc_fd);
        n = scan(f->proc_fd, all);
        child_assert(n > 8);
        for (size_t space = 1; space <= 8; space++) {
                struct page_region regions[8];
                struct pm_scan_arg argument = question(regions, space);
                int reported = 0;

                while (argument.start < LAST_ADDRESS) {
                        int r = ioctl(fd, PAGEMAP_SCAN, &argument);

                        child_assert(r >= 0 && r <= (int) space && reported + r <= n);
                        child_assert(memcmp(regions, all + reported, (size_t) r * sizeof(*all)) == 0);
                        reported += r;
                        argument.start = argument.walk_end;
                }
                child_assert(reported == n);
        }
}

static void files(const struct fixture *f) {
        cleanup_free char *path = xasprintf("%s/smaps", f->dir);
        cleanup_close int fd = openat64(f->dir_fd, "smaps", O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0640);
        struct stat st;

        child_assert(fd >= 0);
        child_assert(write_all(fd, "own", 3) == 0);
        child_assert(fstat(fd, &st) == 0);
        child_assert((st.st_mode & 07777) == 0640);
        cleanup_close_fd(&fd);
        /* No process's: it is read as it is. */
        report(f);
        {
                cleanup_free char *text = smaps_of(f->dir_fd);

                child_assert(strcmp(text, "own") == 0);
        }
        child_assert(openat64(f->dir_fd, "nothing", O_RDONLY) == -1);
        child_assert(errno == ENOENT);
}

#define IN_CHILD(name)                                                                                                             \
        static void test_##name(void **state) {                                                                                    \
                in_child(*state, name);                                                                                            \
        }
#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, setup, teardown)

IN_CHILD(not_reported)
IN_CHILD(reported_nothing)
IN_CHILD(nothing_kept)
IN_CHILD(all_kept)
IN_CHILD(one_not_kept)
IN_CHILD(locked_since)
IN_CHILD(shadow_stack)
IN_CHILD(other_process)
IN_CHILD(other_questions)
IN_CHILD(little_space)
IN_CHILD(files)

/* A file that lost one of two names gets another, without a capability; nothing else is linked in
 * another way. */
static void links(void **state) {
        char dir[] = "/tmp/rmd-test-links.XXXXXX", text[8] = "";
        int status;
        pid_t pid;

        (void) state;
        assert_non_null(mkdtemp(dir));
        assert_int_equal(chmod(dir, 0777), 0);
        pid = fork();
        if (pid == 0) {
                int fd;

                child_assert(setgroups(0, NULL) == 0 && setresgid(65534, 65534, 65534) == 0 && setresuid(65534, 65534, 65534) == 0);
                child_assert(chdir(dir) == 0);
                fd = open("gone", O_RDWR | O_CREAT | O_EXCL, 0600);
                child_assert(fd >= 0 && write(fd, "mine", 4) == 4 && linkat(AT_FDCWD, "gone", AT_FDCWD, "other", 0) == 0);
                child_assert(unlink("gone") == 0 && linkat(fd, "", AT_FDCWD, "link_remap.7", AT_EMPTY_PATH) == 0);
                child_assert(linkat(fd, "", AT_FDCWD, "none/link_remap.7", AT_EMPTY_PATH) == -1 && errno == ENOENT);
                child_assert(linkat(AT_FDCWD, "", AT_FDCWD, "x", 0) == -1 && errno == ENOENT);
                fd = open("link_remap.7", O_RDONLY);
                child_assert(fd >= 0 && read(fd, text, sizeof(text)) == 4);
                child_assert(unlink("link_remap.7") == 0 && unlink("other") == 0);
                _exit(0);
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
        assert_int_equal(rmdir(dir), 0);
}

static ino_t number_of(const char *path) {
        int fd = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
        struct stat by_name, by_descriptor;

        child_assert(fd >= 0 && fstat(fd, &by_descriptor) == 0 && fstatat(AT_FDCWD, path, &by_name, AT_SYMLINK_NOFOLLOW) == 0);
        child_assert(by_name.st_ino == by_descriptor.st_ino && by_name.st_dev == by_descriptor.st_dev);
        (void) close(fd);
        return by_name.st_ino;
}

static ino_t kernel_number_of(const char *path) {
        struct stat st;

        child_assert(syscall(SYS_newfstatat, AT_FDCWD, path, &st, 0) == 0);
        return st.st_ino;
}

/* FIFOs of three file systems in memory, which count from 1, have numbers of their own; files and
 * pipes have the kernel's. */
static void fifos(void **state) {
        static const char *const dirs[] = { "a", "b", "c" };
        char dir[] = "/tmp/rmd-test-fifos.XXXXXX";
        int status;
        pid_t pid;

        (void) state;
        assert_non_null(mkdtemp(dir));
        pid = fork();
        if (pid == 0) {
                int ends[2];
                struct stat seen, real;

                child_assert(unshare(CLONE_NEWNS) == 0 && mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0);
                child_assert(mount("none", dir, "tmpfs", 0, NULL) == 0 && chdir(dir) == 0);
                for (size_t i = 0; i < ARRAY_SIZE(dirs); i++) {
                        child_assert(mkdir(dirs[i], 0700) == 0 && mount("none", dirs[i], "tmpfs", 0, NULL) == 0 &&
                                     chdir(dirs[i]) == 0);
                        child_assert(mkfifo("fifo", 0600) == 0 && close(open("file", O_CREAT | O_RDWR, 0600)) == 0 &&
                                     chdir("..") == 0);
                }
                child_assert(kernel_number_of("a/fifo") == kernel_number_of("b/fifo") &&
                             kernel_number_of("a/fifo") == kernel_number_of("c/fifo"));
                child_assert((uint32_t) number_of("a/fifo") != (uint32_t) number_of("b/fifo"));
                child_assert((uint32_t) number_of("a/fifo") != (uint32_t) number_of("c/fifo"));
                child_assert((uint32_t) number_of("b/fifo") != (uint32_t) number_of("c/fifo"));
                child_assert(number_of("a/file") == kernel_number_of("a/file"));
                child_assert(pipe(ends) == 0 && fstat(ends[1], &seen) == 0 && syscall(SYS_fstat, ends[0], &real) == 0);
                child_assert(seen.st_ino == real.st_ino);
                _exit(0);
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
        assert_int_equal(rmdir(dir), 0);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                TEST(not_reported), TEST(reported_nothing),  TEST(nothing_kept),      TEST(all_kept),        TEST(one_not_kept),
                TEST(locked_since), TEST(shadow_stack),      TEST(other_process),     TEST(other_questions), TEST(little_space),
                TEST(files),        cmocka_unit_test(links), cmocka_unit_test(fifos),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
