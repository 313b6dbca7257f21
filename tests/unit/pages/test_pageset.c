/* Sets of pages, compared with plain arrays. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/util.h"
#include "daemon/pages/maps.h"
#include "daemon/pages/page_store.h"
#include "daemon/pages/pageset.h"

enum {
        PAGE = PAGES_PAGE_BYTES,
        PAGES = 40000, /* of several parts */
};

static const uint64_t base = UINT64_C(0x7f0000000000) - 5000 * (uint64_t) PAGE;

static uint32_t draw(uint32_t *seed, uint32_t limit) {
        *seed = *seed * 1664525 + 1013904223;
        return (*seed >> 8) % limit;
}

static void compare(const struct pageset *set, const bool *model) {
        uint64_t start, end = 0, n = 0, runs = 0;
        static bool seen[PAGES];

        memset(seen, 0, sizeof(seen));
        while (pageset_next(set, end, 1000 * PAGE, &start, &end)) {
                assert_true(start >= base && start < end && end <= base + (uint64_t) PAGES * PAGE && end - start <= 1000 * PAGE);
                for (uint64_t at = start; at < end; at += PAGE)
                        seen[(at - base) / PAGE] = true;
                assert_true(++runs <= PAGES);
        }
        for (size_t i = 0; i < PAGES; i++) {
                assert_int_equal(seen[i], model[i]);
                n += model[i];
        }
        assert_int_equal(pageset_bytes(set), n * PAGE);
}

static void test_random(void **state) {
        struct pageset *set = pageset_create();
        static bool model[PAGES];
        uint32_t seed = 7;

        (void) state;
        for (int i = 0; i < 400; i++) {
                size_t from = draw(&seed, PAGES), n = 1 + draw(&seed, i % 5 == 0 ? 20000 : 200);
                bool add = draw(&seed, 5) < 3;

                n = n < PAGES - from ? n : PAGES - from;
                if (add)
                        assert_int_equal(pageset_add(set, base + from * PAGE, base + (from + n) * PAGE), 0);
                else
                        pageset_remove(set, base + from * PAGE, base + (from + n) * PAGE);
                memset(model + from, add, n);
                from = draw(&seed, PAGES);
                assert_int_equal(pageset_has(set, base + from * PAGE + draw(&seed, PAGE)), model[from]);
                if (i % 20 == 0)
                        compare(set, model);
        }
        compare(set, model);
        pageset_remove(set, 0, UINT64_MAX - PAGE);
        memset(model, 0, sizeof(model));
        compare(set, model);
        pageset_destroy(set);
        pageset_destroy(NULL);
}

static void test_next(void **state) {
        struct pageset *set = pageset_create();
        uint64_t start, end;

        (void) state;
        assert_false(pageset_next(set, 0, UINT64_MAX, &start, &end));
        assert_int_equal(pageset_add(set, 10 * PAGE, 20 * PAGE), 0);
        assert_true(pageset_next(set, 0, UINT64_MAX, &start, &end));
        assert_true(start == 10 * PAGE && end == 20 * PAGE);
        assert_true(pageset_next(set, 12 * PAGE, 3 * PAGE, &start, &end));
        assert_true(start == 12 * PAGE && end == 15 * PAGE);
        assert_false(pageset_next(set, 20 * PAGE, UINT64_MAX, &start, &end));
        assert_false(pageset_has(set, 9 * PAGE));
        assert_true(pageset_has(set, 10 * PAGE));
        assert_false(pageset_has(set, 20 * PAGE));
        pageset_destroy(set);
}

static void test_refused(void **state) {
        struct pageset *set = pageset_create();

        (void) state;
        assert_int_equal(pageset_add(set, PAGE, PAGE), -EINVAL);
        assert_int_equal(pageset_add(set, 2 * PAGE, PAGE), -EINVAL);
        assert_int_equal(pageset_add(set, 1, PAGE), -EINVAL);
        assert_int_equal(pageset_add(set, 0, PAGE + 1), -EINVAL);
        assert_int_equal(pageset_add(set, 0, STORE_END + PAGE), -EINVAL);
        pageset_remove(set, 2 * PAGE, PAGE);
        assert_int_equal(pageset_bytes(set), 0);
        assert_int_equal(pageset_add(set, STORE_END - PAGE, STORE_END), 0);
        assert_int_equal(pageset_bytes(set), PAGE);
        pageset_destroy(set);
}

