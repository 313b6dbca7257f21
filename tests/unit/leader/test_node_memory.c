/* The reports of nodes about their memory, and the part that the leader counts as free. */
#include "daemon/leader/node_memory.h"
#include "daemon/leader/round_input.h"
#include "tests/unit/state/state_test.h"

#define MB UINT64_C(1000000)

struct scene {
        struct world world;
        struct node_memory *memory;
        uint64_t job;
};

/* Two groups of two ranks: one on n1 with the head, one on n2. */
static int set_up(void **state) {
        static const char *const nodes[] = { "n1", "n2" };
        static const uint32_t ranks[] = { 2, 2 };
        struct scene *s = xcalloc(1, sizeof(*s));
        struct world *w = &s->world;

        world_init(w);
        assert_int_equal(join(w, "n1", 4), 0);
        assert_int_equal(join(w, "n2", 4), 0);
        assert_int_equal(join(w, "n3", 4), 0);
        s->job = (uint64_t) submit(w, 4);
        assert_int_equal(place(w, s->job, "n1", nodes, ranks, 2), 0);
        for (int32_t g = STATE_HEAD; g < 2; g++)
                assert_int_equal(ready(w, s->job, g, g <= 0 ? "n1" : "n2"), 0);
        assert_int_equal(running(w, s->job), 0);
        s->memory = node_memory_create();
        w->thorough = false; /* what the job has asked for is written into the state here */
        *state = s;
        return 0;
}

static int tear_down(void **state) {
        struct scene *s = *state;

        node_memory_destroy(s->memory);
        world_finish(&s->world);
        free(s);
        return 0;
}

/* `node` has so much for groups, and the job's `group` takes so much of it; no group: -1. `tracks`:
 * from and to there. */
static void reports_way(struct scene *s, const char *node, uint64_t capacity, int32_t group, uint64_t memory, uint64_t files,
                        bool tracks) {
        Rm__NodeMemory report = RM__NODE_MEMORY__INIT;
        Rm__GroupMemory one = RM__GROUP_MEMORY__INIT;
        Rm__GroupMemory *list[] = { &one };

        one.job = s->job;
        one.capsule = group;
        one.memory_bytes = memory;
        one.files_bytes = files;
        report.capacity_bytes = capacity;
        report.n_groups = group >= 0;
        report.groups = list;
        report.pages = one.tracked = tracks;
        node_memory_add(s->memory, s->world.state, node, &report);
}

static void reports(struct scene *s, const char *node, uint64_t capacity, int32_t group, uint64_t memory, uint64_t files) {
        reports_way(s, node, capacity, group, memory, files, false);
}

/* A view with these reports; the caller finishes it. */
static struct round_input scan(struct scene *s) {
        const struct round_input_config config = { .group_size = 2, .bytes_per_cost = 1, .memory = s->memory };
        struct rm_error err = { 0 };
        struct round_input input = { 0 };

        round_input_create(s->world.indexed, &config, &input);
        if (snapshot_check(snapshot_view(input.snapshot), &err) < 0)
                fail_msg("the input is no snapshot: %s", error_text(&err));
        return input;
}

static void expect(struct scene *s, const char *name, int64_t memory, int64_t memory_free) {
        struct round_input input = scan(s);
        const struct rm_snapshot *snapshot = snapshot_view(input.snapshot);
        const struct rm_node *node = &snapshot->nodes[snapshot_find_node(snapshot, name)];

        assert_int_equal(node->memory, memory);
        assert_int_equal(node->memory_free, memory_free);
        round_input_finish(&input);
}

static int64_t group_memory(struct scene *s, uint32_t group) {
        struct round_input input = scan(s);
        int64_t bytes = snapshot_view(input.snapshot)->jobs[0].groups[group].memory;

        round_input_finish(&input);
        return bytes;
}

