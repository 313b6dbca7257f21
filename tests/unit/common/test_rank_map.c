/* The ranks that replace lost ones, by the order of losses; and lists of critical ranks that are
 * invalid. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/rank_map.h"
#include "common/util.h"

static struct rank_map *make(uint32_t ranks, uint32_t spares, const char *critical) {
        struct rank_map *map = NULL;

        assert_int_equal(rank_map_create(ranks, spares, critical, &map, NULL), 0);
        return map;
}

static void expect_processes(const struct rank_map *map, size_t n, const uint32_t *processes) {
        for (uint32_t i = 0; i < n; i++)
                assert_int_equal(rank_map_process(map, i), processes[i]);
}

static void test_bad_lists_are_refused(void **state) {
        static const char *const bad[] = {
                "x", "5-", "-5", "5-3", "1,", ",1", "1,,2", "1 2", "0x1", "1-2-3", "99999999999999999999", "+1"
        };
        struct rank_map *map = NULL;
        struct rm_error err = { 0 };
        char long_list[RANK_MAP_LIST_MAX_BYTES + 2];

        for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
                assert_int_equal(rank_map_create(8, 2, bad[i], &map, &err), -EINVAL);
                assert_null(map);
        }
        assert_int_equal(rank_map_create(8, 2, "5-", &map, &err), -EINVAL);
        assert_string_equal(err.text, "'5-' is not a list of ranks (as 0,5-7)");
        assert_int_equal(rank_map_create(8, 2, "0,7-8", &map, &err), -EINVAL);
        assert_string_equal(err.text, "there is no rank 8: the program has 8");
        for (size_t i = 0; i < sizeof(long_list) - 1; i++)
                long_list[i] = i % 2 ? ',' : '1';
        long_list[sizeof(long_list) - 1] = '\0';
        assert_int_equal(rank_map_create(8, 2, long_list, &map, &err), -EINVAL);
        assert_int_equal(rank_map_create(0, 2, "", &map, &err), -EINVAL);
        assert_int_equal(rank_map_create(2, UINT32_MAX - 1, "", &map, &err), -EINVAL);
}

static void test_critical_ranks_are_replaced_by_the_lowest_spare(void **state) {
        struct rank_map *map = make(8, 2, "0,5-7");

        expect_processes(map, 8, (const uint32_t[]) { 0, 1, 2, 3, 4, 5, 6, 7 });
        assert_int_equal(rank_map_rank(map, 8), RANK_MAP_NONE);
        rank_map_lose(map, (const uint32_t[]) { 5 }, 1);
        expect_processes(map, 8, (const uint32_t[]) { 0, 1, 2, 3, 4, 8, 6, 7 });
        assert_int_equal(rank_map_rank(map, 8), 5);
        assert_int_equal(rank_map_rank(map, 5), 5);
        assert_int_equal(rank_map_living(map), 8);
        assert_int_equal(rank_map_missing(map), RANK_MAP_NONE);
        rank_map_destroy(map);
}

static void test_others_are_not(void **state) {
        struct rank_map *map = make(4, 2, "0");

        rank_map_lose(map, (const uint32_t[]) { 2, 1 }, 2);
        expect_processes(map, 4, (const uint32_t[]) { 0, RANK_MAP_NONE, RANK_MAP_NONE, 3 });
        assert_int_equal(rank_map_living(map), 2);
        assert_int_equal(rank_map_missing(map), RANK_MAP_NONE);
        rank_map_destroy(map);
}

static void test_spares_die_too(void **state) {
        struct rank_map *map = make(4, 3, "1,2");

        /* Unused. */
        rank_map_lose(map, (const uint32_t[]) { 4, 1 }, 2);
        expect_processes(map, 4, (const uint32_t[]) { 0, 5, 2, 3 });
        /* The one in use. */
        rank_map_lose(map, (const uint32_t[]) { 4, 1, 5 }, 3);
        expect_processes(map, 4, (const uint32_t[]) { 0, 6, 2, 3 });
        assert_int_equal(rank_map_rank(map, 5), 1);
        assert_int_equal(rank_map_rank(map, 4), RANK_MAP_NONE);
        /* None is left. */
        rank_map_lose(map, (const uint32_t[]) { 4, 1, 5, 2 }, 4);
        expect_processes(map, 4, (const uint32_t[]) { 0, 6, RANK_MAP_NONE, 3 });
        assert_int_equal(rank_map_missing(map), 2);
        assert_int_equal(rank_map_living(map), 3);
        /* Fewer losses than before are those of an earlier time. */
        rank_map_lose(map, (const uint32_t[]) { 4, 1 }, 2);
        expect_processes(map, 4, (const uint32_t[]) { 0, 5, 2, 3 });
        rank_map_destroy(map);
}

static void test_what_is_no_process_is_passed_over(void **state) {
        struct rank_map *map = make(2, 1, "0,1");

        rank_map_lose(map, (const uint32_t[]) { 3, UINT32_MAX, 1, 1 }, 4);
        expect_processes(map, 2, (const uint32_t[]) { 0, 2 });
        assert_int_equal(rank_map_process(map, 2), RANK_MAP_NONE);
        assert_int_equal(rank_map_rank(map, 3), RANK_MAP_NONE);
        rank_map_destroy(map);
        rank_map_destroy(NULL);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_bad_lists_are_refused),
                cmocka_unit_test(test_critical_ranks_are_replaced_by_the_lowest_spare),
                cmocka_unit_test(test_others_are_not),
                cmocka_unit_test(test_spares_die_too),
                cmocka_unit_test(test_what_is_no_process_is_passed_over),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
