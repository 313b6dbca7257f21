/* Flags of mappings, kept and joined with maps; and what may be hidden from a dump. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/util.h"
#include "daemon/pages/vmflags.h"

enum { PAGE = 4096, LOCKED = 0x1000 };

#define CODE "00400000-00401000 r-xp 00000000 fe:00 4711                               /usr/bin/a program\n"
#define HEAP "10000000-10002000 rw-p 00000000 00:00 0                                  [heap]\n"
#define PLAIN "20000000-20003000 rw-p 00000000 00:00 0 \n"
#define LOCKED_MAP "20003000-20004000 rw-p 00000000 00:00 0 \n"
#define SECOND "20004000-20005000 ---p 00000000 00:00 0 \n"
#define STACK "7ffd1c000000-7ffd1c021000 rw-p 00000000 00:00 0                          [stack]\n"
#define VVAR "7ffd1c100000-7ffd1c104000 r--p 00000000 00:00 0                          [vvar]\n"
#define USUAL "VmFlags: rd wr mr mw me ac sd \n"
#define OF_LOCKED "VmFlags: rd wr mr mw me lo ac sd \n"
#define OF_VVAR "VmFlags: rd mr pf io de dd \n"

static const char maps_of_all[] = CODE HEAP PLAIN LOCKED_MAP SECOND STACK VVAR;
static const char kept_of_all[] = CODE USUAL HEAP USUAL PLAIN USUAL LOCKED_MAP OF_LOCKED SECOND USUAL STACK USUAL VVAR OF_VVAR;

static void test_reduce(void **state) {
        char smaps[] = CODE "Size:                  4 kB\nKernelPageSize:        4 kB\n" USUAL HEAP
                            "Rss:                   8 kB\nProtectionKey:         0\n" USUAL "VmFlags: without an end";
        char expected[] = CODE USUAL HEAP USUAL;

        (void) state;
        assert_int_equal(vmflags_reduce(smaps), strlen(expected));
        assert_string_equal(smaps, expected);
}

static void test_join(void **state) {
        char *text = NULL;

        (void) state;
        assert_int_equal(vmflags_join(kept_of_all, maps_of_all, LOCKED, &text), 0);
        assert_string_equal(text, kept_of_all);
        free(text);
        /* Mappings that have gone since are not missed. */
        assert_int_equal(vmflags_join(kept_of_all, HEAP LOCKED_MAP VVAR, LOCKED, &text), 0);
        assert_string_equal(text, HEAP USUAL LOCKED_MAP OF_LOCKED VVAR OF_VVAR);
        free(text);
}

static void test_not_joined(void **state) {
        static const struct {
                const char *kept;
                const char *maps;
                uint64_t locked_bytes;
        } cases[] = {
                { kept_of_all, CODE HEAP PLAIN "30000000-30001000 rw-p 00000000 00:00 0 \n" STACK, 0 }, /* new */
                { kept_of_all, "10000000-10003000 rw-p 00000000 00:00 0                                  [heap]\n", 0 }, /* grown */
                { kept_of_all, "20000000-20003000 r--p 00000000 00:00 0 \n", 0 }, /* protected */
                { kept_of_all, maps_of_all, LOCKED + PAGE }, /* mlock */
                { kept_of_all, maps_of_all, 0 }, /* munlock */
                { "", maps_of_all, 0 },
                { kept_of_all, "", 0 },
                { HEAP USUAL PLAIN, HEAP PLAIN, 0 }, /* cut off */
                { HEAP USUAL "nonsense\n" PLAIN USUAL, HEAP PLAIN, 0 },
                { kept_of_all, "nonsense\n", 0 },
        };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                char *text = NULL;

                assert_int_equal(vmflags_join(cases[i].kept, cases[i].maps, cases[i].locked_bytes, &text), -ESTALE);
                assert_null(text);
        }
}

/* The text lacks its last newline: no byte may be written behind the copy. */
static void test_join_at_the_end(void **state) {
        char *text = NULL;

        (void) state;
        assert_int_equal(vmflags_join(HEAP "VmFlags: rd wr", HEAP, 0, &text), 0);
        assert_string_equal(text, HEAP "VmFlags: rd wr\n");
        free(text);
}

