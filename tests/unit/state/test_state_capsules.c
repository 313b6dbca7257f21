/* Capsules that need no cores, and those that users move, fill no node. */
#include "state_test.h"

#include "daemon/state/commands.h"

static const char *const places[] = { "n1", "n2" };
static const uint32_t ones[] = { 1, 1 };

static int set_up(void **state) {
        return world_start(state, 3, 2);
}

/* Head and group 0 on n1, group 1 on n2. */
static void start(struct world *w, uint64_t id) {
        start_job(w, id, places, ones, 2);
}

static uint64_t running_job(struct world *w) {
        int id = submit(w, 2);

        assert_true(id > 0);
        start(w, (uint64_t) id);
        return (uint64_t) id;
}

static int place_many(struct world *w, uint64_t job, size_t n, uint32_t capsules_per_core) {
        cleanup_free char **nodes = xcalloc(n, sizeof(*nodes));
        cleanup_free uint32_t *ranks = xcalloc(n, sizeof(*ranks));
        struct command c;
        Rm__CmdJobPlace *in = command_job_place(&c, job);

        for (size_t i = 0; i < n; i++) {
                nodes[i] = (char *) "n1";
                ranks[i] = 1;
        }
        in->group_size = 1;
        in->head_node = (char *) "n1";
        in->policy = (char *) "distrib";
        in->n_group_nodes = in->n_group_ranks = n;
        in->group_nodes = nodes;
        in->group_ranks = ranks;
        in->capsules_per_core = capsules_per_core;
        return apply_command(w, &c.command);
}

static int move_within(struct world *w, uint64_t job, int32_t group, const char *to, uint32_t capsules_per_core) {
        struct command c;
        Rm__CmdMoveStart *in = command_move_start(&c, job, group, to);

        in->cause = RM__MOVE_CAUSE__MOVE_CAUSE_ASKED;
        in->reason = (char *) "asked for by alice";
        in->capsules_per_core = capsules_per_core;
        return apply_command(w, &c.command);
}

static void test_parked_groups_fill_no_node(void **state) {
        struct world *w = *state;

        assert_int_equal(submit_resizable(w, 300, 1, 1), 1);
        expect_refused(w, place_many(w, 1, 300, 4),
                       "place: node 'n1' has no room for group 7 of job 1, which has parked ones: 4 capsules for each core are the "
                       "limit ([job] max_capsules_per_core)");
        assert_int_equal(submit_resizable(w, 7, 1, 1), 2);
        assert_int_equal(place_many(w, 2, 7, 4), 0); /* 8 with its head */
        assert_int_equal(state_capsule_space(w->indexed, "n1", 4), 0);
        assert_int_equal(state_capsule_space(w->indexed, "n1", 5), 2);
        assert_int_equal(state_capsule_space(w->indexed, "n9", 5), 0);
        assert_int_equal(submit_resizable(w, 1, 1, 1), 3);
        expect_refused(w, place_many(w, 3, 1, 4), "no room for group 0"); /* it would be parked, if it shrank */
        assert_int_equal(place_many(w, 3, 1, 0), 0);
        /* A job without parked groups needs cores, and need not wait for those that have some. */
        assert_int_equal(submit(w, 1), 4);
        assert_int_equal(place_many(w, 4, 1, 4), 0);
}

/* Moves that are under way count for their destination. */
static void test_moves_fill_no_node(void **state) {
        struct world *w = *state;
        uint64_t jobs[2] = { running_job(w), running_job(w) };

        assert_int_equal(state_capsule_space(w->indexed, "n1", 2), 0); /* two heads, two groups */
        expect_refused(w, move_within(w, jobs[0], 1, "n1", 2),
                       "migrate: node 'n1' has 2 capsules for each core already, which is the limit ([job] max_capsules_per_core)");
        assert_int_equal(move_within(w, jobs[0], 1, "n3", 1), 0);
        assert_int_equal(move_within(w, jobs[1], 1, "n3", 1), 0);
        expect_refused(w, move_within(w, jobs[0], 0, "n3", 1), "n3"); /* those on the way count */
        assert_int_equal(move_within(w, jobs[0], 0, "n3", 0), 0);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_parked_groups_fill_no_node, set_up, world_tear_down),
                cmocka_unit_test_setup_teardown(test_moves_fill_no_node, set_up, world_tear_down),
        };

        return cmocka_run_group_tests_name("state-capsules", tests, NULL, NULL);
}
