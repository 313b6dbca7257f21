/* Feature levels of the fields of proto/state.proto. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/error.h"
#include "common/util.h"
#include "daemon/state/commands.h"
#include "daemon/state/feature_level.h"
#include "daemon/state/state.h"

/* ---- the list of all fields ---- */

enum { FIELDS_MAX = 1000, DEPTH_MAX = 12 };

struct fields {
        char *names[FIELDS_MAX]; /* "CmdCapsuleGone.incarnation 60" */
        uint32_t levels[FIELDS_MAX];
        size_t n;
};

static void add(struct fields *fields, char *name, uint32_t level) {
        for (size_t i = 0; i < fields->n; i++)
                if (strcmp(fields->names[i], name) == 0) {
                        /* A message that is part of an older message and of a newer one is of the
                         * older one's level. */
                        if (level < fields->levels[i])
                                fields->levels[i] = level;
                        free(name);
                        return;
                }
        assert_true(fields->n < FIELDS_MAX);
        fields->names[fields->n] = name;
        fields->levels[fields->n++] = level;
}

static void visit(struct fields *fields, const ProtobufCMessageDescriptor *message, uint32_t level, unsigned depth) {
        assert_true(depth < DEPTH_MAX);
        for (unsigned i = 0; i < message->n_fields; i++) {
                const ProtobufCFieldDescriptor *field = &message->fields[i];
                uint32_t own = feature_level_of(feature_levels(), message, field->id);

                own = own > level ? own : level;
                add(fields, xasprintf("%s.%s %u", message->short_name, field->name, field->id), own);
                if (field->type == PROTOBUF_C_TYPE_MESSAGE)
                        visit(fields, field->descriptor, own, depth + 1);
        }
}

static uint32_t listed_level(const char *list, const char *name) {
        const char *at = list;
        size_t n = strlen(name);

        for (; at && *at; at = strchr(at, '\n') ? strchr(at, '\n') + 1 : NULL) {
                char *end;
                unsigned long level = strtoul(at, &end, 10);

                if (*at != '#' && *end == ' ' && strncmp(end + 1, name, n) == 0 && (end[1 + n] == '\n' || !end[1 + n]))
                        return (uint32_t) level;
        }
        return 0;
}

static void test_every_field_has_its_level(void **state) {
        cleanup_free char *path = xasprintf("%s/feature-levels", getenv("TEST_DATA_DIR"));
        cleanup_free char *list = NULL;
        struct fields fields = { 0 };
        unsigned wrong = 0;
        size_t size;

        (void) state;
        assert_int_equal(read_file(path, 1 << 20, &list, &size), 0);
        visit(&fields, &rm__command__descriptor, 1, 0);
        visit(&fields, &rm__state__descriptor, 1, 0);
        assert_true(fields.n > 200);
        for (size_t i = 0; i < fields.n; i++) {
                if (listed_level(list, fields.names[i]) != fields.levels[i]) {
                        wrong++;
                        print_error("is not in %s as: %u %s\n", path, fields.levels[i], fields.names[i]);
                }
                assert_in_range(fields.levels[i], 1, STATE_LEVEL);
                free(fields.names[i]);
        }
        assert_int_equal(wrong, 0);
}

/* ---- commands ---- */

static Rm__Node node_at(const char *name, uint32_t level) {
        Rm__Node node = RM__NODE__INIT;

        node.name = (char *) name;
        node.level = level;
        return node;
}

static void test_old_nodes_are_named(void **state) {
        Rm__Node n1 = node_at("n1", 2), n2 = node_at("n2", 1), n3 = node_at("n3", 1);
        Rm__Node *nodes[] = { &n1, &n2, &n3 };
        Rm__State s = RM__STATE__INIT;
        cleanup_free char *behind = NULL;

        (void) state;
        s.nodes = nodes;
        s.n_nodes = 3;
        assert_null(feature_level_behind(&s, 1));
        behind = feature_level_behind(&s, 2);
        assert_string_equal(behind, "n[2-3]");
}

/* The levels as if these fields had come later than all others. */
static const struct feature_field later[] = {
        { &rm__command__descriptor, 80, 2 }, /* job_restart */
        { &rm__cmd_capsule_gone__descriptor, 60, 2 }, /* incarnation */
        { &rm__job_spec__descriptor, 60, 2 }, /* restarts */
        { &rm__node__descriptor, 170, 2 }, /* conditions */
        { &rm__node_condition__descriptor, 4, 3 }, /* by */
        { NULL, 0, 0 },
};

