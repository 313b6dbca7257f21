/* Where groups of parked ranks are placed, and which must leave. */
#include "tests/unit/state/state_test.h"

#include "daemon/leader/parked.h"
#include "daemon/leader/round_input.h"

struct scene {
        struct world w;
        uint64_t job;
        uint32_t capsules_per_core; /* for moves(); 0: no limit */
};

static int set_up(void **state) {
        struct scene *s = xcalloc(1, sizeof(*s));
        int id;

        world_init(&s->w);
        for (int i = 1; i <= 3; i++) {
                char name[8];

                (void) snprintf(name, sizeof(name), "n%d", i);
                assert_int_equal(join(&s->w, name, 4), 0);
        }
        id = submit_resizable(&s->w, 8, 2, 1);
        assert_true(id > 0);
        s->job = (uint64_t) id;
        *state = s;
        return 0;
}

static int tear_down(void **state) {
        struct scene *s = *state;

        world_finish(&s->w);
        free(s);
        return 0;
}

static const Rm__Job *scene_job(struct scene *s) {
        return state_job(s->w.state, s->job);
}

static struct round_input see(struct scene *s) {
        const struct round_input_config config = { .group_size = 2, .horizon_usec = 1, .bytes_per_cost = 1 };
        struct round_input input;

        round_input_create(s->w.indexed, &config, &input);
        assert_int_equal(input.n_jobs, 1);
        return input;
}

/* Group 0 on n1, the parked ones on n2, n3, n3. */
static void run(struct scene *s) {
        static const char *const nodes[] = { "n1", "n2", "n3", "n3" };
        static const uint32_t ranks[] = { 2, 2, 2, 2 };

        assert_int_equal(place(&s->w, s->job, "n1", nodes, ranks, 4), 0);
        for (int32_t i = -1; i < 4; i++)
                assert_int_equal(ready(&s->w, s->job, i, i < 0 ? "n1" : nodes[i]), 0);
        assert_int_equal(running(&s->w, s->job), 0);
}

/* With so many capsules allowed for each core. */
static int32_t *place_with(struct scene *s, const struct round_input *input, const int32_t *active, uint32_t capsules_per_core) {
        return parked_place(s->w.indexed, snapshot_view(input->snapshot), 0, scene_job(s),
                            &(struct parked_start) {
                                    .n_groups = 4, .group_size = 2, .group_node = active, .capsules_per_core = capsules_per_core });
}

static void test_policies_see_active_groups(void **state) {
        struct scene *s = *state;
        struct round_input input = see(s);
        const struct rm_job *job = &snapshot_view(input.snapshot)->jobs[0];

        assert_int_equal(job->ranks, 2);
        assert_int_equal(job->n_groups, 1);
        round_input_finish(&input);
        run(s);
        assert_int_equal(resize_reported(&s->w, s->job, 0, 0, 0, false), 0);
        assert_int_equal(resize(&s->w, s->job, 5), 0);
        assert_int_equal(resize_reported(&s->w, s->job, s->w.created, 0, 0, false), 0);
        input = see(s);
        job = &snapshot_view(input.snapshot)->jobs[0];
        assert_int_equal(job->ranks, 6); /* with rank 4 the group of 4 and 5 */
        assert_int_equal(job->n_groups, 3);
        assert_int_equal(job->groups[2].node, 2);
        round_input_finish(&input);
}

/* Rank 5 is parked beside rank 4. Jobs that began at an earlier level are shown as above. */
static void test_policies_see_no_parked_ranks(void **state) {
        struct scene *s = *state;
        const struct rm_job *job;
        struct round_input input;

        s->w.thorough = false; /* it writes into the state */
        s->w.state->level = s->w.twin->level = STATE_LEVEL;
        state_job(s->w.state, s->job)->spec->rank_memory_bytes = 500;
        run(s);
        assert_int_equal(resize_reported(&s->w, s->job, 0, 0, 0, false), 0);
        assert_int_equal(resize(&s->w, s->job, 5), 0);
        assert_int_equal(resize_reported(&s->w, s->job, s->w.created, 0, 0, false), 0);
        input = see(s);
        job = &snapshot_view(input.snapshot)->jobs[0];
        assert_int_equal(job->ranks, 5);
        assert_int_equal(job->n_groups, 3);
        assert_int_equal(job->groups[2].ranks, 1);
        assert_int_equal(job->groups[2].memory, 1000); /* with the parked rank */
        round_input_finish(&input);
}

