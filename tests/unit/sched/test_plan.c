/* Plans: their JSON, and refusing the ones that must not be carried out. */
#include <string.h>

#include "common/util.h"
#include "tests/unit/sched/sched_test.h"

static struct snapshot *two_jobs(void) {
        return test_snapshot(
                "{'version':1,'nodes':[{'name':'n1','cores':4,'penalty':1},{'name':'n2','cores':3,'penalty':1}],'jobs':["
                "{'name':'j1','ranks':4,'group_size':2,'priority':1,'placed':[{'node':'n1','ranks':2},{'node':'n2','ranks':2,"
                "'pinned':true}]},{'name':'j2','ranks':3,'priority':1,'availability':{'n2':1}}]}");
}

static struct rm_plan *good_plan(const struct rm_snapshot *snapshot) {
        struct rm_plan *plan = plan_create(snapshot);

        plan->jobs[0].decision = plan->jobs[1].decision = RM_PLACE;
        plan->jobs[0].group_node[0] = 0;
        plan->jobs[0].group_node[1] = 1;
        plan->jobs[1].group_node[0] = 0;
        plan->jobs[1].group_node[1] = 1;
        plan->jobs[1].group_node[2] = 0;
        return plan;
}

static void refused(struct snapshot *snapshot, struct rm_plan *plan, const char *expected) {
        struct rm_error err = { 0 };

        assert_int_equal(plan_validate(snapshot_view(snapshot), plan, &err), -EINVAL);
        if (!strstr(error_text(&err), expected))
                fail_msg("\"%s\" does not say \"%s\"", error_text(&err), expected);
}

static void validation(void **state) {
        cleanup_snapshot struct snapshot *snapshot = two_jobs();
        cleanup_plan struct rm_plan *plan = good_plan(snapshot_view(snapshot));
        struct rm_error err = { 0 };

        (void) state;
        assert_int_equal(plan_validate(snapshot_view(snapshot), plan, &err), 0);
        plan->jobs[0].decision = RM_WAIT;
        refused(snapshot, plan, "job 'j1' is running, but the plan lets it wait");
        plan->jobs[0].decision = 77;
        refused(snapshot, plan, "decision 77");
        plan->jobs[0].decision = RM_PLACE;
        plan->jobs[0].group_node[0] = 2;
        refused(snapshot, plan, "node number 2");
        plan->jobs[0].group_node[0] = -1;
        refused(snapshot, plan, "node number -1");
        plan->jobs[0].group_node[0] = 1;
        refused(snapshot, plan, "node 'n2' gets 5 ranks, but has 3 cores");
        plan->jobs[0].group_node[0] = plan->jobs[0].group_node[1] = 0;
        refused(snapshot, plan, "group 1 must stay on 'n2', but is placed on 'n1'");
        plan->jobs[0].group_node[1] = 1;
        plan->jobs[1].group_node[0] = 1;
        refused(snapshot, plan, "job 'j2': 2 ranks on 'n2', but its availability allows 1");
        plan->jobs[1].group_node[0] = 0;
        plan->jobs[1].rank_core[0] = 4;
        refused(snapshot, plan, "core 4 of 'n1', which has 4");
        plan->jobs[1].rank_core[0] = 3;
        plan->jobs[1].rank_core[1] = 2;
        assert_int_equal(plan_validate(snapshot_view(snapshot), plan, &err), 0);
        plan->jobs[0].rank_core[0] = 3;
        refused(snapshot, plan, "core 3 of 'n1' is given twice");
        plan->n_jobs = 1;
        refused(snapshot, plan, "the plan has 1 jobs, expected 2");
        plan->n_jobs = 2;
}

