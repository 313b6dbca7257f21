/* Memory as a second capacity: no plan brings groups to a node that has no room for them, and
 * people are told. */
#include <errno.h>
#include <string.h>

#include "common/util.h"
#include "daemon/sched/memory_limits.h"
#include "daemon/sched/round.h"
#include "placement/memory.h"
#include "tests/unit/sched/sched_test.h"

static const char *const policies[] = { "greedy", "distrib", "treematch" };

struct fixture {
        struct snapshot *snapshot;
        struct round_result *result;
};

static void run(struct fixture *f, const char *policy, const char *text) {
        f->snapshot = test_snapshot(text);
        f->result = test_round(policy, snapshot_view(f->snapshot), NULL);
}

static void finish(struct fixture *f) {
        round_result_destroy(f->result);
        snapshot_destroy(f->snapshot);
}

static void says(const char *text, const char *expected) {
        if (strcmp(text, expected) != 0)
                fail_msg("\"%s\" instead of \"%s\"", text, expected);
}

#define MB "000000"
#define NODE(name, cores, penalty, memory_free)                                                                                    \
        "{'name':'" name "','cores':" cores ",'penalty':" penalty ",'memory':8000" MB ",'memory_free':" memory_free MB "}"

static void full_node_is_not_chosen(void **state) {
        (void) state;
        for (size_t p = 0; p < ARRAY_SIZE(policies); p++) {
                struct fixture f;

                run(&f, policies[p],
                    "{'version':1,'nodes':[" NODE("n1", "4", "1", "100") "," NODE(
                            "n2", "4", "9", "300") "],"
                                                   "'jobs':[{'name':'a','ranks':2,'group_size':2,'priority':1,'group_memory':200" MB
                                                   "}]}");
                assert_int_equal(f.result->n_actions, 1);
                assert_int_equal(f.result->actions[0].kind, ROUND_START);
                assert_int_equal(f.result->actions[0].group_node[0], 1);
                assert_false(f.result->short_of_memory);
                finish(&f);
        }
}

/* Each fits alone onto the node that costs least; both do not. */
static void jobs_share_memory(void **state) {
        (void) state;
        for (size_t p = 0; p < ARRAY_SIZE(policies); p++) {
                struct fixture f;

                run(&f, policies[p],
                    "{'version':1,'nodes':[" NODE("n1", "8", "1", "100") "," NODE(
                            "n2", "8", "9", "100") "],"
                                                   "'jobs':[{'name':'a','ranks':2,'group_size':2,'priority':1,'group_memory':80" MB
                                                   "},"
                                                   "{'name':'b','ranks':2,'group_size':2,'priority':1,'group_memory':80" MB "}]}");
                assert_int_equal(f.result->n_actions, 2);
                assert_int_not_equal(f.result->actions[0].group_node[0], f.result->actions[1].group_node[0]);
                finish(&f);
        }
}

/* Memory that the first pass has given away is missing in the second. */
static void passes_share_memory(void **state) {
        struct fixture f;

        (void) state;
        run(&f, "greedy",
            "{'version':1,'nodes':[" NODE("n1", "8", "1",
                                          "100") "],"
                                                 "'jobs':[{'name':'a','ranks':2,'group_size':2,'priority':1,'group_memory':80" MB
                                                 "},"
                                                 "{'name':'b','ranks':2,'group_size':2,'priority':1,'group_memory':80" MB
                                                 ",'policy':'other'}]}");
        assert_int_equal(f.result->n_actions, 1);
        assert_int_equal(f.result->actions[0].job, 0);
        says(f.result->jobs[1].reason, "waits for memory: 80 MB needed for each group, at most 20 MB free, on 'n1'");
        finish(&f);
}

static void job_waits_and_says_for_what(void **state) {
        struct fixture f;

        (void) state;
        run(&f, "distrib",
            "{'version':1,'nodes':[" NODE("n1", "4", "1", "100") "," NODE(
                    "n2", "4", "1", "300") "],"
                                           "'jobs':[{'name':'a','ranks':4,'group_size':2,'priority':2,'group_memory':200" MB "},"
                                           "{'name':'b','ranks':1,'priority':1}]}");
        assert_int_equal(f.result->n_actions, 0);
        assert_true(f.result->short_of_memory);
        says(f.result->jobs[0].reason, "waits for memory: 200 MB needed for each group, at most 300 MB free, on 'n2'");
        says(f.result->jobs[1].reason, "waits behind job 'a'; 8 of 8 usable cores are free");
        finish(&f);
}

