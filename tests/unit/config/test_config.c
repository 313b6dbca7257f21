/* rmd.conf: every key, good and bad, and that what is wrong is named with file, line and key. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <syslog.h>

#include <cmocka.h>

#include "common/util.h"
#include "daemon/config/config.h"
#include "daemon/config/listen.h"

struct file {
        char path[40];
        struct config config;
        struct rm_error err;
};

static int load_text(struct file *f, const char *text) {
        int fd;

        memset(f, 0, sizeof(*f));
        strcpy(f->path, "/tmp/test-config-XXXXXX");
        fd = mkstemp(f->path);
        assert_true(fd >= 0);
        assert_int_equal(write_all(fd, text, strlen(text)), 0);
        cleanup_close_fd(&fd);
        return config_load(f->path, &f->config, &f->err);
}

static void finish(struct file *f) {
        config_finish(&f->config);
        (void) remove(f->path);
}

#define AT(field) offsetof(struct config, field)

enum type { STRING, BOOL, U8, U16, U32, U64, INT };

/* A value of any field, as text. */
static char *field_text(const struct config *config, enum type type, size_t offset) {
        const void *p = (const char *) config + offset;

        switch (type) {
        case STRING:
                return xstrdup(*(char *const *) p);
        case BOOL:
                return xstrdup(*(const bool *) p ? "yes" : "no");
        case U8:
                return xasprintf("%u", *(const uint8_t *) p);
        case U16:
                return xasprintf("%u", *(const uint16_t *) p);
        case U32:
                return xasprintf("%u", *(const uint32_t *) p);
        case U64:
                return xasprintf("%llu", (unsigned long long) *(const uint64_t *) p);
        case INT:
                return xasprintf("%d", *(const int *) p);
        }
        return NULL;
}

