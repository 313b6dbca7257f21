/* From the cluster's state to what the scheduler sees of it. */
#include <errno.h>

#include "common/groups.h"
#include "daemon/leader/admit.h"
#include "daemon/leader/round_input.h"
#include "daemon/leader/spare_pool.h"
#include "daemon/sched/fold.h"
#include "placement/pack.h"
#include "tests/unit/state/state_test.h"

static int set_up(void **state) {
        struct world *w = xcalloc(1, sizeof(*w));

        world_init(w);
        assert_int_equal(join(w, "n1", 4), 0);
        assert_int_equal(join(w, "n2", 4), 0);
        assert_int_equal(join(w, "n3", 8), 0);
        /* Options that users ask for are written into the state by the tests, where no helper takes
         * them as arguments. */
        w->thorough = false;
        *state = w;
        return 0;
}

static int tear_down(void **state) {
        world_finish(*state);
        free(*state);
        return 0;
}

/* Four ranks in two groups: head and group 0 on n1, group 1 on n2; RUNNING. */
static uint64_t running_job(struct world *w) {
        static const char *const nodes[] = { "n1", "n2" };
        static const uint32_t ranks[] = { 2, 2 };
        int id = submit(w, 4);
        uint64_t job = (uint64_t) id;

        assert_true(id > 0);
        start_job(w, job, nodes, ranks, 2);
        return job;
}

/* A job that was let in can be placed: whatever the size of nodes, or the administrator, asks for,
 * there are addresses for its groups. */
static void test_groups_have_addresses(void **state) {
        static const struct {
                uint32_t ranks, active, group_size, configured;
        } jobs[] = {
                { 65536, 0, 0, 1 },
                { 65536, 1, 0, 0 }, /* active ranks fill their groups, which have one rank */
                { 65536, 65521, 0, 0 }, /* a prime */
                { STATE_GROUPS_MAX, 0, 1, 0 },
                { STATE_GROUPS_MAX + 1, 0, 0, 1 },
        };
        struct world *w = *state;

        for (size_t i = 0; i < ARRAY_SIZE(jobs); i++) {
                Rm__JobSpec spec = RM__JOB_SPEC__INIT;
                uint32_t size;

                spec.ranks = jobs[i].ranks;
                spec.active_ranks = jobs[i].active;
                spec.group_size = jobs[i].group_size;
                size = round_input_group_size(w->state, &spec, jobs[i].configured);
                if (groups_number(spec.ranks, size) > STATE_GROUPS_MAX)
                        fail_msg("job %zu: groups of %u ranks", i, size);
        }
}

static struct round_input make_input(const struct world *w, uint32_t group_size) {
        const struct round_input_config config = { .group_size = group_size,
                                                   .now_usec = w->time_usec,
                                                   .horizon_usec = 600000000,
                                                   .age_weight = 2,
                                                   .move_budget = 3,
                                                   .distribution_weight = 10,
                                                   .bytes_per_cost = 1 };
        struct rm_error err = { 0 };
        struct round_input input = { 0 };

        round_input_create(w->indexed, &config, &input);
        assert_int_equal(snapshot_view(input.snapshot)->n_jobs, input.n_jobs);
        if (snapshot_check(snapshot_view(input.snapshot), &err) < 0)
                fail_msg("the input is no snapshot: %s", error_text(&err));
        return input;
}

static void test_objective(void **state) {
        struct world *w = *state;
        struct penalties penalties = { 0 };
        const struct round_input_config config = { .bytes_per_cost = 1, .distribution_weight = 25, .node_penalty = &penalties };
        const struct rm_snapshot *snapshot;
        struct round_input input;

        assert_int_equal(penalties_add(&penalties, "n2:7 other:3", NULL), 0);
        round_input_create(w->indexed, &config, &input);
        snapshot = snapshot_view(input.snapshot);
        assert_int_equal(snapshot->params.distribution_weight, 25);
        assert_int_equal(snapshot->nodes[snapshot_find_node(snapshot, "n1")].penalty, 0);
        assert_int_equal(snapshot->nodes[snapshot_find_node(snapshot, "n2")].penalty, 7);
        round_input_finish(&input);
        penalties_finish(&penalties);
}

static const struct rm_node *node_in(const struct round_input *input, const char *name) {
        const struct rm_snapshot *snapshot = snapshot_view(input->snapshot);
        int32_t index = snapshot_find_node(snapshot, name);

        assert_true(index >= 0);
        return &snapshot->nodes[index];
}

static const struct rm_job *job_in(const struct round_input *input, uint32_t index) {
        assert_true(index < input->n_jobs);
        return &snapshot_view(input->snapshot)->jobs[index];
}

static int32_t index_of(const struct round_input *input, const char *node) {
        return snapshot_find_node(snapshot_view(input->snapshot), node);
}

static void expect_node(const struct world *w, const char *name, uint32_t cores, uint32_t state) {
        struct round_input input = make_input(w, 0);

        assert_int_equal(node_in(&input, name)->cores, cores);
        if (node_in(&input, name)->state != state)
                fail_msg("%s is %s instead of %s", name, node_state_name(node_in(&input, name)->state), node_state_name(state));
        round_input_finish(&input);
}

