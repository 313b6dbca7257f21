/* `rmd --init-cluster` and `rmd --join` write on nodes in use: what is there must stay, and no key
 * may be seen by others. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/util.h"
#include "daemon/config/config.h"
#include "daemon/setup/nodename.h"
#include "daemon/setup/setup.h"
#include "daemon/setup/uplink.h"
#include "daemon/wire/tls.h"

static char dir[64], config_path[128], key_path[128];

static int fresh(void **state) {
        (void) snprintf(dir, sizeof(dir), "/tmp/test-setup.XXXXXX");
        assert_non_null(mkdtemp(dir));
        (void) snprintf(config_path, sizeof(config_path), "%s/etc/rmd.conf", dir);
        (void) snprintf(key_path, sizeof(key_path), "%s/etc/cluster.key", dir);
        return 0;
}

static int gone(void **state) {
        return remove_tree(dir);
}

static void put(const char *path, const char *text, mode_t mode) {
        cleanup_free char *etc = xasprintf("%s/etc", dir);
        cleanup_close int fd = -1;

        assert_int_equal(mkdir_p(etc, 0755), 0);
        fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);
        assert_true(fd >= 0);
        assert_int_equal(write_all(fd, text, strlen(text)), 0);
        assert_int_equal(fchmod(fd, mode), 0);
}

static char *text_of(const char *path) {
        char *text = NULL;
        size_t size;

        assert_int_equal(read_file(path, 65536, &text, &size), 0);
        return text;
}

static bool there(const char *path) {
        struct stat st;

        return lstat(path, &st) == 0;
}

/* The output of the set-up is in `said`. */
static char said[4096];
static int set_up(const char *join, const char *systemctl, struct rm_error *err) {
        const struct setup setup = { .config_path = config_path, .key_path = key_path, .join = join, .systemctl = systemctl };
        FILE *out = fmemopen(said, sizeof(said), "w");
        int r;

        error_clear(err);
        memset(said, 0, sizeof(said));
        r = setup_node(&setup, out, err);
        assert_int_equal(fclose(out), 0);
        return r;
}

/* A configuration that is there, so that no interface of the machine is asked for. */
static void names_own_key(const char *path) {
        cleanup_free char *text =
                xasprintf("[cluster]\nbootstrap = yes\npeers = n2 n3:7701\nkey_file = %s\n[node]\nuplink = lo\n", path);

        put(config_path, text, 0644);
}

static void test_new_key(void **state) {
        uint8_t key[TLS_KEY_BYTES];
        struct rm_error err = { 0 };
        cleanup_free char *text = NULL, *again = NULL;
        struct stat st;
        mode_t mask = umask(0);

        names_own_key(key_path);
        assert_int_equal(set_up(NULL, NULL, &err), 0);
        (void) umask(mask);
        assert_int_equal(stat(key_path, &st), 0);
        assert_int_equal(st.st_mode & 07777, 0600);
        assert_int_equal(st.st_nlink, 1);
        assert_int_equal(tls_key_read(key_path, key, &err), 0);
        text = text_of(key_path);
        assert_int_equal(strlen(text), 65);
        text[64] = '\0';
        assert_null(strstr(said, text));
        assert_non_null(strstr(said, "a new key"));
        /* The second run keeps the same key. */
        assert_int_equal(set_up(NULL, NULL, &err), 0);
        again = text_of(key_path);
        again[64] = '\0';
        assert_string_equal(again, text);
        assert_non_null(strstr(said, "kept"));
        assert_null(strstr(said, text));
}

