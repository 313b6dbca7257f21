/* The log of one voter: what was answered is there after any end, and how long an answer takes. */
#include "tests/unit/cluster/cluster_test.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "daemon/log/raftlog.h"
#include "daemon/state/commands.h"

static void test_answers_and_reopen(void **state) {
        struct answer first = { 0 };
        struct answer second = { 0 };
        struct world w;
        struct tnode *n1;
        uint64_t index;

        world_init(&w);
        n1 = tnode_start(&w, 0, 0);
        assert_true(cluster_is_leader(n1->cluster));
        assert_string_equal(cluster_leader(n1->cluster), "n1");
        EXPECT(&w, joined(&w, 1) && cluster_state(n1->cluster)->n_voters == 1,
               1000); /* it joins itself, and says that it keeps the log */
        propose_drain(n1, "n1", "dust", false, &first);
        assert_int_equal(first.calls, 0); /* never from inside */
        EXPECT(&w, first.calls == 1, 1000);
        assert_int_equal(first.code, 0);
        assert_true(first.index > 0);
        propose_drain(n1, "n1", "dust", false, &second);
        EXPECT(&w, second.calls == 1, 1000);
        assert_int_equal(second.code, -EALREADY); /* state_apply()'s word */
        assert_non_null(strstr(second.text, "already drained"));
        index = cluster_state(n1->cluster)->index;
        assert_int_equal(index, second.index);
        tnode_stop(n1);

        n1->installed = 0;
        n1 = tnode_start(&w, 0, 0);
        assert_int_equal(cluster_state(n1->cluster)->index, index); /* at once */
        assert_true(cluster_state(n1->cluster)->nodes[0]->drain);
        assert_string_equal(cluster_state(n1->cluster)->nodes[0]->drain_reason, "dust");
        EXPECT(&w, n1->installed == 1, 1000);
        RUN_UNTIL(&w, false, 300);
        assert_int_equal(cluster_state(n1->cluster)->index, index); /* nothing to say anew: it is as it was */
        world_finish(&w);
}

/* A voter that is started alone does not know what of its log is committed; what it knew before is
 * there all the same. */
static void test_voter_alone(void **state) {
        struct answer answer = { 0 };
        struct world w;
        uint64_t index;

        world_init(&w);
        w.voters = 3;
        for (int i = 0; i < 3; i++)
                (void) tnode_start(&w, i, 0);
        EXPECT(&w, cluster_state(w.nodes[2].cluster)->n_voters == 3 && cluster_synced(w.nodes[2].cluster), 15000);
        propose_drain(&w.nodes[0], "n2", "dust", false, &answer);
        EXPECT(&w, answer.calls == 1 && state_node(cluster_state(w.nodes[2].cluster), "n2")->drain, 3000);
        RUN_UNTIL(&w, false, 300); /* until its own log knows that this is committed, too */
        index = cluster_state(w.nodes[2].cluster)->index;
        for (int i = 0; i < 3; i++)
                tnode_stop(&w.nodes[i]);
        (void) tnode_start(&w, 2, 0);
        assert_int_equal(cluster_state(w.nodes[2].cluster)->index, index);
        assert_true(state_node(cluster_state(w.nodes[2].cluster), "n2")->drain);
        RUN_UNTIL(&w, false, 700);
        assert_false(cluster_synced(w.nodes[2].cluster));
        /* With another one it goes on from there. */
        (void) tnode_start(&w, 1, 2);
        EXPECT(&w, cluster_synced(w.nodes[2].cluster) && cluster_synced(w.nodes[1].cluster), 5000);
        memset(&answer, 0, sizeof(answer));
        propose_note(&w.nodes[2], "x", &answer);
        EXPECT(&w, answer.calls == 1, 3000);
        assert_int_equal(answer.code, 0);
        assert_true(cluster_state(w.nodes[2].cluster)->index > index);
        world_finish(&w);
}

