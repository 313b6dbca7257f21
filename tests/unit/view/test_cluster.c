/* Nodes, moves, the status and the leader's figures as they are shown: what is in each, for whom,
 * and how much in one page. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "common/util.h"
#include "daemon/view/move.h"
#include "daemon/view/node.h"
#include "daemon/view/status.h"
#include "daemon/view/use.h"
#include "tests/unit/state/state_test.h"

static const struct view_reader alice = { .uid = 1000 };
static const struct view_reader bob = { .uid = 1001 };
static const struct view_reader admin = { .admin = true };

static int set_up(void **state) {
        return world_start(state, 4, 4);
}

static struct view_source source_of(const struct world *w, const char *leader) {
        return (struct view_source) { .index = w->indexed, .leader = leader };
}

/* ---- nodes ---- */

static Rm__NodeView *find_node(const Rm__NodeList *list, const char *name) {
        for (size_t i = 0; i < list->n_nodes; i++)
                if (strcmp(list->nodes[i]->node->name, name) == 0)
                        return list->nodes[i];
        return NULL;
}

static const struct view_reader root = { .admin = true };

static void expect_nodes(const struct world *w, struct view_nodes which, size_t max_bytes, const char *want) {
        struct view_source source = source_of(w, NULL);
        Rm__NodeList list = RM__NODE_LIST__INIT;
        char got[64] = "";

        view_nodes(&source, &root, &which, max_bytes, &list);
        for (size_t i = 0; i < list.n_nodes; i++)
                (void) snprintf(got + strlen(got), sizeof(got) - strlen(got), "%s%s", i ? " " : "", list.nodes[i]->node->name);
        if (list.more)
                (void) strcat(got, "+");
        assert_string_equal(got, want);
        view_nodes_finish(&list);
}

static void test_which_nodes(void **state) {
        char *names[] = { (char *) "n4", (char *) "n2", (char *) "n2" };

        expect_nodes(*state, (struct view_nodes) { .after = "" }, SIZE_MAX, "n1 n2 n3 n4");
        expect_nodes(*state, (struct view_nodes) { .after = "" }, 1, "n1+");
        expect_nodes(*state, (struct view_nodes) { .after = "n2" }, SIZE_MAX, "n3 n4");
        expect_nodes(*state, (struct view_nodes) { names, 3, "" }, SIZE_MAX, "n2 n4");
        expect_nodes(*state, (struct view_nodes) { names, 3, "n2" }, SIZE_MAX, "n4");
}

static void test_a_node(void **state) {
        struct world *w = *state;
        struct view_source source = source_of(w, "n2");
        Rm__NodeList list = RM__NODE_LIST__INIT;

        assert_int_equal(drain(w, "n1", "new memory", false), 0);
        assert_int_equal(condition(w, "n3", "fan", RM__CONDITION__CONDITION_WARN, "slow"), 0);
        assert_int_equal(health(w, "n4", RM__NODE_HEALTH__NODE_HEALTH_DOWN), 0);
        view_nodes(&source, &root, &(struct view_nodes) { .after = "" }, SIZE_MAX, &list);
        assert_string_equal(find_node(&list, "n1")->state, "DRAINED");
        assert_int_equal(find_node(&list, "n1")->usable_cores, 0);
        assert_false(find_node(&list, "n1")->leader);
        assert_string_equal(find_node(&list, "n2")->state, "IDLE");
        assert_int_equal(find_node(&list, "n2")->usable_cores, 4);
        assert_true(find_node(&list, "n2")->leader);
        assert_int_equal(find_node(&list, "n3")->condition, RM__CONDITION__CONDITION_WARN);
        assert_string_equal(find_node(&list, "n4")->state, "DOWN");
        view_nodes_finish(&list);
}

/* ---- moves ---- */