static const struct {
        const char *section;
        const char *key;
        enum type type;
        size_t offset;
        const char *fallback;
        const char *value;
        const char *expected;
        const char *bad[6];
        const char *expects; /* in the message */
} keys[] = {
        { "cluster", "name", STRING, AT(cluster_name), "rmd", "lab-2", "lab-2", { "a b", "-x", "x/y" }, "a name of letters" },
        { "cluster", "key_file", STRING, AT(key_file), "/etc/rmd/cluster.key", "/k", "/k", { NULL }, NULL },
        { "cluster", "second_key_file", STRING, AT(second_key_file), "", "/k2", "/k2", { NULL }, NULL },
        { "cluster", "peers", STRING, AT(peers), "", "n1 n2:7701", "n1 n2:7701", { NULL }, NULL },
        { "cluster", "port", U16, AT(port), "7700", "1", "1", { "0", "65536", "-1", "x", "80x" }, "a number from 1 to 65535" },
        { "cluster",
          "node_timeout",
          U64,
          AT(node_timeout_usec),
          "5000000",
          "2m",
          "120000000",
          { "x", "-1s", "5 s", "5y" },
          "a time" },
        { "cluster", "heartbeat", U64, AT(heartbeat_usec), "1000000", "50ms", "50000", { "1.5s", "s" }, "a time" },
        { "cluster", "lease", U64, AT(lease_usec), "5000000", "10s", "10000000", { "1.5s", "s", "" }, "a time" },
        { "fence", "plugin", STRING, AT(fence_plugin), "none", "log", "log", { "a b", "", "../x" }, "a name of letters" },
        { "fence", "program", STRING, AT(fence_program), "", "/sbin/fence", "/sbin/fence", { NULL }, NULL },
        { "fence", "timeout", U64, AT(fence_timeout_usec), "60000000", "5s", "5000000", { "x", "" }, "a time" },
        { "fence", "retry", U64, AT(fence_retry_usec), "10000000", "1s", "1000000", { "x", "" }, "a time" },
        { "cluster", "state_dir", STRING, AT(state_dir), "/var/lib/rmd", "/s", "/s", { NULL }, NULL },
        { "node", "name", STRING, AT(node_name), NULL, "n7", "n7", { NULL }, NULL },
        { "node", "address", STRING, AT(address), "", "10.0.0.7", "10.0.0.7", { NULL }, NULL },
        { "node", "uplink", STRING, AT(uplink), "eth0", "bond0", "bond0", { NULL }, NULL },
        { "node",
          "cores",
          U32,
          AT(cores),
          "0",
          "16",
          "16",
          { "0", "1000001", "-1", "many" },
          "a number from 1 to 1000000, or auto" },
        { "cluster", "topology", STRING, AT(topology), "", "/etc/slurm/topology.conf", "/etc/slurm/topology.conf", { NULL }, NULL },
        { "node", "memory", U64, AT(memory), "0", "48G", "51539607552", { "0", "63M", "-1", "much" }, "auto, none, or" },
        { "node", "socket", STRING, AT(socket_path), "/run/rmd/rmd.sock", "/x.sock", "/x.sock", { NULL }, NULL },
        { "node", "runtime_dir", STRING, AT(runtime_dir), "/run/rmd", "/r", "/r", { NULL }, NULL },
        { "node",
          "move_ports",
          U16,
          AT(move_port_first),
          "0",
          "7800-7899",
          "7800",
          { "7800", "7899-7800", "0-5", "1-65536", "a-b", "-" },
          "any, or a range" },
        { "node", "move_ports", U16, AT(move_port_last), "0", "7800-7899", "7899", { NULL }, NULL },
        { "node",
          "move_rate",
          U64,
          AT(move_rate_bytes_per_sec),
          "0",
          "50M",
          "52428800",
          { "-1", "5m", "1.5M", "fast" },
          "a number of bytes" },
        { "move", "codec", U32, AT(move_codec), "0", "zstd", "3", { "gzip", "", "3", "ZSTD" }, "auto, none, lz4 or zstd" },
        { "move", "codec", U32, AT(move_codec), "0", "none", "1", { NULL }, NULL },
        { "move", "last", U32, AT(move_last), "0", "freeze", "1", { "fast", "", "1" }, "slow, freeze or postcopy" },
        { "move", "slow_for", U64, AT(move_slow_usec), "2000000", "500ms", "500000", { "2x", "" }, "a time" },
        { "move", "callback_wait", U64, AT(callback_wait_usec), "1000000", "0s", "0", { "-1", "soon" }, "a time from 0s" },
        { "move", "callback_wait", U64, AT(callback_wait_usec), "1000000", "10s", "10000000", { "11s" }, "a time from 0s to 10s" },
        { "checkpoint",
          "place_wait",
          U64,
          AT(place_wait_usec),
          "10000000",
          "1m",
          "60000000",
          { "61s", "soon" },
          "a time from 0s to 1m" },
        { "move", "tracking", BOOL, AT(move_tracking), "yes", "no", "no", { "auto", "", "2" }, "yes or no" },
        { "capsule", "memory_max", U64, AT(memory_max), "0", "300M", "314572800", { "0", "63M", "-1", "much" }, "auto, none, or" },
        { "capsule", "memory_max", U64, AT(memory_max), "0", "none", "18446744073709551615", { "no" }, "auto, none, or" },
        { "capsule", "pids_max", U64, AT(pids_max), "0", "200", "200", { "0", "63", "2K" }, "auto, none, or" },
        { "job", "spool_max", U64, AT(spool_max_bytes), "1073741824", "0", "0", { "-1", "lots" }, "a number of bytes" },
        { "job", "spool_reserve", U64, AT(spool_reserve_bytes), "268435456", "1M", "1048576", { "-1", "5%" }, "a number of bytes" },
        { "capsule",
          "network",
          U32,
          AT(network),
          "180944896",
          "10.1.0.0/16",
          "167837696",
          { "10.1.0.0", "10.1.0.1/16", "10.1.0.0/7", "10.1.0.0/17", "x/16", "10.1/16" },
          "a network" },
        { "capsule", "network", U8, AT(network_prefix), "16", "10.0.0.0/8", "8", { "10.0.0.0/", "10.0.0.0/8x" }, "a network" },
        { "capsule",
          "group_size",
          U32,
          AT(group_size),
          "0",
          "4",
          "4",
          { "0", "-4", "4,5" },
          "a number from 1 to 1000000, or auto" },
        { "capsule", "cgroup", STRING, AT(cgroup_parent), "", "/sys/fs/cgroup/x", "/sys/fs/cgroup/x", { NULL }, NULL },
        { "availability", "file", STRING, AT(availability_file), "/etc/rmd/availability", "/a", "/a", { NULL }, NULL },
        { "availability", "poll", U64, AT(availability_poll_usec), "1000000", "10", "10000000", { "often" }, "a time" },
        { "sched", "policy", STRING, AT(policy), "distrib", "greedy", "greedy", { "../x", "" }, "a name of letters" },
        { "sched", "policy_dir", STRING, AT(policy_dir), RM_POLICY_DIR, "/p", "/p", { NULL }, NULL },
        { "sched", "budget", U64, AT(budget_usec), "1000000", "200ms", "200000", { "x" }, "a time" },
        { "sched", "settle", U64, AT(settle_usec), "20000", "0", "0", { "-20ms" }, "a time" },
        { "sched",
          "move_timeout",
          U64,
          AT(move_timeout_usec),
          "120000000",
          "15s",
          "15000000",
          { "1h30m", "10m", "121s", "999ms" },
          "a time from 1s to 2m" },
        { "sched",
          "moves_at_once",
          U32,
          AT(moves_at_once),
          "8",
          "1",
          "1",
          { "0", "auto", "1000001" },
          "a number from 1 to 1000000" },
        { "sched", "spare_nodes", U32, AT(spare_nodes), "0", "2", "2", { "-1", "1000001", "all" }, "a number from 0 to 1000000" },
        { "sched", "horizon", U64, AT(horizon_usec), "600000000", "1h", "3600000000", { "long" }, "a time" },
        { "sched", "move_budget", U32, AT(move_budget), "4", "8", "8", { "-1", "1000001", "x" }, "a number from 0 to 1000000" },
        { "sched", "traffic_interval", U64, AT(traffic_interval_usec), "10000000", "0", "0", { "often" }, "a time" },
        { "sched",
          "link_speed",
          U32,
          AT(link_mbit_per_sec),
          "1000",
          "100000",
          "100000",
          { "0", "fast" },
          "a number from 1 to 1000000" },
        { "sched", "interval", U64, AT(interval_usec), "60000000", "0", "0", { "often" }, "a time" },
        { "sched", "resize_interval", U64, AT(resize_interval_usec), "30000000", "0", "0", { "often" }, "a time" },
        { "sched", "age_weight", U32, AT(age_weight), "1", "0", "0", { "-1", "1000001", "x" }, "a number from 0 to 1000000" },
        { "sched", "backfill", U32, AT(backfill), "1", "any", "2", { "yes", "", "2" }, "no, limits or any" },
        { "sched",
          "distribution_weight",
          U32,
          AT(distribution_weight),
          "10",
          "0",
          "0",
          { "-1", "1000001", "1.5" },
          "a number from 0 to 1000000" },
        { "health", "warn_penalty", U32, AT(warn_penalty), "100", "0", "0", { "-1", "1000001" }, "a number from 0 to 1000000" },
        { "checkpoint", "store", STRING, AT(checkpoint_store), "partner", "/scratch/rmd", "/scratch/rmd", { NULL }, NULL },
        { "checkpoint", "copies", U32, AT(checkpoint_copies), "1", "0", "0", { "-1", "all" }, "a number from 0 to 1000000" },
        { "checkpoint", "keep", U32, AT(checkpoint_keep), "2", "16", "16", { "0", "-1" }, "a number from 1 to 1000000" },
        { "checkpoint",
          "rate",
          U64,
          AT(checkpoint_rate_bytes_per_sec),
          "0",
          "50M",
          "52428800",
          { "-1", "fast" },
          "a number of bytes" },
        { "checkpoint", "codec", U32, AT(checkpoint_codec), "0", "lz4", "2", { "gzip", "" }, "auto, none, lz4 or zstd" },
        { "checkpoint",
          "space_max_per_user",
          U64,
          AT(checkpoint_space_bytes),
          "0",
          "1G",
          "1073741824",
          { "50%" },
          "a number of bytes" },
        { "checkpoint", "mtbf", U64, AT(checkpoint_mtbf_usec), "3600000000000", "1h", "3600000000", { "never" }, "a time" },
        { "job", "keep", U64, AT(keep_jobs_usec), "86400000000", "2d", "172800000000", { "99999999999999999999d" }, "a time" },
        { "job", "kill_wait", U64, AT(kill_wait_usec), "10000000", "1s", "1000000", { "x" }, "a time" },
        { "job", "admin_group", STRING, AT(admin_group), "rmadmin", "wheel", "wheel", { NULL }, NULL },
        { "job", "max_priority", U32, AT(max_priority), "1000", "0", "0", { "-1", "1000001" }, "a number from 0 to 1000000" },
        { "job",
          "max_jobs_per_user",
          U32,
          AT(max_jobs_per_user),
          "1000",
          "0",
          "0",
          { "-1", "many" },
          "a number from 0 to 1000000" },
        { "job",
          "max_ranks_per_user",
          U32,
          AT(max_ranks_per_user),
          "1000000",
          "64",
          "64",
          { "1e3" },
          "a number from 0 to 1000000" },
        { "job",
          "max_groups_per_job",
          U32,
          AT(max_groups_per_job),
          "4096",
          "0",
          "0",
          { "-1", "65537x" },
          "a number from 0 to 1000000" },
        { "job",
          "max_capsules_per_core",
          U32,
          AT(max_capsules_per_core),
          "8",
          "4",
          "4",
          { "-1", "0.5" },
          "a number from 0 to 1000000" },
        { "web", "listen", STRING, AT(web_listen), "/run/rmd/web.sock", "/w 127.0.0.1:1", "/w 127.0.0.1:1", { NULL }, NULL },
        { "log", "level", INT, AT(log_level), NULL, "debug", NULL, { "loud", "7", "" }, "error, warning, info or debug" },
};

