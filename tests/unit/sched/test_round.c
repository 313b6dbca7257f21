/* Each round by itself: what is done, what is left alone, and what people are told. */
#include <string.h>

#include "common/util.h"
#include "daemon/sched/fold.h"
#include "daemon/sched/round.h"
#include "tests/unit/sched/sched_test.h"

#define NODES(a, b) "'nodes':[{'name':'n1','cores':" a ",'penalty':1},{'name':'n2','cores':" b ",'penalty':1}]"
#define SNAPSHOT(nodes, jobs) "{'version':1," nodes ",'jobs':[" jobs "]}"

struct fixture {
        struct snapshot *snapshot;
        struct round_result *result;
};

static void finish(struct fixture *f) {
        round_result_destroy(f->result);
        snapshot_destroy(f->snapshot);
}

/* A round with greedy for every pass. */
static void run(struct fixture *f, const char *text, const struct round_job *jobs) {
        f->snapshot = test_snapshot(text);
        f->result = test_round("greedy", snapshot_view(f->snapshot), jobs);
}

static void says(const char *text, const char *expected) {
        if (strcmp(text, expected) != 0)
                fail_msg("\"%s\" instead of \"%s\"", text, expected);
}

static void starts_and_waits(void **state) {
        struct fixture f;

        (void) state;
        run(&f,
            SNAPSHOT(NODES("2", "4"), "{'name':'a','ranks':4,'priority':1},{'name':'b','ranks':6,'priority':1},"
                                      "{'name':'c','ranks':1,'priority':0},{'name':'d','ranks':9,'priority':9}"),
            NULL);
        assert_int_equal(f.result->n_actions, 1);
        assert_int_equal(f.result->actions[0].kind, ROUND_START);
        assert_int_equal(f.result->actions[0].job, 0);
        assert_int_equal(f.result->actions[0].group_node[3], 1);
        assert_int_equal(f.result->actions[0].head_node, 1);
        says(f.result->jobs[0].policy, "greedy");
        assert_false(f.result->jobs[0].waits);
        says(f.result->jobs[1].reason, "waits for 4 more cores; 2 of 6 usable are free");
        says(f.result->jobs[2].reason, "waits behind job 'b'; 2 of 6 usable cores are free");
        says(f.result->jobs[3].reason, "needs 9 cores, and only 6 are usable");
        assert_true(f.result->jobs[1].waits && f.result->jobs[1].lost);
        finish(&f);
}

/* A job that only warnings keep waiting says so, and no other does. */
static void reports_of_warnings(void **state) {
        static const bool n2[] = { false, true };
        struct round_job job = { .head_node = RM_NO_NODE, .head_moving_to = RM_NO_NODE, .kept_off = n2 };
        struct fixture f;

        (void) state;
        run(&f, SNAPSHOT(NODES("0", "4"), "{'name':'a','ranks':1,'priority':1,'availability':{'n2':0}}"), &job);
        says(f.result->jobs[0].reason, "needs 1 core, and only 0 are usable; n2 has a warning");
        finish(&f);
        run(&f, SNAPSHOT(NODES("2", "4"), "{'name':'a','ranks':6,'priority':1,'availability':{'n2':0}}"), &job);
        says(f.result->jobs[0].reason, "needs 6 cores, and only 2 are usable; n2 has a warning");
        finish(&f);
        run(&f, SNAPSHOT(NODES("1", "4"), "{'name':'a','ranks':6,'priority':1,'availability':{'n2':0}}"), &job);
        says(f.result->jobs[0].reason, "needs 6 cores, and only 1 is usable");
        finish(&f);
}

