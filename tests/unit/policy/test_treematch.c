/* treematch as a policy: snapshots in, valid plans out, never dearer than by slot. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/util.h"
#include "daemon/sched/fold.h"
#include "placement/cost.h"
#include "placement/pack.h"
#include "placement/topology/measure.h"
#include "tests/unit/repeat.h"
#include "tests/unit/sched/sched_test.h"

/* ---- random instances ---- */

struct kind {
        bool groups, running, limits, pins, silent;
};

static void add_nodes(struct snapshot *snapshot, struct dice *dice) {
        static const char *const topologies[] = { "package:2 core:4", "core:8", "package:2 l3:2 core:2 pu:2", NULL, "nonsense" };
        uint32_t n = 2 + dice_roll(dice, 10), n_switches = dice_roll(dice, 4);

        for (uint32_t i = 0; i < n_switches; i++) {
                char name[16];

                (void) snprintf(name, sizeof(name), "s%u", i);
                snapshot_set_parent(snapshot, snapshot_add_switch(snapshot, name), i == 0 ? RM_NO_NODE : 0);
        }
        for (uint32_t i = 0; i < n; i++) {
                struct rm_node *node;
                char name[16];

                (void) snprintf(name, sizeof(name), "n%u", i);
                node = snapshot_add_node(snapshot, name, dice_roll(dice, 12));
                node->topology = topologies[dice_roll(dice, ARRAY_SIZE(topologies))];
                node->switch_index = (int32_t) dice_roll(dice, n_switches + 1) - 1;
        }
}

static void add_traffic(struct snapshot *snapshot, struct dice *dice, uint32_t j) {
        uint32_t ranks = snapshot_job(snapshot, j)->ranks, tries = 3 * ranks;
        json_t *triples = json_array();
        cleanup_free bool *there = xcalloc((size_t) ranks * ranks, sizeof(*there));
        struct rm_error err = { 0 };

        for (uint32_t i = 0; i < tries; i++) {
                uint32_t a = dice_roll(dice, ranks), b = dice_roll(dice, ranks);

                if (a == b || there[a * ranks + b])
                        continue;
                there[a * ranks + b] = true;
                json_array_append_new(triples, json_pack("[i, i, i]", (int) a, (int) b, (int) dice_roll(dice, 1000)));
        }
        assert_int_equal(snapshot_read_traffic(snapshot, j, triples, "job", &err), 0);
        json_decref(triples);
}

static void put_somewhere(struct snapshot *snapshot, struct dice *dice, const struct kind *kind, uint32_t j) {
        const struct rm_snapshot *view = snapshot_view(snapshot);

        for (uint32_t g = 0; g < view->jobs[j].n_groups; g++) {
                struct rm_group *group = snapshot_group(snapshot, j, g);

                group->node = (int32_t) dice_roll(dice, view->n_nodes);
                group->move_cost = dice_roll(dice, 300);
                if (kind->pins && dice_roll(dice, 6) == 0)
                        group->flags = RM_GROUP_PINNED;
                if (!(group->flags & RM_GROUP_PINNED) && dice_roll(dice, 10) == 0)
                        group->node = RM_NO_NODE;
        }
}

static struct snapshot *random_instance(struct dice *dice, const struct kind *kind) {
        struct snapshot *snapshot = snapshot_create();
        uint32_t n_jobs = 1 + dice_roll(dice, 4);

        add_nodes(snapshot, dice);
        for (uint32_t j = 0; j < n_jobs; j++) {
                uint32_t ranks = 1 + dice_roll(dice, 30);
                struct rm_job *job;
                char name[16];

                (void) snprintf(name, sizeof(name), "j%u", j);
                job = snapshot_add_job(snapshot, name, ranks, kind->groups ? 1 + dice_roll(dice, 5) : 1);
                job->priority = dice_roll(dice, 10);
                for (uint32_t n = 0; kind->limits && n < snapshot_view(snapshot)->n_nodes; n++)
                        if (dice_roll(dice, 4) == 0)
                                snapshot_set_limit(snapshot, j, n, dice_roll(dice, 8));
                if (!kind->silent && dice_roll(dice, 5) > 0)
                        add_traffic(snapshot, dice, j);
                if (kind->running && dice_roll(dice, 3) > 0)
                        put_somewhere(snapshot, dice, kind, j);
        }
        snapshot_params(snapshot)->move_budget = dice_roll(dice, 2) ? dice_roll(dice, 6) : 0;
        return snapshot;
}