static void test_every_key(void **state) {
        for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
                cleanup_free char *text =
                        xasprintf("[cluster]\nbootstrap = yes\n[%s]\n%s = %s\n", keys[i].section, keys[i].key, keys[i].value);
                cleanup_free char *got = NULL;
                struct file f;

                if (load_text(&f, text) < 0)
                        fail_msg("[%s] %s: %s", keys[i].section, keys[i].key, f.err.text);
                got = field_text(&f.config, keys[i].type, keys[i].offset);
                if (keys[i].expected)
                        assert_string_equal(got, keys[i].expected);
                finish(&f);
        }
}

static void test_bad_values(void **state) {
        for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
                for (size_t k = 0; k < ARRAY_SIZE(keys[i].bad) && keys[i].bad[k]; k++) {
                        cleanup_free char *text = xasprintf("[cluster]\nbootstrap = yes\n\n# x\n[%s]\n%s = %s\nend = 1\n",
                                                            keys[i].section, keys[i].key, keys[i].bad[k]);
                        cleanup_free char *expected = NULL;
                        struct file f;

                        assert_int_equal(load_text(&f, text), -EINVAL);
                        expected = xasprintf("%s:6: [%s] %s = '%s': expected %s", f.path, keys[i].section, keys[i].key,
                                             keys[i].bad[k], keys[i].expects);
                        if (strncmp(f.err.text, expected, strlen(expected)) != 0)
                                fail_msg("expected '%s...', have '%s'", expected, f.err.text);
                        finish(&f);
                }
}

