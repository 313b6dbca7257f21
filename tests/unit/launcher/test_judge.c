#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "common/util.h"
#include "launcher/rmctl/judge.h"

#define NODES 4

/* Nodes that are all well and alike, until a test changes something. Nothing of it is allocated. */
struct cluster {
        struct examined nodes[NODES];
        Rm__NodeFacts facts[NODES];
        Rm__LibraryFact libc[NODES], mpi[NODES];
        Rm__LibraryFact *libraries[NODES][2];
        Rm__DiskFact state[NODES], runtime[NODES];
        Rm__DiskFact *disks[NODES][2];
        char names[NODES][8];
        struct findings findings;
};

#define TEXT(text) ((char *) (text))

static void fill_libraries(struct cluster *c, size_t i) {
        rm__library_fact__init(&c->libc[i]);
        rm__library_fact__init(&c->mpi[i]);
        c->libc[i].name = TEXT("libc.so.6");
        c->libc[i].digest = TEXT("aa");
        c->mpi[i].name = TEXT("libmpi.so.40");
        c->mpi[i].digest = TEXT("bb");
        c->libraries[i][0] = &c->libc[i];
        c->libraries[i][1] = &c->mpi[i];
        c->facts[i].libraries = c->libraries[i];
        c->facts[i].n_libraries = 2;
}

static void fill_disk(Rm__DiskFact *disk, const char *setting, const char *path) {
        rm__disk_fact__init(disk);
        disk->setting = TEXT(setting);
        disk->path = TEXT(path);
        disk->total_bytes = UINT64_C(100) << 30;
        disk->free_bytes = UINT64_C(50) << 30;
        disk->total_files = 1000000;
        disk->free_files = 900000;
}

static void fill_facts(struct cluster *c, size_t i) {
        Rm__NodeFacts *f = &c->facts[i];

        rm__node_facts__init(f);
        f->rmd_version = TEXT("1.0");
        f->kernel = TEXT("6.18.1");
        f->machine = TEXT("x86_64");
        f->tracking = true;
        f->criu_version = TEXT("4.2.1");
        f->mpi_version = TEXT("mpirun (Open MPI) 5.0.7");
        f->processor = TEXT("CPU");
        f->processor_flags = TEXT("fpu sse2 avx2 tsc");
        f->open_files_max = 65536;
        f->uplink = TEXT("eth0");
        f->mtu = 1500;
        f->uplink_state = TEXT("up");
        f->port_first = 7000;
        f->port_last = 7099;
        f->ports_tried = f->ports_free = 100;
        f->moves_at_once = 4;
        f->key_same = f->key_current = true;
        f->key_file = TEXT("/etc/rmd/cluster.key");
        fill_libraries(c, i);
        fill_disk(&c->state[i], "state_dir", "/var/lib/rmd");
        fill_disk(&c->runtime[i], "runtime_dir", "/run/rmd");
        c->disks[i][0] = &c->state[i];
        c->disks[i][1] = &c->runtime[i];
        f->disks = c->disks[i];
        f->n_disks = 2;
}

static int setup(void **state) {
        struct cluster *c = xcalloc(1, sizeof(*c));

        for (size_t i = 0; i < NODES; i++) {
                (void) snprintf(c->names[i], sizeof(c->names[i]), "n%zu", i + 1);
                c->nodes[i] = (struct examined) { .node = c->names[i], .requested = true, .leader = i == 0, .facts = &c->facts[i] };
                fill_facts(c, i);
        }
        *state = c;
        return 0;
}

static int teardown(void **state) {
        struct cluster *c = *state;

        findings_finish(&c->findings);
        free(c);
        return 0;
}

/* How many are worse than OK. */
static size_t scan(struct cluster *c, size_t n) {
        size_t bad = 0;

        findings_finish(&c->findings);
        judge(c->nodes, n, &c->findings);
        for (size_t i = 0; i < c->findings.n; i++) {
                const struct finding *f = &c->findings.list[i];

                assert_non_null(f->text);
                bad += f->severity != SEVERITY_OK;
                if (f->severity != SEVERITY_OK) {
                        assert_non_null(f->means);
                        assert_non_null(f->fix);
                }
        }
        return bad;
}