/* A file in the place of the key is never overwritten, and one that is no key is not used. */
static void test_bad_keys(void **state) {
        struct rm_error err = { 0 };
        cleanup_free char *text = NULL, *etc = xasprintf("%s/etc", dir);

        names_own_key(key_path);
        put(key_path, "", 0600);
        assert_true(set_up(NULL, NULL, &err) < 0);
        text = text_of(key_path);
        assert_string_equal(text, "");
        put(key_path, "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\n", 0644);
        assert_int_equal(set_up(NULL, NULL, &err), -EPERM);
        assert_int_equal(unlink(key_path), 0);
        assert_int_equal(symlink("/nonexistent/key", key_path), 0);
        assert_true(set_up(NULL, NULL, &err) < 0);
        assert_false(there("/nonexistent/key"));
        assert_int_equal(unlink(key_path), 0);
        assert_int_equal(mkdir(key_path, 0700), 0);
        assert_true(set_up(NULL, NULL, &err) < 0);
        assert_int_equal(rmdir(key_path), 0);
        /* Nothing half written is left of it. */
        assert_int_equal(unlink(config_path), 0);
        assert_int_equal(rmdir(etc), 0);
}

/* A configuration that is there stays, to the last byte, and must say what is wanted. */
static void test_existing_config(void **state) {
        static const struct {
                const char *text, *join;
                int expected;
                const char *word;
        } cases[] = {
                { "[cluster]\npeers = n1\n", NULL, -EEXIST, "bootstrap = yes" },
                { "[cluster]\npeers = n1 n2\n", "n3", -EEXIST, "add 'n3'" },
                { "[cluster]\npeers = n1 n2\n", "n1,n3", -EEXIST, "peers are 'n1 n2'" },
                { "[cluster]\npeers = n12\n", "n1", -EEXIST, "peers are 'n12'" },
                { "[cluster]\nbootstrap = maybe\n", NULL, -EINVAL, ":2" },
                { "[cluster\n", "n1", -EINVAL, "rmd.conf" },
                { "[cluster]\npeers = n1, n2:7701\n", "n2:7701,n1", -ENOKEY, "there is no key" },
        };
        struct rm_error err = { 0 };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                cleanup_free char *text = NULL;

                put(config_path, cases[i].text, 0640);
                assert_int_equal(set_up(cases[i].join, NULL, &err), cases[i].expected);
                if (!strstr(error_text(&err), cases[i].word))
                        fail_msg("case %zu: '%s' does not say '%s'", i, error_text(&err), cases[i].word);
                text = text_of(config_path);
                assert_string_equal(text, cases[i].text);
                assert_false(there(key_path));
        }
}

/* Before a node joins it must have the key, and nothing is written for it until then. */
static void test_join_without_key(void **state) {
        const struct setup setup = { .config_path = config_path, .key_path = key_path, .join = "n1:7701,n2", .uplink = "lo" };
        struct rm_error err = { 0 };

        assert_int_equal(setup_node(&setup, stdout, &err), -EADDRNOTAVAIL); /* the loopback interface connects no nodes */
        put(config_path, "[cluster]\npeers = n1:7701 n2\n", 0644);
        assert_int_equal(set_up("n1:7701,n2", NULL, &err), -ENOKEY);
        assert_non_null(strstr(error_text(&err), "scp -p n1:"));
        assert_false(there(key_path));
}

static void test_bad_hosts(void **state) {
        static const char *const lists[] = {
                "",    ",",        " , ",      "n1,-oProxyCommand=x", "n1;reboot", "n1\npeers = n2", "n1:0", "n1:65536", "n1:x",
                ".n1", "n 1,$(x)", "n1:7700:1"
        };
        struct rm_error err = { 0 };

        for (size_t i = 0; i < ARRAY_SIZE(lists); i++) {
                assert_int_equal(set_up(lists[i], NULL, &err), -EINVAL);
                assert_false(there(config_path));
                assert_false(there(key_path));
        }
}