/* The memory may be another by now, and what CRIU takes for droppable it leaves out. */
static void test_droppable(void **state) {
        char *text = NULL;

        (void) state;
        assert_int_equal(vmflags_join(PLAIN "VmFlags: rd wr mr mw me nr wf dd dp \n", PLAIN, 0, &text), -ESTALE);
        assert_null(text);
        /* Gone since. */
        assert_int_equal(vmflags_join(HEAP USUAL PLAIN "VmFlags: rd wr mr mw me nr wf dd dp \n", HEAP, 0, &text), 0);
        assert_string_equal(text, HEAP USUAL);
        free(text);
}

static void test_lazy(void **state) {
        struct vmflags_range *ranges = NULL;
        size_t n = 0;

        (void) state;
        assert_int_equal(vmflags_lazy(kept_of_all, &ranges, &n), 0);
        assert_int_equal(n, 4);
        assert_int_equal(ranges[0].start, 0x10000000);
        assert_int_equal(ranges[0].end, 0x10002000);
        assert_int_equal(ranges[1].end, 0x20003000);
        assert_int_equal(ranges[2].start, 0x20004000);
        assert_int_equal(ranges[3].start, 0x7ffd1c000000);
        free(ranges);
        /* Neighbours are one. */
        assert_int_equal(vmflags_lazy(PLAIN USUAL LOCKED_MAP USUAL SECOND USUAL, &ranges, &n), 0);
        assert_int_equal(n, 1);
        assert_int_equal(ranges[0].end, 0x20005000);
        free(ranges);
}

static void test_one_by_one(void **state) {
        static const struct {
                const char *lines;
                bool lazy;
        } cases[] = {
                { "1000-2000 rw-p 00000000 00:00 0                          [anon:named by it]\n" USUAL, true },
                { "1000-2000 rw-p 00000000 00:00 0                          [vdso]\n" USUAL, false },
                { "1000-2000 rw-p 00000000 00:00 0                          [uprobes]\n" USUAL, false },
                { "1000-2000 rw-p 00000000 00:00 0                          [stack:12]\n" USUAL, false },
                { "1000-2000 rw-p 00000000 00:00 0                          [heap]s\n" USUAL, false },
                { "1000-2000 rw-s 00000000 00:00 0 \n" USUAL, false },
                { "1000-2000 rw-s 00000000 00:01 1026                       /dev/zero (deleted)\n" USUAL, false },
                { "1000-2000 rw-p 00000000 00:06 5                          /dev/zero\n" USUAL, false },
                { "1000-2000 rw-p 00000000 00:01 1027                       /memfd:x (deleted)\n" USUAL, false },
                { "1000-2000 rw-p 00000000 00:1f 0                          /inode of no number\n" USUAL, false },
                { "1000-2000 rw-p 00000000 00:0f 9                          /[aio] (deleted)\n" USUAL, false },
                { "1000-2000 rw-p 00000000 00:10 8                          /anon_hugepage (deleted)\n" USUAL, false },
                { "1000-2000 rw-p 00000000 fe:00 7                          [heap]\n" USUAL, false },
                { "1000-2000 rw-p 00000000 00:00 0 \nVmFlags: rd wr ht sd \n", false },
                { "1000-2000 rw-p 00000000 00:00 0 \nVmFlags: rd wr lo\n", false },
                { "1000-2000 rw-p 00000000 00:00 0 \nVmFlags: rd wr nr wf dd dp \n", false },
                { "1000-2000 rw-p 00000000 00:00 0 \nVmFlags: rd wr wf lo \n", false },
                { "1000-2000 rw-p 00000000 00:00 0 \nVmFlags: io \n", false },
                { "1000-2000 rw-p 00000000 00:00 0 \nVmFlags: rd pf \n", false },
                { "1000-2000 rw-p 00000000 00:00 0 \nVmFlags: rd wr gd dc uw hg nr\n", true },
                { "1000-2000 ---p 00000000 00:00 0 \nVmFlags: \n", true },
        };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct vmflags_range *ranges = NULL;
                size_t n = 9;

                assert_int_equal(vmflags_lazy(cases[i].lines, &ranges, &n), 0);
                assert_int_equal(n, cases[i].lazy ? 1 : 0);
                free(ranges);
        }
}

