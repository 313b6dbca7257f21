/* Sets of pages, compared with plain arrays. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"
#include "daemon/pages/maps.h"
#include "daemon/pages/pageset.h"
#include "daemon/pages/store.h"

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

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_random),
                cmocka_unit_test(test_next),
                cmocka_unit_test(test_refused),
                cmocka_unit_test(test_common),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
