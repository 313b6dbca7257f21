/* Leases: what a node holds, and what the leader counts with, over the real transport. */
#include "cluster_test.h"

#include "daemon/cluster/lease.h"

#define SECOND UINT64_C(1000000)

static void test_times(void **state) {
        (void) state;
        assert_true(lease_end_usec(7 * SECOND, 5 * SECOND) == 12 * SECOND);
        assert_true(lease_end_usec(UINT64_MAX - 5, 6) == UINT64_MAX);
        assert_true(lease_safe_usec(UINT64_MAX - 5, 6) == UINT64_MAX);
        /* A clock that is slow by a percent shows 5 s after 5.05 s, and to stop takes its time
         * too. */
        assert_true(lease_safe_usec(100 * SECOND, 5 * SECOND) >= 105050000 + LEASE_FENCE_USEC);
        assert_true(lease_safe_usec(100 * SECOND, 5 * SECOND) <= 105400000); /* nor is time wasted */
}

/* How long a leader that has just begun waits for what was given before it. */
static uint64_t before(uint64_t lease_usec, uint64_t longest_usec) {
        struct leases *leases = leases_create(lease_usec);
        uint64_t safe;

        leases_lead(leases, 0, longest_usec);
        safe = leases_safe_usec(leases, 0);
        leases_destroy(leases);
        return (safe - LEASE_FENCE_USEC) / SECOND;
}

/* Longer ones count until they have ended; then the log may say less. */
static void test_before(void **state) {
        struct leases *leases = leases_create(3 * SECOND);

        (void) state;
        assert_int_equal(before(5 * SECOND, 0), 5);
        assert_int_equal(before(9 * SECOND, 5 * SECOND), 9);
        assert_int_equal(before(2 * SECOND, 9 * SECOND), 9);
        leases_lead(leases, 10 * SECOND, 9 * SECOND);
        assert_int_equal(leases_to_log_usec(leases, 18 * SECOND, 9 * SECOND), 0);
        assert_int_equal(leases_to_log_usec(leases, 20 * SECOND, 9 * SECOND), 3 * SECOND);
        assert_int_equal(leases_to_log_usec(leases, 10 * SECOND, 2 * SECOND), 3 * SECOND);
        assert_int_equal(leases_to_log_usec(leases, 20 * SECOND, 3 * SECOND), 0);
        /* A lease is not longer than the log says. */
        assert_int_equal(leases_given_end_usec(leases, 50 * SECOND, 2 * SECOND), 52 * SECOND);
        assert_int_equal(leases_given_end_usec(leases, 50 * SECOND, 9 * SECOND), 53 * SECOND);
        assert_int_equal(leases_given_end_usec(leases, 0, 9 * SECOND), 0);
        leases_destroy(leases);
}

/* A lease begins when the state has come to its index; a state that is always behind gets one all
 * the same. */
static void test_index(void **state) {
        struct leases *leases = leases_create(5 * SECOND);

        (void) state;
        assert_false(leases_reach(leases, 10));
        leases_offer(leases, 7 * SECOND, 12);
        assert_false(leases_reach(leases, 11));
        assert_int_equal(leases_end_usec(leases), 0);
        leases_offer(leases, 8 * SECOND, 14); /* not instead of the one that is reached before */
        assert_true(leases_reach(leases, 13));
        assert_int_equal(leases_end_usec(leases), 7 * SECOND);
        assert_false(leases_reach(leases, 15));
        leases_offer(leases, 9 * SECOND, 20);
        leases_offer(leases, 10 * SECOND, 16);
        assert_true(leases_reach(leases, 16));
        assert_int_equal(leases_end_usec(leases), 10 * SECOND);
        leases_offer(leases, 9 * SECOND, 0); /* late */
        assert_false(leases_reach(leases, 16));
        assert_int_equal(leases_end_usec(leases), 10 * SECOND);
        leases_destroy(leases);
}

/* The quorum is the latest time that more than half of the voters have confirmed, this one among
 * them. */
static void test_quorum(void **state) {
        static const char *const others[] = { "b", "c", "d", "e" };
        struct leases *leases = leases_create(5 * SECOND);

        (void) state;
        leases_lead(leases, 0, 0);
        assert_int_equal(leases_quorum_usec(leases, others, 0, 77), 77);
        assert_int_equal(leases_quorum_usec(leases, others, 2, 77), 0);
        leases_confirm(leases, "b", 10);
        assert_int_equal(leases_quorum_usec(leases, others, 1, 77), 10);
        assert_int_equal(leases_quorum_usec(leases, others, 2, 77), 10);
        assert_int_equal(leases_quorum_usec(leases, others, 3, 77), 0);
        assert_int_equal(leases_quorum_usec(leases, others, 4, 77), 0);
        leases_confirm(leases, "d", 30);
        leases_confirm(leases, "b", 5); /* late */
        assert_int_equal(leases_quorum_usec(leases, others, 2, 77), 10);
        assert_int_equal(leases_quorum_usec(leases, others, 4, 77), 10);
        leases_confirm(leases, "c", 20);
        assert_int_equal(leases_quorum_usec(leases, others, 2, 77), 20);
        assert_int_equal(leases_quorum_usec(leases, others, 4, 77), 20);
        /* Confirmations of another term do not count. */
        leases_lead(leases, 0, 0);
        assert_int_equal(leases_quorum_usec(leases, others, 2, 77), 0);
        leases_destroy(leases);
}