static void test_empty(void **state) {
        struct world w;
        struct round_input input;

        world_init(&w);
        input = make_input(&w, 0);
        assert_int_equal(snapshot_view(input.snapshot)->n_nodes, 0);
        assert_int_equal(snapshot_view(input.snapshot)->params.age_weight, 2);
        assert_int_equal(snapshot_view(input.snapshot)->params.move_budget, 3);
        assert_int_equal(input.n_jobs, 0);
        round_input_finish(&input);
        round_input_finish(&input);
        world_finish(&w);
}

/* Switches stand in the snapshot as the topology file has them, nodes hang where it says. */
static void test_switches(void **state) {
        struct world *w = *state;
        struct round_input input;

        assert_int_equal(topology(w, "s1:n1,n9:3 s2:n2:3 core::0"), 0);
        input = make_input(w, 0);
        assert_int_equal(snapshot_view(input.snapshot)->n_switches, 3);
        assert_string_equal(snapshot_view(input.snapshot)->switches[0].name, "s1");
        assert_int_equal(snapshot_view(input.snapshot)->switches[0].parent, 2);
        assert_int_equal(snapshot_view(input.snapshot)->switches[1].parent, 2);
        assert_int_equal(snapshot_view(input.snapshot)->switches[2].parent, RM_NO_NODE);
        assert_int_equal(node_in(&input, "n1")->switch_index, 0);
        assert_int_equal(node_in(&input, "n2")->switch_index, 1);
        assert_int_equal(node_in(&input, "n3")->switch_index, RM_NO_NODE);
        round_input_finish(&input);
}

/* Only what is UP and not drained has cores. */
static void test_nodes(void **state) {
        static const char *const files[] = { "n1", "n3" };
        struct world *w = *state;

        expect_node(w, "n1", 4, RM_NODE_IDLE);
        assert_int_equal(available(w, files, (const uint32_t[]) { 3, 99 }, 2), 0);
        expect_node(w, "n1", 3, RM_NODE_IDLE);
        expect_node(w, "n3", 8, RM_NODE_IDLE); /* never more than there are */
        assert_int_equal(available(w, files, (const uint32_t[]) { 0, 99 }, 2), 0);
        expect_node(w, "n1", 0, RM_NODE_IDLE);
        assert_int_equal(available(w, files, NULL, 0), 0);
        expect_node(w, "n1", 4, RM_NODE_IDLE);

        (void) running_job(w);
        expect_node(w, "n1", 4, RM_NODE_MIXED);
        assert_int_equal(drain(w, "n1", "memory", false), 0);
        assert_int_equal(drain(w, "n3", "memory", false), 0);
        expect_node(w, "n1", 0, RM_NODE_DRAINING);
        expect_node(w, "n3", 0, RM_NODE_DRAINED);
        assert_int_equal(resume(w, "n3"), 0);
        expect_node(w, "n3", 8, RM_NODE_IDLE);

        assert_int_equal(health(w, "n2", RM__NODE_HEALTH__NODE_HEALTH_DOWN), 0);
        expect_node(w, "n2", 0, RM_NODE_DOWN);
        /* Unknown is never taken for fine, and not for drained either. */
        assert_int_equal(health(w, "n2", RM__NODE_HEALTH__NODE_HEALTH_UNKNOWN), 0);
        expect_node(w, "n2", 0, RM_NODE_DOWN);
        assert_int_equal(health(w, "n1", RM__NODE_HEALTH__NODE_HEALTH_UNKNOWN), 0);
        expect_node(w, "n1", 0, RM_NODE_DOWN);
}

enum { OK, WARN, FAILING, CRITICAL };

/* A failing node looks as if it were drained. */
static void test_failing_nodes(void **state) {
        struct world *w = *state;

        (void) running_job(w);
        assert_int_equal(condition(w, "n1", "report", FAILING, "fan"), 0);
        assert_int_equal(condition(w, "n3", "report", CRITICAL, "smoke"), 0);
        expect_node(w, "n1", 0, RM_NODE_DRAINING);
        expect_node(w, "n3", 0, RM_NODE_DRAINED);
        assert_int_equal(condition(w, "n3", "report", OK, ""), 0);
        expect_node(w, "n3", 8, RM_NODE_IDLE);
        assert_int_equal(health(w, "n1", RM__NODE_HEALTH__NODE_HEALTH_DOWN), 0);
        expect_node(w, "n1", 0, RM_NODE_DOWN);
}

/* Idle nodes alone are in the pool: nothing is there or on its way, nobody keeps them, and all is
 * well with them. Who runs or starts again may use them. */
static void test_pool(void **state) {
        struct world *w = *state;
        struct round_input_config config = { .bytes_per_cost = 1, .horizon_usec = 600000000, .spare_nodes = 2 };
        const struct state_index *index = w->indexed;
        bool chosen[8] = { false };
        struct round_input input;

        (void) running_job(w); /* on n1 and n2 */
        assert_true(submit(w, 2) > 0);
        assert_int_equal(join(w, "n4", 8), 0);
        assert_int_equal(join(w, "n5", 4), 0);
        round_input_create(index, &config, &input);
        for (int32_t i = 0; i < 5; i++)
                assert_int_equal(input.jobs[0].pool[i], i == 2 || i == 3); /* n3 and n4 have most cores */
        assert_ptr_equal(input.jobs[0].pool, input.jobs[1].pool);
        assert_true(input.jobs[0].uses_pool);
        assert_false(input.jobs[1].uses_pool);
        round_input_finish(&input);
        assert_int_equal(condition(w, "n4", "report", WARN, "hot"), 0);
        assert_int_equal(drain(w, "n3", "fan", false), 0);
        assert_int_equal(spare_pool_choose(index, 2, chosen), 1);
        assert_true(chosen[4]);
        config.spare_nodes = 0;
        round_input_create(index, &config, &input);
        assert_null(input.jobs[0].pool);
        round_input_finish(&input);
}

