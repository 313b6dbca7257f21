#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <arpa/inet.h>
#include <netinet/in.h>

#include <cmocka.h>

#include "common/util.h"
#include "daemon/doctor/collect.h"
#include "daemon/doctor/doctor.h"

struct tree {
        char path[64];
        Rm__NodeFacts *facts;
};

static int setup(void **state) {
        struct tree *tree = xcalloc(1, sizeof(*tree));

        (void) snprintf(tree->path, sizeof(tree->path), "/tmp/test-doctor.XXXXXX");
        assert_non_null(mkdtemp(tree->path));
        tree->facts = xcalloc(1, sizeof(*tree->facts));
        rm__node_facts__init(tree->facts);
        *state = tree;
        return 0;
}

static int teardown(void **state) {
        struct tree *tree = *state;

        (void) remove_tree(tree->path);
        rm__node_facts__free_unpacked(tree->facts, NULL);
        free(tree);
        return 0;
}

/* Returns its path, for the caller to free. */
static char *put_file(const struct tree *tree, const char *name, const void *data, size_t bytes, mode_t mode) {
        char *path = xasprintf("%s/%s", tree->path, name);
        cleanup_free char *folder = xstrdup(path);

        *strrchr(folder, '/') = '\0';
        assert_int_equal(mkdir_p(folder, 0755), 0);
        assert_int_equal(write_file_atomic(path, data, bytes, mode, false), 0);
        return path;
}

static void put_text(const struct tree *tree, const char *name, const char *text) {
        free(put_file(tree, name, text, strlen(text), 0644));
}

static void the_processor_is_that_of_the_first_core(void **state) {
        struct tree *tree = *state;

        put_text(tree, "proc/cpuinfo",
                 "processor\t: 0\nmodel name\t: Some CPU @ 2 GHz\nflags\t\t: fpu avx2 sse4_2\n\nprocessor\t: 1\nmodel name\t: "
                 "Other\n");
        collect_processor(tree->path, tree->facts);
        assert_string_equal(tree->facts->processor, "Some CPU @ 2 GHz");
        assert_string_equal(tree->facts->processor_flags, "fpu avx2 sse4_2");
}

static void arm_has_features(void **state) {
        struct tree *tree = *state;

        put_text(tree, "proc/cpuinfo", "processor\t: 0\nFeatures\t: fp asimd sve\n");
        collect_processor(tree->path, tree->facts);
        assert_string_equal(tree->facts->processor_flags, "fp asimd sve");
        assert_string_equal(tree->facts->processor, "");
}

static void huge_pages_of_all_sizes_count(void **state) {
        struct tree *tree = *state;

        put_text(tree, "proc/meminfo", "MemTotal:  1000 kB\nHugePages_Total:   0\nHugetlb:  2097152 kB\nDirectMap4k: 1 kB\n");
        collect_huge_pages(tree->path, tree->facts);
        assert_int_equal(tree->facts->huge_page_bytes, UINT64_C(2) << 30);
        put_text(tree, "proc/meminfo", "MemTotal:  1000 kB\nHugetlb:  0 kB\n");
        collect_huge_pages(tree->path, tree->facts);
        assert_int_equal(tree->facts->huge_page_bytes, 0);
}

static void an_uplink_has_an_mtu_and_a_state(void **state) {
        struct tree *tree = *state;

        put_text(tree, "sys/class/net/ib0/mtu", "2044\n");
        put_text(tree, "sys/class/net/ib0/operstate", "lowerlayerdown\n");
        collect_uplink(tree->path, "ib0", tree->facts);
        assert_int_equal(tree->facts->mtu, 2044);
        assert_string_equal(tree->facts->uplink_state, "lowerlayerdown");
        assert_string_equal(tree->facts->uplink_error, "");
}

static void a_missing_uplink_is_reported(void **state) {
        struct tree *tree = *state;

        collect_uplink(tree->path, "eth7", tree->facts);
        assert_int_equal(tree->facts->mtu, 0);
        assert_string_not_equal(tree->facts->uplink_error, "");
        assert_string_equal(tree->facts->uplink, "eth7");
}