/* The one finding that is worse than OK: of this node, this check, this severity, with this in its
 * text. */
static void only(struct cluster *c, const char *node, const char *check, enum severity severity, const char *text) {
        size_t bad = scan(c, NODES), at = 0;

        for (size_t i = 0; i < c->findings.n; i++)
                if (c->findings.list[i].severity != SEVERITY_OK) {
                        at = i;
                        if (bad != 1)
                                print_message("%s: %s: %s\n", c->findings.list[i].node, c->findings.list[i].check,
                                              c->findings.list[i].text);
                }
        assert_int_equal(bad, 1);
        assert_string_equal(c->findings.list[at].node, node);
        assert_string_equal(c->findings.list[at].check, check);
        assert_int_equal(c->findings.list[at].severity, severity);
        if (!strstr(c->findings.list[at].text, text))
                fail_msg("'%s' does not say '%s'", c->findings.list[at].text, text);
}

static void nodes_that_are_alike_are_fit(void **state) {
        struct cluster *c = *state;

        assert_int_equal(scan(c, NODES), 0);
        assert_true(c->findings.n >= NODES * 10);
        assert_int_equal(scan(c, 1), 0);
}

static void a_node_that_does_not_answer_is_a_problem(void **state) {
        struct cluster *c = *state;

        c->nodes[2].facts = NULL;
        c->nodes[2].silence = "the node is DOWN";
        c->nodes[2].silence_fix = "power it on";
        only(c, "n3", "answer", SEVERITY_PROBLEM, "DOWN");
}

static void a_node_that_cannot_be_looked_at_is_a_problem(void **state) {
        struct cluster *c = *state;

        rm__node_facts__init(&c->facts[2]);
        c->facts[2].rmd_version = TEXT("1.0");
        c->facts[2].tracking = c->facts[2].key_same = true;
        c->facts[2].no_collection = TEXT("killed after 12 s");
        only(c, "n3", "answer", SEVERITY_PROBLEM, "killed after 12 s");
}

static void only_wanted_nodes_are_judged_and_all_are_compared(void **state) {
        struct cluster *c = *state;

        for (size_t i = 0; i < NODES; i++)
                c->nodes[i].requested = i == 1;
        c->facts[2].mtu = 9000;
        assert_int_equal(scan(c, NODES), 0);
        c->facts[2].mtu = 1500;
        c->facts[1].mtu = 9000;
        only(c, "n2", "uplink", SEVERITY_PROBLEM, "9000, but 1500 on n[1,3-4]");
}

static void of_two_the_leaders_value_counts(void **state) {
        struct cluster *c = *state;

        c->facts[0].mtu = 9000;
        assert_int_equal(scan(c, 2), 1);
        for (size_t i = 0; i < c->findings.n; i++)
                if (c->findings.list[i].severity != SEVERITY_OK)
                        assert_string_equal(c->findings.list[i].node, "n2");
}

static void an_uplink_that_is_down_or_gone(void **state) {
        struct cluster *c = *state;

        c->facts[3].uplink_state = TEXT("down");
        only(c, "n4", "uplink", SEVERITY_PROBLEM, "is down");
        c->facts[3].uplink_error = TEXT("there is no such interface");
        c->facts[3].mtu = 0;
        only(c, "n4", "uplink", SEVERITY_PROBLEM, "no such interface");
}

