/* The copy at the destination: holes, runs, presence, and a store that goes on where another
 * ended. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/util.h"
#include "daemon/pages/maps.h"
#include "daemon/pages/page_store.h"

enum { PAGE = PAGES_PAGE_BYTES };

static uint8_t page_byte(uint64_t address, unsigned version) {
        return (uint8_t) (address / PAGE * 31 + version * 7 + 1);
}

static void put(struct page_store *store, uint64_t start, uint64_t end, unsigned version) {
        uint8_t *data = xcalloc(1, end - start);

        for (uint64_t at = start; at < end; at += PAGE)
                memset(data + (at - start), page_byte(at, version), PAGE);
        assert_int_equal(page_store_write(store, start, data, end - start), 0);
        free(data);
}

static void assert_page(const struct page_store *store, uint64_t address, uint8_t byte) {
        uint8_t data[PAGE];

        assert_int_equal(page_store_read(store, address, data, PAGE), 0);
        for (size_t i = 0; i < PAGE; i++)
                assert_int_equal(data[i], byte);
}

static struct page_store *create(void) {
        struct page_store *store;

        assert_int_equal(page_store_create("test", &store), 0);
        return store;
}

static uint64_t blocks(const struct page_store *store) {
        struct stat st;

        assert_int_equal(fstat(page_store_fd(store), &st), 0);
        return (uint64_t) st.st_blocks * 512;
}

/* The highest addresses of processes, and of those with five levels of page tables. */
static const uint64_t bases[] = { 0x10000, 0x7ffffffde000 - 0x20000, UINT64_C(0xfffffffffff000) - 0x20000 };

static void test_runs(void **state) {
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(bases); i++) {
                struct page_store *store = create();
                uint64_t base = bases[i], a, b;

                assert_false(page_store_next(store, 0, PAGE, &a, &b));
                put(store, base + 2 * PAGE, base + 10 * PAGE, 0);
                put(store, base + 5 * PAGE, base + 6 * PAGE, 1);
                assert_int_equal(page_store_bytes(store), 8 * PAGE);
                assert_int_equal(blocks(store), 8 * PAGE);
                assert_page(store, base + 4 * PAGE, page_byte(base + 4 * PAGE, 0));
                assert_page(store, base + 5 * PAGE, page_byte(base + 5 * PAGE, 1));
                assert_true(page_store_next(store, 0, 3 * PAGE, &a, &b));
                assert_int_equal(a, base + 2 * PAGE);
                assert_int_equal(b, base + 5 * PAGE);
                assert_true(page_store_next(store, base + 4 * PAGE + 17, 100 * PAGE, &a, &b));
                assert_int_equal(a, base + 4 * PAGE);
                assert_int_equal(b, base + 10 * PAGE);
                assert_int_equal(page_store_drop(store, base + 3 * PAGE, base + 5 * PAGE), 0);
                assert_int_equal(page_store_bytes(store), 6 * PAGE);
                assert_int_equal(blocks(store), 6 * PAGE);
                assert_true(page_store_next(store, base + 3 * PAGE, 100 * PAGE, &a, &b));
                assert_int_equal(a, base + 5 * PAGE);
                assert_false(page_store_next(store, base + 10 * PAGE, PAGE, &a, &b));
                assert_int_equal(page_store_drop(store, 0, STORE_END), 0);
                assert_int_equal(page_store_bytes(store), 0);
                assert_int_equal(blocks(store), 0);
                page_store_destroy(store);
        }
}