static void test_defaults(void **state) {
        struct file f;
        struct config config;
        struct rm_error err = { 0 };

        assert_int_equal(load_text(&f, "[cluster]\npeers = n1\n"), 0);
        for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
                cleanup_free char *got = field_text(&f.config, keys[i].type, keys[i].offset);

                if (keys[i].fallback && strcmp(keys[i].key, "peers") != 0)
                        assert_string_equal(got, keys[i].fallback);
        }
        assert_false(f.config.bootstrap);
        assert_int_equal(f.config.log_level, LOG_INFO);
        assert_true(name_valid(f.config.node_name));
        assert_null(strchr(f.config.node_name, '.'));
        finish(&f);
        /* Alone, the defaults name no cluster to join. */
        assert_int_equal(config_load(NULL, &config, &err), -EINVAL);
        assert_non_null(strstr(err.text, "bootstrap = yes"));
}

static void test_penalties(void **state) {
        static const char *const bad[] = { "n1", "n1:", ":3", "n1:x", "n1:-1", "n1:1000001", "n[1-:3", "n1:3 n2", "n1:2:3" };
        struct file f;

        assert_int_equal(load_text(&f, "[cluster]\npeers = n1\n"), 0);
        assert_int_equal(penalties_of(&f.config.node_penalty, "n1"), 0);
        finish(&f);
        assert_int_equal(load_text(&f, "[cluster]\npeers = n1\n[sched]\nnode_penalty = n[08-10,7]:5  n1:0\nnode_penalty = "
                                       "n9:1000000 a.b-c:3 n09:6\n"),
                         0);
        assert_int_equal(penalties_of(&f.config.node_penalty, "n7"), 5);
        assert_int_equal(penalties_of(&f.config.node_penalty, "n08"), 5);
        assert_int_equal(penalties_of(&f.config.node_penalty, "n8"), 0);
        assert_int_equal(penalties_of(&f.config.node_penalty, "n09"), 6);
        assert_int_equal(penalties_of(&f.config.node_penalty, "n9"), 1000000);
        assert_int_equal(penalties_of(&f.config.node_penalty, "a.b-c"), 3);
        finish(&f);
        for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
                cleanup_free char *text = xasprintf("[cluster]\npeers = n1\n[sched]\nnode_penalty = %s\n", bad[i]);

                assert_int_equal(load_text(&f, text), -EINVAL);
                if (!strstr(f.err.text, ":4: [sched] node_penalty = ") || !strstr(f.err.text, "expected nodes with numbers"))
                        fail_msg("have '%s'", f.err.text);
                finish(&f);
        }
}