/* Nothing begins there, and nothing leaves it for that. */
static void test_node_with_warning(void **state) {
        struct world *w = *state;
        struct penalties penalties = { 0 };
        const struct round_input_config config = {
                .bytes_per_cost = 1, .horizon_usec = 600000000, .node_penalty = &penalties, .warn_penalty = 50
        };
        int64_t costs[2];
        struct round_input input;

        assert_int_equal(penalties_add(&penalties, "n2:7", NULL), 0);
        (void) running_job(w);
        assert_true(submit(w, 2) > 0);
        round_input_create(w->indexed, &config, &input);
        for (unsigned g = 0; g < 2; g++)
                costs[g] = job_in(&input, 0)->groups[g].move_cost;
        round_input_finish(&input);

        assert_int_equal(condition(w, "n2", "report", WARN, "hot"), 0);
        round_input_create(w->indexed, &config, &input);
        assert_int_equal(node_in(&input, "n2")->cores, 4);
        assert_int_equal(node_in(&input, "n2")->penalty, 57);
        assert_int_equal(node_in(&input, "n1")->penalty, 0);
        assert_null(job_in(&input, 0)->node_limit);
        assert_int_equal(job_in(&input, 0)->groups[0].move_cost, costs[0]);
        assert_int_equal(job_in(&input, 0)->groups[1].move_cost, costs[1] + job_in(&input, 0)->priority * 50 * 2);
        assert_int_equal(job_node_limit(job_in(&input, 1), (uint32_t) index_of(&input, "n2")), 0);
        assert_true(job_node_limit(job_in(&input, 1), (uint32_t) index_of(&input, "n3")) > 8);
        for (unsigned j = 0; j < 2; j++) {
                assert_true(input.jobs[j].kept_off[index_of(&input, "n2")]);
                assert_false(input.jobs[j].kept_off[index_of(&input, "n3")]);
        }
        round_input_finish(&input);
        /* The warning is not what keeps it off. */
        assert_int_equal(job_available(w, 2, "n2", 0, ""), 0);
        round_input_create(w->indexed, &config, &input);
        assert_true(input.jobs[0].kept_off[index_of(&input, "n2")]);
        assert_false(input.jobs[1].kept_off[index_of(&input, "n2")]);
        round_input_finish(&input);
        assert_int_equal(condition(w, "n2", "report", OK, ""), 0);
        round_input_create(w->indexed, &config, &input);
        assert_null(input.jobs[0].kept_off);
        assert_null(input.jobs[1].kept_off);
        round_input_finish(&input);
        penalties_finish(&penalties);
}

static void test_waiting_job(void **state) {
        struct world *w = *state;
        int id = submit(w, 5);
        Rm__Job *job = state_job(w->state, (uint64_t) id);
        struct round_input input;
        const struct rm_job *j;

        job->spec->priority = 3;
        job->spec->group_size = 2;
        job->spec->time_limit_usec = 5000000;
        message_set_string(&job->spec->policy, "distrib");
        assert_int_equal(job_wait(w, job->id, "waits", true), 0);
        assert_int_equal(job_available(w, job->id, "n2", 1, ""), 0);
        input = make_input(w, 0);
        j = job_in(&input, 0);
        assert_string_equal(j->name, "1");
        assert_int_equal(j->ranks, 5);
        assert_int_equal(j->group_size, 2);
        assert_int_equal(j->n_groups, 3);
        assert_int_equal(j->groups[2].ranks, 1);
        assert_int_equal(j->age, 1);
        assert_int_equal(j->priority, 4);
        assert_int_equal(j->time_limit_usec, 5000000);
        assert_string_equal(j->policy, "distrib");
        assert_int_equal(j->node_limit[index_of(&input, "n2")], 1);
        assert_true(j->node_limit[index_of(&input, "n1")] == RM_NO_LIMIT);
        for (uint32_t g = 0; g < j->n_groups; g++)
                assert_int_equal(j->groups[g].node, RM_NO_NODE);
        assert_int_equal(input.jobs[0].head_node, RM_NO_NODE);
        assert_int_equal(input.jobs[0].head_moving_to, RM_NO_NODE);
        assert_false(input.jobs[0].pinned);
        round_input_finish(&input);

        /* Nothing of its own: no policy, no limits; the least priority is none. */
        job->spec->priority = -5;
        message_set_string(&job->spec->policy, "");
        assert_int_equal(job_available(w, job->id, NULL, 0, ""), 0);
        input = make_input(w, 0);
        assert_null(job_in(&input, 0)->policy);
        assert_null(job_in(&input, 0)->node_limit);
        assert_int_equal(job_in(&input, 0)->priority, 0);
        round_input_finish(&input);
}

