/* Policies that are texts: the model that comes with rmd, what is said about bad ones, and that a
 * bad edit leaves the last good one. */
#include <event2/event.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/util.h"
#include "daemon/sched/policy_load.h"
#include "daemon/sched/policy_model.h"
#include "daemon/sched/scheduler.h"
#include "placement/cost.h"
#include "tests/unit/sched/sched_test.h"

#define NODES                                                                                                                      \
        "'nodes':[{'name':'n1','cores':4,'penalty':1},{'name':'n2','cores':4,'penalty':2},{'name':'n-3','cores':2,'penalty':0}]"
#define SNAPSHOT(jobs) "{'version':1," NODES ",'jobs':[" jobs "]}"

/* ---- one model, called in this process ---- */

struct runner {
        struct rm_plugin_host host;
        struct loaded_policy policy;
        char said[1024];
};

static void on_log(void *context, enum rm_plugin_level level, const char *text) {
        struct runner *runner = context;

        (void) level;
        (void) snprintf(runner->said, sizeof(runner->said), "%s", text);
}

static void begin(struct runner *runner, const char *text) {
        struct rm_error err = { 0 };

        *runner = (struct runner) { .host = { .size = sizeof(runner->host), .log = on_log, .text = text, .text_name = "m.mod" } };
        runner->host.context = runner;
        if (policy_load(&(struct policy_folders) { .own = getenv("TEST_POLICY_DIR") }, "m", &runner->host, &runner->policy, &err) <
            0)
                fail_msg("%s", error_text(&err));
}

static uint64_t plenty(void *context) {
        (void) context;
        return 60 * 1000 * 1000;
}

static int place(struct runner *runner, const struct rm_snapshot *snapshot, struct rm_plan **ret_plan) {
        struct rm_policy_run run = { .size = sizeof(run), .left_usec = plenty };

        *ret_plan = plan_create(snapshot);
        return runner->policy.plugin->place(runner->policy.self, snapshot, &run, *ret_plan);
}

/* The model fails, and this is the reason. */
static void refuses(const char *model, const char *expected) {
        cleanup_snapshot struct snapshot *snapshot = test_snapshot(SNAPSHOT("{'name':'a','ranks':2,'priority':1}"));
        cleanup_plan struct rm_plan *plan = NULL;
        struct runner runner;

        begin(&runner, model);
        if (place(&runner, snapshot_view(snapshot), &plan) == 0)
                fail_msg("accepted: %s", model);
        if (!strstr(runner.said, expected))
                fail_msg("\"%s\" instead of \"%s\"", runner.said, expected);
        policy_unload(&runner.policy);
}

/* ---- the model that comes with rmd ---- */

static char *shipped_model(void) {
        struct rm_error err = { 0 };
        char *text = NULL;

        if (model_read(getenv("TEST_POLICY_DIR"), "fewest-nodes", &text, &err) < 0 || !text)
                fail_msg("%s", error_text(&err));
        return text;
}

static void does_what_distrib_does(void **state) {
        static const char *const cases[] = {
                SNAPSHOT("{'name':'a','ranks':4,'priority':3},{'name':'b','ranks':4,'priority':1,'group_size':2}"),
                SNAPSHOT("{'name':'a','ranks':3,'priority':1,'move_cost':1,'placed':[{'node':'n2','ranks':3}]},{'name':'b','ranks':"
                         "3,'priority':5}"),
                SNAPSHOT("{'name':'a','ranks':4,'priority':2,'group_size':2,'placed':[{'node':'n1','ranks':2,'pinned':true},{'node'"
                         ":'n2','ranks':2}]}"),
                SNAPSHOT("{'name':'a','ranks':5,'priority':2,'group_size':2,'availability':{'n1':2,'n2':3}}"),
        };
        cleanup_free char *model = shipped_model();
        struct test_policy distrib;

        (void) state;
        test_policy_load(&distrib, "distrib");
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                cleanup_snapshot struct snapshot *snapshot = test_snapshot(cases[i]);
                cleanup_plan struct rm_plan *plan = NULL, *other = NULL;
                struct rm_error err = { 0 };
                struct runner runner;
                int64_t cost, least;

                begin(&runner, model);
                if (place(&runner, snapshot_view(snapshot), &plan) < 0)
                        fail_msg("%s", runner.said);
                if (plan_validate(snapshot_view(snapshot), plan, &err) < 0)
                        fail_msg("%s", err.text);
                assert_int_equal(test_policy_place(&distrib, snapshot_view(snapshot), &other), 0);
                assert_int_equal(cost_plan(snapshot_view(snapshot), plan, &cost), 0);
                assert_int_equal(cost_plan(snapshot_view(snapshot), other, &least), 0);
                assert_int_equal(cost, least);
                assert_string_equal(plan->method, "m.mod, optimal");
                policy_unload(&runner.policy);
        }
        test_policy_unload(&distrib);
}