static void test_refused(void **state) {
        static const uint8_t data[2 * PAGE];
        struct page_store *store = create();

        (void) state;
        assert_int_equal(page_store_write(store, 1, data, PAGE), -EINVAL);
        assert_int_equal(page_store_write(store, PAGE, data, 100), -EINVAL);
        assert_int_equal(page_store_write(store, PAGE, data, 0), -EINVAL);
        assert_int_equal(page_store_write(store, STORE_END - PAGE, data, sizeof(data)), -EINVAL);
        assert_int_equal(page_store_write(store, UINT64_MAX - PAGE + 1, data, sizeof(data)), -EINVAL);
        assert_int_equal(page_store_write(store, PAGE, data, SIZE_MAX - PAGE + 1), -EINVAL);
        assert_int_equal(page_store_drop(store, 2 * PAGE, PAGE), -EINVAL);
        assert_int_equal(page_store_drop(store, 0, STORE_END + PAGE), -EINVAL);
        assert_int_equal(page_store_keep(store, PAGE, PAGE), -EINVAL);
        assert_int_equal(page_store_move(store, PAGE, 2 * PAGE, 2 * PAGE), -EINVAL);
        assert_int_equal(page_store_move(store, PAGE, UINT64_MAX - PAGE + 1, 2 * PAGE), -EINVAL);
        assert_int_equal(page_store_move(store, PAGE, 4 * PAGE, UINT64_MAX - PAGE + 1), -EINVAL);
        assert_int_equal(page_store_bytes(store), 0);
        page_store_destroy(store);
}

static void test_keep(void **state) {
        struct page_store *store = create();
        uint64_t base = UINT64_C(0x7f0000000000), a, b;

        (void) state;
        put(store, base, base + 100 * PAGE, 0);
        put(store, base + (64U << 20), base + (64U << 20) + PAGE, 0);
        assert_int_equal(page_store_keep(store, 0x1000, base + 3 * PAGE), 0);
        assert_int_equal(page_store_keep(store, base + 50 * PAGE, base + 51 * PAGE), 0);
        assert_int_equal(page_store_keep(store, base + 98 * PAGE, base + 200 * PAGE), 0);
        assert_int_equal(page_store_drop_others(store), 0);
        assert_int_equal(page_store_bytes(store), 6 * PAGE);
        assert_int_equal(blocks(store), 6 * PAGE);
        assert_true(page_store_next(store, base + 3 * PAGE, 100 * PAGE, &a, &b));
        assert_int_equal(a, base + 50 * PAGE);
        assert_int_equal(b, base + 51 * PAGE);
        /* Pages that were reported once do not count again. */
        assert_int_equal(page_store_drop_others(store), 0);
        assert_int_equal(page_store_bytes(store), 0);
        page_store_destroy(store);
}

/* With contents or as zeros, last of all. */
static void test_come(void **state) {
        struct page_store *store = create();
        uint64_t base = UINT64_C(0x7f0002000000) - 10 * PAGE; /* over the edge of a part of the bitmap */

        (void) state;
        assert_int_equal(page_store_missing(store, base, base + PAGE), base);
        put(store, base, base + 100 * PAGE, 0);
        assert_int_equal(page_store_zero(store, base + 100 * PAGE, base + 200 * PAGE), 0);
        assert_int_equal(page_store_missing(store, base, base + 200 * PAGE), base + 200 * PAGE);
        assert_int_equal(page_store_missing(store, base, base + 201 * PAGE), base + 200 * PAGE);
        assert_int_equal(page_store_missing(store, base - PAGE, base + PAGE), base - PAGE);
        assert_int_equal(page_store_zero(store, base + 3 * PAGE, base + 4 * PAGE), 0);
        assert_int_equal(page_store_bytes(store), 99 * PAGE);
        put(store, base + 150 * PAGE, base + 151 * PAGE, 0);
        assert_int_equal(page_store_missing(store, base, base + 200 * PAGE), base + 200 * PAGE);
        /* Dropped is not the same as zero. */
        assert_int_equal(page_store_drop(store, base + 150 * PAGE, base + 151 * PAGE), 0);
        assert_int_equal(page_store_missing(store, base + 150 * PAGE, base + 151 * PAGE), base + 150 * PAGE);
        assert_int_equal(page_store_zero(store, 0, UINT64_C(2) << 40), -EINVAL);
        page_store_destroy(store);
}

