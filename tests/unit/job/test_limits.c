/* The limits of a capsule: shares of a node, and the files that they are written to. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/util.h"
#include "daemon/capsule/controllers.h"
#include "daemon/job/limits.h"
#include "daemon/job/memory_report.h"

#define GB (UINT64_C(1) << 30)
#define MB (UINT64_C(1) << 20)

static const struct {
        struct limits_node node;
        uint32_t ranks;
        uint64_t memory_bytes;
        uint64_t pids;
} shares[] = {
        { { 64 * GB, 16 }, 4, 16 * GB, 5120 },    { { 64 * GB, 16 }, 0, 4 * GB, 2048 },   /* a head */
        { { 64 * GB, 16 }, 16, 60 * GB, 17408 }, /* all of it, but for the reserve */
        { { 64 * GB, 16 }, 99, 60 * GB, 102400 }, { { 1 * GB, 16 }, 1, 256 * MB, 2048 }, /* a poor node */
        { { 128 * MB, 1 }, 1, 120 * MB, 2048 },   { { 0, 4 }, 1, UINT64_MAX, 2048 },
};

static void test_share(void **state) {
        const struct config config = { 0 };
        struct capsule_limits limits;

        for (size_t i = 0; i < ARRAY_SIZE(shares); i++) {
                limits_share(&config, &shares[i].node, shares[i].ranks, &limits);
                assert_int_equal(limits.memory_bytes, shares[i].memory_bytes);
                assert_int_equal(limits.pids, shares[i].pids);
        }
}

static void test_configured(void **state) {
        const struct config config = { .memory_max = 300 * MB, .pids_max = UINT64_MAX };
        const struct limits_node node = { 64 * GB, 16 };
        struct capsule_limits limits;

        limits_share(&config, &node, 8, &limits);
        assert_int_equal(limits.memory_bytes, 300 * MB);
        assert_true(limits.pids == UINT64_MAX);
}

/* The memory that a job has asked for is its limit, within the bounds of the configuration. */
static void test_promised(void **state) {
        const struct config automatic = { 0 }, capped = { .memory_max = 300 * MB }, open = { .memory_max = UINT64_MAX };
        struct capsule_limits limits = { .memory_bytes = 5 * GB };

        limits_promised(&automatic, 0, &limits);
        assert_int_equal(limits.memory_bytes, 5 * GB);
        limits_promised(&automatic, 9 * GB, &limits);
        assert_int_equal(limits.memory_bytes, 9 * GB);
        limits_promised(&open, 2 * GB, &limits);
        assert_int_equal(limits.memory_bytes, 2 * GB);
        limits_promised(&automatic, 1, &limits);
        assert_int_equal(limits.memory_bytes, 256 * MB); /* it is to start */
        limits_promised(&capped, 9 * GB, &limits);
        assert_int_equal(limits.memory_bytes, 300 * MB);
}

static void test_capacity(void **state) {
        const struct config automatic = { 0 }, less = { .memory = 2 * GB }, more = { .memory = 99 * GB },
                            none = { .memory = UINT64_MAX };
        struct memory_report_node node = { .total = 16 * GB, .available = 10 * GB, .groups = 3 * GB, .heads = GB / 2 };

        assert_int_equal(limits_node_memory(&automatic, 16 * GB), 16 * GB);
        assert_int_equal(limits_node_memory(&less, 16 * GB), 2 * GB);
        assert_int_equal(limits_node_memory(&more, 16 * GB), 16 * GB);
        assert_int_equal(limits_node_memory(&none, 16 * GB), 16 * GB);
        assert_int_equal(memory_report_capacity(&node, 0), 12 * GB); /* less the reserve */
        assert_int_equal(memory_report_capacity(&node, 2 * GB), 2 * GB - GB / 2);
        assert_int_equal(memory_report_capacity(&node, 99 * GB), 12 * GB);
        assert_true(memory_report_capacity(&node, UINT64_MAX) == UINT64_MAX);
        assert_int_equal(memory_report_capacity(&node, GB / 4), 0);
        node.available = node.groups = 0;
        assert_int_equal(memory_report_capacity(&node, 0), 0);
        node.available = UINT64_MAX;
        assert_true(memory_report_capacity(&node, 0) == UINT64_MAX);
}

static bool due(const struct memory_report_sent *reported, const char *leader, uint64_t capacity_bytes, bool groups,
                uint64_t now_usec) {
        Rm__NodeMemory report = RM__NODE_MEMORY__INIT;

        report.capacity_bytes = capacity_bytes;
        report.n_groups = groups;
        return memory_report_due(reported, leader, &report, now_usec);
}