static void test_sensors(void **state) {
        static const struct {
                const char *line, *expected;
        } bad[] = {
                { "load = hw_mon", "expected up to 15 names" },
                { "load = ../x", "expected up to 15 names" },
                { "load = a b c d e f g h i j k l m n o p", "expected up to 15 names" },
                { "interval = soon", "expected a time" },
                { "hwmon_low = hot", "expected a number" },
                { "hwmon_high = nan", "expected a number" },
                { "hwmon_high = 1e999", "expected a number" },
                { "hwmon_margin = -1", "expected a number from 0 on" },
                { "hwmon_interval = 999ms", "expected a time from 1s to 1d" },
                { "hwmon_timeout = 99ms", "expected a time from 100ms to 1h" },
                { "hwmon_hold = 2d", "expected a time from 1s to 1d" },
                { "hwmon_readings = 0", "expected a number from 1 to 1000" },
                { "hwmon_at_low = ok", "expected warn, failing or critical" },
                { "hwmon_user = a b", "expected the name of a user" },
                { "hwmon_colour = red", "there is no key 'hwmon_colour'" },
                { "_low = 1", "there is no key '_low'" },
                { "colour = red", "there is no key 'colour'" },
        };
        struct file f;

        assert_int_equal(load_text(&f, "[cluster]\npeers = n1\n"), 0);
        assert_int_equal(f.config.sensors.n, 0);
        finish(&f);
        assert_int_equal(load_text(&f,
                                   "[cluster]\npeers = n1\n[sensors]\nhwmon_low = 80\nload = program hwmon\nhwmon_interval = 5s\n"
                                   "hwmon_at_low = failing\nprogram_args = /bin/check -w 5\nhold = 1h\nprogram_user = root\n"),
                         0);
        assert_int_equal(f.config.sensors.n, 2);
        assert_string_equal(f.config.sensors.list[0].name, "hwmon");
        assert_true(f.config.sensors.list[0].loaded && f.config.sensors.list[1].loaded);
        assert_true(f.config.sensors.list[0].low == 80 && isnan(f.config.sensors.list[0].high) &&
                    isnan(f.config.sensors.list[0].margin));
        assert_int_equal(f.config.sensors.list[0].interval_usec, 5000000);
        assert_int_equal(f.config.sensors.list[0].at_low, RM_SENSOR_FAILING);
        assert_int_equal(f.config.sensors.list[0].at_high, RM_SENSOR_OK);
        assert_null(f.config.sensors.list[0].user);
        assert_int_equal(f.config.sensors.list[1].interval_usec, 60000000);
        assert_int_equal(f.config.sensors.list[1].timeout_usec, 10000000);
        assert_int_equal(f.config.sensors.list[1].hold_usec, UINT64_C(3600000000));
        assert_int_equal(f.config.sensors.list[1].readings, 3);
        assert_string_equal(f.config.sensors.list[1].args, "/bin/check -w 5");
        assert_string_equal(f.config.sensors.list[1].user, "root");
        finish(&f);
        for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
                cleanup_free char *text = xasprintf("[cluster]\npeers = n1\n[sensors]\n%s\n", bad[i].line);

                assert_int_equal(load_text(&f, text), -EINVAL);
                if (!strstr(f.err.text, ":4: ") || !strstr(f.err.text, bad[i].expected))
                        fail_msg("%s: have '%s'", bad[i].line, f.err.text);
                finish(&f);
        }
}