static void versions_that_differ(void **state) {
        struct cluster *c = *state;

        c->facts[1].kernel = TEXT("6.12.1");
        only(c, "n2", "kernel", SEVERITY_WARNING, "6.12.1 (x86_64), but 6.18.1 (x86_64) on n[1,3-4]");
        c->facts[1].kernel = TEXT("6.18.1");
        c->facts[1].criu_version = TEXT("4.2.2");
        only(c, "n2", "criu-version", SEVERITY_WARNING, "4.2.2");
        c->facts[1].criu_version = TEXT("4.2.1");
        c->facts[1].mpi_version = TEXT("mpirun (Open MPI) 4.1.4");
        only(c, "n2", "mpi", SEVERITY_PROBLEM, "4.1.4");
        c->facts[1].mpi_version = TEXT("");
        c->facts[1].mpi_error = TEXT("cannot run /usr/bin/mpirun");
        only(c, "n2", "mpi", SEVERITY_WARNING, "cannot run");
        fill_facts(c, 1);
        c->facts[1].rmd_version = TEXT("0.9");
        only(c, "n2", "rmd", SEVERITY_WARNING, "0.9");
}

static void criu_that_does_not_run_or_fit(void **state) {
        struct cluster *c = *state;

        c->facts[0].criu_error = TEXT("cannot run /usr/sbin/criu: No such file or directory");
        c->facts[0].criu_version = TEXT("");
        only(c, "n1", "criu", SEVERITY_PROBLEM, "No such file");
        fill_facts(c, 0);
        c->facts[0].criu_check_error = TEXT("Error: no tun");
        only(c, "n1", "criu", SEVERITY_WARNING, "no tun"); /* it was tried, and works */
        for (size_t i = 0; i < NODES; i++)
                c->facts[i].tracking = false;
        for (int tested = 0; tested <= 1; tested++) {
                c->facts[0].tested = tested;
                scan(c, 1);
                assert_int_equal(c->findings.list[0].severity, SEVERITY_OK);
                for (size_t i = 0; i < c->findings.n; i++)
                        if (strcmp(c->findings.list[i].check, "criu") == 0) /* until then it is being tried */
                                assert_int_equal(c->findings.list[i].severity, tested ? SEVERITY_PROBLEM : SEVERITY_WARNING);
        }
}

static void a_criu_that_is_too_old_for_the_kernel(void **state) {
        struct cluster *c = *state;

        for (size_t i = 0; i < NODES; i++)
                c->facts[i].criu_version = TEXT("4.1.1");
        assert_int_equal(scan(c, NODES), NODES);
        for (size_t i = 0; i < NODES; i++)
                c->facts[i].kernel = TEXT("6.12.57-amd64");
        assert_int_equal(scan(c, NODES), 0);
}

static void memory_that_cannot_be_tracked(void **state) {
        struct cluster *c = *state;

        c->facts[1].tracking = false;
        c->facts[1].untracked = TEXT("PAGEMAP_SCAN: Inappropriate ioctl");
        only(c, "n2", "tracking", SEVERITY_WARNING, "PAGEMAP_SCAN");
        c->facts[1].tracking_off = true;
        only(c, "n2", "tracking", SEVERITY_WARNING, "[move] tracking = no");
}

static void groups_that_cannot_leave(void **state) {
        char *staying[] = { TEXT("group 0 of job 7: process 9 (a) uses io_uring") };
        struct cluster *c = *state;

        c->nodes[1].staying = staying;
        c->nodes[1].n_staying = 1;
        only(c, "n2", "groups", SEVERITY_WARNING, "group 0 of job 7: process 9 (a) uses io_uring");
}

/* These faults cannot be tried without harm, so that the version is all there is, and the finding
 * no more than a hint. */
