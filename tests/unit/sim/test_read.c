/* Traces, clusters and changes of capacity: what is read, and that what is wrong is said with its
 * file and line. */
#include <string.h>

#include "common/util.h"
#include "launcher/sim/capacity.h"
#include "launcher/sim/swf.h"
#include "tests/unit/sched/sched_test.h"

#define JOB "1 0 -1 100 4 -1 2048 4 200 -1 1 1 1 -1 -1 -1 -1 -1\n"

static void says(const struct rm_error *err, const char *expected) {
        if (err->code != -EINVAL || !strstr(err->text, expected))
                fail_msg("%d, \"%s\" instead of \"%s\"", err->code, err->text, expected);
}

static void refuses(const char *text, const char *expected) {
        struct rm_error err = { 0 };
        struct swf swf = { 0 };

        assert_int_equal(swf_parse("t.swf", text, strlen(text), &swf, &err), -EINVAL);
        assert_null(swf.jobs);
        says(&err, expected);
}

static void reads_jobs(void **state) {
        static const char text[] = "; Version: 2.2\n\n" JOB "  2 10.5 3 7 -1 -1 -1 8 -1 4096 0 -1 -1 -1 -1 -1 -1 -1\r\n"
                                   "3 11 -1 0 4 -1 -1 4 10 -1 5 1 1 -1 -1 -1 -1 -1 ; cancelled\n"
                                   "4 12 -1 9 4 -1 -1 4 10 -1 2 1 1 -1 -1 -1 -1 -1";
        struct rm_error err = { 0 };
        struct swf swf;

        (void) state;
        if (swf_parse("t", text, strlen(text), &swf, &err) < 0)
                fail_msg("%s", err.text);
        assert_int_equal(swf.n_jobs, 2);
        assert_int_equal(swf.n_skipped, 2);
        assert_int_equal(swf.jobs[0].run_usec, 100000000);
        assert_int_equal(swf.jobs[0].limit_usec, 200000000);
        assert_int_equal(swf.jobs[0].ranks, 4);
        assert_int_equal(swf.jobs[0].rank_bytes, 2048 * 1024);
        assert_int_equal(swf.jobs[1].submit_usec, 10500000);
        assert_int_equal(swf.jobs[1].ranks, 8);
        assert_int_equal(swf.jobs[1].limit_usec, 7000000); /* what it took, where it asked for nothing */
        assert_int_equal(swf.jobs[1].rank_bytes, 4096 * 1024);
        swf_finish(&swf);
}

static void refuses_bad_traces(void **state) {
        (void) state;
        refuses("", "t.swf: contains no job");
        refuses("; only a comment", "t.swf: contains no job");
        refuses(JOB "2 0 -1\n", "t.swf:2: 3 fields, and a job has 18");
        refuses("x 0 -1 100 4 -1 2048 4 200 -1 1 1 1 -1 -1 -1 -1 -1\n", "t.swf:1: job number: 'x' is no number");
        refuses("\n1 0 -1 nan 4 -1 2048 4 200 -1 1 1 1 -1 -1 -1 -1 -1\n", "t.swf:2: run time: 'nan' is no number");
        refuses("1 0 -1 1e400 4 -1 2048 4 200 -1 1 1 1 -1 -1 -1 -1 -1\n", "run time must be from -1 to 10000000000, is 1e400");
        refuses("1 0 -1 -2 4 -1 2048 4 200 -1 1 1 1 -1 -1 -1 -1 -1\n", "run time must be from -1");
        refuses("1 -1 -1 2 4 -1 2048 4 200 -1 1 1 1 -1 -1 -1 -1 -1\n", "submit time must be from 0");
        refuses("1 0 -1 2 4.5 -1 2048 4 200 -1 1 1 1 -1 -1 -1 -1 -1\n", "allocated processors must be a whole number, is 4.5");
        refuses("1 0 -1 2 9223372036854775808 -1 2048 4 200 -1 1 1 1 -1 -1 -1 -1 -1\n", "allocated processors must be from -1");
        refuses("1 5 -1 2 4 -1 -1 4 2 -1 1 1 1 -1 -1 -1 -1 -1\n2 4 -1 2 4 -1 -1 4 2 -1 1 1 1 -1 -1 -1 -1 -1\n",
                "t.swf:2: job 2 was submitted before the job above it");
        refuses(JOB JOB, "t.swf: job 1 is given twice");
        refuses("1 0 -1 2 4 -1 -1 4 2 -1 1 1 1 -1 -1 -1 -1 -1 7\n", "t.swf:1: 19 fields");
        refuses("\x01\n", "t.swf:1: field 1 has a character that is no printable ASCII");
        refuses("1111111111111111111111111111111111111111111111111111111111111111111111111111111111111111\n",
                "t.swf:1: field 1 is longer than 79 characters");
}