/* The cores that it waits for are free elsewhere, but for the warning. */
static void reports_of_warnings_beside_work(void **state) {
        static const bool n2[] = { false, true };
        static const char *const text =
                SNAPSHOT(NODES("4", "4"), "{'name':'a','ranks':2,'priority':1,'placed':[{'node':'n1','ranks':2}]},"
                                          "{'name':'b','ranks':4,'priority':1,'availability':{'n2':0}}");
        const struct round_job jobs[] = { { .head_node = 0, .head_moving_to = RM_NO_NODE },
                                          { .head_node = RM_NO_NODE, .head_moving_to = RM_NO_NODE, .kept_off = n2 } };
        struct fixture f;

        (void) state;
        run(&f, text, jobs);
        says(f.result->jobs[1].reason, "waits for 2 more cores; 2 of 4 usable are free; n2 has a warning");
        finish(&f);
        run(&f, text, NULL);
        says(f.result->jobs[1].reason, "waits for 2 more cores; 2 of 4 usable are free");
        finish(&f);
}

/* Where policies say which cores ranks get, the answer does. */
static void reports_cores(void **state) {
        const char *text = SNAPSHOT(NODES("2", "4"), "{'name':'a','ranks':4,'priority':1,'traffic':[[0,2,9],[1,3,9]]},"
                                                     "{'name':'b','ranks':6,'priority':1}");
        struct fixture f = { .snapshot = test_snapshot(text) };
        uint32_t taken = 0;

        (void) state;
        f.result = test_round("treematch", snapshot_view(f.snapshot), NULL);
        assert_non_null(f.result->jobs[0].rank_core);
        for (uint32_t rank = 0; rank < 4; rank++) {
                int32_t node = f.result->jobs[0].group_node[rank], core = f.result->jobs[0].rank_core[rank];

                assert_in_range(node, 0, 1);
                assert_in_range(core, 0, node == 0 ? 1 : 3);
                taken |= 1u << (4 * node + core);
        }
        assert_int_equal(__builtin_popcount(taken), 4);
        assert_null(f.result->jobs[1].rank_core); /* it waits */
        assert_null(f.result->jobs[1].group_node);
        finish(&f);
        run(&f, text, NULL);
        assert_null(f.result->jobs[0].rank_core); /* greedy has no opinion */
        finish(&f);
}

static void leaves_a_node_with_its_head(void **state) {
        struct round_job job = { .head_node = 0, .head_moving_to = RM_NO_NODE };
        struct fixture f;

        (void) state;
        run(&f,
            SNAPSHOT(NODES("0", "4"), "{'name':'a','ranks':4,'group_size':2,'priority':1,'placed':[{'node':'n2','ranks':2},"
                                      "{'node':'n1','ranks':2}]}"),
            &job);
        assert_int_equal(f.result->n_actions, 2);
        assert_int_equal(f.result->actions[0].kind, ROUND_MOVE);
        assert_int_equal(f.result->actions[0].group, 1);
        assert_int_equal(f.result->actions[0].from, 0);
        assert_int_equal(f.result->actions[0].to, 1);
        assert_int_equal(f.result->actions[0].cause, ROUND_NEEDED);
        says(f.result->actions[0].reason, "node 'n1' is being evacuated");
        assert_int_equal(f.result->actions[1].group, ROUND_HEAD);
        assert_int_equal(f.result->actions[1].to, 1);
        assert_false(f.result->jobs[0].folded);
        finish(&f);
}

#define HEAD_APART                                                                                                                 \
        "{'name':'a','ranks':2,'group_size':2,'priority':1,'availability':{'n1':0,'n2':4},'placed':[{'node':'n2','ranks':2}]}"

/* On n1 the job may have no ranks. By its own file its head leaves; where others are only kept from
 * coming it stays, but not on a node that all leave. */
static void head_stays_where_no_ranks_may_come(void **state) {
        struct round_job job = { .head_node = 0, .head_moving_to = RM_NO_NODE };
        struct fixture f;

        (void) state;
        run(&f, SNAPSHOT(NODES("4", "4"), HEAD_APART), &job);
        assert_int_equal(f.result->n_actions, 1);
        assert_int_equal(f.result->actions[0].group, ROUND_HEAD);
        finish(&f);
        job.head_stays = true;
        run(&f, SNAPSHOT(NODES("4", "4"), HEAD_APART), &job);
        assert_int_equal(f.result->n_actions, 0);
        finish(&f);
        run(&f, SNAPSHOT(NODES("0", "4"), HEAD_APART), &job);
        assert_int_equal(f.result->n_actions, 1);
        finish(&f);
}