static void test_reports(void **state) {
        struct scene *s = *state;

        expect(s, "n1", RM_NO_MEMORY_LIMIT, RM_NO_MEMORY_LIMIT); /* nothing is known */
        assert_int_equal(group_memory(s, 0), 0);
        reports(s, "n1", 1000 * MB, 0, 200 * MB, 10 * MB);
        expect(s, "n1", 1000 * MB, 790 * MB);
        assert_int_equal(group_memory(s, 0), 410 * MB); /* a move needs the image beside what it becomes */
        reports(s, "n2", UINT64_MAX, 1, 300 * MB, 0);
        expect(s, "n2", RM_NO_MEMORY_LIMIT, RM_NO_MEMORY_LIMIT);
        assert_int_equal(group_memory(s, 0), 410 * MB);
        assert_int_equal(group_memory(s, 1), 600 * MB);
        reports(s, "n3", 500 * MB, 1, 400 * MB, 0);    /* a copy that is none */
        expect(s, "n3", 500 * MB, 500 * MB);
        assert_int_equal(group_memory(s, 1), 600 * MB);
}

/* With tracked memory a move needs less, if it can wherever it may go. */
static void test_tracked(void **state) {
        const int64_t space = 64 << 20;
        struct scene *s = *state;

        reports_way(s, "n1", 1000 * MB, 0, 200 * MB, 10 * MB, true);
        reports_way(s, "n2", 1000 * MB, 1, 300 * MB, 0, true);
        assert_int_equal(group_memory(s, 0), 230 * MB + space);
        assert_int_equal(group_memory(s, 1), 330 * MB + space);
        reports_way(s, "n3", 1000 * MB, -1, 0, 0, true);
        assert_int_equal(group_memory(s, 0), 230 * MB + space);
        assert_int_equal(move_start(&s->world, s->job, 0, "n3"), 0);
        expect(s, "n3", 1000 * MB, 770 * MB - space);
        reports(s, "n3", 1000 * MB, -1, 0, 0);
        assert_int_equal(group_memory(s, 0), 410 * MB);
        assert_int_equal(group_memory(s, 1), 600 * MB);
        reports_way(s, "n3", 1000 * MB, -1, 0, 0, true);
        assert_int_equal(group_memory(s, 0), 230 * MB + space);
        /* Until it has left the cluster. */
        assert_int_equal(join(&s->world, "n4", 4), 0);
        reports(s, "n4", 1000 * MB, -1, 0, 0);
        assert_int_equal(group_memory(s, 0), 410 * MB);
        assert_int_equal(remove_node(&s->world, "n4"), 0);
        node_memory_forget(s->memory, s->world.state);
        assert_int_equal(group_memory(s, 0), 230 * MB + space);
}

/* Memory that a program takes for a moment is not forgotten at once. */
static void test_falls_slowly(void **state) {
        struct scene *s = *state;

        reports(s, "n1", 1000 * MB, 0, 400 * MB, 0);
        reports(s, "n1", 1000 * MB, 0, 0, 0);
        expect(s, "n1", 1000 * MB, 700 * MB);
        for (int i = 0; i < 100; i++)
                reports(s, "n1", 1000 * MB, 0, 0, 0);
        expect(s, "n1", 1000 * MB, 1000 * MB);
}

/* Memory that a job has asked for counts from its placement on, and before a node has reported
 * any. */
static void test_promised(void **state) {
        struct scene *s = *state;

        state_job(s->world.state, s->job)->spec->rank_memory_bytes = 150 * MB;
        state_node(s->world.state, "n1")->memory_bytes = 2000 * MB;
        expect(s, "n1", 2000 * MB, 1700 * MB);
        assert_int_equal(group_memory(s, 0), 300 * MB);
        reports(s, "n1", 1000 * MB, 0, 100 * MB, 0);
        expect(s, "n1", 1000 * MB, 700 * MB);
        assert_int_equal(group_memory(s, 0), 300 * MB);
        reports(s, "n1", 1000 * MB, 0, 400 * MB, 0); /* more than it has asked for */
        expect(s, "n1", 1000 * MB, 600 * MB);
        assert_int_equal(group_memory(s, 0), 800 * MB);
        reports(s, "n1", 100 * MB, 0, 400 * MB, 0);
        expect(s, "n1", 100 * MB, 0);
}

