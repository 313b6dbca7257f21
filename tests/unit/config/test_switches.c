/* The switches' file: what is taken, and that what is wrong is named with file and line. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/util.h"
#include "daemon/config/switches.h"

static int parse(const char *text, struct switches *ret_switches, struct rm_error *err) {
        return switches_parse("t.conf", text, strlen(text), ret_switches, err);
}

/* "s1(1): n1 n2 < core; core(3): ;" */
static char *describe(const struct switches *switches) {
        char *text = xstrdup("");

        for (size_t i = 0; i < switches->n; i++) {
                const struct config_switch *at = &switches->list[i];
                cleanup_free char *nodes = hostlist_compress(at->nodes.names, at->nodes.n_names);
                const char *above = at->parent == SIZE_MAX ? "-" : switches->list[at->parent].name;
                char *longer = xasprintf("%s%s(%zu): %s < %s; ", text, at->name, at->line, nodes, above);

                free(text);
                text = longer;
        }
        return text;
}

static void test_good(void **state) {
        static const struct {
                const char *text;
                const char *expected;
        } examples[] = {
                { "", "" },
                { "# nothing\n\n  \t\n#SwitchName=x", "" },
                { "SwitchName=s1 Nodes=n1", "s1(1): n1 < -; " },
                { "SwitchName=s1 Nodes=n[1-2]\nSwitchName=s2 Nodes=n[3-4],login\nSwitchName=core Switches=s[1-2]\n",
                  "s1(1): n[1-2] < core; s2(2): login,n[3-4] < core; core(3):  < -; " },
                /* Above before below, key words and line ends as they come, what is plugged into
                 * the spine itself. */
                { "switchname=core switches=s2,s1 NODES=gate # top\r\n\nSWITCHNAME=s1\tNodes=n1 LinkSpeed=100\r\nSwitchName=s2 "
                  "Nodes=n2",
                  "core(1): gate < -; s1(3): n1 < core; s2(4): n2 < core; " },
                { "SwitchName=s1 \\\n Nodes=n1,\\\nn2\nSwitchName=s2 Nodes=n3\n", NULL },
                { "SwitchName=s1 \\\n Nodes=n1,n2\nSwitchName=s2 Nodes=n3 \\\n", "s1(1): n[1-2] < -; s2(3): n3 < -; " },
                { "SwitchName=a Switches=b\nSwitchName=b Switches=c\nSwitchName=c Nodes=n1\nSwitchName=d Nodes=n2\n",
                  "a(1):  < -; b(2):  < a; c(3): n1 < b; d(4): n2 < -; " },
        };

        for (size_t i = 0; i < ARRAY_SIZE(examples); i++) {
                struct switches switches = { 0 };
                struct rm_error err = { 0 };
                cleanup_free char *got = NULL;
                int r = parse(examples[i].text, &switches, &err);

                if (!examples[i].expected) { /* a list does not go on in the next line */
                        assert_int_equal(r, -EINVAL);
                        continue;
                }
                if (r < 0)
                        fail_msg("'%s': %s", examples[i].text, err.text);
                got = describe(&switches);
                assert_string_equal(got, examples[i].expected);
                switches_finish(&switches);
        }
}

