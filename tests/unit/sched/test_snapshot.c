/* Reading snapshots: the minimal form, everything optional, and every way to get it wrong. */
#include <stdio.h>
#include <string.h>

#include "common/util.h"
#include "tests/unit/sched/sched_test.h"

#define NODE "{'name':'n1','cores':4,'penalty':1}"
#define JOB "{'name':'j1','ranks':5,'priority':2}"
#define SNAPSHOT(nodes, jobs) "{'version':1,'nodes':[" nodes "],'jobs':[" jobs "]}"

static void minimal_form(void **state) {
        cleanup_snapshot struct snapshot *snapshot =
                test_snapshot("{'version':1,'params':{'distribution_weight':7},'nodes':[{'name':'n1','cores':16,'penalty':3}],"
                              "'jobs':[{'name':'j1','ranks':8,'priority':5,'traffic':[[0,1,1048576],[1,0,24],[7,2,1]]}]}");
        const struct rm_snapshot *view = snapshot_view(snapshot);
        const struct rm_job *job = &view->jobs[0];

        (void) state;
        assert_int_equal(view->n_nodes, 1);
        assert_int_equal(view->nodes[0].cores, 16);
        assert_int_equal(view->nodes[0].penalty, 3);
        assert_int_equal(view->nodes[0].switch_index, RM_NO_NODE);
        assert_int_equal(view->params.distribution_weight, 7);
        assert_int_equal(view->params.age_weight, 1);
        assert_int_equal(job->n_groups, 8);
        assert_int_equal(job->groups[7].first_rank, 7);
        assert_int_equal(job->groups[7].node, RM_NO_NODE);
        assert_null(job->node_limit);
        /* both directions are added up, and stand in both rows */
        assert_int_equal(job->traffic.offset[8], 4);
        assert_int_equal(job->traffic.peer[0], 1);
        assert_int_equal(job->traffic.bytes[0], 1048600);
        assert_int_equal(job->traffic.bytes[1], 1048600);
        assert_int_equal(job->traffic.offset[2], 2);
        assert_int_equal(job->traffic.peer[2], 7);
        assert_int_equal(job->traffic.peer[3], 2);
}

/* The written JSON is read again, also where both ways together are more than a reader takes for
 * one. */
static void most_traffic_and_back(void **state) {
        cleanup_snapshot struct snapshot *snapshot =
                test_snapshot("{'version':1,'nodes':[],'jobs':[{'name':'j1','ranks':2,'priority':1,"
                              "'traffic':[[0,1,4503599627370496],[1,0,4503599627370496]]}]}");
        cleanup_snapshot struct snapshot *again = NULL;
        json_t *json = snapshot_to_json(snapshot_view(snapshot));
        cleanup_free char *text = json_dumps(json, 0);
        struct rm_error err = { 0 };

        (void) state;
        json_decref(json);
        if (snapshot_parse(text, strlen(text), &again, &err) < 0)
                fail_msg("%s", error_text(&err));
        assert_true(snapshot_view(again)->jobs[0].traffic.bytes[0] == UINT64_C(1) << 53);
}

static const char full_form[] =
        "{'version':1,'x_made_by':{'any':'thing'},'params':{'distribution_weight':0,'age_weight':3,'backfill':true},'nodes':["
        "{'name':'n1','cores':4.0,'penalty':0,'state':'DRAINING','topology':'package:2 core:2','switch':['s1','s0']},"
        "{'name':'n2','cores':0,'penalty':9,'state':'DOWN','switch':['s2','s0']},{'name':'n3','cores':8,'penalty':1,'switch':['s1']"
        "}],"
        "'jobs':[{'name':'j1','ranks':7,'group_size':2,'priority':0,'age':4,'policy':'distrib','time_limit_usec':60000000,"
        "'move_cost':[1,2,3,4],'availability':{'n2':0,'n3':5},"
        "'placed':[{'node':'n3','ranks':2},{'node':null,'ranks':2},{'node':'n1','ranks':3,'pinned':true}]}]}";

