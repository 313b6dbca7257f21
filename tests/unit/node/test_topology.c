/* Cores, shape and boot id, of this machine and of recorded ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/util.h"
#include "daemon/node/topology.h"

static void test_this_machine(void **state) {
        struct topology first;
        struct topology second;
        struct rm_error err = { 0 };

        assert_int_equal(setenv("HWLOC_PLUGINS_PATH", "/somewhere", 1), 0);
        assert_int_equal(topology_read(&first, &err), 0);
        assert_int_equal(topology_read(&second, &err), 0);
        assert_string_equal(getenv("HWLOC_PLUGINS_PATH"), "/somewhere");
        assert_int_equal(unsetenv("HWLOC_PLUGINS_PATH"), 0);
        assert_int_equal(topology_read(&second, &err), 0);
        assert_null(getenv("HWLOC_PLUGINS_PATH"));
        assert_true(first.cores >= 1);
        assert_true(first.memory_bytes > 1U << 20);
        assert_non_null(strstr(first.description, "Core:"));
        assert_true(strlen(first.boot_id) > 36);
        assert_int_equal(first.cores, second.cores);
        assert_string_equal(first.description, second.description);
        assert_string_equal(first.boot_id, second.boot_id);
}

/* Each core has as many CPUs as the others, and no CPU is of a core that is not there. */
static void check_cpus(const struct topology *topology, uint32_t expected) {
        uint32_t *of_core = xcalloc(topology->cores, sizeof(*of_core)), cpus = 0;

        assert_int_equal(topology->real_cores, topology->cores);
        for (unsigned cpu = 0; cpu < TOPOLOGY_CPUS_MAX; cpu++) {
                int16_t core = topology->core_of_cpu[cpu];

                if (core < 0)
                        continue;
                assert_true((uint32_t) core < topology->cores);
                of_core[core]++;
                cpus++;
        }
        assert_int_equal(cpus, expected);
        for (uint32_t i = 0; i < topology->cores; i++)
                assert_int_equal(of_core[i], expected / topology->cores);
        free(of_core);
}

static void test_recorded(void **state) {
        static const struct {
                const char *file;
                uint32_t cores;
                const char *description;
                uint64_t memory_bytes;
                uint32_t cpus;
        } cases[] = {
                { "two-packages.xml", 16, "Package:2 L3Cache:2 Core:4 PU:2", UINT64_C(137438953472), 32 },
                { "cores-taken-away.xml", 5, "Core:5", 0, 5 },
                { "one-core.xml", 1, "Package:1 Core:1 PU:1", 0, 1 },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                cleanup_free char *path = xasprintf("%s/topology/%s", getenv("TEST_DATA_DIR"), cases[i].file);
                struct topology topology = { 0 };
                struct rm_error err = { 0 };

                assert_int_equal(topology_read_xml(path, &topology, &err), 0);
                assert_int_equal(topology.cores, cases[i].cores);
                assert_string_equal(topology.description, cases[i].description);
                assert_string_equal(topology.boot_id, "");
                check_cpus(&topology, cases[i].cpus);
                if (cases[i].memory_bytes)
                        assert_int_equal(topology.memory_bytes, cases[i].memory_bytes);
        }
}

static void test_no_such_file(void **state) {
        struct topology topology = { .cores = 7 };
        struct rm_error err = { 0 };

        assert_true(topology_read_xml("/nonexistent/machine.xml", &topology, &err) < 0);
        assert_non_null(strstr(err.text, "/nonexistent/machine.xml"));
        assert_int_equal(topology.cores, 7);
}

#define ID "11e44a7e-2b52-4f6b-8d53-70d8e2c47b0b"
#define STAT(name, start) "1 (" name ") S 0 1 1 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 " start " 23000000 3000 1 1\n"

static void test_boot_id(void **state) {
        static const struct {
                const char *id;
                const char *stat;
                const char *expected; /* NULL: refused */
        } cases[] = {
                { ID "\n", STAT("systemd", "25"), ID "-19" },
                { ID, STAT("systemd", "0"), ID "-0" },
                { ID, STAT("a) b (c 1 2", "26"), ID "-1a" },
                { ID, STAT("x", "18446744073709551615"), ID "-ffffffffffffffff" },
                { "", STAT("x", "1"), NULL },
                { "what is this", STAT("x", "1"), NULL },
                { ID ID, STAT("x", "1"), NULL },
                { ID, "", NULL },
                { ID, "1 (x) S 0 1 1", NULL },
                { ID, STAT("x", "y"), NULL },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                char id[TOPOLOGY_BOOT_ID_BYTES] = "untouched";

                assert_int_equal(topology_boot_id(cases[i].id, cases[i].stat, id), cases[i].expected ? 0 : -EINVAL);
                if (cases[i].expected)
                        assert_string_equal(id, cases[i].expected);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_this_machine),
                cmocka_unit_test(test_recorded),
                cmocka_unit_test(test_no_such_file),
                cmocka_unit_test(test_boot_id),
        };

        return cmocka_run_group_tests_name("topology", tests, NULL, NULL);
}