/* Jobs that could not run even on the empty cluster take none of the cores that those behind them
 * are shown: neither by their own availability nor by the size of their groups. */
static void job_that_fits_nowhere_stops_nobody(void **state) {
        struct fixture f;

        (void) state;
        run(&f,
            SNAPSHOT(NODES("2", "2"), "{'name':'a','ranks':4,'priority':9,'availability':{'n1':0,'n2':0}},"
                                      "{'name':'b','ranks':4,'group_size':4,'priority':8},{'name':'c','ranks':4,'priority':1}"),
            NULL);
        assert_true(f.result->jobs[0].waits);
        assert_true(f.result->jobs[1].waits);
        assert_false(f.result->jobs[2].waits);
        assert_int_equal(f.result->n_actions, 1);
        assert_int_equal(f.result->actions[0].kind, ROUND_START);
        assert_int_equal(f.result->actions[0].job, 2);
        finish(&f);
}

static void folds_and_unfolds(void **state) {
        struct fixture f;
        uint32_t to_second = 0;

        (void) state;
        /* 8 ranks on 2 + 1 cores: ceil(2 * 8 / 3) = 6 and ceil(1 * 8 / 3) = 3 */
        run(&f,
            SNAPSHOT(NODES("2", "1"), "{'name':'a','ranks':8,'priority':1,'placed':[{'node':'n1','ranks':8}]},"
                                      "{'name':'b','ranks':1,'priority':1}"),
            NULL);
        assert_int_equal(f.result->n_actions, 2);
        says(f.result->actions[0].reason, "node 'n1' has 8 ranks on 2 cores");
        assert_true(f.result->jobs[0].folded);
        assert_true(f.result->jobs[1].waits);
        says(f.result->jobs[1].reason, "waits for 1 more core; 0 of 3 usable are free");
        finish(&f);
        run(&f,
            SNAPSHOT(NODES("4", "4"),
                     "{'name':'a','ranks':8,'priority':1,'placed':[{'node':'n1','ranks':6},{'node':'n2','ranks':2}]}"),
            NULL);
        for (size_t i = 0; i < f.result->n_actions; i++)
                to_second += f.result->actions[i].to == 1;
        assert_int_equal(f.result->n_actions, 2);
        assert_int_equal(to_second, 2);
        assert_false(f.result->jobs[0].folded);
        finish(&f);
}

/* A saved snapshot can be planned for, also while it is folded. */
static void view_can_be_planned(void **state) {
        cleanup_snapshot struct snapshot *snapshot = test_snapshot(
                SNAPSHOT("'nodes':[{'name':'n1','cores':8,'penalty':1,'state':'DRAINING'},{'name':'n2','cores':2,'penalty':1}]",
                         "{'name':'a','ranks':5,'priority':1,'policy':'x','placed':[{'node':'n1','ranks':5}]}"));
        cleanup_snapshot struct snapshot *view = NULL;
        cleanup_plan struct rm_plan *plan = NULL, *raw = NULL;
        struct test_policy greedy;

        (void) state;
        test_policy_load(&greedy, "greedy");
        assert_int_equal(round_policy_snapshot(snapshot_view(snapshot), NULL, &view, NULL), 0);
        assert_int_equal(snapshot_view(view)->nodes[0].cores, 0);
        assert_int_equal(snapshot_view(view)->nodes[1].cores, 5);
        assert_int_equal(test_policy_place(&greedy, snapshot_view(view), &plan), 0);
        assert_int_equal(plan->jobs[0].group_node[4], 1);
        snapshot_node(snapshot, 0)->cores = 0;
        assert_int_equal(test_policy_place(&greedy, snapshot_view(snapshot), &raw), -ENOSPC);
        test_policy_unload(&greedy);
}