static void check_full(const struct rm_snapshot *view) {
        const struct rm_job *job = &view->jobs[0];

        assert_int_equal(view->params.backfill, 1);
        assert_int_equal(view->nodes[0].state, RM_NODE_DRAINING);
        assert_string_equal(view->nodes[0].topology, "package:2 core:2");
        assert_int_equal(view->n_switches, 3);
        assert_int_equal(view->switches[view->nodes[0].switch_index].parent, view->switches[view->nodes[1].switch_index].parent);
        assert_int_equal(view->nodes[0].switch_index, view->nodes[2].switch_index);
        assert_int_equal(job->n_groups, 4);
        assert_int_equal(job->groups[3].ranks, 1);
        assert_int_equal(job->groups[0].node, 2);
        assert_int_equal(job->groups[1].node, RM_NO_NODE);
        assert_int_equal(job->groups[2].node, 0);
        assert_int_equal(job->groups[3].node, 0);
        assert_int_equal(job->groups[3].flags, RM_GROUP_PINNED);
        assert_int_equal(job->groups[3].move_cost, 4);
        assert_int_equal(job->node_limit[0], RM_NO_LIMIT);
        assert_int_equal(job->node_limit[2], 5);
        assert_string_equal(job->policy, "distrib");
        assert_int_equal(job->time_limit_usec, 60000000);
}

static void full_form_and_back(void **state) {
        cleanup_snapshot struct snapshot *snapshot = test_snapshot(full_form), *again = NULL, *copy = NULL;
        cleanup_free char *text = NULL, *text_again = NULL;
        json_t *json, *json_again;
        struct rm_error err = { 0 };

        (void) state;
        check_full(snapshot_view(snapshot));
        json = snapshot_to_json(snapshot_view(snapshot));
        text = json_dumps(json, JSON_SORT_KEYS);
        if (snapshot_parse(text, strlen(text), &again, &err) < 0)
                fail_msg("%s", error_text(&err));
        check_full(snapshot_view(again));
        copy = snapshot_copy(snapshot_view(again), NULL);
        check_full(snapshot_view(copy));
        json_again = snapshot_to_json(snapshot_view(copy));
        text_again = json_dumps(json_again, JSON_SORT_KEYS);
        assert_string_equal(text, text_again);
        json_decref(json);
        json_decref(json_again);
}

/* A copy shares what it can; what is written to it does not show in the source, nor what is
 * added. */
static void copies_are_apart(void **state) {
        cleanup_snapshot struct snapshot *snapshot = test_snapshot(full_form), *copy = NULL;
        const struct rm_snapshot *source = snapshot_view(snapshot), *view;
        uint32_t cores = source->nodes[0].cores, n_nodes = source->n_nodes, n_switches = source->n_switches,
                 n_jobs = source->n_jobs;
        bool *requested = xcalloc(n_jobs + 1u, sizeof(*requested));

        (void) state;
        copy = snapshot_copy(source, NULL);
        view = snapshot_view(copy);
        snapshot_node(copy, 0)->cores = cores + 7;
        snapshot_group(copy, 0, 2)->node = 1;
        snapshot_group(copy, 0, 1)->flags |= RM_GROUP_PINNED;
        snapshot_add_node(copy, "another", 3);
        snapshot_set_parent(copy, snapshot_add_switch(copy, "other"), 0);
        snapshot_add_job(copy, "new", 5, 2)->priority = 4;
        snapshot_group(copy, view->n_jobs - 1, 1)->node = 0;
        snapshot_params(copy)->backfill = 1;
        check_full(source);
        assert_int_equal(source->nodes[0].cores, cores);
        assert_int_equal(source->n_nodes, n_nodes);
        assert_int_equal(source->n_switches, n_switches);
        assert_int_equal(source->n_jobs, n_jobs);
        assert_int_equal(view->nodes[0].cores, cores + 7);
        assert_int_equal(view->jobs[0].groups[2].node, 1);
        assert_int_equal(view->jobs[0].groups[0].node, source->jobs[0].groups[0].node);
        assert_int_equal(view->jobs[view->n_jobs - 1].groups[1].node, 0);
        assert_string_equal(view->nodes[n_nodes].name, "another");
        assert_int_equal(view->switches[n_switches].parent, 0);
        snapshot_destroy(copy);
        copy = snapshot_copy(source, requested); /* none */
        assert_int_equal(snapshot_view(copy)->n_jobs, 0);
        assert_int_equal(snapshot_view(copy)->n_nodes, n_nodes);
        free(requested);
}