/* ---- what must hold of every plan ---- */

static uint32_t count_moves(const struct rm_snapshot *snapshot, const struct rm_plan *plan) {
        uint32_t moves = 0;

        for (uint32_t j = 0; j < snapshot->n_jobs; j++)
                for (uint32_t g = 0; plan->jobs[j].decision == RM_PLACE && g < snapshot->jobs[j].n_groups; g++)
                        moves += snapshot->jobs[j].groups[g].node >= 0 &&
                                 snapshot->jobs[j].groups[g].node != plan->jobs[j].group_node[g];
        return moves;
}

static void assert_same_plan(const struct rm_snapshot *snapshot, const struct rm_plan *a, const struct rm_plan *b) {
        for (uint32_t j = 0; j < snapshot->n_jobs; j++) {
                assert_int_equal(a->jobs[j].decision, b->jobs[j].decision);
                assert_memory_equal(a->jobs[j].group_node, b->jobs[j].group_node, sizeof(int32_t) * snapshot->jobs[j].n_groups);
                assert_memory_equal(a->jobs[j].rank_core, b->jobs[j].rank_core, sizeof(int32_t) * snapshot->jobs[j].ranks);
        }
}

static bool any_runs(const struct rm_snapshot *snapshot) {
        for (uint32_t j = 0; j < snapshot->n_jobs; j++)
                if (job_runs(&snapshot->jobs[j]))
                        return true;
        return false;
}

static void try_all(uint64_t seed, unsigned most, const struct kind *kind) {
        int rounds = (int) repetitions(most);
        struct dice dice = { seed };
        struct test_policy policy;
        int placed = 0, better = 0;

        test_policy_load(&policy, "treematch");
        for (int i = 0; i < rounds; i++) {
                cleanup_snapshot struct snapshot *snapshot = random_instance(&dice, kind);
                const struct rm_snapshot *view = snapshot_view(snapshot);
                cleanup_plan struct rm_plan *plan = NULL, *again = NULL;
                struct measured ours, slot;
                struct rm_error err = { 0 };

                if (test_policy_place(&policy, view, &plan) < 0) { /* running jobs that do not fit */
                        assert_true(kind->running);
                        continue;
                }
                if (plan_validate(view, plan, &err) < 0)
                        fail_msg("instance %d of seed %" PRIu64 ": %s", i, seed, error_text(&err));
                assert_int_equal(test_policy_place(&policy, view, &again), 0);
                assert_same_plan(view, plan, again);
                placed++;
                if (any_runs(view) || !measure_plan(view, plan, &ours) || !measure_by_slot(view, plan, &slot))
                        continue;
                if (ours.hop_bytes > slot.hop_bytes)
                        fail_msg("instance %d of seed %" PRIu64 ": %" PRIu64 ", by slot %" PRIu64, i, seed, ours.hop_bytes,
                                 slot.hop_bytes);
                better += ours.hop_bytes < slot.hop_bytes;
        }
        print_message("%d plans, %d better than by slot\n", placed, better);
        assert_true(placed > rounds / 4);
        assert_true(kind->running || kind->silent || better > rounds / 8);
        test_policy_unload(&policy);
}

static void single_ranks(void **state) {
        (void) state;
        try_all(1, 300, &(struct kind) { 0 });
}

static void whole_groups(void **state) {
        (void) state;
        try_all(2, 300, &(struct kind) { .groups = true });
}

static void limits(void **state) {
        (void) state;
        try_all(3, 300, &(struct kind) { .limits = true });
        try_all(4, 300, &(struct kind) { .limits = true, .groups = true });
}

static void running_jobs(void **state) {
        (void) state;
        try_all(5, 300, &(struct kind) { .running = true });
        try_all(6, 300, &(struct kind) { .running = true, .groups = true, .limits = true, .pins = true });
}

/* ---- by slot ---- */