static void json_and_back(void **state) {
        cleanup_snapshot struct snapshot *snapshot = two_jobs();
        struct plan_answer answer = { .policy = "greedy", .cost = 17, .time_usec = 5, .plan = good_plan(snapshot_view(snapshot)) };
        struct plan_answer again = { 0 };
        cleanup_free char *text = NULL, *text_again = NULL;
        struct rm_error err = { 0 };
        json_t *json;

        (void) state;
        answer.plan->jobs[0].rank_core[1] = 2;
        answer.plan->jobs[1].decision = RM_WAIT;
        (void) strcpy(answer.plan->jobs[1].reason, "no \"luck\"");
        (void) strcpy(answer.plan->method, "by hand");
        answer.plan->bound = 12;
        json = plan_to_json(&answer, snapshot_view(snapshot));
        text = json_dumps(json, JSON_COMPACT);
        json_decref(json);
        assert_string_equal(
                text, "{\"policy\":\"greedy\",\"method\":\"by hand\",\"cost\":17,\"bound\":12,\"proven\":false,\"time_usec\":5,"
                      "\"placement\":[{\"job\":\"j1\",\"node\":\"n1\",\"ranks\":2},{\"job\":\"j1\",\"node\":\"n2\",\"ranks\":2}],"
                      "\"waiting\":[\"j2\"],\"reasons\":{\"j2\":\"no \\\"luck\\\"\"},\"mapping\":{\"j1\":[[1,\"n1\",2]]}}");
        if (plan_parse(text, strlen(text), snapshot_view(snapshot), &again, &err) < 0)
                fail_msg("%s", error_text(&err));
        json = plan_to_json(&again, snapshot_view(snapshot));
        text_again = json_dumps(json, JSON_COMPACT);
        json_decref(json);
        assert_string_equal(text, text_again);
        plan_answer_finish(&answer);
        plan_answer_finish(&again);
}

static void bad_json(void **state) {
        static const struct {
                const char *placement, *waiting, *expected;
        } cases[] = {
                { "{'job':'j1','node':'n1','ranks':4}", "'j2'", NULL },
                { "{'job':'j1','node':'n1','ranks':4}", "", "'j2' is neither placed as a whole nor waiting (0 of 3 groups)" },
                { "{'job':'j1','node':'n1','ranks':2}", "'j2'", "(1 of 2 groups)" },
                { "{'job':'j1','node':'n1','ranks':3}", "'j2'", "do not make whole groups" },
                { "{'job':'j1','node':'n1','ranks':6}", "'j2'", "do not make whole groups" },
                { "{'job':'j1','node':'n3','ranks':4}", "'j2'", "no node 'n3'" },
                { "{'job':'j9','node':'n1','ranks':4}", "'j2'", "no job 'j9'" },
                { "{'job':'j1','node':'n1','ranks':0}", "'j2'", "is 0" },
                { "{'job':'j1','node':'n1','ranks':4,'core':1}", "'j2'", "unknown field" },
                { "{'job':'j1','node':'n1','ranks':4}", "'j2','j2'", "waits twice" },
                { "{'job':'j1','node':'n1','ranks':4}", "'j2','j1'", "waits and is placed" },
                { "{'job':'j1','node':'n1','ranks':4}", "'j2',7", "waiting[1] is not" },
        };
        cleanup_snapshot struct snapshot *snapshot = two_jobs();

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                cleanup_free char *text =
                        xasprintf("{'policy':'p','method':'','cost':0,'time_usec':0,'placement':[%s],'waiting':[%s]}",
                                  cases[i].placement, cases[i].waiting);
                struct plan_answer answer = { 0 };
                struct rm_error err = { 0 };

                for (char *c = text; *c; c++)
                        if (*c == '\'')
                                *c = '"';
                assert_int_equal(plan_parse(text, strlen(text), snapshot_view(snapshot), &answer, &err),
                                 cases[i].expected ? -EINVAL : 0);
                if (cases[i].expected && !strstr(error_text(&err), cases[i].expected))
                        fail_msg("\"%s\" does not say \"%s\"", error_text(&err), cases[i].expected);
                plan_answer_finish(&answer);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(validation),
                cmocka_unit_test(json_and_back),
                cmocka_unit_test(bad_json),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