static void test_refused(void **state) {
        static const struct {
                const char *lines;
                int error;
        } cases[] = {
                { "1000-2000 rw-p 00000000 00:00 0 \nVmFlags: rd wr ss \n", -EOPNOTSUPP },
                { "1000-2000 rw-p 00000000 00:00 0 \nVmFlags: rd wr wf \n", -EOPNOTSUPP },
                { PLAIN, -EBADMSG },
                { PLAIN PLAIN USUAL, -EBADMSG },
                { USUAL, -EBADMSG },
                { "2000-1000 rw-p 00000000 00:00 0 \n" USUAL, -EBADMSG },
                { "1000 rw-p 00000000 00:00 0 \n" USUAL, -EBADMSG },
                { "1000-2000 rw-p\n" USUAL, -EBADMSG },
                { "1000-2000 rw-p 00000000 00:00\n" USUAL, -EBADMSG },
                { "1000-2000 rw-p 00000000 0000 0 \n" USUAL, -EBADMSG },
                { "1000-2000 rw-pp 00000000 00:00 0 \n" USUAL, -EBADMSG },
                { STACK USUAL PLAIN USUAL, -EBADMSG },
        };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct vmflags_range *ranges = NULL;
                size_t n = 0;

                assert_int_equal(vmflags_lazy(cases[i].lines, &ranges, &n), cases[i].error);
                assert_null(ranges);
        }
}

static bool in_one(const struct vmflags_range *ranges, size_t n, const void *address) {
        for (size_t i = 0; i < n; i++)
                if (ranges[i].start <= (uintptr_t) address && (uintptr_t) address < ranges[i].end)
                        return true;
        return false;
}

/* The test runs on this process, with the kernel's own texts. */
static void test_save(void **state) {
        char dir[] = "/tmp/test-vmflags-XXXXXX", local = 0, *maps = NULL, *kept = NULL, *joined = NULL;
        cleanup_close int proc_fd = open("/proc/self", O_PATH | O_DIRECTORY | O_CLOEXEC);
        cleanup_close int maps_fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC), kept_fd = -1, dir_fd = -1;
        char *plain = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        char *locked = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        char *shared = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        struct vmflags_range *ranges = NULL;
        struct stat st;
        size_t n = 0;

        (void) state;
        assert_int_equal(syscall(SYS_mlock, locked, PAGE), 0); /* AddressSanitizer makes nothing of mlock() */
        assert_non_null(mkdtemp(dir));
        dir_fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
        assert_int_equal(vmflags_save(proc_fd, dir_fd, "12"), 0);
        assert_int_equal(vmflags_save(proc_fd, dir_fd, "12"), 0);
        kept_fd = openat(dir_fd, "12", O_RDONLY | O_CLOEXEC);
        assert_int_equal(fstat(kept_fd, &st), 0);
        assert_int_equal(st.st_mode & 07777, 0644);
        assert_int_equal(vmflags_read_file(kept_fd, &kept, NULL), 0);
        assert_int_equal(vmflags_lazy(kept, &ranges, &n), 0);
        assert_true(in_one(ranges, n, plain));
        assert_true(in_one(ranges, n, &local));
        assert_false(in_one(ranges, n, locked));
        assert_false(in_one(ranges, n, shared));
        assert_false(in_one(ranges, n, kept_of_all));
        /* malloc() has made the heap larger meanwhile, or has not; so only that it does not take
         * what is not there. */
        assert_int_equal(vmflags_read_file(maps_fd, &maps, NULL), 0);
        assert_int_equal(vmflags_join(kept, maps, 2 * PAGE, &joined), -ESTALE);
        free(ranges);
        free(kept);
        free(maps);
        assert_int_equal(unlinkat(dir_fd, "12", 0), 0);
        assert_int_equal(rmdir(dir), 0); /* nothing else is left */
}

static void test_not_saved(void **state) {
        cleanup_close int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
        cleanup_close int proc_fd = open("/proc/self", O_PATH | O_DIRECTORY | O_CLOEXEC);
        char *wiped = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

        (void) state;
        assert_int_equal(vmflags_save(root, root, "12"), -ESRCH); /* no "smaps" in it */
        assert_int_equal(madvise(wiped, PAGE, MADV_WIPEONFORK), 0);
        assert_int_equal(vmflags_save(proc_fd, root, "12"), -EOPNOTSUPP);
        assert_int_equal(faccessat(root, "12", F_OK, 0), -1);
        assert_int_equal(munmap(wiped, PAGE), 0);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_reduce),          cmocka_unit_test(test_join),      cmocka_unit_test(test_not_joined),
                cmocka_unit_test(test_join_at_the_end), cmocka_unit_test(test_droppable), cmocka_unit_test(test_lazy),
                cmocka_unit_test(test_one_by_one),      cmocka_unit_test(test_refused),   cmocka_unit_test(test_save),
                cmocka_unit_test(test_not_saved),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
