/* Nodes that are kept free for a job: who gets which, who may use them, and when. */
#include <string.h>

#include "common/text.h"
#include "common/util.h"
#include "daemon/sched/round.h"
#include "tests/unit/sched/sched_test.h"

#define NODE(name, cores) "{'name':'" name "','cores':" #cores ",'penalty':0}"
#define FOUR "'nodes':[" NODE("n1", 4) "," NODE("n2", 4) "," NODE("n3", 4) "," NODE("n4", 4) "]"
#define SNAPSHOT(nodes, jobs) "{'version':1," nodes ",'jobs':[" jobs "]}"
#define RUNS(name, node, ranks)                                                                                                    \
        "{'name':'" name "','ranks':" #ranks ",'priority':1,'placed':[{'node':'" node "','ranks':" #ranks "}]}"
#define NEW(name, ranks) "{'name':'" name "','ranks':" #ranks ",'priority':1}"
#define NOT_MOVING .head_node = RM_NO_NODE, .head_moving_to = RM_NO_NODE

struct fixture {
        struct snapshot *snapshot;
        struct round_result *result;
        char did[256]; /* "start a on n1 n1 spare n2; " */
};

static void report(struct fixture *f, const char *word, const int32_t *nodes, uint32_t n) {
        size_t used = strlen(f->did);

        used += (size_t) snprintf(f->did + used, sizeof(f->did) - used, " %s", word);
        for (uint32_t i = 0; i < n; i++)
                used += (size_t) snprintf(f->did + used, sizeof(f->did) - used, " %s",
                                          snapshot_view(f->snapshot)->nodes[nodes[i]].name);
}

static void note(struct fixture *f, const struct round_action *action) {
        const struct rm_job *job = &snapshot_view(f->snapshot)->jobs[action->job];

        (void) strcat(f->did, job->name);
        if (action->kind == ROUND_MOVE)
                report(f, "goes to", &action->to, 1);
        if (action->kind == ROUND_START)
                report(f, "starts on", action->group_node, job->n_groups);
        if (action->kind == ROUND_RESERVE || action->n_spare_nodes > 0)
                report(f, "keeps", action->spare_nodes, action->n_spare_nodes);
        (void) strcat(f->did, "; ");
}

static void run(struct fixture *f, const char *text, const struct round_job *jobs) {
        *f = (struct fixture) { .snapshot = test_snapshot(text) };
        f->result = test_round("greedy", snapshot_view(f->snapshot), jobs);
        for (size_t i = 0; i < f->result->n_actions; i++)
                note(f, &f->result->actions[i]);
}

static void finish(struct fixture *f) {
        round_result_destroy(f->result);
        snapshot_destroy(f->snapshot);
}

static void starts_with_its_spares(void **state) {
        const struct round_job jobs[] = { { NOT_MOVING, .spares = 2 }, { NOT_MOVING } };
        struct fixture f;

        (void) state;
        run(&f, SNAPSHOT(FOUR, NEW("a", 2) "," NEW("b", 2)), jobs);
        assert_string_equal(f.did, "a starts on n1 n1 keeps n2 n3; b starts on n1 n1; ");
        finish(&f);
}

/* The job waits until there are enough, and no job behind it takes them; one that asks for more
 * than there could be holds up no others. */
static void waits_for_spares(void **state) {
        struct round_job jobs[] = { { NOT_MOVING }, { NOT_MOVING, .spares = 3 }, { NOT_MOVING } };
        static const char *const text = SNAPSHOT(FOUR, RUNS("a", "n1", 4) "," NEW("b", 4) "," NEW("c", 1));
        struct fixture f;

        (void) state;
        run(&f, text, jobs);
        assert_string_equal(f.did, "");
        assert_string_equal(f.result->jobs[1].reason, "waits for 3 spare nodes; 1 is idle");
        assert_string_equal(f.result->jobs[2].reason, "waits behind job 'b', which waits for spare nodes");
        finish(&f);
        jobs[1].spares = 4;
        run(&f, text, jobs);
        assert_string_equal(f.did, "c starts on n3; ");
        finish(&f);
}

/* The policy does not even see them as nodes with cores, its own job's neither. */
static void nobody_is_placed_on_them(void **state) {
        static const int32_t spare[] = { 1 };
        const struct round_job jobs[] = { { NOT_MOVING, .spares = 1, .spare_nodes = spare, .n_spare_nodes = 1 }, { NOT_MOVING } };
        struct fixture f;

        (void) state;
        run(&f, SNAPSHOT("'nodes':[" NODE("n1", 4) "," NODE("n2", 4) "]", RUNS("a", "n1", 2) "," NEW("b", 4)), jobs);
        assert_string_equal(f.did, "");
        assert_string_equal(f.result->jobs[1].reason, "waits for 2 more cores; 2 of 4 usable are free");
        finish(&f);
}