static void refuses_zero_bytes(void **state) {
        struct rm_error err = { 0 };
        struct swf swf = { 0 };

        (void) state;
        assert_int_equal(swf_parse("t.swf", "1\0 2", 4, &swf, &err), -EINVAL);
        says(&err, "t.swf:1: a zero byte: this is no text");
}

static void reads_clusters(void **state) {
        struct snapshot *cluster = NULL;
        struct rm_error err = { 0 };

        (void) state;
        assert_int_equal(cluster_read("3x16", &cluster, &err), 0);
        assert_int_equal(snapshot_view(cluster)->n_nodes, 3);
        assert_string_equal(snapshot_view(cluster)->nodes[2].name, "n3");
        assert_int_equal(snapshot_view(cluster)->nodes[2].cores, 16);
        snapshot_destroy(cluster);
        assert_int_equal(cluster_read("3x", &cluster, &err), -ENOENT);
        assert_non_null(strstr(err.text, "'3x' is neither NODESxCORES nor a file"));
        assert_int_equal(cluster_read("0x16", &cluster, &err), -EINVAL);
        assert_string_equal(err.text, "cluster '0x16': from 1 to 100000 nodes, with 1 to 1048576 cores each");
        assert_int_equal(cluster_read("99999999999999999999x1", &cluster, &err), -EINVAL);
        assert_int_equal(cluster_read("100000x1000", &cluster, &err), -EINVAL); /* more cores than a snapshot may have */
        assert_string_equal(err.text, "cluster '100000x1000': more than 16777216 cores in all nodes together");
}

static void change_refused(const struct rm_snapshot *cluster, const char *text, const char *expected) {
        struct rm_error err = { 0 };
        struct capacity capacity = { 0 };

        assert_int_equal(capacity_parse("c", text, strlen(text), cluster, &capacity, &err), -EINVAL);
        assert_null(capacity.changes);
        says(&err, expected);
}

static void reads_changes(void **state) {
        cleanup_snapshot struct snapshot *cluster =
                test_snapshot("{'version':1,'nodes':[{'name':'a','cores':4,'penalty':0}],'jobs':[]}");
        const struct rm_snapshot *view = snapshot_view(cluster);
        static const char text[] = "# away\n1.5 a 0\n2 a all # back\n";
        struct rm_error err = { 0 };
        struct capacity capacity;

        (void) state;
        if (capacity_parse("c", text, strlen(text), view, &capacity, &err) < 0)
                fail_msg("%s", err.text);
        assert_int_equal(capacity.n_changes, 2);
        assert_int_equal(capacity.changes[0].time_usec, 1500000);
        assert_int_equal(capacity.changes[0].cores, 0);
        assert_int_equal(capacity.changes[1].cores, 4);
        capacity_finish(&capacity);
        change_refused(view, "1 a\n", "c:1: a change is: seconds node cores");
        change_refused(view, "\n1 b 0\n", "c:2: there is no node 'b'");
        change_refused(view, "1 a 5\n", "c:1: cores must be from 0 to 4, is 5");
        change_refused(view, "1 a -1\n", "c:1: cores must be from 0 to 4, is -1");
        change_refused(view, "inf a 1\n", "c:1: time: 'inf' is no number");
        change_refused(view, "2 a 1\n1 a 1\n", "c:2: time goes back");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(reads_jobs),     cmocka_unit_test(refuses_bad_traces), cmocka_unit_test(refuses_zero_bytes),
                cmocka_unit_test(reads_clusters), cmocka_unit_test(reads_changes),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