static void wrong(const char *text, const char *expected) {
        const char *error = test_snapshot_error(text);

        if (!strstr(error, expected))
                fail_msg("of %s:\n  \"%s\" does not say \"%s\"", text, error, expected);
        if (strchr(error, '\n'))
                fail_msg("more than one line: %s", error);
}

static void wrong_text(void **state) {
        (void) state;
        wrong("", "not valid JSON");
        wrong("[]", "top level must be an object");
        wrong("{'version':1", "line 1");
        wrong(SNAPSHOT(NODE, JOB) "x", "not valid JSON");
        wrong("{'version':1,'version':1}", "duplicate");
        wrong("{'nodes':[],'jobs':[]}", "top level: field \"version\" is missing");
        wrong("{'version':2,'nodes':[],'jobs':[]}", "\"version\" must be a whole number from 1 to 1");
        wrong("{'version':1,'jobs':[]}", "\"nodes\" is missing");
        wrong("{'version':1,'nodes':{},'jobs':[]}", "\"nodes\" must be an array");
        wrong("{'version':1,'nodes':[],'jobs':[],'job':[]}", "unknown field \"job\"");
        wrong("{'version':1,'params':{'backfill':1},'nodes':[],'jobs':[]}", "true or false");
        wrong("{'version':1,'params':{'distribution_weight':-1},'nodes':[],'jobs':[]}", "from 0 to");
}

static void wrong_nodes(void **state) {
        (void) state;
        wrong(SNAPSHOT("7", ""), "nodes[0] must be an object");
        wrong(SNAPSHOT("{'cores':4,'penalty':1}", ""), "nodes[0]: field \"name\" is missing");
        wrong(SNAPSHOT("{'name':'n1','penalty':1}", ""), "\"cores\" is missing");
        wrong(SNAPSHOT("{'name':'n1','cores':4}", ""), "\"penalty\" is missing");
        wrong(SNAPSHOT("{'name':'','cores':4,'penalty':1}", ""), "\"name\" must be");
        wrong(SNAPSHOT("{'name':'a b','cores':4,'penalty':1}", ""), "\"name\" must be");
        wrong(SNAPSHOT("{'name':'n1','cores':-4,'penalty':1}", ""), "is -4");
        wrong(SNAPSHOT("{'name':'n1','cores':NaN,'penalty':1}", ""), "not valid JSON");
        wrong(SNAPSHOT("{'name':'n1','cores':1.5,'penalty':1}", ""), "is 1.5");
        wrong(SNAPSHOT("{'name':'n1','cores':'4','penalty':1}", ""), "must be a whole number");
        wrong(SNAPSHOT("{'name':'n1','cores':null,'penalty':1}", ""), "must be a whole number");
        wrong(SNAPSHOT("{'name':'n1','cores':4,'penalty':9223372036854775808}", ""), "not valid JSON");
        wrong(SNAPSHOT("{'name':'n1','cores':4,'penalty':9007199254740993}", ""), "to 9007199254740992");
        wrong(SNAPSHOT("{'name':'n1','cores':4,'penalty':1e300}", ""), "is 1e+300");
        wrong(SNAPSHOT("{'name':'n1','cores':4,'penalty':1e999}", ""), "not valid JSON");
        wrong(SNAPSHOT(NODE "," NODE, ""), "node 'n1' is defined twice");
        wrong(SNAPSHOT(NODE ",{'name':'n2','cores':1,'penalty':0}," NODE, ""), "node 'n1' is defined twice");
        wrong(SNAPSHOT("{'name':'n10','cores':1,'penalty':0}," NODE "," NODE, ""), "node 'n1' is defined twice");
        wrong(SNAPSHOT("{'name':'n1','cores':4,'penalty':1,'state':'TIRED'}", ""), "state must be IDLE");
        wrong(SNAPSHOT("{'name':'n1','cores':4,'penalty':1,'switch':'s'}", ""), "\"switch\" must be an array");
        wrong(SNAPSHOT("{'name':'n1','cores':4,'penalty':1,'switch':[1]}", ""), "array of names");
        wrong(SNAPSHOT("{'name':'n1','cores':4,'penalty':1,'switch':['s','s']}", ""), "cycle");
        wrong(SNAPSHOT("{'name':'n1','cores':4,'penalty':1,'switch':['a','b']},{'name':'n2','cores':4,'penalty':1,'switch':['b','a'"
                       "]}",
                       ""),
              "cycle");
        wrong(SNAPSHOT("{'name':'n1','cores':4,'penalty':1,'switch':['a','b']},{'name':'n2','cores':4,'penalty':1,'switch':['a','c'"
                       "]}",
                       ""),
              "its parent is 'c' here and 'b' elsewhere");
}