/* A file may name nodes that do not exist (yet); they limit nothing else. */
static void test_availability_of_unknown_nodes(void **state) {
        struct world *w = *state;
        int id = submit(w, 2);
        struct round_input input;

        assert_int_equal(job_available(w, (uint64_t) id, "n77", 0, ""), 0);
        input = make_input(w, 0);
        assert_null(job_in(&input, 0)->node_limit);
        round_input_finish(&input);
}

static void test_running_job(void **state) {
        struct world *w = *state;
        uint64_t id = running_job(w);
        struct round_input input = make_input(w, 0);
        const struct rm_job *j = job_in(&input, 0);

        assert_int_equal(j->group_size, 2); /* as it was placed, whatever the nodes are now */
        assert_int_equal(j->groups[0].node, index_of(&input, "n1"));
        assert_int_equal(j->groups[1].node, index_of(&input, "n2"));
        assert_int_equal(j->groups[0].flags | j->groups[1].flags, 0);
        assert_true(j->groups[0].move_cost > 0);
        assert_int_equal(input.jobs[0].head_node, index_of(&input, "n1"));
        assert_int_equal(input.jobs[0].group_moving_to[0], RM_NO_NODE);
        assert_int_equal(input.jobs[0].group_moving_to[1], RM_NO_NODE);
        assert_false(input.jobs[0].pinned);
        round_input_finish(&input);

        /* A group on a node that is not up cannot be moved from there; unknown is as good as
         * down. */
        assert_int_equal(health(w, "n2", RM__NODE_HEALTH__NODE_HEALTH_UNKNOWN), 0);
        input = make_input(w, 0);
        assert_int_equal(job_in(&input, 0)->groups[0].flags, 0);
        assert_int_equal(job_in(&input, 0)->groups[1].flags, RM_GROUP_PINNED);
        round_input_finish(&input);

        /* A job that ends does not move. */
        assert_int_equal(ends(w, id, 0, 0, ""), 0);
        input = make_input(w, 0);
        assert_true(input.jobs[0].pinned);
        round_input_finish(&input);
}

/* Starting, it does not move; cancelled while it waits, and ended, it is no longer there. */
static void test_which_jobs(void **state) {
        static const char *const nodes[] = { "n1" };
        struct world *w = *state;
        int starting = submit(w, 1);
        int waiting = submit(w, 1);
        int cancelled = submit(w, 1);
        uint64_t runs;
        struct round_input input;

        assert_int_equal(place(w, (uint64_t) starting, "n2", nodes, (const uint32_t[]) { 1 }, 1), 0);
        assert_int_equal(cancel(w, (uint64_t) cancelled, 0, false), 0);
        runs = running_job(w);
        assert_int_equal(cancel(w, runs, 0, false), 0); /* it holds its cores until it has ended */
        input = make_input(w, 0);
        assert_int_equal(input.n_jobs, 3);
        assert_string_equal(job_in(&input, 0)->name, "1");
        assert_true(input.jobs[0].pinned);
        assert_string_equal(job_in(&input, 1)->name, "2");
        assert_false(input.jobs[1].pinned);
        assert_string_equal(job_in(&input, 2)->name, "4");
        assert_int_equal(job_in(&input, 2)->groups[0].node, index_of(&input, "n1"));
        round_input_finish(&input);
        assert_int_equal(waiting, 2);
}

/* The rest of a time limit; never 0 for a job that has one. */
static void test_time_left(void **state) {
        struct world *w = *state;
        Rm__Job *job = state_job(w->state, running_job(w));
        struct round_input input = make_input(w, 0);

        assert_int_equal(input.jobs[0].left_usec, 0);
        assert_int_equal(input.jobs[0].group_move_usec[0], 0);
        round_input_finish(&input);
        job->spec->time_limit_usec = 60000000;
        w->time_usec = job->start_usec + 20000000;
        input = make_input(w, 0);
        assert_int_equal(input.jobs[0].left_usec, 40000000);
        round_input_finish(&input);
        w->time_usec = job->start_usec + 60000001;
        input = make_input(w, 0);
        assert_int_equal(input.jobs[0].left_usec, 1);
        round_input_finish(&input);
}

/* Steps that programs count go with a job that runs. */
static void test_steps(void **state) {
        struct world *w = *state;
        uint64_t id = running_job(w);
        struct progress *progress = progress_create();
        Rm__GroupProgress group_progress = RM__GROUP_PROGRESS__INIT;
        Rm__GroupMemory group = RM__GROUP_MEMORY__INIT, *groups[] = { &group };
        Rm__NodeMemory report = RM__NODE_MEMORY__INIT;
        const struct round_input_config config = { .bytes_per_cost = 1, .progress = progress };
        struct round_input input;

        group_progress.ranks = 1;
        group_progress.done = 3;
        group_progress.total = 10;
        group_progress.goal_min = 5;
        group.job = id;
        group.progress = &group_progress;
        report.groups = groups;
        report.n_groups = 1;
        progress_add(progress, w->indexed, &report, 1000000);
        round_input_create(w->indexed, &config, &input);
        assert_int_equal(input.jobs[0].steps.left, 7);
        assert_true(input.jobs[0].steps.goal_min > 4.9);
        assert_false(steps_known(&input.jobs[0].steps));
        round_input_finish(&input);
        progress_destroy(progress);
}