/* The job's node is to be left: it goes to its spare, others may not, and an idle node is the next
 * spare. */
static void goes_to_its_spare(void **state) {
        static const int32_t spare[] = { 2 };
        struct round_job jobs[] = { { NOT_MOVING, .spares = 1, .spare_nodes = spare, .n_spare_nodes = 1 },
                                    { NOT_MOVING },
                                    { NOT_MOVING } };
        static const char *const text =
                SNAPSHOT("'nodes':[" NODE("n1", 0) "," NODE("n2", 2) "," NODE("n3", 4) "," NODE("n4", 4) "]",
                         RUNS("a", "n1", 2) "," RUNS("b", "n2", 2) "," RUNS("c", "n4", 4));
        struct fixture f;

        (void) state;
        run(&f, text, jobs);
        assert_string_equal(f.did, "a goes to n3; a goes to n3; a keeps; ");
        finish(&f);
}

static void a_spare_that_is_used_is_replaced(void **state) {
        static const int32_t spare[] = { 2 };
        const struct round_job jobs[] = { { NOT_MOVING, .spares = 1, .spare_nodes = spare, .n_spare_nodes = 1 } };
        struct fixture f;

        (void) state;
        run(&f, SNAPSHOT(FOUR, RUNS("a", "n3", 2)), jobs);
        assert_string_equal(f.did, "a keeps n1; ");
        finish(&f);
        /* All is well: nothing to say. */
        run(&f, SNAPSHOT(FOUR, RUNS("a", "n1", 2)), jobs);
        assert_string_equal(f.did, "");
        finish(&f);
}

/* ---- a pool for all ---- */

static const bool pool[] = { false, false, false, true };
#define IN_POOL NOT_MOVING, .pool = pool

/* Nothing starts there, no job has one of it as its own spare, and a job that waits is told. */
static void nobody_starts_in_the_pool(void **state) {
        const struct round_job jobs[] = { { IN_POOL, .uses_pool = true }, { IN_POOL } };
        const struct round_job spares[] = { { IN_POOL, .spares = 3 } };
        struct fixture f;

        (void) state;
        run(&f, SNAPSHOT(FOUR, RUNS("a", "n1", 4) "," NEW("b", 12)), jobs);
        assert_string_equal(f.did, "");
        assert_string_equal(f.result->jobs[1].reason,
                            "waits for 4 more cores; 8 of 12 usable are free; n4 is kept free (spare_nodes)");
        finish(&f);
        run(&f, SNAPSHOT(FOUR, RUNS("a", "n1", 4) "," NEW("b", 8)), jobs);
        assert_string_equal(f.did, "b starts on n2 n2 n2 n2 n3 n3 n3 n3; ");
        finish(&f);
        run(&f, SNAPSHOT(FOUR, NEW("a", 2)), spares);
        assert_string_equal(f.did, "");
        assert_string_equal(f.result->jobs[0].reason, "waits for 3 spare nodes; 2 are idle");
        finish(&f);
}

/* The job's node is to be left, or the job starts again after a loss: there is room for it, and for
 * no other. */
static void who_needs_room_goes_to_the_pool(void **state) {
        static const char *const nodes = "'nodes':[" NODE("n1", 0) "," NODE("n2", 4) "," NODE("n3", 4) "," NODE("n4", 4) "]";
        const struct round_job jobs[] = { { IN_POOL, .uses_pool = true }, { IN_POOL, .uses_pool = true }, { IN_POOL } };
        const struct round_job again[] = { { IN_POOL, .uses_pool = true },
                                           { IN_POOL, .uses_pool = true },
                                           { IN_POOL, .uses_pool = true } };
        cleanup_free char *left =
                xasprintf("{'version':1,%s,'jobs':[" RUNS("a", "n1", 2) "," RUNS("b", "n2", 4) "," NEW("c", 4) "]}", nodes);
        cleanup_free char *lost =
                xasprintf("{'version':1,%s,'jobs':[" RUNS("a", "n2", 4) "," RUNS("b", "n3", 4) "," NEW("c", 4) "]}", nodes);
        struct fixture f;

        (void) state;
        run(&f, left, jobs);
        assert_string_equal(f.did, "a goes to n3; a goes to n3; ");
        finish(&f);
        run(&f, lost, jobs);
        assert_string_equal(f.did, "");
        finish(&f);
        run(&f, lost, again);
        assert_string_equal(f.did, "c starts on n4 n4 n4 n4; ");
        finish(&f);
}

/* Too small for what it would have to take over, or with a head on it: no spare. */
static void what_cannot_be_a_spare(void **state) {
        const struct round_job jobs[] = { { .head_node = 2, .head_moving_to = RM_NO_NODE, .spares = 1 } };
        struct fixture f;

        (void) state;
        run(&f, SNAPSHOT("'nodes':[" NODE("n1", 4) "," NODE("n2", 2) "," NODE("n3", 8) "," NODE("n4", 3) "]", RUNS("a", "n1", 3)),
            jobs);
        assert_string_equal(f.did, "a keeps n4; ");
        finish(&f);
}