/* A fake systemctl says what it was called with. */
static void test_unit(void **state) {
        cleanup_free char *systemctl = xasprintf("%s/systemctl", dir), *called = xasprintf("%s/called", dir);
        cleanup_free char *script = xasprintf("#!/bin/sh\necho \"$*\" >>%s\n", called), *text = NULL;
        struct rm_error err = { 0 };

        put(config_path, "[cluster]\npeers = n1\n", 0644);
        names_own_key(key_path);
        put(systemctl, script, 0755);
        assert_int_equal(set_up(NULL, systemctl, &err), 0);
        text = text_of(called);
        assert_string_equal(text, "enable --now rmd.service\n");
        assert_non_null(strstr(said, "enabled and started"));
        put(systemctl, "#!/bin/sh\nexit 3\n", 0755);
        assert_int_equal(set_up(NULL, systemctl, &err), -EIO);
        assert_non_null(strstr(error_text(&err), "journalctl -u rmd"));
        assert_int_equal(unlink(systemctl), 0);
        assert_int_equal(set_up(NULL, systemctl, &err), -ENOENT);
}

/* Keeps `name`, and returns the name that the node then has. */
static char *kept_as(const char *name) {
        cleanup_free char *run = xasprintf("%s/run", dir);
        struct rm_error err = { 0 };
        char *now = xstrdup(name);

        assert_int_equal(nodename_keep(run, &now, &err), 0);
        return now;
}

static void check_kept(const char *name, const char *expected) {
        cleanup_free char *now = kept_as(name);

        assert_string_equal(now, expected);
}

/* A node is called as its host is, but while there are capsules as it was when they were made. */
static void test_node_name(void **state) {
        cleanup_free char *capsule = xasprintf("%s/run/capsules/j7.0", dir), *file = xasprintf("%s/run/node-name", dir);

        check_kept("n1", "n1");
        check_kept("n2", "n2");
        assert_int_equal(mkdir_p(capsule, 0700), 0);
        check_kept("n2", "n2");
        check_kept("n3", "n2");
        check_kept("n2.site", "n2");
        /* Nothing that is no name is taken for one. */
        put(file, "../x y", 0644);
        check_kept("n3", "n3");
        check_kept("n4", "n3");
        assert_int_equal(rmdir(capsule), 0);
        check_kept("n4", "n4");
        check_kept("n3", "n3");
}

#define ROUTES_HEAD "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n"

static void test_routes(void **state) {
        static const struct {
                const char *routes, *name;
        } cases[] = {
                { "", "" },
                { ROUTES_HEAD, "" },
                { ROUTES_HEAD "eth1\t0000A8C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n", "" },
                { ROUTES_HEAD "eth0\t00000000\t0100A8C0\t0003\t0\t0\t100\t00000000\t0\t0\t0\n", "eth0" },
                { ROUTES_HEAD "wlan0\t00000000\t0100A8C0\t0003\t0\t0\t600\t00000000\t0\t0\t0\n"
                              "enp3s0\t00000000\t0100A8C0\t0003\t0\t0\t100\t00000000\t0\t0\t0\n",
                  "enp3s0" },
                { ROUTES_HEAD "down0\t00000000\t0100A8C0\t0002\t0\t0\t1\t00000000\t0\t0\t0\n", "" },
                { ROUTES_HEAD "half0\t00000000\t01010101\t0003\t0\t0\t1\t00000080\t0\t0\t0\n", "" },
                { "nonsense\nof\tthree\tlines\n", "" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                char name[16] = "before";

                uplink_of_routes(cases[i].routes, name);
                assert_string_equal(name, cases[i].name);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_new_key, fresh, gone),
                cmocka_unit_test_setup_teardown(test_bad_keys, fresh, gone),
                cmocka_unit_test_setup_teardown(test_existing_config, fresh, gone),
                cmocka_unit_test_setup_teardown(test_join_without_key, fresh, gone),
                cmocka_unit_test_setup_teardown(test_bad_hosts, fresh, gone),
                cmocka_unit_test_setup_teardown(test_unit, fresh, gone),
                cmocka_unit_test_setup_teardown(test_node_name, fresh, gone),
                cmocka_unit_test(test_routes),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