static void no_traffic_is_by_slot(void **state) {
        cleanup_snapshot struct snapshot *snapshot =
                test_snapshot("{'version':1,'nodes':[{'name':'n1','cores':3,'penalty':1,'topology':'package:2 core:2'},"
                              "{'name':'n2','cores':4,'penalty':1,'topology':'package:2 core:2'}],"
                              "'jobs':[{'name':'a','ranks':2,'priority':1},{'name':'b','ranks':4,'priority':1}]}");
        cleanup_plan struct rm_plan *plan = NULL;
        static const int32_t node_a[] = { 0, 0 }, core_a[] = { 0, 1 }, node_b[] = { 0, 1, 1, 1 }, core_b[] = { 2, 0, 1, 2 };
        struct test_policy policy;

        (void) state;
        test_policy_load(&policy, "treematch");
        assert_int_equal(test_policy_place(&policy, snapshot_view(snapshot), &plan), 0);
        assert_memory_equal(plan->jobs[0].group_node, node_a, sizeof(node_a));
        assert_memory_equal(plan->jobs[0].rank_core, core_a, sizeof(core_a));
        assert_memory_equal(plan->jobs[1].group_node, node_b, sizeof(node_b));
        assert_memory_equal(plan->jobs[1].rank_core, core_b, sizeof(core_b));
        assert_string_equal(plan->method, "by slot, no traffic is known");
        test_policy_unload(&policy);
        try_all(7, 100, &(struct kind) { .silent = true, .groups = true });
}

/* ---- small ones with a known answer ---- */

/* Pairs (0,4) (1,5) (2,6) (3,7) belong into packages, and (01)(45) onto one node. */
static void pairs_find_packages(void **state) {
        cleanup_snapshot struct snapshot *snapshot =
                test_snapshot("{'version':1,'nodes':[{'name':'n1','cores':4,'penalty':1,'topology':'package:2 core:2'},"
                              "{'name':'n2','cores':4,'penalty':1,'topology':'package:2 core:2'}],"
                              "'jobs':[{'name':'a','ranks':8,'priority':1,'traffic':[[0,4,100],[1,5,100],[2,6,100],[3,7,100],[0,1,"
                              "10],[2,3,10]]}]}");
        cleanup_plan struct rm_plan *plan = NULL;
        struct test_policy policy;
        struct measured measured;

        (void) state;
        test_policy_load(&policy, "treematch");
        assert_int_equal(test_policy_place(&policy, snapshot_view(snapshot), &plan), 0);
        for (uint32_t r = 0; r < 4; r++) {
                assert_int_equal(plan->jobs[0].group_node[r], plan->jobs[0].group_node[r + 4]);
                assert_int_equal(plan->jobs[0].rank_core[r] / 2, plan->jobs[0].rank_core[r + 4] / 2);
        }
        assert_true(measure_plan(snapshot_view(snapshot), plan, &measured));
        assert_int_equal(measured.inter_node_bytes, 0);
        assert_int_equal(measured.hop_bytes, 4 * 100 * 2 + 2 * 10 * 4);
        test_policy_unload(&policy);
}

/* Near switches count: the two that talk are below one of them though other nodes have as much
 * room. */
static void switches_count(void **state) {
        cleanup_snapshot struct snapshot *snapshot =
                test_snapshot("{'version':1,'nodes':[{'name':'n1','cores':1,'penalty':1,'switch':['s1','top']},"
                              "{'name':'n2','cores':1,'penalty':1,'switch':['s2','top']},{'name':'n3','cores':1,'penalty':1,'"
                              "switch':['s1','top']},"
                              "{'name':'n4','cores':1,'penalty':1,'switch':['s2','top']}],"
                              "'jobs':[{'name':'a','ranks':4,'priority':1,'traffic':[[0,1,7],[2,3,7]]}]}");
        cleanup_plan struct rm_plan *plan = NULL;
        struct test_policy policy;
        struct measured measured, slot;

        (void) state;
        test_policy_load(&policy, "treematch");
        assert_int_equal(test_policy_place(&policy, snapshot_view(snapshot), &plan), 0);
        assert_true(measure_plan(snapshot_view(snapshot), plan, &measured));
        assert_true(measure_by_slot(snapshot_view(snapshot), plan, &slot));
        assert_int_equal(measured.hop_bytes, 2 * 7 * 4);
        assert_int_equal(slot.hop_bytes, 2 * 7 * 6);
        test_policy_unload(&policy);
}

