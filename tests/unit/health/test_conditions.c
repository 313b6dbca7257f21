/* A node's own sources and the log: what they say gets there, once, and only what is new. */
#include "tests/unit/cluster/cluster_test.h"

#include "daemon/context.h"
#include "daemon/health/conditions.h"
#include "daemon/state/commands.h"
#include "daemon/state/state.h"

enum {
        OK = RM__CONDITION__CONDITION_OK,
        WARN = RM__CONDITION__CONDITION_WARN,
        FAILING = RM__CONDITION__CONDITION_FAILING,
        CRITICAL = RM__CONDITION__CONDITION_CRITICAL,
};

struct fixture {
        struct world world;
        struct rmd rmd;
        struct conditions *conditions;
};

static const Rm__State *state_of(const struct fixture *f) {
        return cluster_state(f->rmd.cluster);
}

static const Rm__Node *self_of(const struct fixture *f) {
        return state_node(state_of(f), "n1");
}

/* The condition that `source` reports, or OK. */
static int said_by(const struct fixture *f, const char *source) {
        for (size_t i = 0; i < self_of(f)->n_conditions; i++)
                if (strcmp(self_of(f)->conditions[i]->source, source) == 0)
                        return (int) self_of(f)->conditions[i]->condition;
        return OK;
}

static int set_up(void **state) {
        struct fixture *f = xcalloc(1, sizeof(*f));

        world_init(&f->world);
        (void) tnode_start(&f->world, 0, 0);
        EXPECT(&f->world, joined(&f->world, 1), 1000);
        f->rmd = (struct rmd) { .base = f->world.base, .cluster = f->world.nodes[0].cluster };
        f->conditions = conditions_create(&f->rmd);
        *state = f;
        return 0;
}

static int tear_down(void **state) {
        struct fixture *f = *state;

        tnode_stop(&f->world.nodes[0]);
        conditions_destroy(f->conditions);
        world_finish(&f->world);
        free(f);
        return 0;
}

/* Everything that was proposed has come. */
static void settle(struct fixture *f) {
        uint64_t index;

        do {
                index = state_of(f)->index;
                RUN_UNTIL(&f->world, false, 300);
        } while (index != state_of(f)->index);
}

static int report(struct fixture *f, const char *source, int condition, const char *reason) {
        return conditions_report(f->conditions, source, (Rm__Condition) condition, reason);
}

static void test_words_reach_log(void **state) {
        struct fixture *f = *state;
        uint64_t index;

        assert_int_equal(report(f, "hwmon", WARN, "71 C\nat CPU 1"), 0);
        assert_int_equal(report(f, "edac", FAILING, ""), 0);
        EXPECT(&f->world, said_by(f, "edac") == FAILING, 1000);
        assert_int_equal(said_by(f, "hwmon"), WARN);
        assert_string_equal(self_of(f)->conditions[1]->reason, "71 C\\nat CPU 1");
        assert_string_equal(self_of(f)->conditions[0]->reason, "it gave no reason");
        assert_string_equal(self_of(f)->conditions[0]->by, "n1");
        settle(f);
        index = state_of(f)->index;
        assert_int_equal(report(f, "hwmon", WARN, "72 C"), 0);
        conditions_wake(f->conditions);
        settle(f);
        assert_int_equal(state_of(f)->index, index);
        assert_int_equal(report(f, "edac", OK, NULL), 0);
        EXPECT(&f->world, self_of(f)->n_conditions == 1, 1000);
}

/* While one word is on its way there are others: only the last one counts. */
static void test_word_overtaken(void **state) {
        struct fixture *f = *state;

        for (int condition = WARN; condition <= CRITICAL; condition++)
                assert_int_equal(report(f, "hwmon", condition, "hot"), 0);
        EXPECT(&f->world, said_by(f, "hwmon") == CRITICAL, 1000);
        settle(f);
        assert_int_equal(report(f, "hwmon", OK, ""), 0);
        assert_int_equal(report(f, "hwmon", CRITICAL, "hot again"), 0);
        settle(f);
        assert_int_equal(said_by(f, "hwmon"), CRITICAL);
}

/* An administrator may take it back in the name of the source. */
static void test_administrator_has_last_word(void **state) {
        struct fixture *f = *state;
        struct command c;

        assert_int_equal(report(f, "hwmon", FAILING, "hot"), 0);
        EXPECT(&f->world, said_by(f, "hwmon") == FAILING, 1000);
        settle(f);
        cluster_propose(f->rmd.cluster, command_node_condition(&c, "n1", "hwmon", RM__CONDITION__CONDITION_OK, "", "root"), NULL,
                        NULL);
        EXPECT(&f->world, said_by(f, "hwmon") == OK, 1000);
        conditions_wake(f->conditions);
        assert_int_equal(report(f, "hwmon", FAILING, "hot"), 0);
        settle(f);
        assert_int_equal(said_by(f, "hwmon"), OK);
        assert_int_equal(report(f, "hwmon", WARN, "warm"), 0);
        EXPECT(&f->world, said_by(f, "hwmon") == WARN, 1000);
}

/* rmd starts again, with a sensor less: what only that one could take back is taken back, and
 * nothing else. */
static void test_source_that_is_gone(void **state) {
        struct fixture *f = *state;
        struct command c;

        assert_int_equal(report(f, "smart", FAILING, "worn out"), 0);
        assert_int_equal(report(f, "hwmon", WARN, "hot"), 0);
        cluster_propose(f->rmd.cluster, command_node_condition(&c, "n1", "report", RM__CONDITION__CONDITION_WARN, "fan", "root"),
                        NULL, NULL);
        EXPECT(&f->world, self_of(f)->n_conditions == 3, 1000);
        settle(f);
        conditions_destroy(f->conditions);
        f->conditions = conditions_create(&f->rmd);
        assert_int_equal(conditions_expect(f->conditions, "hwmon"), 0);
        conditions_wake(f->conditions);
        settle(f);
        assert_int_equal(said_by(f, "smart"), FAILING);
        conditions_expected(f->conditions);
        EXPECT(&f->world, said_by(f, "smart") == OK, 1000);
        settle(f);
        assert_int_equal(said_by(f, "hwmon"), WARN);
        assert_int_equal(said_by(f, "report"), WARN);
        assert_int_equal(report(f, "hwmon", OK, ""), 0);
        EXPECT(&f->world, said_by(f, "hwmon") == OK, 1000);
}

static void test_wrong_words(void **state) {
        struct fixture *f = *state;
        char source[16];

        assert_int_equal(report(f, "", WARN, "x"), -EINVAL);
        assert_int_equal(report(f, "a b", WARN, "x"), -EINVAL);
        assert_int_equal(report(f, "hwmon", CRITICAL + 1, "x"), -EINVAL);
        for (unsigned i = 0; i < STATE_CONDITION_SOURCES_MAX; i++) {
                (void) snprintf(source, sizeof(source), "s%u", i);
                assert_int_equal(conditions_expect(f->conditions, source), 0);
        }
        assert_int_equal(report(f, "another", WARN, "x"), -ENOSPC);
        assert_int_equal(report(f, "s1", WARN, "x"), 0);
        EXPECT(&f->world, said_by(f, "s1") == WARN, 1000);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_words_reach_log, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_word_overtaken, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_administrator_has_last_word, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_source_that_is_gone, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_wrong_words, set_up, tear_down),
        };

        return cmocka_run_group_tests_name("conditions", tests, NULL, NULL);
}