/* A job has 5 ranks and 3 spare ones, in groups of 2; another has one rank and 3 spare ones, in
 * groups of 4. */
static void test_policies_see_no_spare_ranks(void **state) {
        struct scene *s = *state;
        int wide = submit_critical(&s->w, 8, 3, "0"), narrow = submit_critical(&s->w, 4, 3, "0");
        const struct round_input_config config = { .group_size = 2, .horizon_usec = 1, .bytes_per_cost = 1 };
        const struct rm_job *job;
        struct round_input input;

        s->w.state->level = s->w.twin->level = STATE_LEVEL;
        assert_true(wide > 0 && narrow > 0);
        state_job(s->w.state, (uint64_t) wide)->spec->rank_memory_bytes = 500;
        state_job(s->w.state, (uint64_t) narrow)->spec->group_size = 4;
        round_input_create(s->w.indexed, &config, &input);
        job = &snapshot_view(input.snapshot)->jobs[1];
        assert_int_equal(job->ranks, 5);
        assert_int_equal(job->n_groups, 3);
        assert_int_equal(job->groups[2].ranks, 1);
        assert_int_equal(job->groups[2].memory, 1000); /* with the spare rank of the group */
        job = &snapshot_view(input.snapshot)->jobs[2];
        assert_int_equal(job->ranks, 1);
        assert_int_equal(job->group_size, 1); /* no more than it has */
        assert_int_equal(round_input_group_size_of(s->w.state, state_job(s->w.state, (uint64_t) narrow), NULL, 2), 4);
        round_input_finish(&input);
}

static void test_groups_have_ranks_of_one_kind(void **state) {
        struct scene *s = *state;
        Rm__JobSpec spec = RM__JOB_SPEC__INIT;

        spec.ranks = 16;
        spec.active_ranks = 6;
        assert_int_equal(round_input_group_size(s->w.state, &spec, 4), 3);
        assert_int_equal(round_input_group_size(s->w.state, &spec, 8), 6);
        spec.active_ranks = 7;
        assert_int_equal(round_input_group_size(s->w.state, &spec, 4), 1);
        spec.group_size = 4;
        assert_int_equal(round_input_group_size(s->w.state, &spec, 2), 4); /* as its owner wants */
}

static void test_placed_where_cores_are(void **state) {
        static const int32_t active[] = { 0 };
        struct scene *s = *state;
        struct round_input input = see(s);
        cleanup_free int32_t *nodes = place_with(s, &input, active, 0);

        assert_non_null(nodes);
        assert_int_equal(nodes[0], 0);
        assert_int_equal(nodes[1], 1);
        assert_int_equal(nodes[2], 2);
        assert_int_equal(nodes[3], 0); /* 4 ranks on each at most, if all ran */
        round_input_finish(&input);
}

static void test_need_memory(void **state) {
        static const int32_t active[] = { 0 };
        struct scene *s = *state;
        struct round_input input;
        cleanup_free int32_t *some = NULL;

        state_job(s->w.state, s->job)->spec->rank_memory_bytes = 500;
        input = see(s);
        for (uint32_t n = 0; n < 3; n++)
                snapshot_node(input.snapshot, n)->memory = snapshot_node(input.snapshot, n)->memory_free = n == 0 ? 1000 : 2000;
        some = place_with(s, &input, active, 0);
        assert_non_null(some);
        for (uint32_t g = 1; g < 4; g++)
                assert_int_not_equal(some[g], 0);
        snapshot_node(input.snapshot, 2)->memory_free = 0;
        assert_null(place_with(s, &input, active, 0));
        round_input_finish(&input);
}