/* n1 must shrink to 2: one of the two that talk little goes, and to where its partner is. */
static void who_leaves(void **state) {
        cleanup_snapshot struct snapshot *snapshot =
                test_snapshot("{'version':1,'nodes':[{'name':'n1','cores':2,'penalty':1},{'name':'n2','cores':4,'penalty':1},"
                              "{'name':'n3','cores':4,'penalty':1}],"
                              "'jobs':[{'name':'a','ranks':5,'priority':1,'move_cost':1,'placed':[{'node':'n1','ranks':3},{'node':'"
                              "n3','ranks':1},"
                              "{'node':'n2','ranks':1}],'traffic':[[0,2,100],[1,3,50],[1,4,10]]}]}");
        static const int32_t expected[] = { 0, 2, 0, 2, 1 };
        cleanup_plan struct rm_plan *plan = NULL;
        struct test_policy policy;

        (void) state;
        test_policy_load(&policy, "treematch");
        assert_int_equal(test_policy_place(&policy, snapshot_view(snapshot), &plan), 0);
        assert_memory_equal(plan->jobs[0].group_node, expected, sizeof(expected));
        test_policy_unload(&policy);
}

/* ---- folded jobs ---- */

/* Folds the snapshot, which it takes over, and plans. */
static struct fold *plan_folded(struct snapshot *snapshot, struct rm_plan **ret_plan) {
        struct test_policy policy;
        struct rm_error err = { 0 };
        struct fold *fold;

        assert_int_equal(fold_create(snapshot, NULL, &fold, &err), 0);
        test_policy_load(&policy, "treematch");
        assert_int_equal(test_policy_place(&policy, snapshot_view(fold->snapshot), ret_plan), 0);
        test_policy_unload(&policy);
        return fold;
}

/* Which of n1's `real` cores each rank is on: cores[r]. */
static void shared_cores(const struct rm_plan *plan, uint32_t ranks, uint32_t real, uint32_t *cores) {
        uint32_t on[8] = { 0 };

        for (uint32_t r = 0; r < ranks; r++) {
                assert_true(plan->jobs[0].rank_core[r] >= 0);
                on[cores[r] = (uint32_t) plan->jobs[0].rank_core[r] % real]++;
        }
        for (uint32_t c = 0; c < real; c++)
                assert_int_equal(on[c], ranks / real);
}

/* Four ranks on two cores, whatever else the node has, or may be used once more: who talk to each
 * other share one. */
static void folded_partners_share_a_core(void **state) {
        static const char *const topologies[] = { "", ",'topology':'core:2'", ",'topology':'package:2 core:1'",
                                                  ",'topology':'package:2 core:4'", ",'topology':'package:3 core:1'" };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(topologies); i++) {
                cleanup_free char *text =
                        xasprintf("{'version':1,'nodes':[{'name':'n1','cores':2,'penalty':1%s},{'name':'n2','cores':0,'penalty':1},"
                                  "{'name':'n3','cores':0,'penalty':1}],'jobs':[{'name':'a','ranks':4,'priority':1,'placed':[{'"
                                  "node':'n1','ranks':2},"
                                  "{'node':'n2','ranks':2}],'traffic':[[0,3,100],[1,2,100],[0,1,1],[2,3,1]]}]}",
                                  topologies[i]);
                cleanup_plan struct rm_plan *plan = NULL;
                struct fold *fold = plan_folded(test_snapshot(text), &plan);
                uint32_t core[4];

                shared_cores(plan, 4, 2, core);
                assert_int_equal(core[0], core[3]);
                assert_int_equal(core[1], core[2]);
                fold_destroy(fold);
        }
}

/* Nothing is known of what is sent within groups, only from group 0 to 2 and from 1 to 3. */
static void folded_groups_are_whole(void **state) {
        static const uint32_t cores[] = { 2, 4 };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(cores); i++) {
                cleanup_free char *text = xasprintf(
                        "{'version':1,'nodes':[{'name':'n1','cores':%u,'penalty':1},{'name':'n2','cores':0,'penalty':1}],'jobs':[{"
                        "'name':'a','ranks':8,'priority':1,'group_size':2,'placed':[{'node':'n1','ranks':8}],"
                        "'traffic':[[0,4,100000],[2,6,100000],[1,2,99000],[3,5,99000]]}]}",
                        cores[i]);
                cleanup_plan struct rm_plan *plan = NULL;
                struct fold *fold = plan_folded(test_snapshot(text), &plan);
                uint32_t core[8];

                shared_cores(plan, 8, cores[i], core);
                for (uint32_t r = 0; r < 8; r += 2)
                        assert_int_equal(core[r], core[r + 1]);
                if (cores[i] == 2) {
                        assert_int_equal(core[0], core[4]);
                        assert_int_equal(core[2], core[6]);
                }
                fold_destroy(fold);
        }
}