static void faults_of_kernels(void **state) {
        static const struct {
                const char *kernel;
                bool tracking, huge_pages;
                const char *text; /* NULL: nothing is known */
        } cases[] = {
                { "6.18.41", true, true, "CVE-2026-72175" },
                { "6.18.42", true, true, NULL },
                { "6.18.41", true, false, NULL },
                { "6.18.41-amd64", false, true, "CVE-2026-72174" },
                { "6.12.100+deb13-amd64", true, true, "CVE-2026-72175" },
                { "6.12.101+deb13-amd64", true, true, NULL },
                { "6.15.11", true, true, "CVE-2026-72175" },
                { "6.6.90", false, true, NULL },
                { "6.19.0", true, true, NULL },
                { "7.1.2", true, true, NULL },
                { "6.8.9", true, false, "CVE-2024-36943" },
                { "6.7.12", true, true, "CVE-2024-36943" },
                { "6.8.9", false, false, NULL },
                { "6.8.10", true, false, NULL },
                { "6.9", true, false, NULL },
                { "strange", true, true, NULL },
        };
        struct cluster *c = *state;

        for (size_t k = 0; k < ARRAY_SIZE(cases); k++) {
                const char *text = NULL;

                for (size_t i = 0; i < NODES; i++) {
                        c->facts[i].kernel = TEXT(cases[k].kernel);
                        c->facts[i].tracking = cases[k].tracking;
                        c->facts[i].huge_page_bytes = cases[k].huge_pages ? 2 << 20 : 0;
                }
                (void) scan(c, NODES);
                for (size_t i = 0; i < c->findings.n; i++) {
                        const struct finding *f = &c->findings.list[i];

                        if (strcmp(f->check, "kernel-faults") != 0 || f->severity == SEVERITY_OK)
                                continue;
                        assert_int_equal(f->severity, SEVERITY_WARNING);
                        text = f->text;
                }
                if ((cases[k].text && (!text || !strstr(text, cases[k].text))) || (!cases[k].text && text))
                        fail_msg("case %zu, kernel %s: %s", k, cases[k].kernel, text ? text : "nothing");
        }
}

static void libraries_that_differ(void **state) {
        struct cluster *c = *state;

        c->libc[2].digest = TEXT("cc");
        only(c, "n3", "libraries", SEVERITY_PROBLEM, "libc.so.6: not as on most nodes");
        c->facts[2].n_libraries = 1;
        only(c, "n3", "libraries", SEVERITY_PROBLEM, "libc.so.6: not as on most nodes; missing or unreadable: libmpi.so.40");
}

static void instruction_sets_that_a_node_lacks(void **state) {
        struct cluster *c = *state;

        c->facts[3].processor_flags = TEXT("fpu sse2 tsc");
        only(c, "n4", "processor-flags", SEVERITY_PROBLEM, "does not know avx2");
        c->facts[3].processor_flags = TEXT("fpu sse2 avx2 constant_tsc pti"); /* says nothing to programs */
        assert_int_equal(scan(c, NODES), 0);
        c->facts[3].processor_flags = TEXT("fpu sse2 avx2 avx512f");
        assert_int_equal(scan(c, NODES), 3);
        fill_facts(c, 3);
        c->facts[3].processor = TEXT("other CPU");
        only(c, "n4", "processor-model", SEVERITY_WARNING, "other CPU");
}

static void limits_that_are_missing(void **state) {
        struct cluster *c = *state;

        c->facts[0].limits_missing = TEXT("not enforced here: pids_max");
        only(c, "n1", "limits", SEVERITY_WARNING, "pids_max");
        c->facts[0].limits_missing = TEXT("");
        c->facts[0].open_files_max = 1024;
        only(c, "n1", "open-files", SEVERITY_WARNING, "1024");
}

static void a_clock_that_is_wrong(void **state) {
        struct cluster *c = *state;

        c->nodes[0].clock_usec = -3600000000; /* the leader's: all others agree */
        only(c, "n1", "clock", SEVERITY_PROBLEM, "behind others");
        c->nodes[0].clock_usec = 300000;
        only(c, "n1", "clock", SEVERITY_WARNING, "0.300 s ahead of others");
        c->nodes[0].clock_error_usec = 250000; /* it may be right */
        assert_int_equal(scan(c, NODES), 0);
}

