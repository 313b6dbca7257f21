/* Ranks keep data of collective operations, for others. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <string.h>

#include "rtlib/ft/ring.h"

static struct ring ring;

static int teardown(void **state) {
        ring_finish(&ring);
        return 0;
}

/* In the worst case a rank is ahead by all operations since the last one in which all waited, and
 * by that of the next such. */
static void test_nothing_needed_is_overwritten(void **state) {
        int ahead = 0, most = 0;

        for (int i = 0; i < 10 * RING_SLOTS; i++) {
                ahead = ring_must_wait(&ring, OP_BCAST, 8) ? 0 : ahead + 1;
                most = ahead > most ? ahead : most;
        }
        assert_in_range(most, 1, RING_SLOTS - 2);
        assert_false(ring_must_wait(&ring, OP_ALLREDUCE, RING_KEPT_BYTES));
        assert_true(ring_must_wait(&ring, OP_ALLREDUCE, RING_KEPT_BYTES + 1));
        assert_true(ring_must_wait(&ring, OP_GATHERV, 0));
        assert_false(ring_must_wait(&ring, OP_BARRIER, 0));
}

static void test_slots(void **state) {
        memcpy(ring_take(&ring, 5, 4)->data, "five", 4);
        memset(ring_take(&ring, 6, 1 << 20)->data, 6, 1 << 20);
        assert_memory_equal(ring_at(&ring, 5)->data, "five", 4);
        assert_int_equal(ring_take(&ring, 6 + RING_SLOTS, 8)->space, 8);
        assert_int_equal(ring_at(&ring, 6)->bytes, 8);
}

/* A rank that others do not wait for may be ahead of them by any number of operations. */
static void test_who_waits(void **state) {
        assert_true(op_waits(OP_BARRIER, 0));
        assert_true(op_waits(OP_ALLREDUCE, 8));
        assert_false(op_waits(OP_ALLREDUCE, 0));
        assert_false(op_waits(OP_ALLGATHERV, 8));
        assert_false(op_waits(OP_REDUCE_SCATTER, 8));
        assert_false(op_waits(OP_BCAST, 8));
        for (int i = 1; i < RING_AHEAD; i++)
                assert_false(ring_must_wait(&ring, OP_ALLREDUCE, 0));
        assert_true(ring_must_wait(&ring, OP_ALLREDUCE, 0));
}

static void test_memory_is_used_again(void **state) {
        const unsigned char *old = ring_take(&ring, 0, 64)->data;

        memset(ring_take(&ring, 1, 1 << 20)->data, 1, 1 << 20);
        memcpy(ring_take(&ring, 2, 8)->data, "kept", 5);
        ring_forget(&ring, 2);
        assert_ptr_equal(ring_take(&ring, 3, 64)->data, old);
        assert_string_equal((const char *) ring_at(&ring, 2)->data, "kept");
        assert_ptr_not_equal(ring_take(&ring, 4, 64)->data, old);
        for (uint64_t i = 5; i < UINT64_C(10) * RING_SLOTS; i++) {
                memset(ring_take(&ring, i, 8)->data, (int) i, 8);
                ring_forget(&ring, i - i % (RING_AHEAD - 1));
        }
        ring_forget(&ring, UINT64_C(20) * RING_SLOTS);
}

static void expect_part(const struct slot *slot, int from, int to, size_t offset, size_t bytes) {
        size_t is_offset, is_bytes;

        assert_true(slot_part(slot, from, to, 1, &is_offset, &is_bytes));
        assert_int_equal(is_offset, offset);
        assert_int_equal(is_bytes, bytes);
}

static void expect_none(const struct slot *slot, int from, int to) {
        size_t offset, bytes;

        assert_false(slot_part(slot, from, to, 1, &offset, &bytes));
}

static void test_parts(void **state) {
        struct slot slot = { .kind = OP_BCAST, .root = 0, .bytes = 30 };

        expect_part(&slot, 1, 2, 0, 30);
        expect_none(&slot, 0, 2);
        slot.kind = OP_REDUCE;
        expect_part(&slot, 2, 0, 0, 30);
        expect_none(&slot, 2, 1);
        slot.kind = OP_SCAN;
        expect_part(&slot, 0, 2, 0, 30);
        expect_none(&slot, 2, 0);
        slot.block_bytes = 10;
        slot.kind = OP_SCATTER;
        expect_part(&slot, 0, 2, 20, 10);
        expect_none(&slot, 1, 2);
        slot.kind = OP_ALLTOALL;
        expect_part(&slot, 2, 1, 10, 10);
        expect_none(&slot, 1, 1);
        slot.synchronised = true;
        expect_none(&slot, 2, 1);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_teardown(test_nothing_needed_is_overwritten, teardown),
                cmocka_unit_test_teardown(test_slots, teardown),
                cmocka_unit_test_teardown(test_memory_is_used_again, teardown),
                cmocka_unit_test_teardown(test_who_waits, teardown),
                cmocka_unit_test(test_parts),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