static void test_destroy_answers(void **state) {
        struct answer answers[20] = { 0 };
        struct world w;
        struct tnode *n1;

        world_init(&w);
        n1 = tnode_start(&w, 0, 0);
        for (int i = 0; i < 10; i++)
                propose_note(n1, "x", &answers[i]);
        (void) event_base_loop(w.base, EVLOOP_NONBLOCK);
        for (int i = 10; i < 20; i++)
                propose_note(n1, "x", &answers[i]);
        tnode_stop(n1);
        for (int i = 0; i < 20; i++) {
                assert_int_equal(answers[i].calls, 1);
                assert_true(answers[i].code == 0 || answers[i].code == -ECANCELED);
        }
        assert_int_equal(answers[19].code, -ECANCELED);
        world_finish(&w);
}

static void test_snapshots(void **state) {
        cleanup_free char *large = xcalloc(1, 300001); /* more than a segment holds */
        struct answer answer = { 0 };
        struct world w;
        struct tnode *n1;
        uint64_t index;

        world_init(&w);
        w.snapshot_entries = 50;
        memset(large, 'y', 300000);
        n1 = tnode_start(&w, 0, 0);
        EXPECT(&w, joined(&w, 1), 1000);
        for (unsigned i = 1; i <= 400; i++) {
                propose_note(n1, i % 100 == 0 ? large : "small", &answer);
                if (i % 40 == 0)
                        EXPECT(&w, answer.calls == i, 5000);
        }
        propose_drain(n1, "n1", "dust", false, &answer);
        EXPECT(&w, answer.calls == 401, 5000);
        assert_int_equal(answer.code, 0);
        index = cluster_state(n1->cluster)->index;
        for (int k = 0; k < 3; k++) {
                tnode_stop(n1);
                n1 = tnode_start(&w, 0, 0);
                /* Later, if the leader had made a change of its own. */
                assert_true(cluster_state(n1->cluster)->index >= index);
                assert_true(cluster_state(n1->cluster)->nodes[0]->drain);
        }
        world_finish(&w);
}

/* In a process of its own: propose without end, write every answered index down the pipe. */
static void propose_until_killed(struct world *w, int fd) {
        struct tnode *n1 = tnode_start(w, 0, 0);
        uint64_t reported = 0;

        for (;;) {
                struct answer answer = { 0 };

                propose_note(n1, "another one", &answer);
                RUN_UNTIL(w, answer.calls, 5000);
                if (answer.calls != 1 || answer.code != 0)
                        _exit(1);
                reported = answer.index;
                if (write_all(fd, &reported, sizeof(reported)) < 0)
                        _exit(1);
        }
}

static void test_killed(void **state) {
        struct world w;
        uint64_t before = 0;

        world_init(&w);
        w.snapshot_entries = 30;
        event_base_free(w.base);
        for (int round = 0; round < 8; round++) {
                uint64_t index = 0;
                uint64_t last = 0;
                int fds[2];
                pid_t pid;

                assert_int_equal(pipe(fds), 0);
                w.nodes[0].port = 0;
                pid = fork();
                assert_true(pid >= 0);
                if (pid == 0) {
                        (void) close(fds[0]);
                        w.base = event_base_new();
                        propose_until_killed(&w, fds[1]);
                        _exit(1);
                }
                (void) close(fds[1]);
                for (int i = 0; i < 20 + 7 * round; i++)
                        assert_int_equal(read_all(fds[0], &index, sizeof(index)), 0);
                assert_int_equal(kill(pid, SIGKILL), 0);
                while (read_all(fds[0], &index, sizeof(index)) == 0)
                        last = index;
                (void) waitpid(pid, NULL, 0);
                (void) close(fds[0]);
                last = last ? last : index;
                assert_true(last > before);
                w.base = event_base_new();
                (void) tnode_start(&w, 0, 0);
                assert_true(cluster_state(w.nodes[0].cluster)->index >= last);
                before = cluster_state(w.nodes[0].cluster)->index;
                tnode_stop(&w.nodes[0]);
                event_base_free(w.base);
        }
        w.base = event_base_new();
        world_finish(&w);
}