static void folds_whole_groups(void **state) {
        struct fixture f;

        (void) state;
        /* 3 + 3 cores and 3 groups of 2: the third fits nowhere whole */
        run(&f,
            SNAPSHOT(NODES("3", "3"), "{'name':'a','ranks':6,'group_size':2,'priority':1,'placed':[{'node':'n1','ranks':4},"
                                      "{'node':'n2','ranks':2}]},{'name':'b','ranks':1,'priority':1}"),
            NULL);
        assert_int_equal(f.result->n_actions, 1); /* nothing better is to be had by moving; b starts on the core that is free */
        assert_int_equal(f.result->actions[0].kind, ROUND_START);
        assert_int_equal(f.result->actions[0].group_node[0], 1);
        assert_true(f.result->jobs[0].folded);
        finish(&f);
}

static void nothing_left(void **state) {
        struct round_job job = { .head_node = 0, .head_moving_to = RM_NO_NODE };
        struct fixture f;

        (void) state;
        run(&f, SNAPSHOT(NODES("0", "0"), "{'name':'a','ranks':2,'priority':1,'placed':[{'node':'n1','ranks':2}]}"), &job);
        assert_int_equal(f.result->n_actions, 0);
        says(f.result->jobs[0].reason, "stays on 'n1': no node has usable cores");
        finish(&f);
}

static void own_availability(void **state) {
        struct round_job job = { .head_node = 0, .head_moving_to = RM_NO_NODE };
        struct fixture f;

        (void) state;
        run(&f,
            SNAPSHOT(NODES("4", "4"),
                     "{'name':'a','ranks':4,'priority':1,'availability':{'n1':0,'n2':2},'placed':[{'node':'n1','ranks':4}]}"),
            &job);
        assert_int_equal(f.result->n_actions, 5); /* four ranks on its two cores of n2, and the head */
        assert_true(f.result->jobs[0].folded);
        says(f.result->actions[0].reason, "the job's availability file excludes 'n1'");
        assert_int_equal(f.result->actions[4].group, ROUND_HEAD);
        finish(&f);
        /* its own file leaves it nothing: it stays */
        run(&f,
            SNAPSHOT(NODES("4", "4"),
                     "{'name':'a','ranks':4,'priority':1,'availability':{'n1':0,'n2':0},'placed':[{'node':'n1','ranks':4}]}"),
            &job);
        assert_int_equal(f.result->n_actions, 0);
        finish(&f);
        /* but not on a node that is to be left */
        run(&f,
            SNAPSHOT(NODES("0", "4"),
                     "{'name':'a','ranks':4,'priority':1,'availability':{'n1':0,'n2':0},'placed':[{'node':'n1','ranks':4}]}"),
            &job);
        assert_int_equal(f.result->n_actions, 5);
        finish(&f);
}

static void waits_for_moves(void **state) {
        static const int32_t moving_to[] = { 0 };
        struct round_job jobs[] = { { .head_node = 1, .head_moving_to = RM_NO_NODE, .group_moving_to = moving_to },
                                    { .head_node = RM_NO_NODE, .head_moving_to = RM_NO_NODE } };
        struct fixture f;

        (void) state;
        /* a moves from n2 to n1; n2 is free for b, but not yet */
        run(&f,
            SNAPSHOT(NODES("2", "2"), "{'name':'a','ranks':2,'group_size':2,'priority':1,'placed':[{'node':'n2','ranks':2}]},"
                                      "{'name':'b','ranks':2,'priority':1}"),
            jobs);
        assert_int_equal(f.result->n_actions, 0);
        says(f.result->jobs[1].reason, "waits for moves that make room for it");
        assert_false(f.result->jobs[1].lost);
        finish(&f);
        /* where a goes has just been taken away: it is sent on when it has arrived, and nobody gets
         * its cores */
        run(&f,
            SNAPSHOT(NODES("0", "2"), "{'name':'a','ranks':2,'group_size':2,'priority':1,'placed':[{'node':'n2','ranks':2}]},"
                                      "{'name':'b','ranks':1,'priority':1}"),
            jobs);
        assert_int_equal(f.result->n_actions, 0);
        says(f.result->jobs[0].reason, "moves away from 'n1' as soon as it can");
        says(f.result->jobs[1].reason, "waits for moves to end");
        finish(&f);
}

