/* Data that arrives in parts: in order, lost, repeated, too much, of another total. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/peers/parts.h"

static const char text[] = "0123456789";

static void test_in_order(void **state) {
        struct parts parts = { 0 };

        assert_int_equal(parts_add(&parts, 10, 0, text, 4, 10), 0);
        assert_int_equal(parts_add(&parts, 10, 4, text + 4, 5, 10), 0);
        assert_int_equal(parts_add(&parts, 10, 9, text + 9, 1, 10), 1);
        assert_int_equal(parts.received_bytes, 10);
        assert_memory_equal(parts.data, text, 10);
        parts_reset(&parts);
        assert_null(parts.data);
        assert_int_equal(parts_add(&parts, 10, 0, text, 10, 10), 1);
        parts_reset(&parts);
}

static void check_refused(struct parts *parts, uint64_t total, uint64_t offset, size_t n, int expected) {
        assert_int_equal(parts_add(parts, total, offset, text, n, 10), expected);
        assert_null(parts->data);
        assert_int_equal(parts->received_bytes, 0);
}

static void begin(struct parts *parts) {
        parts_reset(parts);
        assert_int_equal(parts_add(parts, 10, 0, text, 4, 10), 0);
}

static void test_refused(void **state) {
        struct parts parts = { 0 };

        begin(&parts);
        check_refused(&parts, 10, 6, 4, -EPROTO); /* one was lost */
        check_refused(&parts, 10, 4, 4, -EPROTO); /* and what follows is of no use */
        begin(&parts);
        check_refused(&parts, 10, 2, 4, -EPROTO); /* overlaps */
        begin(&parts);
        check_refused(&parts, 9, 4, 4, -EPROTO); /* another total */
        begin(&parts);
        check_refused(&parts, 10, 4, 7, -EPROTO); /* beyond the total */
        begin(&parts);
        check_refused(&parts, 10, 4, 0, -EPROTO); /* empty: would go on for ever */
        check_refused(&parts, 11, 0, 4, -EMSGSIZE);
        check_refused(&parts, UINT64_MAX, 0, 4, -EMSGSIZE);
        check_refused(&parts, 0, 0, 0, -EPROTO);
        check_refused(&parts, 10, UINT64_MAX, 4, -EPROTO);
        assert_int_equal(parts_add(&parts, 10, 0, text, 10, 10), 1);
        check_refused(&parts, 10, 10, 1, -EPROTO); /* one too many */
}

static void test_begins_anew(void **state) {
        struct parts parts = { 0 };

        begin(&parts);
        assert_int_equal(parts_add(&parts, 3, 0, text + 5, 1, 10), 0);
        assert_int_equal(parts_add(&parts, 3, 1, text + 6, 2, 10), 1);
        assert_memory_equal(parts.data, "567", 3);
        parts_reset(&parts);
}

/* An announced size takes no memory. */
static void test_memory_follows_what_arrived(void **state) {
        struct parts parts = { 0 };

        assert_int_equal(parts_add(&parts, UINT64_C(1) << 40, 0, text, 10, SIZE_MAX), 0);
        assert_true(parts.space_bytes <= 10);
        assert_int_equal(parts_add(&parts, UINT64_C(1) << 40, 10, text, 1, SIZE_MAX), 0);
        assert_true(parts.space_bytes <= 20);
        parts_reset(&parts);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_in_order),
                cmocka_unit_test(test_refused),
                cmocka_unit_test(test_begins_anew),
                cmocka_unit_test(test_memory_follows_what_arrived),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