/* Nodes with groups report each time; the others do when it matters. */
static void test_report_due(void **state) {
        char n1[] = "n1";
        struct memory_report_sent reported = { 0 };

        (void) state;
        assert_true(due(&reported, "n1", 4 * GB, false, 0));
        reported = (struct memory_report_sent) { n1, 4 * GB, 100000000, false, false };
        assert_false(due(&reported, "n1", 4 * GB + 1000000, false, 102000000));
        assert_false(due(&reported, "n1", 4 * GB - 1000000, false, 102000000));
        assert_true(due(&reported, "n1", 4 * GB - 20000000, false, 102000000));
        assert_true(due(&reported, "n1", 4 * GB + 20000000, false, 102000000));
        assert_true(due(&reported, "n1", 4 * GB, true, 102000000));
        assert_true(due(&reported, "n2", 4 * GB, false, 102000000));
        assert_true(due(&reported, "n1", 4 * GB, false, 130000000));
        reported.groups = true; /* they have gone */
        assert_true(due(&reported, "n1", 4 * GB, false, 102000000));
        reported.groups = false;
        reported.pages = true; /* no more */
        assert_true(due(&reported, "n1", 4 * GB, false, 102000000));
}

static void test_reserve(void **state) {
        assert_int_equal(limits_reserve(16 * GB), GB);
        assert_int_equal(limits_reserve(1024 * GB), 4 * GB);
}

static void test_cpu_list(void **state) {
        static const struct {
                const char *cpus; /* one letter for each */
                const char *list;
        } sets[] = { { "x", "0" }, { "xx", "0-1" }, { "xx.x", "0-1,3" }, { ".x.xxx..x", "1,3-5,8" }, { "...", "" } };

        for (size_t i = 0; i < ARRAY_SIZE(sets); i++) {
                cleanup_free char *list = NULL;
                cpu_set_t cpus;

                CPU_ZERO(&cpus);
                for (size_t k = 0; sets[i].cpus[k]; k++)
                        if (sets[i].cpus[k] == 'x')
                                CPU_SET(k, &cpus);
                list = controllers_cpu_list(&cpus);
                assert_string_equal(list, sets[i].list);
        }
}

/* A folder in place of a group; the kernel would have made the files. */
static char *make_group(const char *const *files) {
        char *dir = xstrdup("/tmp/rmd-limits-XXXXXX");

        assert_non_null(mkdtemp(dir));
        for (; *files; files++) {
                cleanup_free char *path = xasprintf("%s/%s", dir, *files);

                assert_int_equal(write_file_atomic(path, "", 0, 0600, false), 0);
        }
        return dir;
}

static void holds(const char *dir, const char *file, const char *text) {
        cleanup_free char *path = xasprintf("%s/%s", dir, file);
        cleanup_free char *now = NULL;

        assert_int_equal(read_file(path, 100, &now, NULL), 0);
        assert_string_equal(now, text);
}

static void test_written(void **state) {
        static const char *const v2[] = { "memory.max", "memory.oom.group", "pids.max", "cpuset.cpus", NULL };
        static const char *const v1[] = { "memory.limit_in_bytes", NULL };
        cleanup_free char *new = make_group(v2);
        cleanup_free char *old = make_group(v1);
        cpu_set_t cpus;

        CPU_ZERO(&cpus);
        CPU_SET(2, &cpus);
        assert_int_equal(controllers_set_memory(new, 300 * MB), 0);
        holds(new, "memory.max", "314572800");
        holds(new, "memory.oom.group", "1");
        assert_int_equal(controllers_set_pids(new, UINT64_MAX), 0);
        holds(new, "pids.max", "max");
        assert_int_equal(controllers_set_cpus(new, &cpus), 0);
        holds(new, "cpuset.cpus", "2");
        assert_int_equal(controllers_set_memory(old, UINT64_MAX), 0);
        holds(old, "memory.limit_in_bytes", "-1");
        assert_int_equal(controllers_set_pids(old, 5), -ENOENT);
        assert_int_equal(remove_tree(new), 0);
        assert_int_equal(remove_tree(old), 0);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_report_due), cmocka_unit_test(test_share),      cmocka_unit_test(test_promised),
                cmocka_unit_test(test_capacity),   cmocka_unit_test(test_configured), cmocka_unit_test(test_reserve),
                cmocka_unit_test(test_cpu_list),   cmocka_unit_test(test_written),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