/* Node i hangs on switches i * step .. i * step + length - 1, each below the next. */
static char *many_switches(uint32_t nodes, uint32_t step, uint32_t length) {
        char *text = NULL;
        size_t size_bytes;
        FILE *out = open_memstream(&text, &size_bytes);

        assert_non_null(out);
        (void) fprintf(out, "{'version':1,'jobs':[],'nodes':[");
        for (uint32_t i = 0; i < nodes; i++) {
                (void) fprintf(out, "%s{'name':'n%u','cores':1,'penalty':0,'switch':[", i ? "," : "", i);
                for (uint32_t k = 0; k < length; k++)
                        (void) fprintf(out, "%s's%u'", k ? "," : "", i * step + k);
                (void) fprintf(out, "]}");
        }
        (void) fprintf(out, "]}");
        assert_int_equal(fclose(out), 0);
        return text;
}

/* The switches are as many as a hostile snapshot has room for, and a tower of them that no single
 * node shows. */
static void too_many_switches(void **state) {
        cleanup_free char *good = many_switches(1000, 100, 64);
        cleanup_free char *tower = many_switches(3, 39, 40);
        cleanup_free char *flat = many_switches(60000, 2, 2);
        cleanup_snapshot struct snapshot *snapshot = test_snapshot(good);

        (void) state;
        assert_int_equal(snapshot_view(snapshot)->n_switches, 64000);
        assert_int_equal(snapshot_view(snapshot)->nodes[999].switch_index, 63936);
        wrong(tower, "more than 63 levels above it");
        wrong(flat, "nodes[50000]: more than 100000 switches in all");
}