static void test_common(void **state) {
        struct pageset *from = pageset_create(), *set = pageset_create();

        (void) state;
        assert_int_equal(pageset_add(from, 10 * PAGE, 20 * PAGE), 0);
        assert_int_equal(pageset_add(from, 30 * PAGE, 9000 * (uint64_t) PAGE), 0);
        pageset_add_common(set, from, 15 * PAGE, 32 * PAGE);
        pageset_add_common(set, from, 20 * PAGE, 30 * PAGE);
        pageset_add_common(set, from, 8000 * (uint64_t) PAGE, 10000 * (uint64_t) PAGE);
        assert_int_equal(pageset_bytes(set), (5 + 2 + 1000) * PAGE);
        assert_true(pageset_has(set, 15 * PAGE) && pageset_has(set, 31 * PAGE) && pageset_has(set, 8999 * (uint64_t) PAGE));
        assert_false(pageset_has(set, 14 * PAGE) || pageset_has(set, 20 * PAGE) || pageset_has(set, 32 * PAGE));
        pageset_destroy(set);
        pageset_destroy(from);
}

/* ---- in a file ---- */

/* Loads the set as another one, out of a file that has it behind other bytes. */
static struct pageset *save_and_load(const struct pageset *set) {
        cleanup_close int fd = memfd_create("pageset", MFD_CLOEXEC);
        struct pageset *loaded = NULL;

        assert_int_equal(write_all(fd, "before", 6), 0);
        assert_int_equal(pageset_save(set, fd), 0);
        assert_int_equal(lseek(fd, 6, SEEK_SET), 6);
        assert_int_equal(pageset_load(fd, &loaded), 0);
        return loaded;
}

/* The file has as many runs as are written at once, one more and one less, and runs over the end of
 * a part. */
static void test_file(void **state) {
        static const size_t runs[] = { 0, 1, 2, 511, 512, 513, 1023, 1024, 1025, 9000 };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(runs); i++) {
                struct pageset *set = pageset_create(), *loaded;
                static bool model[PAGES];

                memset(model, 0, sizeof(model));
                for (size_t k = 0; k < runs[i]; k++) {
                        assert_int_equal(pageset_add(set, base + 4 * k * PAGE, base + (4 * k + 3) * PAGE), 0);
                        memset(model + 4 * k, true, 3);
                }
                loaded = save_and_load(set);
                compare(loaded, model);
                pageset_destroy(loaded);
                pageset_destroy(set);
        }
}

static void test_ends_of_addresses(void **state) {
        struct pageset *set = pageset_create(), *loaded;

        (void) state;
        assert_int_equal(pageset_add(set, 0, UINT64_C(5) << 25), 0);
        assert_int_equal(pageset_add(set, STORE_END - PAGE, STORE_END), 0);
        loaded = save_and_load(set);
        assert_int_equal(pageset_bytes(loaded), (UINT64_C(5) << 25) + PAGE);
        assert_true(pageset_has(loaded, 0) && pageset_has(loaded, (UINT64_C(5) << 25) - PAGE) &&
                    pageset_has(loaded, STORE_END - PAGE));
        pageset_destroy(loaded);
        pageset_destroy(set);
}

/* Runs as pairs, behind `good` runs of a page; then `more_bytes`, or without so many. */
static int load(size_t good, const uint64_t *runs, size_t n, int more_bytes) {
        cleanup_close int fd = memfd_create("pageset", MFD_CLOEXEC);
        struct pageset *set = NULL;
        int r;

        for (size_t i = 0; i < good; i++) {
                const uint64_t run[] = { htole64(2 * i * PAGE), htole64((2 * i + 1) * PAGE) };

                assert_int_equal(write_all(fd, run, sizeof(run)), 0);
        }
        for (size_t i = 0; i < 2 * n; i++) {
                const uint64_t number = htole64(runs[i]);

                assert_int_equal(write_all(fd, &number, sizeof(number)), 0);
        }
        assert_int_equal(ftruncate(fd, (off_t) (16 * (good + n)) + more_bytes), 0);
        assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
        r = pageset_load(fd, &set);
        assert_true((set != NULL) == (r == 0));
        pageset_destroy(set);
        return r;
}