/* The groups are out of reach, and the job's own availability has no other node: the head leaves a
 * node to be left nevertheless. */
static void head_leaves_alone(void **state) {
        struct round_job job = { .head_node = 1, .head_moving_to = RM_NO_NODE };
        struct fixture f;

        (void) state;
        run(&f,
            SNAPSHOT("'nodes':[{'name':'n1','cores':4,'penalty':1,'state':'DOWN'},{'name':'n2','cores':0,'penalty':1},"
                     "{'name':'n3','cores':1,'penalty':1}]",
                     "{'name':'a','ranks':4,'priority':1,'availability':{'n1':4,'n3':0},'placed':[{'node':'n1','ranks':4}]}"),
            &job);
        assert_int_equal(f.result->n_actions, 1);
        assert_int_equal(f.result->actions[0].group, ROUND_HEAD);
        assert_int_equal(f.result->actions[0].to, 2);
        finish(&f);
}

static void node_down(void **state) {
        struct round_job job = { .head_node = 0, .head_moving_to = RM_NO_NODE };
        struct fixture f;

        (void) state;
        run(&f,
            SNAPSHOT(
                    "'nodes':[{'name':'n1','cores':4,'penalty':1,'state':'DOWN'},{'name':'n2','cores':4,'penalty':1}]",
                    "{'name':'a','ranks':4,'group_size':2,'priority':1,'placed':[{'node':'n1','ranks':2},{'node':'n2','ranks':2}]},"
                    "{'name':'b','ranks':2,'priority':1}"),
            (struct round_job[]) { job, { .head_node = -1, .head_moving_to = -1 } });
        assert_int_equal(f.result->n_actions, 1); /* nobody can move what cannot be reached, head or group; the rest goes on */
        assert_int_equal(f.result->actions[0].kind, ROUND_START);
        says(f.result->jobs[0].reason, "group 0 is on 'n1', which is down");
        finish(&f);
}

/* ---- processors that lack something ---- */

/* n2 lacks what the others have. */
static const uint32_t kind_of_node[] = { 0, 1, 0 };
static const bool kind_lacks[] = { false, true, false, false };
static const struct round_kinds lesser_n2 = { 2, kind_of_node, kind_lacks };
static const struct round_job on_lesser = { .head_node = 0, .head_moving_to = RM_NO_NODE, .kinds = &lesser_n2 };

#define THREE(a, b, c)                                                                                                             \
        "'nodes':[{'name':'n1','cores':" a ",'penalty':1},{'name':'n2','cores':" b ",'penalty':1},{'name':'n3','cores':" c         \
        ",'penalty':1}]"
/* Group 0 is on n1, and group 1 on n2, where no more ranks may come. */
#define ON_BOTH                                                                                                                    \
        "{'name':'a','ranks':4,'group_size':2,'priority':1,'availability':{'n1':8,'n2':2,'n3':8},"                                 \
        "'placed':[{'node':'n1','ranks':2},{'node':'n2','ranks':2}]}"
#define BARRED(g) "stays on 'n1': no other node that may be used has the instruction sets that group " g " may use"

static size_t moves_to(const struct round_result *result, int32_t node) {
        size_t n = 0;

        for (size_t i = 0; i < result->n_actions; i++)
                n += result->actions[i].kind == ROUND_MOVE && result->actions[i].to == node;
        return n;
}