static void test_moving(void **state) {
        struct world *w = *state;
        uint64_t id = running_job(w);
        uint64_t group_move;
        uint64_t head_move;
        struct round_input input;

        assert_int_equal(move_start(w, id, 1, "n3"), 0);
        group_move = w->created;
        assert_int_equal(move_start(w, id, STATE_HEAD, "n2"), 0);
        head_move = w->created;
        /* From the start until the source is clean: at its old place, on the way to the new one. */
        for (int committed = 0; committed < 2; committed++) {
                input = make_input(w, 0);
                assert_int_equal(job_in(&input, 0)->groups[1].node, index_of(&input, "n2"));
                assert_int_equal(input.jobs[0].group_moving_to[1], index_of(&input, "n3"));
                assert_int_equal(input.jobs[0].group_moving_to[0], RM_NO_NODE);
                assert_int_equal(input.jobs[0].head_node, index_of(&input, "n1"));
                assert_int_equal(input.jobs[0].head_moving_to, index_of(&input, "n2"));
                round_input_finish(&input);
                if (!committed) {
                        assert_int_equal(move_commit(w, group_move), 0);
                        assert_int_equal(move_commit(w, head_move), 0);
                }
        }
        /* Half a second of freezing makes the next move of that group dearer, and so of one that
         * never moved: it is the best guess. */
        assert_int_equal(move_done(w, group_move, 1000, 500000), 0);
        assert_int_equal(move_done(w, head_move, 1000, 100000), 0);
        input = make_input(w, 0);
        assert_int_equal(job_in(&input, 0)->groups[1].node, index_of(&input, "n3"));
        assert_int_equal(input.jobs[0].group_moving_to[1], RM_NO_NODE);
        assert_int_equal(input.jobs[0].head_node, index_of(&input, "n2"));
        assert_int_equal(input.jobs[0].head_moving_to, RM_NO_NODE);
        assert_int_equal(job_in(&input, 0)->groups[1].move_cost, 3 + 5);
        assert_int_equal(job_in(&input, 0)->groups[0].move_cost, 3 + 5);
        assert_int_equal(input.jobs[0].group_move_usec[1], 500000);
        assert_int_equal(input.jobs[0].group_move_usec[0], 500000);
        round_input_finish(&input);
}

/* A group that never moved is taken to be like the others of its job, and only without those like
 * what is usual. */
static void test_guess_is_of_the_own_job(void **state) {
        static const uint64_t freezes[] = { 2000000, 500000 };
        struct world *w = *state;
        struct round_input input;

        for (int i = 0; i < 2; i++) {
                uint64_t move;

                assert_int_equal(move_start(w, running_job(w), 1, "n3"), 0);
                move = w->created;
                assert_int_equal(move_commit(w, move), 0);
                assert_int_equal(move_done(w, move, 1000, freezes[i]), 0);
        }
        (void) running_job(w);
        input = make_input(w, 0);
        for (int i = 0; i < 2; i++)
                assert_int_equal(input.jobs[i].group_move_usec[0], freezes[i]);
        for (int i = 0; i < 2; i++)
                assert_int_equal(input.jobs[2].group_move_usec[i], (freezes[0] + freezes[1]) / 2);
        round_input_finish(&input);
}

static void test_aborted_move_leaves_no_trace(void **state) {
        struct world *w = *state;
        uint64_t id = running_job(w);
        struct round_input input;

        assert_int_equal(move_start(w, id, 1, "n3"), 0);
        assert_int_equal(move_abort(w, w->created, "no"), 0);
        input = make_input(w, 0);
        assert_int_equal(job_in(&input, 0)->groups[1].node, index_of(&input, "n2"));
        assert_int_equal(input.jobs[0].group_moving_to[1], RM_NO_NODE);
        round_input_finish(&input);
}

/* After two failures in a row it is worth going elsewhere; what is on that node stays there. */
static void test_failing_destination_is_tried_for_ever(void **state) {
        struct world *w = *state;
        uint64_t id = running_job(w);
        struct round_input input;

        for (int failures = 1; failures <= 2; failures++) {
                assert_int_equal(move_start(w, id, 1, "n3"), 0);
                assert_int_equal(move_abort(w, w->created, "no"), 0);
                input = make_input(w, 0);
                assert_int_equal(input.avoids, failures == 2);
                assert_int_equal(job_node_limit(job_in(&input, 0), (uint32_t) index_of(&input, "n3")),
                                 failures == 2 ? 0 : RM_NO_LIMIT);
                round_input_finish(&input);
        }
        for (int failures = 1; failures <= 2; failures++) {
                assert_int_equal(move_start(w, id, 0, "n2"), 0);
                assert_int_equal(move_abort(w, w->created, "no"), 0);
        }
        input = make_input(w, 0);
        assert_int_equal(job_node_limit(job_in(&input, 0), (uint32_t) index_of(&input, "n2")), 2);
        assert_int_equal(job_node_limit(job_in(&input, 0), (uint32_t) index_of(&input, "n1")), RM_NO_LIMIT);
        round_input_finish(&input);
        w->time_usec += UINT64_C(2000000);
        input = make_input(w, 0);
        assert_false(input.avoids);
        round_input_finish(&input);
}