/* Two ranks on two nodes, and a move of the second group to n4. */
static uint64_t job_with_move(struct world *w) {
        static const char *const nodes[] = { "n1", "n2" };
        static const uint32_t ranks[] = { 1, 1 };
        uint64_t job = (uint64_t) submit(w, 2);

        start_job(w, job, nodes, ranks, 2);
        assert_int_equal(move_start(w, job, 1, "n4"), 0);
        return job;
}

static size_t moves_shown(const struct world *w, const struct view_reader *reader, struct view_moves which, bool *ret_more) {
        struct view_source source = source_of(w, NULL);
        Rm__MoveList list = RM__MOVE_LIST__INIT;
        size_t n;

        view_moves(&source, reader, &which, 1, &list);
        n = list.n_moves;
        *ret_more = list.more;
        view_moves_finish(&list);
        return n;
}

static void test_moves(void **state) {
        struct world *w = *state;
        uint64_t job = job_with_move(w), move = w->created;
        const struct view_reader owner = { .uid = state_job(w->state, job)->spec->uid };
        const struct view_reader other = { .uid = owner.uid + 1 };
        bool more;

        assert_int_equal(moves_shown(w, &owner, (struct view_moves) { 0 }, &more), 1);
        assert_false(more);
        assert_int_equal(moves_shown(w, &other, (struct view_moves) { 0 }, &more), 0);
        assert_int_equal(moves_shown(w, &admin, (struct view_moves) { .job = job }, &more), 1);
        assert_int_equal(moves_shown(w, &admin, (struct view_moves) { .job = job + 1 }, &more), 0);
        assert_int_equal(moves_shown(w, &admin, (struct view_moves) { .since = move }, &more), 0);
        (void) job_with_move(w);
        assert_int_equal(moves_shown(w, &admin, (struct view_moves) { 0 }, &more), 1);
        assert_true(more);
        assert_int_equal(moves_shown(w, &admin, (struct view_moves) { .since = move }, &more), 1);
        assert_false(more);
}

/* ---- the status ---- */

static struct view_own usual_own(void) {
        return (struct view_own) { .cluster = "c",
                                   .node = "n1",
                                   .policy = "distrib",
                                   .version = "0",
                                   .synced = true,
                                   .tracking = true,
                                   .untracked = "",
                                   .second_key_file = "" };
}

static bool warns(const struct world *w, const char *leader, const struct view_own *own, const char *text) {
        struct view_source source = source_of(w, leader);
        Rm__Status *status = view_status(&source, &root, own);
        bool found = false;

        for (size_t i = 0; i < status->n_warnings; i++)
                found = found || strstr(status->warnings[i], text) != NULL;
        rm__status__free_unpacked(status, NULL);
        return found;
}

static void test_numbers(void **state) {
        static const char *const voters[] = { "n1", "n2", "n3" };
        struct world *w = *state;
        struct view_source source = source_of(w, "n1");
        struct view_own own = usual_own();
        Rm__Status *status;

        (void) job_with_move(w);
        assert_true(submit(w, 1) > 0);
        assert_int_equal(keep_log(w, voters, 3), 0);
        assert_int_equal(health(w, "n4", RM__NODE_HEALTH__NODE_HEALTH_DOWN), 0);
        status = view_status(&source, &root, &own);
        assert_string_equal(status->leader, "n1");
        assert_int_equal(status->nodes, 4);
        assert_int_equal(status->nodes_up, 3);
        assert_int_equal(status->jobs_running, 1);
        assert_int_equal(status->jobs_pending, 1);
        assert_int_equal(status->n_voters, 3);
        assert_int_equal(status->quorum, 2);
        assert_int_equal(status->may_lose, 1);
        assert_int_equal(status->log_index, w->state->index);
        rm__status__free_unpacked(status, NULL);
        source.leader = NULL;
        status = view_status(&source, &root, &own);
        assert_string_equal(status->leader, "");
        assert_int_equal(status->may_lose, 0);
        rm__status__free_unpacked(status, NULL);
}