static void small_nodes(struct scene *s) {
        assert_int_equal(join(&s->w, "n1", 1), 0);
        assert_int_equal(join(&s->w, "n2", 1), 0);
        assert_int_equal(join(&s->w, "n3", 1), 0);
}

/* Each group, and the head, is a process of root's with its own network. */
static void test_nodes_have_so_many_capsules(void **state) {
        static const int32_t active[] = { 0 };
        struct scene *s = *state;
        struct round_input input = see(s);
        cleanup_free int32_t *nodes = NULL;
        int32_t *none;

        small_nodes(s);
        nodes = place_with(s, &input, active, 2);
        assert_non_null(nodes);
        for (uint32_t g = 1; g < 4; g++)
                assert_int_not_equal(nodes[g], 0); /* which has the head and a group */
        none = place_with(s, &input, active, 1);
        assert_null(none); /* nor one that computes, and may be parked tomorrow */
        round_input_finish(&input);
        run(s); /* 2, 1 and 2 capsules */
        assert_int_equal(submit_resizable(&s->w, 4, 2, 1), 2);
        s->job = 2;
        round_input_create(s->w.indexed, &(struct round_input_config) { .group_size = 2, .horizon_usec = 1, .bytes_per_cost = 1 },
                           &input);
        none = parked_place(s->w.indexed, snapshot_view(input.snapshot), 1, scene_job(s),
                            &(struct parked_start) {
                                    .n_groups = 2, .group_size = 2, .group_node = active, .head_node = 1, .capsules_per_core = 2 });
        assert_null(none); /* those of other jobs count, also where no policy sees them */
        round_input_finish(&input);
}

/* `why`: what is told of one that stays on a node that it should leave; NULL: none does. */
static size_t moves_and_stays(struct scene *s, struct round_result *ret, const char *why) {
        struct round_input input = see(s);
        struct parked_stay stay;

        *ret = (struct round_result) { 0 };
        parked_moves(s->w.indexed, snapshot_view(input.snapshot), 0, scene_job(s), s->capsules_per_core, ret, &stay);
        if (why && (!stay.reason || strcmp(stay.reason, why) != 0 || !strstr(why, stay.node)))
                fail_msg("'%s' on %s", stay.reason ? stay.reason : "nothing", stay.node ? stay.node : "no node");
        if (!why)
                assert_null(stay.reason);
        free(stay.reason);
        round_input_finish(&input);
        return ret->n_actions;
}

static size_t moves(struct scene *s, struct round_result *ret) {
        return moves_and_stays(s, ret, NULL);
}

/* Two parked groups are on n3, which has more than n1; and n2 has as much. */
static void test_go_to_no_lesser_node(void **state) {
        static const char *const sets[][2] = { { "n1", "sse2" }, { "n2", "sse2 avx2" }, { "n3", "sse2 avx2" } };
        struct scene *s = *state;
        struct round_result result;

        s->w.thorough = false; /* it writes into the state */
        run(s);
        for (size_t i = 0; i < ARRAY_SIZE(sets); i++)
                message_set_string(&state_node(s->w.state, sets[i][0])->instruction_sets, sets[i][1]);
        assert_int_equal(drain(&s->w, "n3", "disk", false), 0);
        assert_int_equal(moves(s, &result), 2);
        for (size_t i = 0; i < 2; i++)
                assert_int_equal(result.actions[i].to, 1);
        free(result.actions);
        message_set_string(&state_node(s->w.state, "n2")->instruction_sets, "sse2");
        assert_int_equal(moves_and_stays(s, &result, "stays on 'n3': no node that the job may use can take the parked group 2"), 0);
        free(result.actions);
}