/* SHA-256 of "abc" begins so. */
static void a_library_is_known_by_its_content(void **state) {
        struct tree *tree = *state;
        cleanup_free char *path = put_file(tree, "libmpi.so.40", "abc", 3, 0644);

        collect_library("libmpi.so.40", path, tree->facts);
        assert_int_equal(tree->facts->n_libraries, 1);
        assert_string_equal(tree->facts->libraries[0]->digest, "ba7816bf8f01cfea");
}

/* A FIFO is not read, since no process writes to it and reading would never end. */
static void what_is_no_file_is_not_read(void **state) {
        struct tree *tree = *state;
        cleanup_free char *path = xasprintf("%s/fifo", tree->path);

        assert_int_equal(mkfifo(path, 0600), 0);
        collect_library("libc.so.6", path, tree->facts);
        collect_library("libm.so.6", "/dev/zero", tree->facts);
        for (size_t i = 0; i < 2; i++) {
                assert_string_equal(tree->facts->libraries[i]->digest, "");
                assert_string_not_equal(tree->facts->libraries[i]->error, "");
        }
}

static void libraries_of_mpi_programs_are_found(void **state) {
        struct tree *tree = *state;
        cleanup_free char *libc = put_file(tree, "64/libc.so.6", "abc", 3, 0644);
        cleanup_free char *list = xasprintf("3 libs found in cache `/etc/ld.so.cache'\n"
                                            "\tlibc.so.6 (libc6) => /nowhere/libc.so.6\n"
                                            "\tlibc.so.6 (libc6,x32) => /nowhere/libc.so.6\n"
                                            "\tlibc.so.6 (libc6,%s, OS ABI: Linux 3.2.0) => %s\n"
                                            "\tlibc.so.6 (libc6,%s) => /nowhere/later/libc.so.6\n"
                                            "\tlibcurl.so.4 (libc6,x86-64) => /nowhere/libcurl.so.4\n"
                                            "\tno arrow\n => \n (\n",
                                            "x86-64", libc, "x86-64");

        collect_libraries(list, tree->facts);
        assert_int_equal(tree->facts->n_libraries, 1);
        assert_string_equal(tree->facts->libraries[0]->name, "libc.so.6");
        assert_string_equal(tree->facts->libraries[0]->path, libc);
        assert_string_equal(tree->facts->libraries[0]->error, "");
}

static void a_disk_has_room_or_is_not_there(void **state) {
        struct tree *tree = *state;
        cleanup_free char *missing = xasprintf("%s/missing", tree->path);

        collect_disk("state_dir", tree->path, tree->facts);
        collect_disk("runtime_dir", missing, tree->facts);
        assert_int_equal(tree->facts->n_disks, 2);
        assert_true(tree->facts->disks[0]->total_bytes > 0);
        assert_string_equal(tree->facts->disks[0]->error, "");
        assert_string_not_equal(tree->facts->disks[1]->error, "");
        assert_string_equal(tree->facts->disks[1]->path, missing);
}

static void a_key_file_that_others_can_read_is_told(void **state) {
        struct tree *tree = *state;
        cleanup_free char *path = put_file(tree, "key", "01234567890123456789012345678901", 32, 0600);
        const struct collect_config config = { .cluster = "c", .key_file = path, .second_key_file = "" };

        collect_key(&config, tree->facts);
        assert_string_equal(tree->facts->key_error, "");
        assert_int_equal(strlen(tree->facts->key_fingerprint), 16);
        assert_null(strstr("01234567890123456789012345678901", tree->facts->key_fingerprint));
        assert_int_equal(chmod(path, 0644), 0);
        collect_key(&config, tree->facts);
        assert_non_null(strstr(tree->facts->key_error, "0644"));
}

/* A socket that listens on a port of its own; the port. */
static int take_port(uint16_t *ret_port) {
        struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
        socklen_t size = sizeof(address);
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

        assert_int_equal(bind(fd, (const struct sockaddr *) &address, size), 0);
        assert_int_equal(listen(fd, 1), 0);
        assert_int_equal(getsockname(fd, (struct sockaddr *) &address, &size), 0);
        *ret_port = ntohs(address.sin_port);
        return fd;
}

