/* Adaptive blocks, which are as the text describes them, but for the largest size of merged
 * ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <string.h>

#include "common/util.h"
#include "rtlib/checkpoint/adaptive.h"
#include "rtlib/checkpoint/manifest.h"

enum { BYTES = 16384, BLOCKS = 16, LEAST = 32 };

static uint8_t memory[BYTES];
static struct adaptive a;

static uint64_t take(size_t *ret_sections) {
        size_t blocks;
        uint64_t bytes;

        adaptive_scan(&a, memory, portable_digest);
        bytes = adaptive_dirty(&a, ret_sections, &blocks);
        adaptive_adapt(&a, memory, portable_digest);
        return bytes;
}

static int begin_capped(uint64_t most_bytes) {
        size_t sections;

        memset(memory, 0, sizeof(memory));
        adaptive_init(&a, BYTES, BLOCKS, LEAST, most_bytes);
        /* Nothing is known yet. */
        return take(&sections) == BYTES && sections == 1 && a.n == BLOCKS ? 0 : -1;
}

static int begin(void **state) {
        return begin_capped(BYTES);
}

static int end(void **state) {
        adaptive_finish(&a);
        return 0;
}

/* The blocks cover all bytes, and there is room for all. */
static void check(void) {
        uint64_t sum = 0;

        for (size_t i = 0; i < a.n; i++)
                sum += a.blocks[i].bytes;
        assert_int_equal(sum, BYTES);
        assert_true(a.n <= a.n_max);
}

static uint64_t checkpoint(size_t n_sections) {
        size_t sections = 0;
        uint64_t bytes = take(&sections);

        check();
        assert_int_equal(sections, n_sections);
        return bytes;
}

/* Two neighbours at a time: sixteen of one age are one after four checkpoints. */
static void test_merge(void **state) {
        for (size_t n = BLOCKS / 2; n >= 1; n /= 2) {
                assert_int_equal(checkpoint(0), 0);
                assert_int_equal(a.n, n);
        }
        assert_int_equal(checkpoint(0), 0);
        assert_int_equal(a.n, 1);
}

/* No block is larger than the cap, so what was left alone for long is not all written when a byte
 * of it changes; and a table for fewer has as many as that takes. */
static void test_cap(void **state) {
        adaptive_finish(&a);
        assert_int_equal(begin_capped(4 * BYTES / BLOCKS), 0);
        for (int i = 0; i < 6; i++)
                assert_int_equal(checkpoint(0), 0);
        assert_int_equal(a.n, 4);
        memory[0]++;
        assert_int_equal(checkpoint(1), 4 * BYTES / BLOCKS);
        adaptive_finish(&a);
        adaptive_init(&a, BYTES, 2, LEAST, BYTES / BLOCKS);
        assert_int_equal(a.n, BLOCKS);
        assert_int_equal(a.n_max, BLOCKS);
        /* The last one is shorter. */
        adaptive_finish(&a);
        adaptive_init(&a, BYTES - 1, 0, LEAST, BYTES / BLOCKS);
        assert_int_equal(a.n, BLOCKS);
        assert_int_equal(a.blocks[BLOCKS - 1].bytes, BYTES / BLOCKS - 1);
        adaptive_finish(&a);
        adaptive_init(&a, 0, 7, LEAST, BYTES);
        assert_int_equal(a.n, 0);
}

/* A copy of the table goes its own way. */
static void test_copy(void **state) {
        struct adaptive copy;

        adaptive_copy(&a, &copy);
        memory[0]++;
        assert_int_equal(checkpoint(1), BYTES / BLOCKS);
        for (size_t i = 0; i < copy.n; i++)
                assert_int_equal(copy.blocks[i].bytes, BYTES / BLOCKS);
        adaptive_finish(&a);
        a = copy;
        assert_int_equal(checkpoint(1), BYTES / BLOCKS);
}

/* Where one byte changes each time, the block around it becomes as small as may be, and what does
 * not change is merged. */
static void test_split(void **state) {
        uint64_t bytes = BYTES;

        for (int i = 0; i < 24; i++) {
                memory[5000]++;
                bytes = checkpoint(1);
        }
        assert_int_equal(bytes, LEAST);
        assert_true(a.n < BLOCKS);
}

/* A table that is full is split no more, and the largest come first. */
static void test_budget(void **state) {
        for (int i = 0; i < 4; i++)
                assert_int_equal(checkpoint(0), 0);
        /* All memory is dirty: its blocks are halved each time. */
        for (size_t n = 2; n <= BLOCKS; n *= 2) {
                for (size_t at = 0; at < BYTES; at += 32)
                        memory[at]++;
                assert_int_equal(checkpoint(1), BYTES);
                assert_int_equal(a.n, n);
        }
        for (size_t at = 0; at < BYTES; at += 32)
                memory[at]++;
        assert_int_equal(checkpoint(1), BYTES);
        assert_int_equal(a.n, BLOCKS);
        for (size_t i = 0; i < a.n; i++)
                assert_int_equal(a.blocks[i].bytes, BYTES / BLOCKS);
}

/* Blocks of different ages stay apart. */
static void test_ages(void **state) {
        memory[0]++;
        assert_int_equal(checkpoint(1), BYTES / BLOCKS);
        /* The first of them in two, if it were not that the others had left room: 15 unchanged ones
         * became 8. */
        assert_int_equal(a.n, 2 + 8);
        assert_int_equal(a.blocks[0].bytes, BYTES / BLOCKS / 2);
        assert_int_equal(a.blocks[0].age, 0);
        assert_int_equal(a.blocks[2].age, 1);
        assert_int_equal(checkpoint(0), 0);
        /* Both halves have age 1, the others 2. */
        assert_int_equal(a.n, 1 + 4);
        assert_int_equal(a.blocks[0].bytes, BYTES / BLOCKS);
}

/* Every change is in the written sections: here and there, and neighbours as one section. */
static void test_sections(void **state) {
        memory[0]++;
        memory[1024]++;
        memory[8000]++;
        assert_int_equal(checkpoint(2), 3 * BYTES / BLOCKS);
        memory[BYTES - 1]++;
        /* The written block is that of two blocks, which had merged. */
        assert_int_equal(checkpoint(1), 2 * BYTES / BLOCKS);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_merge, begin, end),    cmocka_unit_test_setup_teardown(test_split, begin, end),
                cmocka_unit_test_setup_teardown(test_budget, begin, end),   cmocka_unit_test_setup_teardown(test_ages, begin, end),
                cmocka_unit_test_setup_teardown(test_sections, begin, end), cmocka_unit_test_setup_teardown(test_cap, begin, end),
                cmocka_unit_test_setup_teardown(test_copy, begin, end),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