static void test_begun_and_not_finished(void **state) {
        struct rm_error err = { 0 };
        struct world w;
        struct tnode *n1;

        world_init(&w);
        n1 = tnode_start(&w, 0, 0);
        EXPECT(&w, joined(&w, 1), 1000);
        tnode_stop(n1);
        /* The process was killed between making the log and recording that it is made. */
        cleanup_free char *voter = xasprintf("%s/voter", n1->dir);
        assert_int_equal(unlink(voter), 0);
        n1 = tnode_start(&w, 0, 0);
        EXPECT(&w, joined(&w, 1), 1000);
        tnode_stop(n1);
        /* A file that cannot have been written by rmd is refused with an error. */
        assert_int_equal(write_file_atomic(voter, "nonsense\n", 9, 0600, false), 0);
        assert_int_equal(tnode_try(&w, n1, true, NULL, 0, "testers", &err), -EBADMSG);
        assert_non_null(strstr(err.text, voter));
        world_finish(&w);
}

/* ---- what cannot be read, or is not understood ---- */

static int take_any(void *userdata, uint64_t index, const Rm__Command *command, struct raftlog_outcome *ret) {
        return 0;
}

static int take_snapshot(void *userdata, Rm__State *state, struct rm_error *err) {
        rm__state__free_unpacked(state, NULL);
        return 0;
}

/* The entry is there, and it cannot be read. */
static void on_failed(void *userdata, const struct rm_error *why) {
        *(bool *) userdata = true;
}

static const Rm__State *no_state(void *userdata) {
        return NULL;
}

static void on_written(void *userdata, const struct raftlog_outcome *outcome) {
        *(bool *) userdata = true;
}

/* Writes an entry as another version of rmd may do it: into the log without a check. */
static void write_entry(struct world *w, const struct tnode *node, const Rm__Command *command) {
        static const struct raftlog_ops ops = { take_any, take_snapshot, on_failed, no_state };
        struct raftlog *log = NULL;
        struct rm_error err = { 0 };
        bool written = false;

        const struct raftlog_config config = {
                .dir = node->dir, .name = node->name, .snapshot_entries = 1000, .election_msec = 300
        };

        if (raftlog_open(w->base, &config, &ops, &written, &log, &err) < 0)
                fail_msg("%s", err.text);
        assert_int_equal(raftlog_propose(log, command, on_written, &written), 0);
        EXPECT(w, written, 1000);
        raftlog_close(log);
}

static struct tnode *node_with_entries(struct world *w) {
        struct answer answer = { 0 };
        struct tnode *n1;

        world_init(w);
        n1 = tnode_start(w, 0, 0);
        EXPECT(w, joined(w, 1), 1000);
        for (unsigned i = 1; i <= 5; i++) {
                propose_note(n1, "one of several entries", &answer);
                EXPECT(w, answer.calls == i, 1000);
        }
        tnode_stop(n1);
        return n1;
}

static void expect_refused(struct world *w, struct tnode *node, int code, const char *a, const char *b) {
        for (int again = 0; again < 2; again++) {
                struct rm_error err = { 0 };

                assert_int_equal(tnode_try(w, node, true, NULL, 0, "testers", &err), code);
                print_message("%s\n", err.text);
                assert_non_null(strstr(err.text, a));
                assert_non_null(strstr(err.text, b));
        }
}

static void test_unknown_command(void **state) {
        Rm__Command command = RM__COMMAND__INIT;
        uint8_t nothing = 0; /* of no length */
        ProtobufCMessageUnknownField field = {
                .tag = 900, .wire_type = PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED, .len = 1, .data = &nothing
        };
        struct world w;
        struct tnode *n1 = node_with_entries(&w);

        command.base.n_unknown_fields = 1;
        command.base.unknown_fields = &field;
        write_entry(&w, n1, &command);
        expect_refused(&w, n1, -ENOTSUP, "entry ", "this version of rmd does not know the command");
        world_finish(&w);
}

static void test_unreadable_entry(void **state) {
        Rm__Command command = RM__COMMAND__INIT;
        uint8_t cut[] = { 100, 'x' }; /* 100 bytes are to follow */
        ProtobufCMessageUnknownField field = {
                .tag = 900, .wire_type = PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED, .len = 2, .data = cut
        };
        struct world w;
        struct tnode *n1 = node_with_entries(&w);

        command.base.n_unknown_fields = 1;
        command.base.unknown_fields = &field;
        write_entry(&w, n1, &command);
        expect_refused(&w, n1, -EBADMSG, "entry ", "it is damaged");
        world_finish(&w);
}