static int check(uint32_t level, const Rm__Command *command, const char *text) {
        Rm__Node n1 = node_at("n1", 2), n2 = node_at("n2", 1);
        Rm__Node *nodes[] = { &n1, &n2 };
        Rm__State s = RM__STATE__INIT;
        struct rm_error err = { 0 };
        int r;

        s.nodes = nodes;
        s.n_nodes = 2;
        s.level = level;
        assert_int_equal(feature_level_check(feature_levels(), &s, command, &err), 0);
        r = feature_level_check(later, &s, command, &err);
        if (r < 0)
                assert_string_equal(error_text(&err), text);
        return r;
}

static void test_levels_of_fields(void **state) {
        (void) state;
        assert_int_equal(feature_level_of(later, &rm__node_condition__descriptor, 4), 3);
        assert_int_equal(feature_level_of(later, &rm__node_condition__descriptor, 1), 1);
        assert_int_equal(feature_level_of(later, &rm__session__descriptor, 4), 1);
}

static void test_newer_commands_wait_for_the_level(void **state) {
        struct command c;

        (void) state;
        assert_int_equal(check(1, command_job_restart(&c, 7, 2, "n2", "why", true),
                               "'job_restart' needs feature level 2, and the cluster is at 1: update rmd on n2"),
                         -EAGAIN);
        assert_int_equal(check(0, &c.command, "'job_restart' needs feature level 2, and the cluster is at 0: update rmd on n2"),
                         -EAGAIN);
        assert_int_equal(check(2, &c.command, ""), 0);
}

/* A field that is not set is not sent, and an older rmd misses nothing. */
static void test_newer_fields_wait_for_the_level(void **state) {
        struct command c;

        (void) state;
        assert_int_equal(check(1, command_capsule_gone(&c, 7, 0, 12, "n2"),
                               "'incarnation' needs feature level 2, and the cluster is at 1: update rmd on n2"),
                         -EAGAIN);
        assert_int_equal(check(2, &c.command, ""), 0);
        assert_int_equal(check(1, command_capsule_gone(&c, 7, 0, 0, "n2"), ""), 0);
}

/* The first commands of all, before a level was ever raised. */
static void test_new_log_takes_what_was_always_there(void **state) {
        Rm__Node n1 = node_at("n1", 2);
        struct command c;

        (void) state;
        assert_int_equal(check(0, command_node_join(&c, &n1), ""), 0);
        assert_int_equal(check(0, command_level(&c, 2), ""), 0);
}

static void test_newer_fields_inside_wait_too(void **state) {
        Rm__Command command = RM__COMMAND__INIT;
        Rm__CmdJobSubmit submit = RM__CMD_JOB_SUBMIT__INIT;
        Rm__JobSpec spec = RM__JOB_SPEC__INIT;

        (void) state;
        command.body_case = RM__COMMAND__BODY_JOB_SUBMIT;
        command.job_submit = &submit;
        submit.spec = &spec;
        assert_int_equal(check(1, &command, ""), 0);
        spec.restarts = 3;
        assert_int_equal(check(1, &command, "'restarts' needs feature level 2, and the cluster is at 1: update rmd on n2"),
                         -EAGAIN);
        assert_int_equal(check(2, &command, ""), 0);
}

static void test_newer_fields_of_what_is_repeated_wait_too(void **state) {
        Rm__NodeCondition hot = RM__NODE_CONDITION__INIT, cold = RM__NODE_CONDITION__INIT;
        Rm__NodeCondition *conditions[] = { &hot, &cold };
        Rm__Node n1 = node_at("n1", 2);
        struct command c;

        (void) state;
        n1.conditions = conditions;
        n1.n_conditions = 2;
        assert_int_equal(check(1, command_node_join(&c, &n1),
                               "'conditions' needs feature level 2, and the cluster is at 1: update rmd on n2"),
                         -EAGAIN);
        assert_int_equal(check(2, &c.command, ""), 0);
        cold.by = (char *) "root";
        assert_int_equal(check(2, &c.command, "'by' needs feature level 3, and the cluster is at 2: update rmd on n[1-2]"),
                         -EAGAIN);
        assert_int_equal(check(3, &c.command, ""), 0);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_every_field_has_its_level),
                cmocka_unit_test(test_old_nodes_are_named),
                cmocka_unit_test(test_levels_of_fields),
                cmocka_unit_test(test_newer_commands_wait_for_the_level),
                cmocka_unit_test(test_newer_fields_wait_for_the_level),
                cmocka_unit_test(test_new_log_takes_what_was_always_there),
                cmocka_unit_test(test_newer_fields_inside_wait_too),
                cmocka_unit_test(test_newer_fields_of_what_is_repeated_wait_too),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