/* Fewer cores than ranks: the view says what is, and the round makes room for all of them in
 * proportion. */
static void test_folding(void **state) {
        static const char *const files[] = { "n1", "n2", "n3" };
        struct world *w = *state;
        struct rm_error err = { 0 };
        struct snapshot *folded = NULL;
        struct round_input input;

        (void) running_job(w);
        assert_int_equal(available(w, files, (const uint32_t[]) { 1, 1, 0 }, 3), 0);
        input = make_input(w, 0);
        assert_int_equal(node_in(&input, "n1")->cores, 1);
        assert_int_equal(node_in(&input, "n2")->cores, 1);
        assert_int_equal(node_in(&input, "n3")->cores, 0);
        assert_int_equal(round_policy_snapshot(snapshot_view(input.snapshot), input.jobs, &folded, &err), 0);
        assert_int_equal(snapshot_view(folded)->nodes[index_of(&input, "n1")].cores, fold_max_procs(1, 4, 2));
        assert_int_equal(snapshot_view(folded)->nodes[index_of(&input, "n2")].cores, 2);
        assert_int_equal(snapshot_view(folded)->nodes[index_of(&input, "n3")].cores, 0);
        snapshot_destroy(folded);
        round_input_finish(&input);
}

static void test_group_size(void **state) {
        static const char *const files[] = { "n1", "n2" };
        struct world *w = *state;
        Rm__JobSpec spec = RM__JOB_SPEC__INIT;

        spec.ranks = 100;
        /* Half of the smallest node that is of use. */
        assert_int_equal(round_input_group_size(w->state, &spec, 0), 2);
        assert_int_equal(drain(w, "n3", "", false), 0);
        assert_int_equal(round_input_group_size(w->state, &spec, 0), 2);
        assert_int_equal(resume(w, "n3"), 0);
        assert_int_equal(drain(w, "n1", "", false), 0);
        assert_int_equal(health(w, "n2", RM__NODE_HEALTH__NODE_HEALTH_DOWN), 0);
        assert_int_equal(round_input_group_size(w->state, &spec, 0), 4);
        assert_int_equal(drain(w, "n3", "", false), 0);
        assert_int_equal(round_input_group_size(w->state, &spec, 0), 1); /* no node at all */
        assert_int_equal(resume(w, "n1"), 0);
        assert_int_equal(available(w, files, (const uint32_t[]) { 1, 0 }, 2), 0);
        assert_int_equal(round_input_group_size(w->state, &spec, 0), 1);
        /* The requested size comes first, then the configured one; never more than the job has. */
        assert_int_equal(round_input_group_size(w->state, &spec, 7), 7);
        spec.group_size = 5;
        assert_int_equal(round_input_group_size(w->state, &spec, 7), 5);
        spec.group_size = 1000;
        assert_int_equal(round_input_group_size(w->state, &spec, 7), 100);
        spec.group_size = 0;
        spec.ranks = 3;
        assert_int_equal(round_input_group_size(w->state, &spec, 7), 3);
}

/* The same size in the snapshot of a job that waits. */
static void test_group_size_in_view(void **state) {
        struct world *w = *state;
        struct round_input input;

        assert_true(submit(w, 7) > 0);
        input = make_input(w, 0);
        assert_int_equal(job_in(&input, 0)->group_size, 2);
        assert_int_equal(job_in(&input, 0)->n_groups, 4);
        round_input_finish(&input);
        input = make_input(w, 3);
        assert_int_equal(job_in(&input, 0)->group_size, 3);
        round_input_finish(&input);
}

static bool waits_for_second(const void *context, const Rm__Job *job) {
        return job->id == *(const uint64_t *) context;
}

/* A job whose file has not been read yet must not be placed as if it had none. */
static void test_job_starts_before_its_file_is_read(void **state) {
        static const uint64_t second = 2, running = 1;
        struct world *w = *state;
        struct round_input_config config = { .waits = waits_for_second, .waits_context = &second, .bytes_per_cost = 1 };
        struct round_input input;

        (void) running_job(w);
        assert_int_equal(submit(w, 1), 2);
        assert_int_equal(submit(w, 1), 3);
        round_input_create(w->indexed, &config, &input);
        assert_int_equal(input.n_jobs, 2);
        assert_string_equal(job_in(&input, 1)->name, "3");
        round_input_finish(&input);
        config.waits_context = &running;
        round_input_create(w->indexed, &config, &input);
        assert_int_equal(input.n_jobs, 3);
        round_input_finish(&input);
}

/* ---- one bad job never stops a round; below the check of what is submitted ---- */

/* The snapshot is read as a policy's host reads it. */
static void expect_readable(const struct round_input *input) {
        json_t *json = snapshot_to_json(snapshot_view(input->snapshot));
        cleanup_free char *text = json_dumps(json, JSON_COMPACT);
        struct snapshot *again = NULL;
        struct rm_error err = { 0 };

        json_decref(json);
        assert_non_null(text);
        if (snapshot_parse(text, strlen(text), &again, &err) < 0)
                fail_msg("a policy cannot read the view: %s", error_text(&err));
        snapshot_destroy(again);
}

