/* A job that starts again where there is no room: which cores it shares. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/util.h"
#include "daemon/leader/fold_place.h"

/* Nodes of so many cores, and a job of `ranks` in groups of `group_size` that has no place. */
static struct snapshot *scene(const uint32_t *cores, size_t n, uint32_t ranks, uint32_t group_size) {
        static const char *const names[] = { "n1", "n2", "n3", "n4" };
        struct snapshot *s = snapshot_create();

        for (size_t i = 0; i < n; i++) {
                struct rm_node *node = snapshot_add_node(s, names[i], cores[i]);

                node->memory = node->memory_free = RM_NO_MEMORY_LIMIT;
        }
        (void) snapshot_add_job(s, "waits", ranks, group_size);
        return s;
}

static void runs_on(struct snapshot *s, const char *name, uint32_t ranks, int32_t node) {
        (void) snapshot_add_job(s, name, ranks, ranks);
        snapshot_group(s, snapshot_view(s)->n_jobs - 1, 0)->node = node;
}

static bool place(const struct snapshot *s, int32_t *ret_nodes, int32_t *ret_head) {
        return fold_place(snapshot_view(s), 0, ret_nodes, ret_head);
}

/* Two ranks a core on each of two nodes, not four on one. */
static void test_spreads(void **state) {
        static const uint32_t cores[] = { 2, 2 };
        cleanup_snapshot struct snapshot *s = scene(cores, 2, 8, 1);
        int32_t nodes[8], head, on_first = 0;

        assert_true(place(s, nodes, &head));
        for (size_t i = 0; i < ARRAY_SIZE(nodes); i++)
                on_first += nodes[i] == 0;
        assert_int_equal(on_first, 4);
}

static void test_takes_the_emptiest(void **state) {
        static const uint32_t cores[] = { 4, 8, 4 };
        cleanup_snapshot struct snapshot *s = scene(cores, 3, 2, 2);
        int32_t node, head;

        runs_on(s, "a", 4, 0);
        runs_on(s, "b", 8, 1);
        runs_on(s, "c", 5, 2);
        assert_true(place(s, &node, &head));
        assert_int_equal(node, 1); /* 10 on 8, not 6 on 4 */
        assert_int_equal(head, 0); /* mpirun: 4 on 4 */
}

static void test_four_to_a_core(void **state) {
        static const uint32_t cores[] = { 1, 0 };
        cleanup_snapshot struct snapshot *s = scene(cores, 2, FOLD_PLACE_MOST, 1);
        cleanup_snapshot struct snapshot *more = scene(cores, 2, FOLD_PLACE_MOST + 1, 1);
        int32_t nodes[FOLD_PLACE_MOST + 1], head;

        assert_true(place(s, nodes, &head));
        for (uint32_t i = 0; i < FOLD_PLACE_MOST; i++)
                assert_int_equal(nodes[i], 0); /* a node without cores gets none */
        assert_false(place(more, nodes, &head));
        runs_on(s, "other", 1, 0);
        assert_false(place(s, nodes, &head));
}

static void test_memory(void **state) {
        static const uint32_t cores[] = { 4, 1 };
        cleanup_snapshot struct snapshot *s = scene(cores, 2, 2, 1);
        int32_t nodes[2], head;

        snapshot_node(s, 0)->memory = 10;
        snapshot_node(s, 0)->memory_free = 10;
        for (uint32_t g = 0; g < 2; g++)
                snapshot_group(s, 0, g)->memory = 6;
        assert_true(place(s, nodes, &head));
        assert_int_equal(nodes[0], 0);
        assert_int_equal(nodes[1], 1); /* both do not fit there */
        snapshot_node(s, 1)->memory = snapshot_node(s, 1)->memory_free = 5;
        assert_false(place(s, nodes, &head));
}

/* The job is limited by its availability file. */
static void test_limits_of_the_job(void **state) {
        static const uint32_t cores[] = { 4, 1 };
        cleanup_snapshot struct snapshot *s = scene(cores, 2, 3, 1);
        int32_t nodes[3], head, on_first = 0;

        snapshot_set_limit(s, 0, 0, 1);
        assert_true(place(s, nodes, &head));
        for (size_t i = 0; i < ARRAY_SIZE(nodes); i++)
                on_first += nodes[i] == 0;
        assert_int_equal(on_first, 1);
        snapshot_set_limit(s, 0, 1, 1);
        assert_false(place(s, nodes, &head));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_spreads), cmocka_unit_test(test_takes_the_emptiest), cmocka_unit_test(test_four_to_a_core),
                cmocka_unit_test(test_memory),  cmocka_unit_test(test_limits_of_the_job),
        };

        return cmocka_run_group_tests_name("leader-fold-place", tests, NULL, NULL);
}