/* While a group moves, it takes memory at both ends. */
static void test_move(void **state) {
        struct scene *s = *state;

        reports(s, "n1", 1000 * MB, 0, 100 * MB, 0);
        reports(s, "n3", 1000 * MB, -1, 0, 0);
        assert_int_equal(move_start(&s->world, s->job, 0, "n3"), 0);
        expect(s, "n1", 1000 * MB, 900 * MB);
        expect(s, "n3", 1000 * MB, 800 * MB);
}

static void test_more_room(void **state) {
        struct scene *s = *state;

        reports(s, "n1", 100 * MB, -1, 0, 0);
        node_memory_mark(s->memory);
        assert_false(node_memory_grown(s->memory));
        reports(s, "n1", 110 * MB, -1, 0, 0);
        assert_false(node_memory_grown(s->memory));
        reports(s, "n1", 200 * MB, -1, 0, 0);
        assert_true(node_memory_grown(s->memory));
        node_memory_mark(s->memory);
        assert_false(node_memory_grown(s->memory));
        reports(s, "n1", UINT64_MAX, -1, 0, 0);
        node_memory_mark(s->memory);
        reports(s, "n1", UINT64_MAX, -1, 0, 0);
        assert_false(node_memory_grown(s->memory));
}

/* A group that can move with tracked memory needs half of the room, so a place that was too small
 * may do, though nothing has become free there. */
static void test_less_is_needed(void **state) {
        struct scene *s = *state;

        reports_way(s, "n1", 1000 * MB, 0, 200 * MB, 0, true);
        reports_way(s, "n2", 1000 * MB, 1, 200 * MB, 0, true);
        reports(s, "n3", 500 * MB, -1, 0, 0);
        node_memory_mark(s->memory);
        assert_false(node_memory_grown(s->memory));
        reports_way(s, "n3", 500 * MB, -1, 0, 0, true); /* its rmd has tested that it can */
        assert_true(node_memory_grown(s->memory));
        node_memory_mark(s->memory);
        assert_false(node_memory_grown(s->memory));

        reports(s, "n1", 1000 * MB, 0, 200 * MB, 0);
        assert_false(node_memory_grown(s->memory));
        node_memory_mark(s->memory);
        reports_way(s, "n1", 1000 * MB, 0, 200 * MB, 0, true); /* a move from there has worked again */
        assert_true(node_memory_grown(s->memory));

        assert_int_equal(join(&s->world, "n4", 4), 0);
        reports(s, "n4", 500 * MB, -1, 0, 0);
        node_memory_mark(s->memory);
        assert_int_equal(remove_node(&s->world, "n4"), 0);
        node_memory_forget(s->memory, s->world.state); /* the one that could not has left */
        assert_true(node_memory_grown(s->memory));
}

/* Numbers of any size, of nodes and jobs that are not there. */
static void test_nonsense(void **state) {
        struct scene *s = *state;

        reports(s, "n9", MB, 0, MB, MB);
        reports(s, "n1", UINT64_MAX - 1, 0, UINT64_MAX, UINT64_MAX);
        reports(s, "n1", UINT64_MAX - 1, 7, UINT64_MAX, UINT64_MAX);
        state_job(s->world.state, s->job)->spec->rank_memory_bytes = UINT64_MAX;
        assert_true(group_memory(s, 0) > 0);
        s->job = 99;
        reports(s, "n1", MB, 0, MB, MB);
        node_memory_forget(s->memory, s->world.state);
        expect(s, "n1", MB, 0);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_reports, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_tracked, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_falls_slowly, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_promised, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_move, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_more_room, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_less_is_needed, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_nonsense, set_up, tear_down),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