/* The rule is that of cores: a job that could not run on the empty cluster holds up no others. */
static void too_large_groups_stop_nobody(void **state) {
        struct fixture f;

        (void) state;
        run(&f, "distrib",
            "{'version':1,'nodes':[" NODE("n1", "4", "1",
                                          "8000") "],"
                                                  "'jobs':[{'name':'a','ranks':2,'group_size':2,'priority':9,'group_memory':9000" MB
                                                  "},"
                                                  "{'name':'b','ranks':1,'priority':1}]}");
        assert_int_equal(f.result->n_actions, 1);
        assert_int_equal(f.result->actions[0].job, 1);
        says(f.result->jobs[0].reason, "needs 9000 MB of memory for each group, and no usable node has more than 8000 MB");
        finish(&f);
}

static void drain_avoids_full_node(void **state) {
        (void) state;
        for (size_t p = 0; p < ARRAY_SIZE(policies); p++) {
                struct fixture f;

                run(&f, policies[p],
                    "{'version':1,'nodes':[" NODE("n1", "0", "1", "1") "," NODE("n2", "8", "1", "100") "," NODE(
                            "n3", "4", "9", "500") "],"
                                                   "'jobs':[{'name':'a','ranks':2,'group_size':2,'priority':1,'group_memory':200" MB
                                                   ",'placed':[{'node':'n1','ranks':2}]}]}");
                assert_int_equal(f.result->n_actions, 1);
                assert_int_equal(f.result->actions[0].kind, ROUND_MOVE);
                assert_int_equal(f.result->actions[0].to, 2);
                finish(&f);
        }
}

/* Groups of a node to be left go elsewhere as far as they fit, the others stay and say so; neither
 * stops a job that needs no memory. */
static void drain_moves_what_fits(void **state) {
        (void) state;
        for (size_t p = 0; p < ARRAY_SIZE(policies); p++) {
                struct fixture f;

                run(&f, policies[p],
                    "{'version':1,'nodes':[" NODE("n1", "0", "1", "1") "," NODE(
                            "n2", "8", "1", "300") "],"
                                                   "'jobs':[{'name':'a','ranks':4,'group_size':2,'priority':1,'group_memory':200" MB
                                                   ",'placed':[{'node':'n1','ranks':4}]},{'name':'b','ranks':1,'priority':1}]}");
                assert_int_equal(f.result->n_actions, 2);
                assert_int_equal(f.result->actions[0].kind, ROUND_MOVE);
                assert_int_equal(f.result->actions[0].to, 1);
                assert_int_equal(f.result->actions[1].kind, ROUND_START);
                assert_true(f.result->short_of_memory);
                if (!strstr(f.result->jobs[0].reason,
                            "stays on 'n1': no other node has the 200 MB of memory free that moving group"))
                        fail_msg("\"%s\"", f.result->jobs[0].reason);
                finish(&f);
        }
}

/* The large group of a job has no room elsewhere, its small ones have. */
static void small_groups_go(void **state) {
        (void) state;
        for (size_t p = 0; p < ARRAY_SIZE(policies); p++) {
                struct fixture f;

                run(&f, policies[p],
                    "{'version':1,'nodes':[" NODE("n1", "0", "1", "1") "," NODE(
                            "n2", "8", "1", "300") "],"
                                                   "'jobs':[{'name':'a','ranks':3,'priority':1,'group_memory':[100" MB ",900" MB
                                                   ",100" MB "],'placed':[{'node':'n1','ranks':3}]}]}");
                assert_int_equal(f.result->n_actions, 2);
                assert_int_equal(f.result->actions[0].group, 0);
                assert_int_equal(f.result->actions[1].group, 2);
                says(f.result->jobs[0].reason,
                     "stays on 'n1': no other node has the 900 MB of memory free that moving group 1 needs");
                finish(&f);
        }
}