/* The job would not be there for long, or must not use the node at all. */
static void nodes_with_warnings_are_no_spares(void **state) {
        static const int32_t spare[] = { 1 };
        static const bool warned[] = { false, true, false, false };
        struct round_job jobs[] = { { NOT_MOVING, .spares = 1, .kept_off = warned } };
        struct fixture f;

        (void) state;
        run(&f, SNAPSHOT(FOUR, RUNS("a", "n1", 2)), jobs);
        assert_string_equal(f.did, "a keeps n3; ");
        finish(&f);
        /* The warning came later. */
        jobs[0].spare_nodes = spare;
        jobs[0].n_spare_nodes = 1;
        run(&f, SNAPSHOT(FOUR, RUNS("a", "n1", 2)), jobs);
        assert_string_equal(f.did, "a keeps n3; ");
        finish(&f);
        /* A spare that is needed is used all the same. */
        run(&f, SNAPSHOT("'nodes':[" NODE("n1", 0) "," NODE("n2", 2) "]", RUNS("a", "n1", 2)), jobs);
        assert_string_equal(f.did, "a goes to n2; a goes to n2; a keeps; ");
        finish(&f);
}

static void waits_for_spares_without_warning(void **state) {
        static const bool warned[] = { false, true, true, false };
        const struct round_job jobs[] = { { NOT_MOVING, .spares = 2, .kept_off = warned } };
        struct fixture f;

        (void) state;
        run(&f, SNAPSHOT(FOUR, "{'name':'a','ranks':2,'priority':1,'availability':{'n2':0,'n3':0}}"), jobs);
        assert_string_equal(f.did, "");
        assert_string_equal(f.result->jobs[0].reason, "waits for 2 spare nodes; 1 is idle; n[2-3] have warnings");
        finish(&f);
}

/* These names have no short form: the reason still says what is the matter with them, and that some
 * are not named. */
static void many_nodes_with_warnings_hide_that_they_have(void **state) {
        static const char *const names[] = {
                "amsterdam", "buenos-aires", "cairo",    "dar-es-salaam", "edinburgh",    "freetown",
                "guatemala", "helsinki",     "istanbul", "jakarta",       "kuala-lumpur", "ljubljana"
        };
        const bool warned[ARRAY_SIZE(names)] = { true, true, true, true, true, true, true, true, true, true, true, true };
        const struct round_job jobs[] = { { NOT_MOVING, .spares = 2, .kept_off = warned } };
        char text[4096] = "{'version':1,'nodes':[";
        struct fixture f;

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(names); i++)
                (void) text_append(text, sizeof(text), "%s{'name':'%s','cores':4,'penalty':0}", i > 0 ? "," : "", names[i]);
        (void) text_append(text, sizeof(text), "],'jobs':[" NEW("a", 2) "]}");
        run(&f, text, jobs);
        assert_string_equal(f.did, "");
        assert_ptr_equal(strstr(f.result->jobs[0].reason, "waits for 2 spare nodes; 0 are idle; amsterdam,"),
                         f.result->jobs[0].reason);
        assert_non_null(strstr(f.result->jobs[0].reason, TEXT_CUT_MARK));
        assert_non_null(strstr(f.result->jobs[0].reason, ",ljubljana have warnings"));
        finish(&f);
}

/* The limits are the job's own availability. */
static void where_its_job_may_not_go_is_no_spare(void **state) {
        const struct round_job jobs[] = { { NOT_MOVING, .spares = 1 } };
        struct fixture f;

        (void) state;
        run(&f,
            SNAPSHOT(FOUR, "{'name':'a','ranks':2,'priority':1,'availability':{'n2':0,'n3':0},"
                           "'placed':[{'node':'n1','ranks':2}]}"),
            jobs);
        assert_string_equal(f.did, "a keeps n4; ");
        finish(&f);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(starts_with_its_spares),
                cmocka_unit_test(waits_for_spares),
                cmocka_unit_test(nobody_is_placed_on_them),
                cmocka_unit_test(goes_to_its_spare),
                cmocka_unit_test(nobody_starts_in_the_pool),
                cmocka_unit_test(who_needs_room_goes_to_the_pool),
                cmocka_unit_test(a_spare_that_is_used_is_replaced),
                cmocka_unit_test(what_cannot_be_a_spare),
                cmocka_unit_test(nodes_with_warnings_are_no_spares),
                cmocka_unit_test(waits_for_spares_without_warning),
                cmocka_unit_test(many_nodes_with_warnings_hide_that_they_have),
                cmocka_unit_test(where_its_job_may_not_go_is_no_spare),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
