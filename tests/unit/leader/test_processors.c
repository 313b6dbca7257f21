/* Jobs and nodes whose processors lack instruction sets that the jobs may use. */
#include <errno.h>

#include "daemon/leader/processors.h"
#include "daemon/leader/round_input.h"
#include "tests/unit/state/state_test.h"

static void set_sets(struct world *w, const char *node, const char *sets) {
        message_set_string(&state_node(w->state, node)->instruction_sets, sets);
        message_set_string(&state_node(w->twin, node)->instruction_sets, sets);
}

/* n1 and n2 are alike, n3 lacks something, n4 has more, and what n5 has is not known. */
static int set_up(void **state) {
        struct world *w = xcalloc(1, sizeof(*w));

        world_init(w);
        w->thorough = false; /* the tests write into the state */
        assert_int_equal(join(w, "n1", 4), 0);
        assert_int_equal(join(w, "n2", 4), 0);
        assert_int_equal(join(w, "n3", 4), 0);
        assert_int_equal(join(w, "n4", 4), 0);
        assert_int_equal(join(w, "n5", 4), 0);
        set_sets(w, "n1", "sse2 avx2 avx512f");
        set_sets(w, "n2", "sse2 avx2 avx512f");
        set_sets(w, "n3", "sse2 avx2");
        set_sets(w, "n4", "sse2 avx2 avx512f amx_tile");
        *state = w;
        return 0;
}

static int tear_down(void **state) {
        world_finish(*state);
        free(*state);
        return 0;
}

/* Two groups of two ranks. */
static uint64_t running_job(struct world *w, const char *first, const char *second) {
        const char *const nodes[] = { first, second };
        static const uint32_t ranks[] = { 2, 2 };
        int id = submit(w, 4);

        assert_true(id > 0);
        start_job(w, (uint64_t) id, nodes, ranks, 2);
        return (uint64_t) id;
}

static void test_moves_are_refused(void **state) {
        struct world *w = *state;
        uint64_t id = running_job(w, "n1", "n4");

        assert_int_equal(move_start(w, id, 0, "n3"), -EXDEV);
        assert_string_equal(
                w->error, "migrate: node 'n3' lacks instruction sets that node 'n1' has, and that programs there may use: avx512f");
        assert_int_equal(move_start(w, id, STATE_HEAD, "n3"), -EXDEV);
        assert_int_equal(move_start(w, id, 1, "n2"), -EXDEV);
        assert_int_equal(move_start(w, id, 1, "n5"), 0); /* as long as nobody knows */
        assert_int_equal(move_start(w, id, 0, "n2"), 0);
}

static uint32_t limit_of(const struct round_input *input, const char *node) {
        const struct rm_snapshot *snapshot = snapshot_view(input->snapshot);
        const struct rm_job *job = &snapshot->jobs[0];

        return job->node_limit ? job->node_limit[snapshot_find_node(snapshot, node)] : UINT32_MAX;
}

static struct round_input see(const struct world *w) {
        const struct round_input_config config = { .group_size = 2, .horizon_usec = 1, .bytes_per_cost = 1 };
        struct round_input input;

        round_input_create(w->indexed, &config, &input);
        return input;
}

/* A policy may leave what is on such a node where it is, and bring nothing more there. */
static void test_no_round_plans_them(void **state) {
        struct world *w = *state;
        struct round_input input;

        (void) running_job(w, "n1", "n3");
        input = see(w);
        assert_int_equal(limit_of(&input, "n3"), 2);
        assert_true(limit_of(&input, "n2") >= 4);
        assert_true(limit_of(&input, "n4") >= 4);
        assert_true(limit_of(&input, "n5") >= 4);
        assert_false(input.jobs[0].head_stays);
        round_input_finish(&input);
}

/* The head, which was on n3 before groups came to nodes that have more, need not leave it. */
static void test_heads_stay(void **state) {
        struct world *w = *state;
        static const char *const nodes[] = { "n1", "n2" };
        static const uint32_t ranks[] = { 2, 2 };
        int id = submit(w, 4);
        struct round_input input;

        assert_true(id > 0);
        assert_int_equal(place(w, (uint64_t) id, "n3", nodes, ranks, 2), 0);
        input = see(w);
        assert_int_equal(limit_of(&input, "n3"), 0);
        assert_true(input.jobs[0].head_stays);
        round_input_finish(&input);
}

/* The round knows from which node to which nothing goes, whatever job it is of. */
static void test_kinds_of_nodes(void **state) {
        struct world *w = *state;
        static const char *const nodes[] = { "n1", "n2", "n3", "n4", "n5" };
        static const char *const bars[] = { "--x--", "--x--", "-----", "xxx--", "-----" }; /* from each to each */
        struct round_input input;
        const struct round_kinds *kinds;

        (void) running_job(w, "n1", "n1");
        input = see(w);
        kinds = input.jobs[0].kinds;
        for (size_t from = 0; from < ARRAY_SIZE(nodes); from++)
                for (size_t to = 0; to < ARRAY_SIZE(nodes); to++)
                        assert_int_equal(round_kinds_bar(kinds, snapshot_find_node(snapshot_view(input.snapshot), nodes[from]),
                                                         snapshot_find_node(snapshot_view(input.snapshot), nodes[to])),
                                         bars[from][to] == 'x');
        round_input_finish(&input);
        set_sets(w, "n3", "sse2 avx2 avx512f");
        set_sets(w, "n4", "");
        input = see(w);
        assert_null(input.jobs[0].kinds);
        round_input_finish(&input);
}

static void test_where_all_are_alike_nothing_is_limited(void **state) {
        struct world *w = *state;
        struct round_input input;

        (void) running_job(w, "n3", "n3");
        input = see(w);
        assert_int_equal(limit_of(&input, "n1"), UINT32_MAX);
        round_input_finish(&input);
}

static void test_people_are_told(void **state) {
        struct world *w = *state;
        uint64_t id = running_job(w, "n1", "n2");
        cleanup_free char *one = processors_reason(w->state, job_of(w, id));
        cleanup_free char *two = NULL;

        assert_string_equal(one, "node n3 lacks avx512f, which node n1 has");
        set_sets(w, "n4", "sse2");
        two = processors_reason(w->state, job_of(w, id));
        assert_string_equal(two, "node n3 lacks avx512f, which node n1 has; others that lack some: 1");
        assert_int_equal(drain(w, "n3", "disk", false), 0); /* it is of no use anyway */
        free(take_ptr(two));
        two = processors_reason(w->state, job_of(w, id));
        assert_string_equal(two, "node n4 lacks avx2 avx512f, which node n1 has");
}

static void test_new_jobs_go_anywhere(void **state) {
        struct world *w = *state;
        int id = submit(w, 4);
        struct round_input input = see(w);

        assert_true(id > 0);
        assert_int_equal(limit_of(&input, "n3"), UINT32_MAX);
        assert_null(processors_reason(w->state, job_of(w, (uint64_t) id)));
        round_input_finish(&input);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_moves_are_refused, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_no_round_plans_them, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_heads_stay, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_kinds_of_nodes, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_where_all_are_alike_nothing_is_limited, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_people_are_told, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_new_jobs_go_anywhere, set_up, tear_down),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