static void wrong_jobs(void **state) {
        (void) state;
        wrong(SNAPSHOT(NODE, "{'name':'j1','priority':1}"), "jobs[0]: field \"ranks\" is missing");
        wrong(SNAPSHOT(NODE, "{'name':'j1','ranks':4}"), "\"priority\" is missing");
        wrong(SNAPSHOT(NODE, "{'name':'j1','ranks':0,'priority':1}"), "is 0");
        wrong(SNAPSHOT(NODE, "{'name':'j1','ranks':4,'priority':-1}"), "is -1");
        wrong(SNAPSHOT(NODE, "{'name':'j1','ranks':4,'priority':1,'group_size':5}"), "from 1 to 4, is 5");
        wrong(SNAPSHOT(NODE, JOB "," JOB), "job 'j1' is defined twice");
        wrong(SNAPSHOT(NODE, "{'name':'j1','ranks':4,'priority':1,'prioritie':1}"), "unknown field \"prioritie\"");
        wrong(SNAPSHOT(NODE, "{'name':'j1','ranks':4,'priority':1,'placed':[{'node':'n2','ranks':1}]}"), "there is no node 'n2'");
        wrong(SNAPSHOT(NODE, "{'name':'j1','ranks':4,'priority':1,'placed':[{'node':'n1','ranks':3},{'node':'n1','ranks':2}]}"),
              "more ranks");
        wrong(SNAPSHOT(NODE, "{'name':'j1','ranks':4,'group_size':2,'priority':1,'placed':[{'node':'n1','ranks':1}]}"),
              "splits group 0");
        wrong(SNAPSHOT(NODE, "{'name':'j1','ranks':4,'priority':1,'placed':[{'node':null,'ranks':1,'pinned':true}]}"),
              "pinned to no node");
        wrong(SNAPSHOT(NODE, "{'name':'j1','ranks':4,'priority':1,'move_cost':[1]}"), "one number or 4");
        wrong(SNAPSHOT(NODE, "{'name':'j1','ranks':4,'priority':1,'move_cost':'x'}"), "must be a whole number");
        wrong(SNAPSHOT(NODE, "{'name':'j1','ranks':4,'priority':1,'availability':{'n7':1}}"), "'n7': there is no such node");
        wrong(SNAPSHOT(NODE, "{'name':'j1','ranks':4,'priority':1,'availability':[]}"), "must be an object");
        wrong(SNAPSHOT(NODE, "{'name':'j1','ranks':4,'priority':1,'traffic':[[0,4,1]]}"),
              "jobs[0]: traffic[0][1] must be a whole number from 0 to 3, is 4");
        wrong(SNAPSHOT(NODE, "{'name':'j1','ranks':4,'priority':1,'traffic':[[0,0,1]]}"), "talk to itself");
        wrong(SNAPSHOT(NODE, "{'name':'j1','ranks':4,'priority':1,'traffic':[[0,1,1],[0,1,1]]}"), "given twice");
        wrong(SNAPSHOT(NODE, "{'name':'j1','ranks':4,'priority':1,'traffic':[[0,1]]}"), "[rank, rank, bytes]");
        wrong(SNAPSHOT("{'name':'n1','cores':4,'penalty':1000000000000}", "{'name':'j1','ranks':4,'priority':1000000}"),
              "exceed 2^53");
        wrong(SNAPSHOT(NODE, "{'name':'j1','ranks':2000000,'priority':1}"), "is 2000000");
}

/* Any damage to a good text ends in an error or in a snapshot that passes its checks, never in
 * anything else. */
static void damaged_text(void **state) {
        struct dice dice = { 42 };
        size_t size = sizeof(full_form) - 1;

        (void) state;
        for (int i = 0; i < 20000; i++) {
                char text[sizeof(full_form)];
                struct snapshot *snapshot = NULL;
                struct rm_error err = { 0 };

                for (size_t k = 0; k < sizeof(text); k++)
                        text[k] = full_form[k] == '\'' ? '"' : full_form[k];
                for (uint32_t k = 1 + dice_roll(&dice, 3); k > 0; k--)
                        text[dice_roll(&dice, (uint32_t) size)] =
                                dice_roll(&dice, 3) ? (char) ('0' + dice_roll(&dice, 10)) : (char) dice_roll(&dice, 256);
                if (snapshot_parse(text, dice_roll(&dice, 4) ? size : dice_roll(&dice, (uint32_t) size), &snapshot, &err) == 0) {
                        assert_int_equal(snapshot_check(snapshot_view(snapshot), &err), 0);
                        snapshot_destroy(snapshot);
                } else
                        assert_true(err.text[0] != '\0');
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(minimal_form),     cmocka_unit_test(full_form_and_back), cmocka_unit_test(most_traffic_and_back),
                cmocka_unit_test(copies_are_apart), cmocka_unit_test(wrong_text),         cmocka_unit_test(wrong_nodes),
                cmocka_unit_test(wrong_jobs),       cmocka_unit_test(damaged_text),       cmocka_unit_test(too_many_switches),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