static void test_bool_and_level(void **state) {
        static const struct {
                const char *value;
                int expected; /* -1: refused */
        } bools[] = {
                { "yes", 1 },   { "true", 1 }, { "on", 1 }, { "1", 1 },  { "YES", 1 }, { "no", 0 },
                { "false", 0 }, { "off", 0 },  { "0", 0 },  { "y", -1 }, { "2", -1 },  { "", -1 },
        };
        static const struct {
                const char *value;
                int level;
        } levels[] = { { "error", LOG_ERR }, { "warning", LOG_WARNING }, { "info", LOG_INFO }, { "debug", LOG_DEBUG } };
        struct file f;

        for (size_t i = 0; i < ARRAY_SIZE(bools); i++) {
                cleanup_free char *text = xasprintf("[cluster]\npeers = n1\nbootstrap = %s\n", bools[i].value);

                if (load_text(&f, text) < 0)
                        assert_int_equal(bools[i].expected, -1);
                else
                        assert_int_equal(f.config.bootstrap, bools[i].expected);
                finish(&f);
        }
        for (size_t i = 0; i < ARRAY_SIZE(levels); i++) {
                cleanup_free char *text = xasprintf("[cluster]\npeers = n1\n[log]\nlevel = %s\n", levels[i].value);

                assert_int_equal(load_text(&f, text), 0);
                assert_int_equal(f.config.log_level, levels[i].level);
                finish(&f);
        }
}

#define TEN "0123456789"
#define HUNDRED TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN
#define LONG HUNDRED HUNDRED