static void assert_same(const struct page_store *one, const struct page_store *other) {
        uint64_t a, b, c, d;

        assert_int_equal(page_store_bytes(one), page_store_bytes(other));
        for (uint64_t at = 0; page_store_next(one, at, PAGE, &a, &b); at = b) {
                uint8_t x[PAGE], y[PAGE];

                assert_true(page_store_next(other, at, PAGE, &c, &d));
                assert_int_equal(a, c);
                assert_int_equal(page_store_read(one, a, x, PAGE), 0);
                assert_int_equal(page_store_read(other, a, y, PAGE), 0);
                assert_memory_equal(x, y, PAGE);
        }
}

/* Against a table, at random, over the edges of parts of the bitmap; a second store takes over now
 * and then. */
static void test_random(void **state) {
        enum { PAGES = 4096 };
        const uint64_t base = (UINT64_C(1) << 46) - (uint64_t) PAGES / 2 * PAGE;
        struct page_store *store = create();
        int version[PAGES]; /* -1: not there */

        (void) state;
        memset(version, -1, sizeof(version));
        for (int step = 0; step < 600; step++) {
                size_t first = (size_t) rand() % PAGES;
                size_t n = 1 + (size_t) rand() % (size_t) (rand() % 4 == 0 ? 300 : 8);
                uint64_t start = base + first * PAGE, there = 0;

                bool writes = rand() % 3 > 0;

                n = first + n > PAGES ? PAGES - first : n;
                if (writes)
                        put(store, start, start + n * PAGE, (unsigned) step);
                else
                        assert_int_equal(page_store_drop(store, start, start + n * PAGE), 0);
                for (size_t i = first; i < first + n; i++)
                        version[i] = writes ? step : -1;
                if (step % 50 == 0) {
                        struct page_store *other;
                        int fd = fcntl(page_store_fd(store), F_DUPFD_CLOEXEC, 3);

                        assert_int_equal(page_store_adopt(fd, &other), 0);
                        assert_same(store, other);
                        page_store_destroy(store);
                        store = other;
                }
                for (size_t i = 0; i < PAGES; i += step % 20 == 0 ? 1 : 97) {
                        assert_int_equal(page_store_has(store, base + i * PAGE), version[i] >= 0);
                        if (version[i] >= 0)
                                assert_page(store, base + i * PAGE, page_byte(base + i * PAGE, (unsigned) version[i]));
                }
                for (size_t i = 0; i < PAGES; i++)
                        there += version[i] >= 0;
                assert_int_equal(page_store_bytes(store), there * PAGE);
        }
        page_store_destroy(store);
}

static void test_move_and_copy(void **state) {
        struct page_store *store = create();
        struct page_store *copy;
        const uint64_t base = 0x40000000, to = UINT64_C(0x7f0000000000);

        (void) state;
        put(store, base, base + 4 * PAGE, 0);
        put(store, base + 200 * PAGE, base + 300 * PAGE, 0);
        put(store, to + 5 * PAGE, to + 6 * PAGE, 9);
        assert_int_equal(page_store_create("copy", &copy), 0);
        assert_int_equal(page_store_copy(store, copy), 0);
        assert_same(store, copy);
        assert_int_equal(page_store_move(store, base + PAGE, to, 249 * PAGE), 0);
        assert_int_equal(page_store_bytes(store), 104 * PAGE);
        assert_true(page_store_has(store, base));
        assert_false(page_store_has(store, base + PAGE));
        assert_false(page_store_has(store, to + 5 * PAGE));
        assert_page(store, to, page_byte(base + PAGE, 0));
        assert_page(store, to + 248 * PAGE, page_byte(base + 249 * PAGE, 0));
        assert_true(page_store_has(store, base + 250 * PAGE));
        assert_int_equal(page_store_bytes(copy), 105 * PAGE);
        assert_page(copy, base + 3 * PAGE, page_byte(base + 3 * PAGE, 0));
        page_store_destroy(copy);
        page_store_destroy(store);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_runs), cmocka_unit_test(test_refused), cmocka_unit_test(test_keep),
                cmocka_unit_test(test_come), cmocka_unit_test(test_random),  cmocka_unit_test(test_move_and_copy),
        };

        return cmocka_run_group_tests_name("pages-store", tests, NULL, NULL);
}