/* Nothing goes there, and it is said at once where nothing else is left. */
static void no_moves_to_lesser_nodes(void **state) {
        static const char *const alone =
                "{'name':'a','ranks':2,'group_size':2,'priority':1,'availability':{'n1':8,'n2':0,'n3':8},'placed':[{'node':'n1',"
                "'ranks':2}]}";
        char text[1024];
        struct fixture f;

        (void) state;
        (void) snprintf(text, sizeof(text), SNAPSHOT(THREE("0", "4", "0"), "%s"), alone);
        run(&f, text, &on_lesser);
        assert_int_equal(f.result->n_actions, 0); /* neither the head nor the group */
        says(f.result->jobs[0].reason, BARRED("0"));
        assert_false(f.result->short_of_memory);
        finish(&f);
        run(&f, SNAPSHOT(THREE("0", "8", "0"), ON_BOTH), &on_lesser);
        assert_int_equal(f.result->n_actions, 0);
        says(f.result->jobs[0].reason, BARRED("0"));
        finish(&f);
        run(&f, SNAPSHOT(THREE("0", "8", "4"), ON_BOTH), &on_lesser);
        assert_int_equal(moves_to(f.result, 1), 0);
        assert_int_equal(moves_to(f.result, 2), 2);
        finish(&f);
        /* The same is said of mpirun. */
        run(&f,
            SNAPSHOT(THREE("0", "4", "0"), "{'name':'a','ranks':2,'group_size':2,'priority':1,'placed':[{'node':'n2','ranks':2}]}"),
            &on_lesser);
        assert_int_equal(f.result->n_actions, 0);
        says(f.result->jobs[0].reason,
             "stays on 'n1': no other node that may be used has the instruction sets that mpirun may use");
        finish(&f);
        /* From a lesser node it may go to any. */
        run(&f, SNAPSHOT(THREE("4", "0", "0"), ON_BOTH), &on_lesser);
        assert_int_equal(moves_to(f.result, 0), 1);
        finish(&f);
}

/* Rather than to stay on the node for ever, ranks share cores on one with their processors, though
 * the lesser one has cores. */
static void shares_cores_rather_than_processors(void **state) {
        const struct round_job jobs[] = { on_lesser, { .head_node = 2, .head_moving_to = RM_NO_NODE, .kinds = &lesser_n2 } };
        struct fixture f;

        (void) state;
        run(&f,
            SNAPSHOT(THREE("0", "8", "4"),
                     ON_BOTH ",{'name':'b','ranks':4,'priority':1,'availability':{'n1':0,'n2':0,'n3':4},'placed':[{'node':'n3',"
                             "'ranks':1},{'node':'n3','ranks':1},{'node':'n3','ranks':1},{'node':'n3','ranks':1}]}"),
            jobs);
        assert_int_equal(moves_to(f.result, 1), 0);
        assert_int_equal(moves_to(f.result, 2), 2);
        assert_true(f.result->jobs[0].folded);
        finish(&f);
}

/* Limits allow a policy to exchange the groups; another place is taken then. */
static void exchange_of_groups_is_not_taken(void **state) {
        struct snapshot *snapshot = test_snapshot(SNAPSHOT(THREE("0", "8", "4"), ON_BOTH));
        struct round_result *result;
        struct rm_error err = { 0 };
        struct rm_plan *plan;
        struct round *round;

        (void) state;
        assert_int_equal(round_create(snapshot_view(snapshot), &on_lesser, &round, &err), 0);
        plan = plan_create(round_prepare(round, 0));
        plan->jobs[0].decision = RM_PLACE;
        plan->jobs[0].group_node[0] = 1;
        plan->jobs[0].group_node[1] = 2;
        if (round_accept(round, 0, "swaps", plan, &err) < 0)
                fail_msg("%s", error_text(&err));
        round_finish(round, &result);
        assert_int_equal(moves_to(result, 1), 0);
        assert_int_equal(moves_to(result, 2), 2); /* group 0 and the head */
        for (size_t i = 0; i < result->n_actions; i++)
                assert_int_equal(result->actions[i].from, 0);
        round_result_destroy(result);
        plan_destroy(plan);
        round_destroy(round);
        snapshot_destroy(snapshot);
}