static void a_port_that_is_taken_is_not_free(void **state) {
        struct tree *tree = *state;
        uint16_t port = 0;
        cleanup_close int fd = take_port(&port);
        struct collect_config config = { .address = "127.0.0.1", .port_first = port, .port_last = port };

        collect_ports(&config, tree->facts);
        assert_int_equal(tree->facts->ports_tried, 1);
        assert_int_equal(tree->facts->ports_free, 0);
        assert_string_not_equal(tree->facts->port_error, "");
        config.port_first = config.port_last = 0;
        tree->facts->ports_tried = 0;
        collect_ports(&config, tree->facts);
        assert_int_equal(tree->facts->ports_free, 1);
}

/* "criu check", as it may end. */
static const char *check_of(struct tree *tree, const char *script) {
        cleanup_free char *criu = put_file(tree, "criu", script, strlen(script), 0755);
        const struct collect_config config = { .cluster = "c",
                                               .key_file = tree->path,
                                               .second_key_file = "",
                                               .state_dir = tree->path,
                                               .runtime_dir = tree->path,
                                               .address = "127.0.0.1",
                                               .criu = criu };

        collect_as_root(&config, tree->facts);
        return tree->facts->criu_check_error;
}

static void what_criu_checks_is_reported(void **state) {
        struct tree *tree = *state;

        assert_string_equal(check_of(tree, "#!/bin/sh\necho Error of no account\n"), "");
        assert_non_null(strstr(check_of(tree, "#!/bin/sh\nexit 3\n"), "ended with 3"));
        assert_non_null(strstr(check_of(tree, "#!/bin/sh\nkill -9 $$\n"), "signal 9"));
        assert_string_equal(
                check_of(tree,
                         "#!/bin/sh\necho 'Warn: old'\necho 'Error: no tun' >&2\necho 'Error: no ptrace'\necho more\nexit 1\n"),
                "Error: no ptrace");
}

static void facts_are_read_again_and_nonsense_is_refused(void **state) {
        struct tree *tree = *state;
        uint8_t packed[4096];
        struct rm_error err = { 0 };
        Rm__NodeFacts *facts = NULL;
        size_t n;

        collect_uplink(tree->path, "eth7", tree->facts);
        n = rm__node_facts__pack(tree->facts, packed);
        assert_int_equal(doctor_parse(packed, n, &facts, &err), 0);
        assert_string_equal(facts->uplink, "eth7");
        rm__node_facts__free_unpacked(facts, NULL);
        assert_int_equal(doctor_parse(packed, n - 1, &facts, &err), -EBADMSG);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(the_processor_is_that_of_the_first_core, setup, teardown),
                cmocka_unit_test_setup_teardown(arm_has_features, setup, teardown),
                cmocka_unit_test_setup_teardown(huge_pages_of_all_sizes_count, setup, teardown),
                cmocka_unit_test_setup_teardown(an_uplink_has_an_mtu_and_a_state, setup, teardown),
                cmocka_unit_test_setup_teardown(a_missing_uplink_is_reported, setup, teardown),
                cmocka_unit_test_setup_teardown(a_library_is_known_by_its_content, setup, teardown),
                cmocka_unit_test_setup_teardown(what_is_no_file_is_not_read, setup, teardown),
                cmocka_unit_test_setup_teardown(libraries_of_mpi_programs_are_found, setup, teardown),
                cmocka_unit_test_setup_teardown(a_disk_has_room_or_is_not_there, setup, teardown),
                cmocka_unit_test_setup_teardown(a_key_file_that_others_can_read_is_told, setup, teardown),
                cmocka_unit_test_setup_teardown(a_port_that_is_taken_is_not_free, setup, teardown),
                cmocka_unit_test_setup_teardown(what_criu_checks_is_reported, setup, teardown),
                cmocka_unit_test_setup_teardown(facts_are_read_again_and_nonsense_is_refused, setup, teardown),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