static void serves_what_fits(void **state) {
        cleanup_snapshot struct snapshot *snapshot =
                test_snapshot(SNAPSHOT("{'name':'a','ranks':6,'priority':3},{'name':'b','ranks':6,'priority':1}"));
        cleanup_plan struct rm_plan *plan = NULL;
        cleanup_free char *model = shipped_model();
        struct runner runner;

        (void) state;
        begin(&runner, model);
        assert_int_equal(place(&runner, snapshot_view(snapshot), &plan), 0);
        assert_int_equal(plan->jobs[0].decision, RM_PLACE);
        assert_int_equal(plan->jobs[1].decision, RM_WAIT);
        policy_unload(&runner.policy);
}

/* ---- bad models ---- */

#define HEAD                                                                                                                       \
        "set NODES; set JOBS; param groups{JOBS}; set GROUPS{j in JOBS} := 0..groups[j] - 1;\n"                                    \
        "var place{j in JOBS, GROUPS[j], NODES}, binary;\n"

/* `n` brackets around a number, in the third line. */
static char *brackets(const char *before, unsigned n) {
        char *text = xcalloc(1, strlen(before) + 2 * (size_t) n + 96), *at = text + sprintf(text, "# ((\n%s\nparam x := ", before);

        memset(at, '(', n);
        at += n;
        *at++ = '1';
        memset(at, ')', n);
        strcpy(at + n, ";\nvar place{0..0, 0..0, 0..0}, binary;\nend;\n");
        return text;
}

/* GLPK would call itself until its stack is used up. */
static void not_too_deep(void **state) {
        cleanup_free char *good = brackets("/* ({[ */ param t symbolic := '(''(' & \"[\";#(\n", 499), *deep = brackets("", 100000);
        cleanup_snapshot struct snapshot *snapshot = test_snapshot(SNAPSHOT("{'name':'a','ranks':2,'priority':1}"));
        cleanup_plan struct rm_plan *plan = NULL;
        struct runner runner;

        (void) state;
        refuses(deep, "m.mod:3: more than 500 brackets inside each other");
        begin(&runner, good);
        if (place(&runner, snapshot_view(snapshot), &plan) < 0)
                fail_msg("%s", runner.said);
        policy_unload(&runner.policy);
}