/* n3 goes: each of its ranks to where its partner is, though all share cores then. */
static void folded_partners_share_a_node(void **state) {
        cleanup_plan struct rm_plan *plan = NULL;
        static const int32_t expected[] = { 0, 0, 0, 0, 1, 1, 1, 1, 0, 1, 0, 1 };
        struct fold *fold =
                plan_folded(test_snapshot("{'version':1,'nodes':[{'name':'n1','cores':4,'penalty':1},{'name':'n2','cores':4,'"
                                          "penalty':1},{'name':'n3','cores':0,'penalty':1}],"
                                          "'jobs':[{'name':'a','ranks':12,'priority':1,'move_cost':1,'placed':[{'node':'n1','ranks'"
                                          ":4},{'node':'n2','ranks':4},"
                                          "{'node':'n3','ranks':4}],'traffic':[[8,0,100],[9,4,100],[10,1,100],[11,5,100]]}]}"),
                            &plan);

        (void) state;
        assert_memory_equal(plan->jobs[0].group_node, expected, sizeof(expected));
        fold_destroy(fold);
}

/* Four pairs, each on two nodes: every exchange of two ranks brings two pairs together. */
static void budget_of_moves(void **state) {
        cleanup_snapshot struct snapshot *snapshot =
                test_snapshot("{'version':1,'nodes':[{'name':'n1','cores':4,'penalty':1},{'name':'n2','cores':4,'penalty':1}],"
                              "'jobs':[{'name':'a','ranks':8,'priority':1,'move_cost':5,'placed':[{'node':'n1','ranks':4},{'node':'"
                              "n2','ranks':4}],"
                              "'traffic':[[0,4,100],[1,5,100],[2,6,100],[3,7,100]]}]}");
        static const uint32_t budgets[] = { 0, 1, 2, 3, 4, 100 }, moves[] = { 0, 0, 2, 2, 4, 4 };
        struct test_policy policy;

        (void) state;
        test_policy_load(&policy, "treematch");
        for (size_t i = 0; i < ARRAY_SIZE(budgets); i++) {
                cleanup_plan struct rm_plan *plan = NULL;

                snapshot_params(snapshot)->move_budget = budgets[i];
                assert_int_equal(test_policy_place(&policy, snapshot_view(snapshot), &plan), 0);
                assert_true(count_moves(snapshot_view(snapshot), plan) <= budgets[i]);
                if (budgets[i] == 0 || budgets[i] >= 4)
                        assert_int_equal(count_moves(snapshot_view(snapshot), plan), moves[i]);
        }
        /* Dearer than what they save. */
        for (uint32_t g = 0; g < 8; g++)
                snapshot_group(snapshot, 0, g)->move_cost = 100000;
        cleanup_plan struct rm_plan *plan = NULL;
        assert_int_equal(test_policy_place(&policy, snapshot_view(snapshot), &plan), 0);
        assert_int_equal(count_moves(snapshot_view(snapshot), plan), 0);
        test_policy_unload(&policy);
}

/* Sums of such bytes times hops do not fit into 64 bits. */
static void huge_traffic(void **state) {
        cleanup_snapshot struct snapshot *snapshot = test_snapshot(
                "{'version':1,'nodes':[{'name':'n1','cores':2,'penalty':1},{'name':'n2','cores':2,'penalty':1}],"
                "'jobs':[{'name':'a','ranks':4,'priority':1,'traffic':[[0,3,4503599627370495],[1,2,4503599627370495],[0,1,1]]}]}");
        cleanup_plan struct rm_plan *plan = NULL;
        struct test_policy policy;

        (void) state;
        test_policy_load(&policy, "treematch");
        assert_int_equal(test_policy_place(&policy, snapshot_view(snapshot), &plan), 0);
        assert_int_equal(plan->jobs[0].group_node[0], plan->jobs[0].group_node[3]);
        assert_int_equal(plan->jobs[0].group_node[1], plan->jobs[0].group_node[2]);
        test_policy_unload(&policy);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(single_ranks),
                cmocka_unit_test(whole_groups),
                cmocka_unit_test(limits),
                cmocka_unit_test(running_jobs),
                cmocka_unit_test(huge_traffic),
                cmocka_unit_test(pairs_find_packages),
                cmocka_unit_test(no_traffic_is_by_slot),
                cmocka_unit_test(switches_count),
                cmocka_unit_test(who_leaves),
                cmocka_unit_test(budget_of_moves),
                cmocka_unit_test(folded_partners_share_a_core),
                cmocka_unit_test(folded_groups_are_whole),
                cmocka_unit_test(folded_partners_share_a_node),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