static void test_leave_nodes_that_are_drained(void **state) {
        struct scene *s = *state;
        struct round_result result;

        run(s);
        assert_int_equal(moves(s, &result), 0);
        assert_int_equal(drain(&s->w, "n3", "disk", false), 0);
        assert_int_equal(moves(s, &result), 2);
        for (size_t i = 0; i < 2; i++) {
                assert_int_equal(result.actions[i].group, 2 + (int32_t) i);
                assert_int_equal(result.actions[i].from, 2);
                assert_int_equal(result.actions[i].cause, ROUND_NEEDED);
                assert_string_equal(result.actions[i].reason, "parked ranks leave node 'n3'");
        }
        assert_int_equal(result.actions[0].to, 1);
        assert_int_equal(result.actions[1].to, 0);
        free(result.actions);
        assert_int_equal(move_start(&s->w, s->job, 2, "n2"), 0);
        assert_int_equal(moves(s, &result), 1);
        free(result.actions);
        /* Nowhere to go; or nothing that answers. */
        assert_int_equal(drain(&s->w, "n1", "disk", false), 0);
        assert_int_equal(drain(&s->w, "n2", "disk", false), 0);
        assert_int_equal(moves_and_stays(s, &result, "stays on 'n2': no node has usable cores"), 0);
        assert_int_equal(resume(&s->w, "n2"), 0);
        assert_int_equal(health(&s->w, "n1", 2), 0);
        assert_int_equal(moves(s, &result), 0);
}

/* A group that was promised more than any other node has says so, and one of two as well. */
static void test_stay_for_want_of_memory(void **state) {
        struct scene *s = *state;
        struct round_result result;

        s->w.thorough = false; /* it writes into the state */
        run(s);
        state_job(s->w.state, s->job)->spec->rank_memory_bytes = 3000000;
        for (size_t i = 0; i < 3; i++)
                s->w.state->nodes[i]->memory_bytes = 12000000;
        assert_int_equal(drain(&s->w, "n3", "disk", false), 0);
        assert_int_equal(moves(s, &result), 2);
        free(result.actions);
        s->w.state->nodes[0]->memory_bytes = 9000000;
        assert_int_equal(moves_and_stays(s, &result,
                                         "stays on 'n3': no node that the job may use has the 6 MB of memory free that moving the "
                                         "parked group 3 needs"),
                         1);
        free(result.actions);
        s->w.state->nodes[1]->memory_bytes = 9000000;
        assert_int_equal(moves_and_stays(s, &result,
                                         "stays on 'n3': no node that the job may use has the 6 MB of memory free that moving the "
                                         "parked group 2 needs"),
                         0);
        assert_int_equal(resume(&s->w, "n3"), 0);
        assert_int_equal(moves(s, &result), 0);
}

/* A group on a node that an availability file excludes waits for room; one on a drained node does
 * not. */
static void test_limit_keeps_no_node_from_being_emptied(void **state) {
        struct scene *s = *state;
        struct round_result result;

        small_nodes(s);
        run(s);
        s->capsules_per_core = 1;
        assert_int_equal(job_available(&s->w, s->job, "n3", 0, ""), 0);
        assert_int_equal(moves(s, &result), 0);
        s->capsules_per_core = 2;
        assert_int_equal(moves(s, &result), 1); /* of two */
        free(result.actions);
        assert_int_equal(drain(&s->w, "n3", "disk", false), 0);
        s->capsules_per_core = 1;
        assert_int_equal(moves(s, &result), 2);
        assert_int_equal(result.actions[0].from, 2);
        free(result.actions);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_policies_see_active_groups, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_policies_see_no_parked_ranks, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_policies_see_no_spare_ranks, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_groups_have_ranks_of_one_kind, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_placed_where_cores_are, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_need_memory, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_nodes_have_so_many_capsules, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_limit_keeps_no_node_from_being_emptied, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_stay_for_want_of_memory, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_go_to_no_lesser_node, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_leave_nodes_that_are_drained, set_up, tear_down),
        };

        return cmocka_run_group_tests_name("parked", tests, NULL, NULL);
}