#define LOAD(good, ...) load(good, (const uint64_t[]) { __VA_ARGS__ }, sizeof((const uint64_t[]) { __VA_ARGS__ }) / 16, 0)

static void test_bad_files(void **state) {
        const uint64_t high = UINT64_C(1) << 40, part = 32 << 20;
        const uint64_t run[] = { high, high + PAGE };
        static const size_t goods[] = { 0, 1, 511, 512, 513, 1024 };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(goods); i++) {
                size_t good = goods[i];

                assert_int_equal(LOAD(good, high, high + PAGE), 0);
                assert_int_equal(LOAD(good, high, high + PAGE, high + PAGE, high + 2 * PAGE), 0);
                assert_int_equal(LOAD(good, high, high + part), 0);
                /* out of order */
                assert_int_equal(LOAD(good, high, high + PAGE, high - PAGE, high), -EBADMSG);
                assert_int_equal(LOAD(good, high, high + 2 * PAGE, high + PAGE, high + 3 * PAGE), -EBADMSG);
                assert_int_equal(LOAD(good, high, high + PAGE, high, high + PAGE), -EBADMSG);
                /* no runs of pages */
                assert_int_equal(LOAD(good, high, high), -EBADMSG);
                assert_int_equal(LOAD(good, high + PAGE, high), -EBADMSG);
                assert_int_equal(LOAD(good, high + 1, high + PAGE), -EBADMSG);
                assert_int_equal(LOAD(good, high, high + PAGE - 1), -EBADMSG);
                /* over the end */
                assert_int_equal(LOAD(good, STORE_END - PAGE, STORE_END), 0);
                assert_int_equal(LOAD(good, STORE_END - PAGE, STORE_END + PAGE), -EBADMSG);
                assert_int_equal(LOAD(good, STORE_END, STORE_END + PAGE), -EBADMSG);
                assert_int_equal(LOAD(good, UINT64_MAX - 2 * PAGE + 1, UINT64_MAX - PAGE + 1), -EBADMSG);
                /* too wide: the last one would take up 2 TiB */
                assert_int_equal(LOAD(good, high + PAGE, high + part + PAGE), -EBADMSG);
                assert_int_equal(LOAD(good, high, STORE_END), -EBADMSG);
                /* torn: a part of the last run, or zeros where nothing was written */
                assert_int_equal(load(good, run, 1, -1), -EBADMSG);
                assert_int_equal(load(good, run, 1, -8), -EBADMSG);
                assert_int_equal(load(good, run, 1, -15), -EBADMSG);
                assert_int_equal(load(good, run, 1, -16), 0);
                assert_int_equal(load(good, run, 1, 1), -EBADMSG);
                assert_int_equal(load(good, run, 1, 16), -EBADMSG);
                assert_int_equal(load(good, run, 1, 1 << 30), -EBADMSG);
        }
        assert_int_equal(LOAD(0, 0, STORE_END), -EBADMSG);
}

static void test_unreadable_file(void **state) {
        cleanup_close int fd = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        struct pageset *set = pageset_create(), *loaded = NULL;

        (void) state;
        assert_int_equal(pageset_load(fd, &loaded), -EISDIR);
        assert_null(loaded);
        assert_int_equal(pageset_add(set, 0, PAGE), 0);
        assert_int_equal(pageset_save(set, fd), -EBADF);
        pageset_destroy(set);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_random),    cmocka_unit_test(test_next),
                cmocka_unit_test(test_refused),   cmocka_unit_test(test_common),
                cmocka_unit_test(test_file),      cmocka_unit_test(test_ends_of_addresses),
                cmocka_unit_test(test_bad_files), cmocka_unit_test(test_unreadable_file),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