static void ports_that_are_taken(void **state) {
        struct cluster *c = *state;

        c->facts[1].ports_free = 0;
        c->facts[1].port_error = TEXT("Address already in use");
        only(c, "n2", "ports", SEVERITY_PROBLEM, "7000-7099: Address already in use");
        c->facts[1].ports_free = 3;
        only(c, "n2", "ports", SEVERITY_WARNING, "3 of ports 7000-7099, and 4 moves");
        c->facts[1].ports_free = 4;
        assert_int_equal(scan(c, NODES), 0);
}

static void keys_that_are_not_right(void **state) {
        struct cluster *c = *state;

        c->facts[1].key_error = TEXT("/etc/rmd/cluster.key: mode 0644 lets others use the cluster key");
        c->facts[1].key_current = false;
        only(c, "n2", "key", SEVERITY_PROBLEM, "0644");
        c->facts[1].key_error = TEXT("");
        only(c, "n2", "key", SEVERITY_PROBLEM, "another key than rmd uses");
        c->facts[1].key_current = true;
        c->facts[1].key_same = false;
        only(c, "n2", "key", SEVERITY_WARNING, "another key than the node");
}

static void disks_that_are_full(void **state) {
        struct cluster *c = *state;

        c->state[1].free_bytes = UINT64_C(500) << 20;
        only(c, "n2", "state-dir", SEVERITY_WARNING, "500 MiB");
        c->state[1].free_bytes = UINT64_C(5) << 20;
        only(c, "n2", "state-dir", SEVERITY_PROBLEM, "5.0 MiB");
        fill_facts(c, 1);
        c->state[1].free_files = 5;
        only(c, "n2", "state-dir", SEVERITY_PROBLEM, "5 of 1000000 files");
        fill_facts(c, 1);
        c->runtime[1].read_only = true;
        only(c, "n2", "runtime-dir", SEVERITY_PROBLEM, "read-only");
        fill_facts(c, 1);
        c->runtime[1].error = TEXT("No such file or directory");
        only(c, "n2", "runtime-dir", SEVERITY_PROBLEM, "No such file");
        fill_facts(c, 1);
        c->runtime[1].total_files = c->runtime[1].free_files = 0; /* not counted by such a file system */
        assert_int_equal(scan(c, NODES), 0);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(nodes_that_are_alike_are_fit, setup, teardown),
                cmocka_unit_test_setup_teardown(a_node_that_does_not_answer_is_a_problem, setup, teardown),
                cmocka_unit_test_setup_teardown(a_node_that_cannot_be_looked_at_is_a_problem, setup, teardown),
                cmocka_unit_test_setup_teardown(only_wanted_nodes_are_judged_and_all_are_compared, setup, teardown),
                cmocka_unit_test_setup_teardown(of_two_the_leaders_value_counts, setup, teardown),
                cmocka_unit_test_setup_teardown(an_uplink_that_is_down_or_gone, setup, teardown),
                cmocka_unit_test_setup_teardown(versions_that_differ, setup, teardown),
                cmocka_unit_test_setup_teardown(criu_that_does_not_run_or_fit, setup, teardown),
                cmocka_unit_test_setup_teardown(a_criu_that_is_too_old_for_the_kernel, setup, teardown),
                cmocka_unit_test_setup_teardown(memory_that_cannot_be_tracked, setup, teardown),
                cmocka_unit_test_setup_teardown(faults_of_kernels, setup, teardown),
                cmocka_unit_test_setup_teardown(groups_that_cannot_leave, setup, teardown),
                cmocka_unit_test_setup_teardown(libraries_that_differ, setup, teardown),
                cmocka_unit_test_setup_teardown(instruction_sets_that_a_node_lacks, setup, teardown),
                cmocka_unit_test_setup_teardown(limits_that_are_missing, setup, teardown),
                cmocka_unit_test_setup_teardown(a_clock_that_is_wrong, setup, teardown),
                cmocka_unit_test_setup_teardown(ports_that_are_taken, setup, teardown),
                cmocka_unit_test_setup_teardown(keys_that_are_not_right, setup, teardown),
                cmocka_unit_test_setup_teardown(disks_that_are_full, setup, teardown),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