static void says_what_is_wrong(void **state) {
        (void) state;
        refuses("set NODES;\nsett JOBS;\nend;\n", "m.mod:2: colon missing where expected Context: set NODES ; sett JOBS");
        refuses("param cores{NODES};\nend;\n", "m.mod:1: NODES not defined");
        refuses("set NODES;\nparam wishes{NODES};\nvar x;\nminimize c: sum{n in NODES} wishes[n] * x;\nend;\n",
                "m.mod:4: no value for wishes[0]");
        refuses("set NODES;\nvar x;\nminimize c: sum{n in NODES} 1 / (n - n) * x;\nend;\n",
                "m.mod:3: 1 / 0; floating-point zero divide");
        refuses(HEAD "never: sum{n in NODES} place[0,0,n] = 2;\nnot{n in NODES}: place[0,0,n] = 0;\nend;\n",
                "m.mod:4: invalid use of reserved keyword not");
        refuses(HEAD "never: sum{n in NODES} place[0,0,n] = 4;\nend;\n", "m.mod: no plan satisfies it");
        /* GLPK warns of this first, and would be quoted with that. */
        refuses("set NODES;\nset JOBS", "m.mod:2: syntax error in set statement");
        refuses("set NODES; set JOBS;\nvar Place{JOBS, 0..1, NODES}, binary;\nend;\n",
                "m.mod: it declares no var place{j in JOBS, GROUPS[j], NODES}, which is the plan");
        refuses("set NODES; set JOBS;\nvar place{JOBS, NODES}, binary;\nall{j in JOBS}: sum{n in NODES} place[j,n] = 1;\nend;\n",
                "m.mod: place[0,0] has other subscripts than place{JOBS, GROUPS[j], NODES}");
        refuses("var place, binary;\nall: place = 1;\nend;\n", "m.mod: place has other subscripts");
        refuses("set NODES; set JOBS;\nvar place{JOBS, 0..1, NODES}, <= 1;\nhalf{n in NODES}: place[0,0,n] = 0.5;\nend;\n",
                "m.mod: place[0,0,0] is 0.5, where only 0 and 1 mean something: is it binary?");
        refuses(HEAD "two: sum{n in NODES} place[0,0,n] = 2;\nend;\n", "m.mod: group 0 of job 'a' is on two nodes");
        refuses(HEAD "half: sum{n in NODES} place[0,0,n] = 1;\nnone: sum{n in NODES} place[0,1,n] = 0;\nend;\n",
                "m.mod: 1 of the 2 groups of job 'a' are on no node");
        refuses("var place{0..7, 0..7, 0..7}, binary;\nall: place[7,7,7] = 1;\nend;\n", "m.mod: there is no place[7,7,7]");
}

/* The texts are as some editors write them. */
static void strange_texts_are_read(void **state) {
        static const char *const models[] = { "\xef\xbb\xbf" HEAD "end;\n", HEAD "end;", HEAD,
                                              "set NODES;\r\nset JOBS;\r\nvar place{JOBS, 0..1, NODES}, binary;\r\nend;\r\n" };
        cleanup_snapshot struct snapshot *snapshot = test_snapshot(SNAPSHOT("{'name':'a','ranks':2,'priority':1}"));

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(models); i++) {
                cleanup_plan struct rm_plan *plan = NULL;
                struct runner runner;

                begin(&runner, models[i]);
                if (place(&runner, snapshot_view(snapshot), &plan) < 0)
                        fail_msg("%zu: %s", i, runner.said);
                assert_int_equal(plan->jobs[0].decision, RM_WAIT);
                policy_unload(&runner.policy);
        }
}

/* Data that the model writes and reads of files is ignored. */
static void data_of_its_own_is_ignored(void **state) {
        static const char model[] = HEAD "one{j in JOBS, g in GROUPS[j]}: sum{n in NODES} place[j,g,n] = 1;\n"
                                         "data;\nset NODES := 9;\nend;\n";
        cleanup_snapshot struct snapshot *snapshot = test_snapshot(SNAPSHOT("{'name':'a','ranks':2,'priority':1}"));
        cleanup_plan struct rm_plan *plan = NULL;
        struct runner runner;

        (void) state;
        begin(&runner, model);
        if (place(&runner, snapshot_view(snapshot), &plan) < 0)
                fail_msg("%s", runner.said);
        assert_int_equal(plan->jobs[0].decision, RM_PLACE);
        policy_unload(&runner.policy);
}

