/* Lines of /proc/PID/maps: what is restored lazily, and what only looks so. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/util.h"
#include "daemon/pages/maps.h"

static void test_kinds(void **state) {
        static const struct {
                const char *line;
                enum map_kind kind;
        } lines[] = {
                { "55d0c0000000-55d0c0021000 rw-p 00000000 00:00 0                          [heap]\n", MAP_KIND_LAZY },
                { "7f1d00000000-7f1d00021000 rw-p 00000000 00:00 0 \n", MAP_KIND_LAZY },
                { "7f1d00000000-7f1d00021000 ---p 00000000 00:00 0", MAP_KIND_LAZY },
                { "7ffd1c000000-7ffd1c021000 rw-p 00000000 00:00 0                          [stack]\n", MAP_KIND_LAZY },
                { "7f1d00000000-7f1d00021000 rw-p 00000000 00:00 0                          [anon:v]\n", MAP_KIND_LAZY },
                { "7f1d00000000-7f1d00021000 rw-p 00002000 fe:00 4711                       /usr/lib/libc.so.6\n",
                  MAP_KIND_PRIVATE_FILE },
                { "7f1d00000000-7f1d00200000 rw-p 00000000 00:10 8000                       /anon_hugepage (deleted)\n",
                  MAP_KIND_PRIVATE_FILE },
                { "7f1d00000000-7f1d00021000 rw-p 00000000 00:05 0                          /dev/zero\n", MAP_KIND_PRIVATE_FILE },
                { "7f1d00000000-7f1d00021000 rw-s 00000000 00:01 1026                       /dev/zero (deleted)\n",
                  MAP_KIND_SHARED },
                { "7ffd1c100000-7ffd1c104000 r--p 00000000 00:00 0                          [vvar]\n", MAP_KIND_KERNEL },
                { "7ffd1c104000-7ffd1c106000 r--p 00000000 00:00 0                          [vvar_vclock]\n", MAP_KIND_KERNEL },
                { "7ffd1c106000-7ffd1c108000 r-xp 00000000 00:00 0                          [vdso]\n", MAP_KIND_VDSO },
                { "7ffd1c106000-7ffd1c108000 rw-p 00000000 00:00 0                          [vdso]\n", MAP_KIND_KERNEL },
                { "ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]\n", MAP_KIND_KERNEL },
                /* A file of this name: the kernel writes its path. */
                { "7f1d00000000-7f1d00021000 r-xp 00000000 fe:00 12                         /tmp/[vdso]\n", MAP_KIND_PRIVATE_FILE },
                { "7f1d00000000-7f1d00021000 r-xp 00000000 fe:00 12                         [vdso]\n", MAP_KIND_PRIVATE_FILE },
        };
        struct map map;

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
                assert_int_equal(map_parse(lines[i].line, &map), 0);
                assert_int_equal(map.kind, lines[i].kind);
        }
        assert_int_equal(map_parse(lines[1].line, &map), 0);
        assert_int_equal(map.start, 0x7f1d00000000);
        assert_int_equal(map.end, 0x7f1d00021000);
}

static void test_bad_lines(void **state) {
        static const char *lines[] = {
                "",
                "\n",
                "7f1d00000000-7f1d00021000",
                "7f1d00000000-7f1d00021000 rw-p",
                "7f1d00000000-7f1d00021000 rw 00000000 00:00 0",
                "7f1d00021000-7f1d00021000 rw-p 00000000 00:00 0",
                "7f1d00021000-7f1d00000000 rw-p 00000000 00:00 0",
                "7f1d00000001-7f1d00021000 rw-p 00000000 00:00 0",
        };
        struct map map;

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(lines); i++)
                assert_int_equal(map_parse(lines[i], &map), -EBADMSG);
}

static void test_end(void **state) {
        struct map items[] = { { 0x1000, 0x3000, MAP_KIND_LAZY },
                               { 0x5000, 0x6000, MAP_KIND_SHARED },
                               { 0x100000000000000, 0x100000000001000, MAP_KIND_LAZY },
                               { 0xffffffffff600000, 0xffffffffff601000, MAP_KIND_KERNEL } };
        struct maps maps = { items, ARRAY_SIZE(items) };

        (void) state;
        assert_int_equal(maps_end(&maps, MAP_KIND_LAZY), 0x100000000001000);
        assert_int_equal(maps_end(&maps, MAP_KIND_SHARED), 0x6000);
        assert_int_equal(maps_end(&maps, MAP_KIND_VDSO), 0);
}

static void test_own(void **state) {
        char *page = mmap(NULL, PAGES_PAGE_BYTES, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        int proc_fd = open("/proc/self", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        uint64_t address = (uint64_t) (uintptr_t) page;
        struct maps maps;
        size_t found = 0, vdso = 0;

        (void) state;
        assert_int_equal(maps_read(proc_fd, &maps), 0);
        for (size_t i = 0; i < maps.n; i++) {
                assert_true(i == 0 || maps.items[i].start >= maps.items[i - 1].end);
                found += maps.items[i].start <= address && address < maps.items[i].end && maps.items[i].kind == MAP_KIND_LAZY;
                vdso += maps.items[i].kind == MAP_KIND_VDSO;
        }
        assert_int_equal(found, 1);
        assert_int_equal(vdso, 1);
        maps_finish(&maps);
        (void) close(proc_fd);
        (void) munmap(page, PAGES_PAGE_BYTES);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_kinds),
                cmocka_unit_test(test_bad_lines),
                cmocka_unit_test(test_end),
                cmocka_unit_test(test_own),
        };

        return cmocka_run_group_tests_name("pages-maps", tests, NULL, NULL);
}