/* Groups that stay for want of memory need no cores elsewhere: others are not folded for them. */
static void kept_groups_fold_nobody(void **state) {
        struct fixture f;

        (void) state;
        run(&f, "distrib",
            "{'version':1,'nodes':[" NODE("n1", "0", "1", "1") "," NODE("n2", "2", "1", "100") "," NODE(
                    "n3", "2", "1",
                    "100") "],"
                           "'jobs':[{'name':'a','ranks':2,'group_size':2,'priority':1,'group_memory':200" MB
                           ",'placed':[{'node':'n1','ranks':2}]},"
                           "{'name':'b','ranks':4,'priority':1,'placed':[{'node':'n2','ranks':2},{'node':'n3','ranks':2}]}]}");
        assert_int_equal(f.result->n_actions, 0);
        assert_false(f.result->jobs[1].folded);
        finish(&f);
}

/* Less memory than what is there needs drives nothing away, and lets nothing come. */
static void full_node_keeps_its_groups(void **state) {
        struct fixture f;

        (void) state;
        run(&f, "distrib",
            "{'version':1,'nodes':[" NODE(
                    "n1", "4", "1",
                    "1") "],"
                         "'jobs':[{'name':'a','ranks':2,'group_size':2,'priority':1,'group_memory':200" MB
                         ",'placed':[{'node':'n1','ranks':2}]},{'name':'b','ranks':1,'priority':1,'group_memory':2" MB "}]}");
        assert_int_equal(f.result->n_actions, 0);
        assert_true(f.result->jobs[1].waits);
        finish(&f);
}

static void plan_over_memory_is_refused(void **state) {
        cleanup_snapshot struct snapshot *snapshot = test_snapshot("{'version':1,'nodes':[" NODE(
                "n1", "8", "1", "300") "],"
                                       "'jobs':[{'name':'a','ranks':4,'group_size':2,'priority':1,'group_memory':200" MB "}]}");
        cleanup_plan struct rm_plan *plan = plan_create(snapshot_view(snapshot));
        struct rm_error err = { 0 };

        (void) state;
        plan->jobs[0].decision = RM_PLACE;
        plan->jobs[0].group_node[0] = plan->jobs[0].group_node[1] = 0;
        assert_int_equal(plan_validate(snapshot_view(snapshot), plan, &err), -EINVAL);
        says(error_text(&err), "groups that come to node 'n1' need 400 MB of memory, but it has 300 MB free");
        snapshot_group(snapshot, 0, 1)->node = 0; /* it is there */
        assert_int_equal(plan_validate(snapshot_view(snapshot), plan, NULL), 0);
}

static void limits_are_lowered(void **state) {
        cleanup_snapshot struct snapshot *snapshot = test_snapshot("{'version':1,'nodes':[" NODE("n1", "8", "1", "500") "," NODE(
                "n2", "8", "1",
                "5000") ",{'name':'n3','cores':8,"
                        "'penalty':1}],'jobs':[{'name':'a','ranks':8,'group_size':2,'priority':1,'group_memory':200" MB
                        ",'availability':{'n2':3},'placed':[{'node':'n1','ranks':2}]},{'name':'b','ranks':2,'priority':1}]}");
        const struct rm_snapshot *view = snapshot_view(snapshot);

        (void) state;
        memory_lower_limits(snapshot);
        assert_int_equal(view->jobs[0].node_limit[0], 6);
        assert_int_equal(view->jobs[0].node_limit[1], 3);
        assert_int_equal(view->jobs[0].node_limit[2], RM_NO_LIMIT);
        assert_null(view->jobs[1].node_limit);
}

/* ---- whatever there is ---- */

static struct snapshot *draw(struct dice *dice) {
        struct snapshot *snapshot = snapshot_create();
        uint32_t n_nodes = 1 + dice_roll(dice, dice_roll(dice, 8) == 0 ? 70 : 5), n_jobs = 1 + dice_roll(dice, 6);