/* The least of some, as this process may lose the processor between two looks at a clock. */
static uint64_t slept_usec(void) {
        uint64_t least = UINT64_MAX;

        for (int i = 0; i < 20; i++) {
                uint64_t now = now_usec();
                uint64_t slept = now_boot_usec() - now;

                least = slept < least ? slept : least;
        }
        return least;
}

/* The node's clock and the leader's are one here, but for the time that the machine has slept. */
static uint64_t end_of(const struct tnode *node) {
        uint64_t end = cluster_lease_end_usec(node->cluster);
        uint64_t slept = slept_usec();

        return end > slept ? end - slept : 0;
}

static void start_two(struct world *w, uint64_t lease_usec) {
        world_init(w);
        w->lease_usec = lease_usec;
        for (int i = 0; i < 2; i++)
                (void) tnode_start(w, i, 0);
        EXPECT(w, joined(w, 2), 5000);
}

/* While both are heard of, the lease is renewed, and never lasts beyond what the leader waits
 * for. */
static void test_renewed(void **state) {
        struct world w;
        uint64_t first;

        (void) state;
        start_two(&w, SECOND);
        assert_true(cluster_lease_end_usec(w.nodes[0].cluster) == UINT64_MAX);
        EXPECT(&w, end_of(&w.nodes[1]) > now_usec(), 2000);
        first = end_of(&w.nodes[1]);
        for (int i = 0; i < 100; i++) {
                RUN_UNTIL(&w, false, 10);
                assert_true(end_of(&w.nodes[1]) + SECOND / 100 < cluster_fence_safe_usec(w.nodes[0].cluster, "n2"));
        }
        EXPECT(&w, end_of(&w.nodes[1]) > first + SECOND / 2, 1000);
        world_finish(&w);
}

/* A heartbeat that is read late was sent long ago, and so is the lease that it renews. */
static void test_late(void **state) {
        struct world w;
        uint64_t before;

        (void) state;
        start_two(&w, 10 * SECOND);
        EXPECT(&w, end_of(&w.nodes[1]) > now_usec(), 2000);
        before = now_usec();
        usleep(SECOND);
        RUN_UNTIL(&w, end_of(&w.nodes[1]) > before + 11 * SECOND, 20);
        /* The answer to the first heartbeat has to get to the leader and back: only a heartbeat
         * that was sent now counts from now. */
        assert_true(end_of(&w.nodes[1]) <= now_usec() + 10 * SECOND);
        assert_true(end_of(&w.nodes[1]) + SECOND / 10 < cluster_fence_safe_usec(w.nodes[0].cluster, "n2"));
        world_finish(&w);
}

static void test_leader_gone(void **state) {
        struct world w;
        uint64_t end;

        (void) state;
        start_two(&w, SECOND);
        EXPECT(&w, end_of(&w.nodes[1]) > now_usec(), 2000);
        tnode_stop(&w.nodes[0]);
        end = cluster_lease_end_usec(w.nodes[1].cluster);
        RUN_UNTIL(&w, false, 1500);
        assert_true(cluster_lease_end_usec(w.nodes[1].cluster) == end);
        assert_true(end < now_boot_usec());
        (void) tnode_start(&w, 0, 0);
        EXPECT(&w, cluster_lease_end_usec(w.nodes[1].cluster) > now_boot_usec(), 5000);
        world_finish(&w);
}

/* The successor gives shorter leases, and has heard of no node yet. */
static void test_longer_before(void **state) {
        struct world w;
        uint64_t begin;

        (void) state;
        start_two(&w, 30 * SECOND);
        EXPECT(&w, cluster_state(w.nodes[0].cluster)->lease_usec == 30 * SECOND, 2000);
        EXPECT(&w, end_of(&w.nodes[1]) > now_usec() + 20 * SECOND, 2000);
        tnode_stop(&w.nodes[0]);
        w.lease_usec = SECOND;
        begin = now_usec();
        (void) tnode_start(&w, 0, 0);
        assert_true(cluster_fence_safe_usec(w.nodes[0].cluster, "n2") > end_of(&w.nodes[1]));
        assert_true(cluster_fence_safe_usec(w.nodes[0].cluster, "n1") == UINT64_MAX);
        assert_true(cluster_fence_safe_usec(w.nodes[0].cluster, "n2") > begin + 30 * SECOND);
        EXPECT(&w, joined(&w, 2), 5000);
        assert_true(cluster_fence_safe_usec(w.nodes[0].cluster, "n2") > begin + 30 * SECOND);
        world_finish(&w);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_times),       cmocka_unit_test(test_before),        cmocka_unit_test(test_index),
                cmocka_unit_test(test_quorum),      cmocka_unit_test(test_renewed),       cmocka_unit_test(test_late),
                cmocka_unit_test(test_leader_gone), cmocka_unit_test(test_longer_before),
        };

        log_setup("test-lease", LOG_ERR);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