static void policies_of_jobs(void **state) {
        cleanup_snapshot struct snapshot *snapshot = test_snapshot(
                SNAPSHOT(NODES("4", "4"), "{'name':'a','ranks':2,'priority':1,'policy':'x'},{'name':'b','ranks':3,'priority':1},"
                                          "{'name':'c','ranks':4,'priority':1,'policy':'x','placed':[{'node':'n1','ranks':4}]}"));
        struct round_result *result;
        const struct rm_snapshot *asked;
        cleanup_plan struct rm_plan *plan = NULL;
        struct rm_error err = { 0 };
        struct round *round;

        (void) state;
        assert_int_equal(round_create(snapshot_view(snapshot), NULL, &round, &err), 0);
        assert_int_equal(round_passes(round), 2);
        assert_null(round_policy(round, 0));
        says(round_policy(round, 1), "x");
        asked = round_prepare(round, 0);
        assert_int_equal(asked->n_jobs, 2); /* b, and c that runs and is not its business */
        assert_int_equal(asked->jobs[1].groups[0].flags, RM_GROUP_PINNED);
        plan = plan_create(asked);
        assert_int_equal(round_accept(round, 0, "own", plan, &err), -EINVAL); /* c is told to wait */
        plan->jobs[0].decision = plan->jobs[1].decision = RM_PLACE;
        for (uint32_t g = 0; g < 4; g++) {
                plan->jobs[1].group_node[g] = 0;
                plan->jobs[0].group_node[g < 3 ? g : 0] = 1;
        }
        assert_int_equal(round_accept(round, 0, "own", plan, &err), 0);
        asked = round_prepare(round, 1);
        assert_int_equal(asked->n_jobs, 3);
        assert_int_equal(asked->jobs[1].groups[0].node, 1); /* b is decided */
        assert_int_equal(asked->jobs[1].groups[0].flags, RM_GROUP_PINNED);
        assert_int_equal(asked->jobs[2].groups[0].flags, 0);
        round_skip(round, 1, "policy 'x': crashed");
        round_finish(round, &result);
        assert_int_equal(result->n_actions, 1);
        assert_int_equal(result->actions[0].job, 1);
        says(result->jobs[1].policy, "own");
        says(result->jobs[0].reason, "no policy could place it: policy 'x': crashed");
        round_result_destroy(result);
        round_destroy(round);
}

/* Runs a round with the plan given: a node for each group of the jobs, one after another. Returns
 * how many actions it gives. */
static size_t actions_of_plan(const char *text, const int32_t *group_node) {
        cleanup_snapshot struct snapshot *snapshot = test_snapshot(text);
        cleanup_plan struct rm_plan *plan = NULL;
        const struct rm_snapshot *asked;
        struct round_result *result;
        struct rm_error err = { 0 };
        struct round *round;
        size_t n;

        assert_int_equal(round_create(snapshot_view(snapshot), NULL, &round, &err), 0);
        asked = round_prepare(round, 0);
        plan = plan_create(asked);
        for (uint32_t j = 0; j < asked->n_jobs; j++) {
                plan->jobs[j].decision = RM_PLACE;
                for (uint32_t g = 0; g < asked->jobs[j].n_groups; g++)
                        plan->jobs[j].group_node[g] = *group_node++;
        }
        if (round_accept(round, 0, "test", plan, &err) < 0)
                fail_msg("%s", error_text(&err));
        round_finish(round, &result);
        n = result->n_actions;
        round_result_destroy(result);
        round_destroy(round);
        return n;
}