static void test_bad_files(void **state) {
        static const struct {
                const char *text;
                const char *message; /* after the path */
        } cases[] = {
                { "[cluster]\nbootstrap = yes\nprot = 7700\n", ":3: there is no key 'prot' in section [cluster]" },
                { "[clutser]\nport = 7700\n", ":1: there is no section [clutser]" },
                { "[cluster]\nbootstrap = yes\n[nodes]\n[node]\n", ":3: there is no section [nodes]" },
                { "[cluster]\nbootstrap = yes\n  [] ; none\n", ":3: there is no section []" },
                { "[cluster]\nbootstrap = yes\n[nod]\n", ":3: there is no section [nod]" },
                { "port = 7700\n", ":1: there is no key 'port' in section []" },
                { "[cluster]\nPort = 7700\n", ":2: there is no key 'Port'" },
                { "[cluster]\nbootstrap = yes\n[node\n", ":3: not a section, a key = value or a comment" },
                { "[cluster]\nbootstrap = yes\nwhat is this\n", ":3: not a section, a key = value or a comment" },
                { "\001\002\003\n", ":1: not a section, a key = value or a comment" },
                { "[cluster]\nport = 0\nport = 0x\nfoo = bar\n", ":2: [cluster] port = '0'" },
                { "[cluster]\nbootstrap = yes\n[node]\nname = a b\n", ": [node] name 'a b' is not a valid name" },
                { "[cluster]\nbootstrap = yes\n[node]\nname = b\xc3\xb6se\n",
                  ": [node] name 'b\xc3\xb6se' is not a valid name, which has up to 63 letters" },
                { "[cluster]\nbootstrap = yes\nstate_dir = here\n", ": [cluster] state_dir must be an absolute path" },
                { "[cluster]\nbootstrap = yes\n[node]\nsocket = @rmd\n", ": [node] socket must be an absolute path" },
                { "[cluster]\nbootstrap = yes\n[node]\nsocket = /run/" HUNDRED ".sock\n",
                  ": [node] socket must be an absolute path of at most 103 bytes" },
                { "[cluster]\nbootstrap = yes\n[node]\nruntime_dir = /run/" HUNDRED "\n",
                  ": [node] runtime_dir must be an absolute path of at most 48 bytes" },
                { "[cluster]\nbootstrap = yes\n[node]\naddress = n1\n", ": [node] address 'n1' is not an IPv4 address" },
                { "[cluster]\nbootstrap = yes\n[node]\naddress = ::1\n", ": [node] address '::1' is not an IPv4 address" },
                { "[cluster]\nbootstrap = yes\nheartbeat = 1s\nnode_timeout = 1s\n", ": [cluster] node_timeout must be" },
                { "[cluster]\nbootstrap = yes\nheartbeat = 9ms\n", ": [cluster] node_timeout must be" },
                { "[cluster]\nbootstrap = yes\nheartbeat = 1s\nlease = 2999ms\n", ": [cluster] lease must be" },
                { "[cluster]\nbootstrap = yes\nlease = 61s\n", ": [cluster] lease must be" },
                { "[cluster]\nbootstrap = yes\nheartbeat = 2s\n", ": [cluster] lease must be" },
                { "[cluster]\nbootstrap = yes\n[fence]\nplugin = program\n", ": [fence] plugin 'program' needs the key program" },
                { "[cluster]\nbootstrap = yes\n[fence]\nprogram = fence\n", ": [fence] program must be an absolute path" },
                { "[cluster]\nbootstrap = yes\n[fence]\ntimeout = 2h\n", ": [fence] timeout and retry must be" },
                { "[cluster]\nbootstrap = yes\n[fence]\nretry = 999ms\n", ": [fence] timeout and retry must be" },
                { "[cluster]\nbootstrap = yes\n[sensors]\nload = psi\nhwmon_low = 1\n",
                  ": [sensors] has keys of 'hwmon', which is not in load" },
                { "[cluster]\nbootstrap = yes\n[sensors]\nload = psi\npsi_low = 2\npsi_high = 1\n",
                  ": [sensors] psi_low is more than psi_high" },
                { "[cluster]\nbootstrap = yes\n[sensors]\nload = psi\npsi_at_low = critical\npsi_at_high = warn\n",
                  ": [sensors] psi_at_low is worse than psi_at_high" },
                { "[cluster]\nbootstrap = yes\n[sensors]\nload = program\n",
                  ": [sensors] the sensor 'program' needs the key program_args" },
                { "[cluster]\nbootstrap = yes\n[sensors]\ninterval = 10ms\n",
                  ": [sensors] interval and hold must be from 1s to 1d" },
                { "[cluster]\nbootstrap = yes\n[sensors]\ntimeout = 2h\n", ": [sensors] timeout must be from 100ms to 1h" },
                { "[cluster]\nbootstrap = yes\n[checkpoint]\nstore = scratch\n", ": [checkpoint] store must be 'partner' or" },
                { "[cluster]\nbootstrap = yes\n[checkpoint]\nstore =\n", ": [checkpoint] store must be 'partner' or" },
                { "[cluster]\nbootstrap = yes\n[checkpoint]\ncopies = 9\n", ": [checkpoint] copies must be from 0 to 8" },
                { "[cluster]\nbootstrap = yes\n[checkpoint]\nkeep = 17\n", ": [checkpoint] keep must be from 1 to 16" },
                { "[cluster]\nbootstrap = yes\n[checkpoint]\nmtbf = 59s\n", ": [checkpoint] mtbf must be from 1m to 36500d" },
                { "[cluster]\nbootstrap = yes\n[checkpoint]\nmtbf = 36501d\n", ": [checkpoint] mtbf must be from 1m to 36500d" },
                { "[cluster]\nbootstrap = yes\n  prot = 7700\n", ":3: there is no key 'prot' in section [cluster]" },
                { "[cluster]\nbootstrap = yes\nkey_file = /" LONG "\n", ":3: the line is longer than 199 bytes" },
                { "[cluster]\nprot = 1\nkey_file = /" LONG "\n", ":2: there is no key 'prot' in section [cluster]" },
                { "[cluster]\nwhat\nkey_file = /" LONG "\n", ":2: not a section, a key = value or a comment" },
                { "[cluster]\npeers = n1\n[web]\nlisten = 0.0.0.0:1\n", ": [web] listen: '0.0.0.0:1' is neither" },
                { "", ": [cluster] peers is empty" },
                { "# nothing\n", ": [cluster] peers is empty" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                cleanup_free char *expected = NULL;
                struct file f;

                assert_int_equal(load_text(&f, cases[i].text), -EINVAL);
                expected = xasprintf("%s%s", f.path, cases[i].message);
                if (strncmp(f.err.text, expected, strlen(expected)) != 0)
                        fail_msg("expected '%s...', have '%s'", expected, f.err.text);
                finish(&f);
        }
}

static void test_forms(void **state) {
        static const char *const good[] = {
                "[cluster]\npeers=n1\n",
                "  [cluster]\n  peers  =  n1   ; why\n",
                "; x\n\n[cluster]\r\npeers = n1\r\n",
                "[cluster]\npeers = n1",
                "[mpirun]\nanything = goes\n[cluster]\npeers = n1\n", /* rm-mpirun's own */
                "[cluster]\n  port = 7700\n\tpeers = n1\n",
                "[cluster]\nport = 1\nport = 7700\npeers = n1\n",
        };

        for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
                struct file f;

                if (load_text(&f, good[i]) < 0)
                        fail_msg("'%s': %s", good[i], f.err.text);
                assert_string_equal(f.config.peers, "n1");
                assert_int_equal(f.config.port, 7700);
                finish(&f);
        }
}