static const char *left_out(const struct round_input *input, uint64_t job) {
        for (size_t i = 0; i < input->n_left_out; i++)
                if (input->left_out[i].job == job)
                        return input->left_out[i].reason;
        return NULL;
}

static void expect_left_out(const struct round_input *input, uint64_t job, const char *why) {
        const char *reason = left_out(input, job);

        assert_non_null(reason);
        assert_ptr_equal(strstr(reason, "left out of scheduling: "), reason);
        if (!strstr(reason, why))
                fail_msg("'%s' does not say '%s'", reason, why);
}

static Rm__JobSpec *submitted(struct world *w, uint32_t ranks) {
        int id = submit(w, ranks);

        assert_true(id > 0);
        return state_job(w->state, (uint64_t) id)->spec;
}

static void test_one_bad_job_stops_scheduling(void **state) {
        struct world *w = *state;
        uint64_t bad_running = running_job(w);
        struct rm_error err = { 0 };
        struct snapshot *policy = NULL;
        struct round_input input;

        state_job(w->state, bad_running)->spec->time_limit_usec = INT64_MAX;
        submitted(w, 2)->time_limit_usec = UINT64_MAX; /* job 2 */
        (void) submitted(w, 3); /* job 3, good */
        message_set_string(&submitted(w, 2)->policy, "../x\n");
        submitted(w, 2)->ranks = UINT32_MAX;
        (void) submitted(w, 1); /* job 6, good */
        input = make_input(w, 0);
        expect_readable(&input);
        assert_int_equal(input.n_left_out, 4);
        expect_left_out(&input, bad_running, "time_limit_usec");
        expect_left_out(&input, 2, "time_limit_usec");
        expect_left_out(&input, 4, "policy name");
        expect_left_out(&input, 5, "more ranks than a policy can be shown");
        assert_int_equal(input.n_jobs, 2);
        assert_string_equal(job_in(&input, 0)->name, "3");
        assert_string_equal(job_in(&input, 1)->name, "6");
        /* The running ranks of these jobs keep their cores. */
        assert_int_equal(node_in(&input, "n1")->cores, 2);
        assert_int_equal(node_in(&input, "n2")->cores, 2);
        assert_int_equal(node_in(&input, "n3")->cores, 8);
        assert_int_equal(round_policy_snapshot(snapshot_view(input.snapshot), input.jobs, &policy, &err), 0);
        snapshot_destroy(policy);
        round_input_finish(&input);
}

/* The advice stands at the end of the reason, behind a name as long as names may be. */
static void test_reason_of_awaiting_job_is_whole(void **state) {
        static const char name[] = "a-node-with-a-name-that-is-as-long-as-a-name-of-a-node-may-be-x";
        struct world *w = *state;
        char *stored[] = { (char *) name };
        Rm__CheckpointPart part = RM__CHECKPOINT_PART__INIT, *parts[] = { &part };
        Rm__Checkpoint checkpoint = RM__CHECKPOINT__INIT, *checkpoints[] = { &checkpoint };
        int id = submit(w, 2);
        Rm__Job *job = state_job(w->state, (uint64_t) id);
        struct round_input input;

        assert_int_equal(strlen(name), 63);
        assert_int_equal(join(w, name, 4), 0);
        assert_int_equal(health(w, name, RM__NODE_HEALTH__NODE_HEALTH_DOWN), 0);
        part.stored = stored;
        part.n_stored = 1;
        checkpoint.id = UINT64_MAX;
        checkpoint.state = RM__CHECKPOINT_STATE__CHECKPOINT_DONE;
        checkpoint.parts = parts;
        checkpoint.n_parts = 1;
        job->checkpoints = checkpoints;
        job->n_checkpoints = 1;
        input = make_input(w, 0);
        job->checkpoints = NULL;
        job->n_checkpoints = 0;
        expect_left_out(&input, job->id, name);
        expect_left_out(&input, job->id, "18446744073709551615 (without its checkpoints, see remove-checkpoint, it begins anew)");
        round_input_finish(&input);
}

static void test_moving_job_left_out_holds_both_ends(void **state) {
        struct world *w = *state;
        uint64_t job = running_job(w);
        struct round_input input;

        assert_int_equal(move_start(w, job, 1, "n3"), 0);
        state_job(w->state, job)->spec->time_limit_usec = INT64_MAX;
        input = make_input(w, 0);
        assert_int_equal(input.n_left_out, 1);
        assert_int_equal(node_in(&input, "n1")->cores, 2);
        assert_int_equal(node_in(&input, "n2")->cores, 2);
        assert_int_equal(node_in(&input, "n3")->cores, 6);
        round_input_finish(&input);
}