/* A log whose rmd can apply nothing from some entry on. */
struct unable {
        bool fails, failed;
};

static int apply_if_able(void *userdata, uint64_t index, const Rm__Command *command, struct raftlog_outcome *ret) {
        const struct unable *unable = userdata;

        return unable->fails ? error_set(&ret->error, -ENOTSUP, "entry %u is not understood", (unsigned) index) : 0;
}

static void on_unable(void *userdata, const struct rm_error *why) {
        ((struct unable *) userdata)->failed = true;
}

static void on_unapplied(void *userdata, const struct raftlog_outcome *outcome) {
        assert_int_equal(outcome->index, 0); /* it is sent again, to the next leader */
        *(int *) userdata = outcome->error.code;
}

/* The entry that cannot be applied, one behind it, and one that comes later: no request is told
 * that its command was done. */
static void test_unapplied_is_not_acknowledged(void **state) {
        static const struct raftlog_ops ops = { apply_if_able, take_snapshot, on_unable, no_state };
        struct unable unable = { 0 };
        int codes[3] = { 1, 1, 1 };
        struct rm_error err = { 0 };
        struct raftlog *log = NULL;
        struct command c;
        struct world w;
        struct tnode *n1 = node_with_entries(&w);
        const struct raftlog_config config = { .dir = n1->dir, .name = n1->name, .snapshot_entries = 1000, .election_msec = 300 };

        if (raftlog_open(w.base, &config, &ops, &unable, &log, &err) < 0)
                fail_msg("%s", err.text);
        unable.fails = true;
        for (int i = 0; i < 2; i++)
                assert_int_equal(raftlog_propose(log, command_note(&c, "a note"), on_unapplied, &codes[i]), 0);
        EXPECT(&w, codes[0] < 1 && codes[1] < 1, 1000);
        assert_true(unable.failed);
        assert_int_equal(raftlog_propose(log, command_note(&c, "a note"), on_unapplied, &codes[2]), 0);
        EXPECT(&w, codes[2] < 1, 1000);
        for (int i = 0; i < 3; i++)
                assert_int_equal(codes[i], -EHOSTUNREACH);
        raftlog_close(log);
        world_finish(&w);
}

/* Changes a bit of a note that was written last, in the only segment that has it. */
static void flip_bit(const char *dir) {
        cleanup_free char *log_dir = xasprintf("%s/log", dir);
        static const char text[] = "one of several entries";
        DIR *d = opendir(log_dir);
        unsigned flipped = 0;

        assert_non_null(d);
        for (struct dirent *entry; flipped == 0 && (entry = readdir(d));) {
                cleanup_free char *path = xasprintf("%s/%s", log_dir, entry->d_name);
                cleanup_free char *data = NULL;
                size_t bytes = 0;
                char *at;

                if (entry->d_name[0] == '.' || read_file(path, 64 << 20, &data, &bytes) < 0)
                        continue;
                at = memmem(data, bytes, text, strlen(text));
                if (!at)
                        continue;
                for (char *next; (next = memmem(at + 1, bytes - (size_t) (at + 1 - data), text, strlen(text)));)
                        at = next;
                *at ^= 1;
                assert_int_equal(write_file_atomic(path, data, bytes, 0600, false), 0);
                flipped++;
        }
        (void) closedir(d);
        assert_int_equal(flipped, 1);
}

static void test_damaged_disk(void **state) {
        struct world w;
        struct tnode *n1 = node_with_entries(&w);

        flip_bit(n1->dir);
        expect_refused(&w, n1, -EBADMSG, "checksum", "remove both");
        world_finish(&w);
}

/* A power failure in the middle of a write leaves such an end of the segment that is written to;
 * the entry was not answered. */