static void test_no_file(void **state) {
        static const char *const paths[] = { "/nonexistent/rmd.conf", "/" };

        for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
                struct config config;
                struct rm_error err = { 0 };

                assert_true(config_load(paths[i], &config, &err) < 0);
                assert_non_null(strstr(err.text, paths[i]));
                assert_true(config_load(paths[i], &config, NULL) < 0);
        }
}

/* Only this machine gets what is served; whatever else is named is refused, and which word it is is
 * said. */
static void test_listens(void **state) {
        static const struct {
                const char *text;
                size_t n; /* 0: refused */
                const char *error;
        } cases[] = {
                { "/run/rmd/web.sock", 1, NULL },
                { "/a 127.0.0.1:7701\t127.1.2.3:65535 /b", 4, NULL },
                { "/a /b /c /d /e", 0, "more than 4 places" },
                { "", 0, "no place" },
                { "web.sock", 0, "'web.sock' is neither" },
                { "/a 0.0.0.0:7701", 0, "'0.0.0.0:7701' is neither" },
                { "10.0.0.1:7701", 0, "'10.0.0.1:7701' is neither" },
                { "128.0.0.1:7701", 0, "'128.0.0.1:7701' is neither" },
                { "localhost:7701", 0, "'localhost:7701' is neither" },
                { "127.0.0.1", 0, "'127.0.0.1' is neither" },
                { "127.0.0.1:0", 0, "is neither" },
                { "127.0.0.1:65536", 0, "is neither" },
                { "127.0.0.1:77x", 0, "is neither" },
                { "[::1]:7701", 0, "is neither" },
                { "none /a", 0, "'none' is neither" },
                { "/0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345", 0,
                  "too long" },
        };
        struct listen_at at[LISTENS_MAX];
        size_t n = 77;

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct rm_error err = { 0 };
                int r = listens_parse(cases[i].text, at, &n, &err);

                if ((r == 0) != (cases[i].n > 0) || (r == 0 && n != cases[i].n) || (r < 0 && !strstr(err.text, cases[i].error)))
                        fail_msg("'%s': %d %zu %s", cases[i].text, r, n, err.text);
        }
        assert_int_equal(listens_parse("none", at, &n, NULL), 0);
        assert_int_equal(n, 0);
        assert_int_equal(listens_parse("/a 127.0.0.1:7701", at, &n, NULL), 0);
        assert_string_equal(at[0].path, "/a");
        assert_string_equal(at[1].path, "");
        assert_string_equal(at[1].address, "127.0.0.1");
        assert_int_equal(at[1].port, 7701);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_every_key), cmocka_unit_test(test_bad_values), cmocka_unit_test(test_defaults),
                cmocka_unit_test(test_penalties), cmocka_unit_test(test_sensors),    cmocka_unit_test(test_bool_and_level),
                cmocka_unit_test(test_bad_files), cmocka_unit_test(test_forms),      cmocka_unit_test(test_no_file),
                cmocka_unit_test(test_listens),
        };

        return cmocka_run_group_tests_name("config", tests, NULL, NULL);
}