static void set_sets(struct world *w, const char *node, const char *sets) {
        message_set_string(&state_node(w->state, node)->instruction_sets, sets);
        message_set_string(&state_node(w->twin, node)->instruction_sets, sets);
}

/* A drained node whose groups can go nowhere says so: mpirun and group 0 are on n1. */
static void expect_staying(const struct world *w, const char *text) {
        const struct view_nodes which = { .names = (char *[]) { (char *) "n1" }, .n_names = 1, .after = "" };
        const struct view_own own = usual_own();
        struct view_source source = source_of(w, "n1");
        Rm__NodeList list = RM__NODE_LIST__INIT;

        view_nodes(&source, &root, &which, SIZE_MAX, &list);
        assert_int_equal(list.n_nodes, 1);
        assert_int_equal(list.nodes[0]->n_staying, text ? 2 : 0);
        for (size_t i = 0; i < list.nodes[0]->n_staying; i++)
                assert_non_null(strstr(list.nodes[0]->staying[i], text));
        view_nodes_finish(&list);
        assert_int_equal(warns(w, "n1", &own, text ? text : "could not be moved"), text != NULL);
}

/* The leader tells this of the only job. */
static void set_stay(struct world *w, const char *node, const char *reason) {
        for (int twin = 0; twin < 2; twin++) {
                Rm__Job *job = (twin ? w->twin : w->state)->jobs[0];

                message_set_string(&job->stays_on, node);
                message_set_string(&job->reason, reason);
        }
}

static void test_groups_that_can_go_nowhere(void **state) {
        struct world *w = *state;
        static const char *const nodes[] = { "n1" };
        static const uint32_t ranks[] = { 2 };

        start_job(w, (uint64_t) submit(w, 2), nodes, ranks, 1);
        set_sets(w, "n1", "sse2 avx2");
        set_sets(w, "n2", "sse2");
        expect_staying(w, NULL); /* it may stay */
        assert_int_equal(drain(w, "n1", "disk", false), 0);
        expect_staying(w, NULL); /* nobody knows what n3 and n4 lack */
        set_sets(w, "n3", "sse2");
        set_sets(w, "n4", "sse2 avx2 avx512f");
        expect_staying(w, NULL);
        assert_int_equal(drain(w, "n4", "disk", false), 0);
        expect_staying(w, "no node that may be used has the instruction sets of n1: n2 lacks avx2");
        assert_int_equal(drain(w, "n2", "disk", false), 0);
        expect_staying(w, "no node that may be used has the instruction sets of n1: n3 lacks avx2");
        assert_int_equal(drain(w, "n3", "disk", false), 0);
        expect_staying(w, NULL); /* for want of any node, which the leader tells */
        set_stay(w, "n1", "stays on 'n1': no node has usable cores");
        expect_staying(w, "stays on 'n1': no node has usable cores");
        set_stay(w, "n2", "stays on 'n2': no node has usable cores");
        expect_staying(w, NULL); /* of another node */
        set_stay(w, "", "moves away from 'n1' as soon as it can");
        expect_staying(w, NULL);
}

static void set_checkpoint_error(struct world *w, size_t job, const char *error) {
        message_set_string(&w->state->jobs[job]->checkpoint_error, error);
        message_set_string(&w->twin->jobs[job]->checkpoint_error, error);
}