static void test_torn_write(void **state) {
        struct world w;
        struct tnode *n1;
        pid_t pid;

        world_init(&w);
        pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) {
                struct answer answer = { 0 };

                event_base_free(w.base);
                w.base = event_base_new();
                n1 = tnode_start(&w, 0, 0);
                propose_drain(n1, "n1", "dust", false, &answer);
                RUN_UNTIL(&w, answer.calls == 1, 10000);
                propose_note(n1, "one of several entries", &answer);
                RUN_UNTIL(&w, answer.calls == 2, 10000);
                (void) kill(getpid(), SIGKILL);
        }
        (void) waitpid(pid, NULL, 0);
        flip_bit(w.nodes[0].dir);
        n1 = tnode_start(&w, 0, 0);
        assert_int_equal(cluster_state(n1->cluster)->n_nodes, 1); /* all but the last entry */
        EXPECT(&w, joined(&w, 1), 1000);
        world_finish(&w);
}

static void test_older_format(void **state) {
        static const unsigned others[] = { 2, 3, 5 };
        struct world w;
        struct tnode *n1 = node_with_entries(&w);
        cleanup_free char *voter = xasprintf("%s/voter", n1->dir), *text = NULL;

        assert_int_equal(read_file(voter, 256, &text, NULL), 0);
        assert_non_null(strstr(text, "rmd-log 4\n"));
        assert_int_equal(write_file_atomic(voter, strchr(text, '\n') + 1, strlen(strchr(text, '\n') + 1), 0600, false), 0);
        expect_refused(&w, n1, -ENOTSUP, "it is of format 1", voter);
        for (unsigned i = 0; i < ARRAY_SIZE(others); i++) {
                cleanup_free char *other = xasprintf("rmd-log %u\n1 2\n", others[i]);
                cleanup_free char *says = xasprintf("it is of format %u, and this version of rmd reads format 4 only", others[i]);

                assert_int_equal(write_file_atomic(voter, other, strlen(other), 0600, false), 0);
                expect_refused(&w, n1, -ENOTSUP, says, voter);
        }
        world_finish(&w);
}

static int compare_u64(const void *a, const void *b) {
        const uint64_t *x = a;
        const uint64_t *y = b;

        return (*x > *y) - (*x < *y);
}

static void test_latency(void **state) {
        uint64_t usec[200];
        uint64_t fsync_usec[50];
        struct world w;
        struct tnode *n1;
        uint64_t begin;
        int fd;

        world_init(&w);
        n1 = tnode_start(&w, 0, 0);
        EXPECT(&w, joined(&w, 1), 1000);
        for (size_t i = 0; i < ARRAY_SIZE(usec); i++) {
                struct answer answer = { 0 };

                begin = now_usec();
                propose_note(n1, "how long", &answer);
                EXPECT(&w, answer.calls, 5000);
                usec[i] = answer.usec - begin;
        }
        qsort(usec, ARRAY_SIZE(usec), sizeof(usec[0]), compare_u64);
        cleanup_free char *path = xasprintf("%s/fsync", w.dir);
        fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        for (size_t i = 0; i < ARRAY_SIZE(fsync_usec); i++) {
                begin = now_usec();
                assert_int_equal(pwrite(fd, path, 10, 0), 10);
                assert_int_equal(fdatasync(fd), 0);
                fsync_usec[i] = now_usec() - begin;
        }
        (void) close(fd);
        qsort(fsync_usec, ARRAY_SIZE(fsync_usec), sizeof(fsync_usec[0]), compare_u64);
        print_message("propose to applied: median %lu us, 95%% %lu us, max %lu us; a write and fdatasync here: median %lu us\n",
                      (unsigned long) usec[100], (unsigned long) usec[190], (unsigned long) usec[199],
                      (unsigned long) fsync_usec[25]);
        world_finish(&w);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_answers_and_reopen),
                cmocka_unit_test(test_voter_alone),
                cmocka_unit_test(test_destroy_answers),
                cmocka_unit_test(test_snapshots),
                cmocka_unit_test(test_killed),
                cmocka_unit_test(test_begun_and_not_finished),
                cmocka_unit_test(test_unknown_command),
                cmocka_unit_test(test_unreadable_entry),
                cmocka_unit_test(test_unapplied_is_not_acknowledged),
                cmocka_unit_test(test_damaged_disk),
                cmocka_unit_test(test_torn_write),
                cmocka_unit_test(test_older_format),
                cmocka_unit_test(test_latency),
        };

        (void) signal(SIGPIPE, SIG_IGN);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