static void moves_must_pay(void **state) {
        static const struct {
                int move_cost;
                size_t moves;
        } cases[] = { { 5, 2 }, { 10, 0 }, { 11, 0 } }; /* two moves save one node: weight 10 times priority 2 */

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                cleanup_free char *text =
                        xasprintf(SNAPSHOT(NODES("4", "4"),
                                           "{'name':'a','ranks':4,'priority':2,'move_cost':%d,'placed':[{'node':'n1','ranks':2},"
                                           "{'node':'n2','ranks':2}]}"),
                                  cases[i].move_cost);

                assert_int_equal(actions_of_plan(text, (int32_t[]) { 1, 1, 1, 1 }), cases[i].moves);
        }
}

/* Only one of two groups gains by its move: the other stays. */
static void single_groups_stay(void **state) {
        (void) state;
        assert_int_equal(
                actions_of_plan("{'version':1,'params':{'distribution_weight':0},'nodes':[{'name':'n1','cores':4,'penalty':9},"
                                "{'name':'n2','cores':4,'penalty':0},{'name':'n3','cores':4,'penalty':0}],'jobs':["
                                "{'name':'a','ranks':2,'priority':1,'move_cost':1,'placed':[{'node':'n1','ranks':1},"
                                "{'node':'n2','ranks':1}]}]}",
                                (int32_t[]) { 2, 2 }),
                1);
}

/* No group of job a would go back alone, for then it would use two nodes; the whole job does. Job
 * b's move pays. */
static void whole_jobs_stay(void **state) {
        (void) state;
        assert_int_equal(
                actions_of_plan(
                        SNAPSHOT(NODES("4", "4"),
                                 "{'name':'a','ranks':2,'priority':1,'placed':[{'node':'n1','ranks':2}]},"
                                 "{'name':'b','ranks':2,'priority':1,'placed':[{'node':'n1','ranks':1},{'node':'n2','ranks':1}]}"),
                        (int32_t[]) { 1, 1, 0, 0 }),
                1);
}

/* Two jobs that change places for nothing: no single one of them could go back, but both together
 * can. */
static void swaps_are_taken_back(void **state) {
        (void) state;
        assert_int_equal(actions_of_plan(SNAPSHOT(NODES("2", "2"),
                                                  "{'name':'a','ranks':2,'priority':1,'placed':[{'node':'n1','ranks':2}]},"
                                                  "{'name':'b','ranks':2,'priority':1,'placed':[{'node':'n2','ranks':2}]}"),
                                         (int32_t[]) { 1, 1, 0, 0 }),
                         0);
}

static void max_procs(void **state) {
        (void) state;
        assert_int_equal(fold_max_procs(4, 16, 8), 8);
        assert_int_equal(fold_max_procs(1, 16, 5), 4);
        assert_int_equal(fold_max_procs(0, 16, 5), 0);
        assert_int_equal(fold_max_procs(1000000, 16000000, 16000000), 1000000);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(starts_and_waits),
                cmocka_unit_test(reports_of_warnings),
                cmocka_unit_test(reports_of_warnings_beside_work),
                cmocka_unit_test(leaves_a_node_with_its_head),
                cmocka_unit_test(head_stays_where_no_ranks_may_come),
                cmocka_unit_test(no_moves_to_lesser_nodes),
                cmocka_unit_test(shares_cores_rather_than_processors),
                cmocka_unit_test(exchange_of_groups_is_not_taken),
                cmocka_unit_test(job_that_fits_nowhere_stops_nobody),
                cmocka_unit_test(folds_and_unfolds),
                cmocka_unit_test(folds_whole_groups),
                cmocka_unit_test(nothing_left),
                cmocka_unit_test(own_availability),
                cmocka_unit_test(reports_cores),
                cmocka_unit_test(waits_for_moves),
                cmocka_unit_test(node_down),
                cmocka_unit_test(head_leaves_alone),
                cmocka_unit_test(policies_of_jobs),
                cmocka_unit_test(moves_must_pay),
                cmocka_unit_test(swaps_are_taken_back),
                cmocka_unit_test(single_groups_stay),
                cmocka_unit_test(whole_jobs_stay),
                cmocka_unit_test(max_procs),
                cmocka_unit_test(view_can_be_planned),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