        for (uint32_t s = 0; s < n_nodes; s++) {
                char name[16];
                struct rm_node *node;

                (void) snprintf(name, sizeof(name), "n%u", s);
                node = snapshot_add_node(snapshot, name, dice_roll(dice, 9));
                node->penalty = dice_roll(dice, 4);
                if (dice_roll(dice, 4) > 0) {
                        node->memory = dice_roll(dice, 1000);
                        node->memory_free = dice_roll(dice, (uint32_t) node->memory + 1);
                }
        }
        for (uint32_t j = 0; j < n_jobs; j++) {
                bool runs = dice_roll(dice, 2) == 0, equal;
                uint32_t most;
                struct rm_job *job;
                char name[16];

                (void) snprintf(name, sizeof(name), "j%u", j);
                job = snapshot_add_job(snapshot, name, 1 + dice_roll(dice, 8), 1 + dice_roll(dice, 4));
                job->priority = dice_roll(dice, 5);
                most = dice_roll(dice, 3) == 0 ? 0 : dice_roll(dice, 600);
                equal = dice_roll(dice, 2) == 0;
                for (uint32_t g = 0; g < job->n_groups; g++)
                        snapshot_group(snapshot, j, g)->memory = equal ? most : dice_roll(dice, most + 1);
                for (uint32_t g = 0; runs && g < snapshot_view(snapshot)->jobs[j].n_groups; g++)
                        snapshot_group(snapshot, j, g)->node = (int32_t) dice_roll(dice, n_nodes);
                if (dice_roll(dice, 4) == 0)
                        snapshot_set_limit(snapshot, j, dice_roll(dice, n_nodes), dice_roll(dice, 6));
        }
        return snapshot;
}

static void check_actions(const struct rm_snapshot *view, const struct round_result *result, const char *policy, uint32_t seed) {
        cleanup_free int64_t *taken = xcalloc(view->n_nodes, sizeof(*taken));

        for (size_t i = 0; i < result->n_actions; i++) {
                const struct round_action *action = &result->actions[i];
                const struct rm_job *job = &view->jobs[action->job];

                for (uint32_t g = 0; action->kind == ROUND_START && g < job->n_groups; g++)
                        taken[action->group_node[g]] += job->groups[g].memory;
                if (action->kind == ROUND_MOVE && action->group != ROUND_HEAD)
                        taken[action->to] += job->groups[action->group].memory;
        }
        for (uint32_t s = 0; s < view->n_nodes; s++)
                if (taken[s] > view->nodes[s].memory_free)
                        fail_msg("%s, seed %u: %lld bytes come to %s, which has %lld", policy, seed, (long long) taken[s],
                                 view->nodes[s].name, (long long) view->nodes[s].memory_free);
}

/* As the scheduler does it: without the answer of a policy, what runs goes where the fold has found
 * room. */
static struct round_result *any_round(const char *name, const struct rm_snapshot *snapshot, uint32_t *ret_skipped) {
        struct test_policy policy;
        struct round_result *result;
        struct round *round;

        test_policy_load(&policy, name);
        assert_int_equal(round_create(snapshot, NULL, &round, NULL), 0);
        for (uint32_t pass = 0; pass < round_passes(round); pass++) {
                const struct rm_snapshot *asked = round_prepare(round, pass);
                cleanup_plan struct rm_plan *plan = NULL;
                struct rm_error err = { 0 };

                if (test_policy_place(&policy, asked, &plan) < 0) {
                        ++*ret_skipped;
                        round_skip(round, pass, NULL);
                } else if (round_accept(round, pass, name, plan, &err) < 0) {
                        fail_msg("%s: %s", name, error_text(&err));
                }
        }
        round_finish(round, &result);
        round_destroy(round);
        test_policy_unload(&policy);
        return result;
}

static void never_over_memory(void **state) {
        uint32_t skipped = 0;

        (void) state;
        for (uint32_t seed = 1; seed <= 300; seed++) {
                struct dice dice = { seed };
                cleanup_snapshot struct snapshot *snapshot = draw(&dice);
                const char *policy = policies[seed % ARRAY_SIZE(policies)];
                struct round_result *result = any_round(policy, snapshot_view(snapshot), &skipped);

                check_actions(snapshot_view(snapshot), result, policy, seed);
                round_result_destroy(result);
        }
        assert_in_range(skipped, 0, 10); /* seldom: what the fold has found, in another order */
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(full_node_is_not_chosen),
                cmocka_unit_test(jobs_share_memory),
                cmocka_unit_test(passes_share_memory),
                cmocka_unit_test(job_waits_and_says_for_what),
                cmocka_unit_test(too_large_groups_stop_nobody),
                cmocka_unit_test(drain_avoids_full_node),
                cmocka_unit_test(drain_moves_what_fits),
                cmocka_unit_test(small_groups_go),
                cmocka_unit_test(kept_groups_fold_nobody),
                cmocka_unit_test(full_node_keeps_its_groups),
                cmocka_unit_test(plan_over_memory_is_refused),
                cmocka_unit_test(limits_are_lowered),
                cmocka_unit_test(never_over_memory),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