static void test_bad(void **state) {
        static const struct {
                const char *text;
                const char *expected; /* the error begins so */
        } examples[] = {
                { "SwitchName=s1 Nodes=n1\nwhat is this\n", "t.conf:2: expected SwitchName=NAME Nodes=LIST" },
                { "SwitchName=s1 Nodes=n1\n\nSwitchName=s2 Node=n2\n", "t.conf:3: there is no key 'Node'" },
                { "Nodes=n1\n", "t.conf:1: the line has no SwitchName" },
                { "SwitchName= Nodes=n1\n", "t.conf:1: '' is not a name for a switch" },
                { "SwitchName=s[1-2] Nodes=n1\n", "t.conf:1: 's[1-2]' is not a name for a switch" },
                { "SwitchName=s1 SwitchName=s2 Nodes=n1\n", "t.conf:1: SwitchName stands twice" },
                { "SwitchName=s1 Nodes=n1 Nodes=n2\n", "t.conf:1: Nodes stands twice" },
                { "SwitchName=s1 Nodes=n[1\n", "t.conf:1: Nodes: 'n[1' is not a host list" },
                { "SwitchName=s1 Nodes=n[4-1]\n", "t.conf:1: Nodes: 'n[4-1]' is not a host list: a range runs backwards" },
                { "SwitchName=s1 Nodes=\n", "t.conf:1: Nodes: '' is not a host name" },
                { "SwitchName=s1\n", "t.conf:1: switch 's1' has neither Nodes nor Switches" },
                { "SwitchName=s1 Nodes=n1\nSwitchName=s1 Nodes=n2\n", "t.conf:2: switch 's1' is already in line 1" },
                { "SwitchName=s1 Nodes=n[1-4]\n#\nSwitchName=s2 Nodes=n[4-8]\n",
                  "t.conf:3: node 'n4' is below switch 's1' (line 1) already" },
                { "SwitchName=s1 Nodes=n1\nSwitchName=a Switches=s1\nSwitchName=b Switches=s1\n",
                  "t.conf:3: switch 's1' is below switch 'a' (line 2) already" },
                { "SwitchName=a Switches=s9\n", "t.conf:1: there is no switch 's9'" },
                { "SwitchName=a Switches=a\n", "t.conf:1: switch 'a' is below itself" },
                { "SwitchName=s Nodes=n1\nSwitchName=a Switches=b\nSwitchName=b Switches=a,s\n",
                  "t.conf:2: switch 'a' is below itself" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(examples); i++) {
                struct switches switches = { 0 };
                struct rm_error err = { 0 };

                if (parse(examples[i].text, &switches, &err) != -EINVAL)
                        fail_msg("'%s' is accepted", examples[i].text);
                if (strncmp(err.text, examples[i].expected, strlen(examples[i].expected)) != 0)
                        fail_msg("expected '%s...', have '%s'", examples[i].expected, err.text);
                assert_int_equal(switches.n, 0);
        }
}

/* A NUL, too many switches, too many above each other, and no such file. */
static void test_limits(void **state) {
        struct switches switches = { 0 };
        struct rm_error err = { 0 };
        char *text = xstrdup("SwitchName=s0 Nodes=n1\n");

        assert_int_equal(switches_parse("t.conf", "SwitchName=s1\0Nodes=n1", 22, &switches, &err), -EINVAL);
        assert_string_equal(err.text, "t.conf: not a text file");
        assert_int_equal(switches_load("/no/such/file", &switches, &err), -ENOENT);
        assert_non_null(strstr(err.text, "cannot read /no/such/file"));
        for (unsigned i = 1; i <= SWITCHES_DEPTH_MAX; i++) {
                char *longer = xasprintf("%sSwitchName=s%u Switches=s%u\n", text, i, i - 1);

                free(text);
                text = longer;
                if (i < SWITCHES_DEPTH_MAX) {
                        assert_int_equal(parse(text, &switches, &err), 0);
                        switches_finish(&switches);
                }
        }
        assert_int_equal(parse(text, &switches, &err), -EINVAL);
        assert_string_equal(err.text, "t.conf:1: switch 's0' has more than 15 others above it");
        free(text);
}

/* Ten thousand nodes, some hundred switches: as a large cluster has them. */
static void test_large(void **state) {
        struct switches switches = { 0 };
        struct rm_error err = { 0 };
        char *text = xstrdup("");

        for (unsigned i = 0; i < 200; i++) {
                char *longer = xasprintf("%sSwitchName=s%u Nodes=n[%u-%u]\n", text, i, i * 50, i * 50 + 49);

                free(text);
                text = longer;
        }
        assert_int_equal(parse(text, &switches, &err), 0);
        assert_int_equal(switches.n, 200);
        assert_string_equal(switches.list[199].nodes.names[49], "n9999");
        switches_finish(&switches);
        free(text);
}

/* A short file can name more nodes than memory holds. */
static void test_names(void **state) {
        struct switches switches = { 0 };
        struct rm_error err = { 0 };
        char *text = xstrdup("");

        for (unsigned i = 0; i < SWITCHES_MAX; i++) {
                char *longer = xasprintf("%sSwitchName=s%u Nodes=r%u-n[1-65536]\n", text, i, i);

                free(text);
                text = longer;
        }
        assert_int_equal(parse(text, &switches, &err), -EINVAL);
        assert_string_equal(err.text, "t.conf:2: Nodes: the file names more than 65536");
        free(text);
        assert_int_equal(parse("SwitchName=s1 Nodes=n1\nSwitchName=a Switches=s[1-5000]\n", &switches, &err), -EINVAL);
        assert_string_equal(err.text, "t.conf:2: Switches: the file names more than 4096");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_good),  cmocka_unit_test(test_bad),   cmocka_unit_test(test_limits),
                cmocka_unit_test(test_large), cmocka_unit_test(test_names),
        };

        return cmocka_run_group_tests_name("switches", tests, NULL, NULL);
}