/* Jobs that are not saved are named, with the reason to who may know it, and no more than three. */
static void test_failed_checkpoints(void **state) {
        struct world *w = *state;
        const struct view_own own = usual_own();
        static const char *const nodes[] = { "n1" };
        static const uint32_t ranks[] = { 1 };
        struct view_source source = source_of(w, "n1");
        Rm__Status *status;

        for (int i = 0; i < 5; i++)
                start_job(w, (uint64_t) submit(w, 1), nodes, ranks, 1);
        (void) submit(w, 1);
        assert_false(warns(w, "n1", &own, "the latest checkpoint of"));
        set_checkpoint_error(w, 5, "it waits"); /* of one that does not run */
        assert_false(warns(w, "n1", &own, "the latest checkpoint of"));
        set_checkpoint_error(w, 1, "group 0 on n1: uses io_uring");
        assert_true(warns(w, "n1", &own, "the latest checkpoint of 1 job has failed: job 2: group 0 on n1: uses io_uring"));
        status = view_status(&source, &bob, &own);
        for (size_t i = 0; i < status->n_warnings; i++)
                assert_null(strstr(status->warnings[i], "io_uring"));
        assert_string_equal(status->warnings[status->n_warnings - 1], "the latest checkpoint of 1 job has failed: job 2");
        rm__status__free_unpacked(status, NULL);
        for (size_t i = 2; i < 5; i++)
                set_checkpoint_error(w, i, "no space");
        assert_true(warns(w, "n1", &own,
                          "the latest checkpoint of 4 jobs has failed: job 2: group 0 on n1: uses io_uring; job 3: no space; "
                          "job 4: no space; ..."));
}

static void test_warnings(void **state) {
        struct world *w = *state;
        struct view_own usual = usual_own(), own = usual;

        assert_true(warns(w, NULL, &own, "no leader can be reached"));
        own.join_failures = "n7:7700: Connection refused";
        assert_true(warns(w, NULL, &own, "n7:7700: Connection refused"));
        assert_true(warns(w, "n1", &own, "does not join those that its configuration names: n7:7700"));
        own = usual;
        own.web_unserved = "127.0.0.1:7701";
        assert_true(warns(w, "n1", &own, "could not listen at 127.0.0.1:7701"));
        own = usual;
        assert_false(warns(w, "n1", &own, "newest state"));
        own.synced = false;
        assert_true(warns(w, "n1", &own, "does not have the newest state"));
        own = usual;
        own.log_disk_full = own.bodies_disk_full = true;
        assert_true(warns(w, "n1", &own, "nothing can be changed"));
        own.log_disk_full = false;
        assert_true(warns(w, "n1", &own, "no new ones are taken"));
        own = usual;
        own.second_key_file = "/etc/rmd/old.key";
        assert_true(warns(w, "n1", &own, "a second key is accepted (/etc/rmd/old.key)"));
        own = usual;
        own.limits_missing = "no limit of memory";
        assert_true(warns(w, "n1", &own, "no limit of memory"));
        assert_int_equal(condition(w, "n2", "disk", RM__CONDITION__CONDITION_CRITICAL, "it smells"), 0);
        assert_int_equal(condition(w, "n3", "disk", RM__CONDITION__CONDITION_WARN, "it smells"), 0);
        assert_true(warns(w, "n1", &usual, "critical: n2; warn: n3"));
        assert_int_equal(available_error(w, "avail:3: no such node"), 0);
        assert_true(warns(w, "n1", &usual, "avail:3: no such node"));
}

/* ---- the leader's figures ---- */

static double half(const void *context, const Rm__Job *job) {
        return 2;
}

static bool first_only(const void *context, const Rm__Job *job, Rm__Progress *ret) {
        ret->job = job->id;
        return job->id == *(const uint64_t *) context;
}

static uint64_t any_start(const void *context, const Rm__Job *job) {
        return 5000000 * job->id;
}

static uint64_t no_start(const void *context, const Rm__Job *job) {
        return 0;
}