static void is_nothing_without_a_model(void **state) {
        struct runner runner = { .host = { .size = sizeof(runner.host), .log = on_log } };
        struct rm_error err = { 0 };

        (void) state;
        runner.host.context = &runner;
        assert_true(policy_load(&(struct policy_folders) { .own = getenv("TEST_POLICY_DIR") }, "mathprog", &runner.host,
                                &runner.policy, &err) < 0);
        assert_non_null(strstr(runner.said, "ask for one by its name"));
}

/* ---- edits, through the scheduler and the confined host ---- */

struct edits {
        struct event_base *base;
        struct scheduler *scheduler;
        char directory[64];
        char warnings[1024], policy[64];
        size_t n_starts;
};

static void write_model(const struct edits *edits, const char *text) {
        cleanup_free char *path = xasprintf("%s/mine.mod", edits->directory);

        assert_int_equal(write_file_atomic(path, text, strlen(text), 0600, false), 0);
}

static void add_policy(const struct edits *edits, const char *name) {
        cleanup_free char *from = xasprintf("%s/%s.so", getenv("TEST_POLICY_DIR"), name);
        cleanup_free char *to = xasprintf("%s/%s.so", edits->directory, name);

        assert_int_equal(symlink(from, to), 0);
}

static void on_done(void *context, const struct rm_snapshot *snapshot, const struct round_result *result, const char *warnings) {
        struct edits *edits = context;

        (void) snapshot;
        (void) snprintf(edits->warnings, sizeof(edits->warnings), "%s", warnings);
        (void) snprintf(edits->policy, sizeof(edits->policy), "%s", result->jobs[0].policy);
        edits->n_starts = result->n_actions;
        (void) event_base_loopbreak(edits->base);
}

static void one_round(struct edits *edits) {
        struct rm_error err = { 0 };

        if (scheduler_run(edits->scheduler, test_snapshot(SNAPSHOT("{'name':'a','ranks':2,'priority':1}")), NULL, on_done, edits,
                          &err) < 0)
                fail_msg("%s", err.text);
        (void) event_base_dispatch(edits->base);
        assert_int_equal(edits->n_starts, 1);
}

static void a_bad_edit_leaves_the_last_good_model(void **state) {
        struct edits edits = { .directory = "/tmp/rmd-test-models-XXXXXX" };
        cleanup_free char *good = shipped_model();
        struct scheduler_config config = { .policy = "mine", .budget_usec = 20 * 1000 * 1000 };

        (void) state;
        assert_non_null(mkdtemp(edits.directory));
        assert_int_equal(chmod(edits.directory, 0755), 0); /* policies are loaded by nobody */
        add_policy(&edits, "greedy");
        add_policy(&edits, "mathprog");
        config.host = (struct policy_host_config) { .program = getenv("TEST_POLICY_HOST"), .directory = edits.directory };
        edits.base = event_base_new();
        edits.scheduler = scheduler_create(edits.base, &config);

        write_model(&edits, "set NODES\n");
        one_round(&edits); /* nothing good is known yet */
        assert_string_equal(edits.policy, "greedy");
        assert_non_null(strstr(edits.warnings, "mine.mod:1: "));
        write_model(&edits, good);
        one_round(&edits);
        assert_string_equal(edits.policy, "mine");
        assert_string_equal(edits.warnings, "");
        write_model(&edits, "set NODES;\nset JOBS\n");
        one_round(&edits);
        assert_string_equal(edits.policy, "mine");
        assert_non_null(strstr(edits.warnings, "mine.mod:2: "));
        assert_non_null(strstr(edits.warnings, "using its last valid version"));

        scheduler_destroy(edits.scheduler);
        event_base_free(edits.base);
        (void) remove_tree(edits.directory);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(does_what_distrib_does),
                cmocka_unit_test(serves_what_fits),
                cmocka_unit_test(says_what_is_wrong),
                cmocka_unit_test(strange_texts_are_read),
                cmocka_unit_test(not_too_deep),
                cmocka_unit_test(data_of_its_own_is_ignored),
                cmocka_unit_test(is_nothing_without_a_model),
                cmocka_unit_test(a_bad_edit_leaves_the_last_good_model),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