/* A job that could start is taken before one that could not; running ones before all. */
static void test_too_many_ranks_stop_scheduling(void **state) {
        struct world *w = *state;
        uint64_t job = running_job(w);
        uint64_t ranks = 0, good;
        struct round_input input;

        for (unsigned i = 0; i < 300; i++) {
                Rm__JobSpec *spec = submitted(w, 65536);

                spec->group_size = 65536;
                spec->priority = 1000000;
        }
        (void) submitted(w, 2);
        good = w->created;
        input = make_input(w, 0);
        expect_readable(&input);
        for (uint32_t j = 0; j < input.n_jobs; j++)
                ranks += job_in(&input, j)->ranks;
        assert_int_equal(ranks, 4 + 255 * 65536 + 2);
        assert_int_equal(input.n_left_out, 45);
        assert_null(left_out(&input, job));
        assert_null(left_out(&input, good));
        assert_null(left_out(&input, job + 1)); /* the first of them */
        expect_left_out(&input, good - 1, "more ranks");
        round_input_finish(&input);
}

static void test_costs_stop_scheduling(void **state) {
        struct world *w = *state;
        struct round_input input;
        uint64_t good;

        for (unsigned i = 0; i < 2000; i++) {
                char name[16];

                (void) snprintf(name, sizeof(name), "m%u", i);
                assert_int_equal(join(w, name, 1), 0);
        }
        for (unsigned i = 0; i < 250; i++) {
                Rm__JobSpec *spec = submitted(w, 2003);

                spec->group_size = 1;
                spec->priority = INT32_MAX;
        }
        good = (uint64_t) submit(w, 2);
        input = make_input(w, 1);
        expect_readable(&input);
        assert_true(input.n_left_out > 0 && input.n_left_out < 250);
        assert_null(left_out(&input, good)); /* a light one fits behind them */
        expect_left_out(&input, good - 1, "costs");
        round_input_finish(&input);
}

static void test_who_is_admitted(void **state) {
        static const struct admit_job jobs[] = {
                { .weight = 4, .priority = 1 }, { .weight = 5, .priority = 9, .too_large = true },
                { .weight = 3, .priority = 7 }, { .weight = 3, .priority = 0, .runs = true },
                { .weight = 3, .priority = 7 }, { .weight = 1, .priority = 0 },
        };
        bool out[ARRAY_SIZE(jobs)];

        assert_int_equal(admit_within(jobs, ARRAY_SIZE(jobs), 19, out), 0);
        assert_int_equal(admit_within(jobs, ARRAY_SIZE(jobs), 18, out), 1);
        assert_true(out[1]);
        assert_int_equal(admit_within(jobs, ARRAY_SIZE(jobs), 10, out), 2); /* 3 + 3 + 3, not 4, but 1 */
        assert_true(out[0] && out[1] && !out[5]);
        assert_int_equal(admit_within(jobs, ARRAY_SIZE(jobs), 6, out), 4);
        assert_true(!out[3] && !out[2]); /* of equals the first */
        assert_int_equal(admit_within(jobs, 0, 0, out), 0);
}

/* Before the others of its priority that wait, however old they are; but not before those of a
 * higher one. */
static void test_job_that_starts_again_is_first(void **state) {
        struct world *w = *state;
        uint64_t old = (uint64_t) submit(w, 1), higher = (uint64_t) submit(w, 1), again = running_job(w), next = running_job(w);
        struct round_input input;

        state_job(w->state, higher)->spec->priority = 5;
        assert_int_equal(job_wait(w, old, "waits", true), 0);
        assert_int_equal(job_wait(w, old, "waits", true), 0);
        assert_int_equal(job_wait(w, higher, "waits", true), 0);
        let_restart(w, again, 3);
        assert_int_equal(restart(w, again, 2, "n2", false), 0);
        assert_int_equal(gone(w, again, STATE_HEAD, "n1"), 0);
        assert_int_equal(gone(w, again, 0, "n1"), 0);
        input = make_input(w, 0); /* group 1 is not gone yet */
        assert_string_equal(job_in(&input, 0)->name, "1");
        round_input_finish(&input);
        assert_int_equal(gone(w, again, 1, "n2"), 0);
        input = make_input(w, 0);
        assert_int_equal(input.n_jobs, 4);
        assert_string_equal(job_in(&input, 0)->name, "3");
        assert_int_equal(job_in(&input, 0)->age, 2);
        assert_int_equal(job_in(&input, 0)->priority, 1);
        assert_string_equal(job_in(&input, 1)->name, "1");
        assert_int_equal(job_in(&input, 1)->age, 2);
        assert_string_equal(job_in(&input, 2)->name, "2");
        assert_int_equal(job_in(&input, 2)->age, 1);
        assert_int_equal(strtoull(job_in(&input, 3)->name, NULL, 10), next);
        round_input_finish(&input);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_empty),
                cmocka_unit_test_setup_teardown(test_nodes, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_groups_have_addresses, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_failing_nodes, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_node_with_warning, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_objective, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_switches, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_waiting_job, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_availability_of_unknown_nodes, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_running_job, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_which_jobs, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_job_that_starts_again_is_first, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_time_left, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_steps, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_pool, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_moving, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_guess_is_of_the_own_job, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_aborted_move_leaves_no_trace, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_failing_destination_is_tried_for_ever, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_folding, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_group_size, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_group_size_in_view, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_one_bad_job_stops_scheduling, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_reason_of_awaiting_job_is_whole, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_moving_job_left_out_holds_both_ends, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_too_many_ranks_stop_scheduling, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_costs_stop_scheduling, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_job_starts_before_its_file_is_read, set_up, tear_down),
                cmocka_unit_test(test_who_is_admitted),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