/* Starts are told of jobs that wait, to their owner, and only where they are known. */
static void test_expected_starts(void **state) {
        struct world *w = *state;
        uint64_t runs = job_with_move(w), waits = (uint64_t) submit(w, 1);
        uint32_t uid = state_job(w->state, runs)->spec->uid;
        const struct view_reader owner = { .uid = uid }, other = { .uid = uid + 1 };
        const struct rm_snapshot snapshot = { 0 };
        const struct {
                const struct view_reader *reader;
                uint64_t (*start)(const void *context, const Rm__Job *job);
                uint64_t job;
                bool all;
                size_t starts;
        } rows[] = {
                { &owner, any_start, 0, true, 1 },      { &owner, any_start, waits, false, 1 }, { &owner, any_start, 0, false, 0 },
                { &owner, any_start, runs, false, 0 },  { &owner, no_start, 0, true, 0 },       { &other, any_start, 0, true, 0 },
                { &other, any_start, waits, false, 0 },
        };
        struct view_source source = source_of(w, "n1");

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                struct view_figures figures = { &snapshot, half, first_only, rows[i].start, &runs };
                Rm__Use use = RM__USE__INIT;

                view_use(&source, rows[i].reader, &figures, rows[i].job, rows[i].all, &use);
                assert_int_equal(use.n_starts, rows[i].starts);
                if (rows[i].starts > 0) {
                        assert_int_equal(use.starts[0]->job, waits);
                        assert_int_equal(use.starts[0]->expected_start_usec, 5000000 * waits);
                }
                view_use_finish(&use);
        }
}

static void test_use(void **state) {
        struct world *w = *state;
        uint64_t first = job_with_move(w), second = job_with_move(w);
        uint32_t uid = state_job(w->state, first)->spec->uid;
        const struct view_reader owner = { .uid = uid }, other = { .uid = uid + 1 };
        struct rm_node nodes[] = { { .name = "n1", .memory_free = 1 << 20 },
                                   { .name = "n2", .state = RM_NODE_DOWN },
                                   { .name = "n3", .memory_free = RM_NO_MEMORY_LIMIT } };
        const struct rm_snapshot snapshot = { .nodes = nodes, .n_nodes = 3 };
        struct view_figures figures = { &snapshot, half, first_only, no_start, &first };
        struct view_source source = source_of(w, "n1");
        Rm__Use use = RM__USE__INIT;

        view_use(&source, &owner, &figures, 0, true, &use);
        assert_int_equal(use.n_nodes, 1);
        assert_string_equal(use.nodes[0]->node, "n1");
        assert_int_equal(use.n_progress, 1);
        assert_true(use.slowdown < 1); /* no job was named */
        view_use_finish(&use);
        rm__use__init(&use);
        view_use(&source, &owner, &figures, first, false, &use);
        assert_int_equal(use.n_progress, 1);
        assert_true(use.slowdown > 1);
        view_use_finish(&use);
        rm__use__init(&use);
        view_use(&source, &owner, &figures, second, false, &use);
        assert_int_equal(use.n_progress, 0);
        view_use_finish(&use);
        rm__use__init(&use);
        view_use(&source, &other, &figures, first, false, &use);
        assert_int_equal(use.n_progress, 0);
        assert_true(use.slowdown < 1);
        view_use_finish(&use);
}

static void test_whose(void **state) {
        assert_true(view_may(&alice, 1000));
        assert_false(view_may(&bob, 1000));
        assert_true(view_may(&admin, 1000));
        assert_false(view_may(&alice, 0));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_which_nodes, set_up, world_tear_down),
                cmocka_unit_test_setup_teardown(test_a_node, set_up, world_tear_down),
                cmocka_unit_test_setup_teardown(test_moves, set_up, world_tear_down),
                cmocka_unit_test_setup_teardown(test_numbers, set_up, world_tear_down),
                cmocka_unit_test_setup_teardown(test_groups_that_can_go_nowhere, set_up, world_tear_down),
                cmocka_unit_test_setup_teardown(test_failed_checkpoints, set_up, world_tear_down),
                cmocka_unit_test_setup_teardown(test_warnings, set_up, world_tear_down),
                cmocka_unit_test_setup_teardown(test_use, set_up, world_tear_down),
                cmocka_unit_test_setup_teardown(test_expected_starts, set_up, world_tear_down),
                cmocka_unit_test(test_whose),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
