#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include <cmocka.h>

#include "common/util.h"
#include "launcher/client/recall.h"
#include "tests/unit/repeat.h"

#define MIB (1U << 20)

/* The stream, a byte at an offset. */
static uint8_t byte_at(uint64_t offset, unsigned attempt) {
        uint64_t x = (offset + attempt * 977) * UINT64_C(0x9e3779b97f4a7c15);

        return (uint8_t) (x >> 56);
}

static void fill(uint8_t *data, uint64_t offset, size_t size_bytes, unsigned attempt) {
        for (size_t i = 0; i < size_bytes; i++)
                data[i] = byte_at(offset + i, attempt);
}

static void add(struct recall *r, size_t size_bytes, unsigned attempt) {
        uint8_t *data = xcalloc(1, size_bytes);

        fill(data, recall_end(r), size_bytes, attempt);
        recall_add(r, data, size_bytes);
        free(data);
}

/* The kept bytes are those of the stream: up to a byte that was changed, all are equal. */
static void check(const struct recall *r, unsigned attempt) {
        size_t kept = (size_t) (recall_end(r) - recall_begin(r));
        size_t from = kept ? (size_t) random() % kept : 0;
        size_t n = kept - from > 3 * MIB ? 3 * MIB : kept - from;
        uint8_t *data = xcalloc(1, n + 1);
        size_t equal = 12345;
        size_t changed = n ? (size_t) random() % n : 0;

        fill(data, recall_begin(r) + from, n, attempt);
        assert_int_equal(recall_compare(r, recall_begin(r) + from, data, n, &equal), 0);
        assert_int_equal(equal, n);
        if (n > 0) {
                data[changed] ^= 1;
                assert_int_equal(recall_compare(r, recall_begin(r) + from, data, n, &equal), 0);
                assert_int_equal(equal, changed);
        }
        free(data);
}

static void keeps_what_it_is_given(const char *directory) {
        struct recall *r = recall_create(directory);
        uint64_t begin = 0, end = 0;

        srandom(4711);
        for (unsigned i = 0; i < repetitions(200); i++) {
                uint64_t kept = end - begin;

                switch (random() % 8) {
                case 0:
                        begin += kept ? (uint64_t) random() % kept : 0;
                        recall_drop(r, begin);
                        break;
                case 1:
                        end -= kept ? (uint64_t) random() % (kept / 8 + 1) : 0;
                        recall_cut(r, end);
                        break;
                default: {
                        size_t n = (size_t) random() % MIB + 1;

                        add(r, n, 0);
                        end += n;
                }
                }
                assert_int_equal(recall_begin(r), begin);
                assert_int_equal(recall_end(r), end);
                check(r, 0);
        }
        assert_int_equal(recall_error(r), 0);
        recall_destroy(r);
}

static void keeps_it_in_a_file(void **state) {
        (void) state;
        keeps_what_it_is_given("/tmp");
}

static void keeps_it_in_memory(void **state) {
        (void) state;
        keeps_what_it_is_given(NULL);
        keeps_what_it_is_given("/nonexistent");
}

static void the_ends_of_what_is_kept(void **state) {
        struct recall *r = recall_create(NULL);

        (void) state;
        add(r, 100, 0);
        recall_drop(r, 40);
        recall_drop(r, 30); /* is gone already */
        assert_int_equal(recall_begin(r), 40);
        recall_cut(r, 200);
        assert_int_equal(recall_end(r), 100);
        recall_cut(r, 30); /* the stream goes on before all that is kept */
        assert_int_equal(recall_begin(r), 30);
        assert_int_equal(recall_end(r), 30);
        add(r, 10, 0);
        recall_drop(r, 1000); /* as if all were delivered that is to come until there */
        assert_int_equal(recall_begin(r), 40);
        assert_int_equal(recall_end(r), 40);
        recall_destroy(r);
}

static void too_much_for_the_memory_is_forgotten(void **state) {
        struct recall *r = recall_create("/nonexistent");

        (void) state;
        for (unsigned i = 0; i < RECALL_MEMORY_BYTES / MIB; i++)
                add(r, MIB, 0);
        assert_int_equal(recall_begin(r), 0);
        add(r, 1, 0);
        assert_int_equal(recall_begin(r), RECALL_MEMORY_BYTES + 1U);
        assert_int_equal(recall_end(r), RECALL_MEMORY_BYTES + 1U);
        assert_int_not_equal(recall_error(r), 0);
        add(r, MIB, 0); /* from there on it is kept again */
        assert_int_equal(recall_begin(r), RECALL_MEMORY_BYTES + 1U);
        check(r, 0);
        recall_destroy(r);
}

/* A signal would end us if it wrote beyond. */
static void files_may_be_limited(void **state) {
        struct rlimit before, limit;
        struct recall *r = recall_create("/tmp");

        (void) state;
        assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
        limit = before;
        limit.rlim_cur = 12 * MIB;
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
        for (int i = 0; i < 14; i++)
                add(r, MIB, 0);
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
        assert_int_equal(recall_end(r), 14 * MIB);
        assert_int_equal(recall_begin(r), 13 * MIB);
        check(r, 0);
        recall_destroy(r);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(keeps_it_in_a_file),       cmocka_unit_test(keeps_it_in_memory),
                cmocka_unit_test(the_ends_of_what_is_kept), cmocka_unit_test(too_much_for_the_memory_is_forgotten),
                cmocka_unit_test(files_may_be_limited),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
