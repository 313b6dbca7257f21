/* The fields of a submitted job, one by one: the last value that is good, the first that is not. */
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/resource.h>

#include <cmocka.h>

#include "common/util.h"
#include "daemon/requests/jobspec.h"
#include "daemon/state/state.h"

static const struct jobspec_rules admin = { .max_priority = JOBSPEC_PRIORITY_MAX };

static char *argv[JOBSPEC_ARGS_MAX + 1], *env[JOBSPEC_ENV_MAX + 1];
static char big[JOBSPEC_WORD_MAX_BYTES + 1], long_path[5000];

static Rm__JobSpec good_spec(void) {
        static char mpirun[] = "mpirun", home[] = "HOME=/home/alice", name[] = "ordered", cwd[] = "/home/alice";
        Rm__JobSpec spec = RM__JOB_SPEC__INIT;

        for (size_t i = 0; i < ARRAY_SIZE(argv); i++)
                argv[i] = mpirun;
        for (size_t i = 0; i < ARRAY_SIZE(env); i++)
                env[i] = home;
        spec.name = name;
        spec.argv = argv;
        spec.n_argv = 1;
        spec.env = env;
        spec.n_env = 1;
        spec.cwd = cwd;
        spec.ranks = 4;
        return spec;
}

/* `text` NULL: it passes. */
static void expect_by(const Rm__JobSpec *spec, const struct jobspec_rules *rules, const char *text) {
        struct rm_error err = { 0 };
        int r = jobspec_check(spec, rules, &err);

        if (!text) {
                assert_string_equal(err.text, "");
                assert_int_equal(r, 0);
                return;
        }
        assert_true(r < 0);
        if (!strstr(err.text, text))
                fail_msg("'%s' does not say '%s'", err.text, text);
}

static void expect(const Rm__JobSpec *spec, const char *text) {
        expect_by(spec, &admin, text);
}

/* A field that somebody adds to the message is either in the table or fails here. */
static void test_every_field_is_in_the_table(void **state) {
        const ProtobufCMessageDescriptor *message = &rm__job_spec__descriptor;
        uint32_t number = 0;
        size_t n = 0;

        for (unsigned f = 0; f < message->n_fields; f++) {
                const char *name;
                bool found = false;

                for (size_t i = 0; (name = jobspec_field(i, &number)); i++)
                        found |= number == message->fields[f].id && strcmp(name, message->fields[f].name) == 0;
                if (!found)
                        fail_msg("field %s of JobSpec is not checked", message->fields[f].name);
        }
        while (jobspec_field(n, &number))
                n++;
        assert_int_equal(n, message->n_fields);
}

static void test_names(void **state) {
        static const char *const bad[] = { "",     "a b",  "a\nrmd[1] error: FORGED", "\033[31m", "-x", "../x", "\xc3\xa4", "a/b",
                                           "a\tb", "a\x7f" };
        Rm__JobSpec spec = good_spec();
        char name[65];

        expect(&spec, NULL);
        for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
                spec.name = (char *) bad[i];
                expect(&spec, "a job's name has");
        }
        memset(name, 'n', sizeof(name));
        name[64] = 0;
        spec.name = name;
        expect(&spec, "a job's name has");
        name[63] = 0;
        expect(&spec, NULL);
}

static void test_words(void **state) {
        Rm__JobSpec spec = good_spec();
        char empty[] = "", bare[] = "HOME";

        memset(big, 'x', sizeof(big) - 1);
        spec.n_argv = 0;
        expect(&spec, "1 to 4096 words");
        spec.n_argv = JOBSPEC_ARGS_MAX + 1;
        expect(&spec, "1 to 4096 words");
        spec.n_argv = JOBSPEC_ARGS_MAX;
        expect(&spec, NULL);
        argv[1] = big;
        expect(&spec, "word 1 has 131072 bytes");
        big[JOBSPEC_WORD_MAX_BYTES - 1] = 0;
        expect(&spec, NULL);
        argv[0] = empty;
        expect(&spec, "names no program");

        spec = good_spec();
        spec.n_env = JOBSPEC_ENV_MAX + 1;
        expect(&spec, "at most 8192 variables");
        spec.n_env = JOBSPEC_ENV_MAX;
        expect(&spec, NULL);
        env[3] = bare;
        expect(&spec, "entry 3 of the environment has no '='");
        big[0] = '=';
        for (size_t i = 0; i < 9; i++)
                env[i] = big;
        expect(&spec, "over 1024 KiB");
}

static void test_paths(void **state) {
        static const char *const bad_cwd[] = { "", "home", "./x" };
        static const char *const bad_file[] = { "file", "/dir/", "/a\nb", "/a\033[2J", "/\x9b" };
        Rm__JobSpec spec = good_spec();
        char file[] = "/home/alice/W\xc3\xa4rme";

        for (size_t i = 0; i < ARRAY_SIZE(bad_cwd); i++) {
                spec.cwd = (char *) bad_cwd[i];
                expect(&spec, "working directory");
        }
        memset(long_path, 'x', sizeof(long_path) - 1);
        long_path[0] = '/';
        spec.cwd = long_path;
        expect(&spec, "working directory");
        spec = good_spec();
        for (size_t i = 0; i < ARRAY_SIZE(bad_file); i++) {
                spec.availability_path = (char *) bad_file[i];
                expect(&spec, "--availability");
        }
        spec.availability_path = long_path;
        expect(&spec, "--availability");
        spec.availability_path = file;
        expect(&spec, NULL);
}

static void test_numbers(void **state) {
        /* Classes, levels, and bits that newer kernels give a meaning. */
        static const struct {
                uint32_t value;
                bool good;
        } io_priorities[] = {
                { 0, true },       { 0x4000, true },   { 0x4007, true },      { 0x6000, true },  { 0x6007, true },
                { 4, false },      { 0x2000, false },  { 0x2004, false },     { 0x4008, false }, { 0x6010, false },
                { 0x8000, false }, { 0x14000, false }, { UINT32_MAX, false },
        };
        Rm__JobSpec spec = good_spec();

        spec.ranks = 0;
        expect(&spec, "1 to 65536 ranks");
        spec.ranks = JOBSPEC_RANKS_MAX + 1;
        expect(&spec, "1 to 65536 ranks");
        spec.ranks = JOBSPEC_RANKS_MAX;
        expect(&spec, NULL);
        spec.group_size = 1;
        expect(&spec, "groups there are addresses for");
        spec.group_size = 2;
        expect(&spec, NULL);

        spec = good_spec();
        spec.umask = 0777;
        expect(&spec, NULL);
        spec.umask = 01000;
        expect(&spec, "umask");

        spec = good_spec();
        spec.nice = 19;
        expect(&spec, NULL);
        spec.nice = 20;
        expect(&spec, "nice");

        spec = good_spec();
        for (size_t i = 0; i < ARRAY_SIZE(io_priorities); i++) {
                spec.io_priority = io_priorities[i].value;
                expect(&spec, io_priorities[i].good ? NULL : "I/O priority");
        }
        spec = good_spec();
        for (unsigned policy = 0; policy < 9; policy++) {
                spec.scheduling = policy;
                expect(&spec, policy == SCHED_OTHER || policy == SCHED_BATCH || policy == SCHED_IDLE ? NULL : "scheduling policy");
        }

        spec = good_spec();
        spec.time_limit_usec = UINT64_C(1) << 53;
        expect(&spec, NULL);
        spec.time_limit_usec++;
        expect(&spec, "--time");
        spec.time_limit_usec = INT64_MAX;
        expect(&spec, "--time");
        spec.time_limit_usec = UINT64_MAX;
        expect(&spec, "--time");

        spec = good_spec();
        spec.spares = JOBSPEC_SPARES_MAX;
        expect(&spec, NULL);
        spec.spares++;
        expect(&spec, "--spares");

        spec = good_spec();
        spec.rank_memory_bytes = JOBSPEC_RANK_MEMORY_MAX_BYTES;
        expect(&spec, NULL);
        spec.rank_memory_bytes++;
        expect(&spec, "--mem: more than");

        spec = good_spec();
        spec.on_node_loss = STATE_LOSS_RESTART;
        expect(&spec, NULL);
        spec.restarts = JOBSPEC_RESTARTS_MAX;
        expect(&spec, NULL);
        spec.restarts++;
        expect(&spec, "--restarts 1001: from 0 to 1000");
        spec.restarts = 0;
        spec.on_node_loss = STATE_LOSS_FOLD;
        expect(&spec, NULL);
        spec.on_node_loss = 3;
        expect(&spec, "invalid value 3");
}

static void test_checkpoints(void **state) {
        static const uint64_t good[] = { 0, 1000000, UINT64_C(366) * 86400 * 1000000, STATE_CHECKPOINT_AUTO };
        static const uint64_t bad[] = { 1, 999999, UINT64_C(366) * 86400 * 1000000 + 1, STATE_CHECKPOINT_AUTO - 1 };
        Rm__JobSpec spec = good_spec();

        for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
                spec.checkpoint_usec = good[i];
                expect(&spec, NULL);
        }
        for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
                spec.checkpoint_usec = bad[i];
                expect(&spec, "--checkpoint: 'auto', or a time from 1 s");
        }
        spec.checkpoint_usec = 0;
        spec.checkpoint_files = true;
        expect(&spec, "--checkpoint-files: 'copy' needs --checkpoint");
        spec.checkpoint_usec = STATE_CHECKPOINT_AUTO;
        expect(&spec, NULL);

        spec = good_spec();
        spec.checkpoint_at_limit = true;
        expect(&spec, "--checkpoint-at-limit is for jobs with a time limit");
        spec.time_limit_usec = 1;
        expect(&spec, NULL);
        spec.recover_wait_usec = UINT64_C(366) * 86400 * 1000000;
        expect(&spec, NULL);
        spec.recover_wait_usec++;
        expect(&spec, "--recover-wait: at most 366 days");
}

static void test_ranks_in_reserve(void **state) {
        Rm__JobSpec spec = good_spec();

        spec.min_ranks = 1;
        expect(&spec, "--min-ranks is for jobs with --max-ranks");
        spec.active_ranks = 4;
        expect(&spec, NULL);
        spec.min_ranks = 5;
        expect(&spec, "--min-ranks: the job begins with 4 ranks");
        spec.min_ranks = 4;
        spec.active_ranks = 5;
        expect(&spec, "--max-ranks: the job begins with 5 ranks, so it cannot have 4 at most");
        spec.active_ranks = 4;
}

static void expect_groups(const Rm__JobSpec *spec, uint32_t group_size, const struct jobspec_rules *rules, const char *text) {
        struct rm_error err = { 0 };
        int r = jobspec_check_groups(spec, group_size, rules, &err);

        assert_int_equal(r, text ? -EDQUOT : 0);
        if (text)
                assert_string_equal(err.text, text);
}

/* Each is a process of root's on some node, whether its ranks compute or not. */
static void test_groups_are_capsules(void **state) {
        static const struct jobspec_rules none = { 0 }, rules = { .max_groups = 100, .max_capsules = 24 };
        Rm__JobSpec spec = good_spec();

        spec.ranks = 300;
        expect_groups(&spec, 1, &rules,
                      "--group-size: 300 ranks in groups of 1 are 300 groups, and a job may have 100 ([job] max_groups_per_job)");
        expect_groups(&spec, 3, &rules, NULL); /* it waits for so many cores */
        expect_groups(&spec, 1, &none, NULL);
        spec.active_ranks = 1;
        expect_groups(&spec, 3, &rules,
                      "--max-ranks: 300 ranks in groups of 3 are 101 capsules with the head, and all nodes together may have 24 "
                      "([job] max_capsules_per_core): use larger groups (--group-size), or fewer ranks");
        expect_groups(&spec, 14, &rules, NULL); /* 22 */
        spec.ranks = 24;
        expect_groups(&spec, 1, &rules,
                      "--max-ranks: 24 ranks in groups of 1 are 25 capsules with the head, and all nodes together may have 24 "
                      "([job] max_capsules_per_core): use larger groups (--group-size), or fewer ranks");
        spec.ranks = 23;
        expect_groups(&spec, 1, &rules, NULL);
}

static void test_lost_ranks(void **state) {
        Rm__JobSpec spec = good_spec();

        spec.on_rank_loss = (Rm__RankLoss) 2;
        expect(&spec, "--on-rank-loss: invalid value 2");
        spec.on_rank_loss = RM__RANK_LOSS__RANK_LOSS_CONTINUE;
        expect(&spec, NULL);
        spec.active_ranks = 1;
        expect(&spec, "--on-rank-loss continue cannot be combined with --max-ranks");
}

static void test_critical_ranks(void **state) {
        Rm__JobSpec spec = good_spec();

        spec.critical_ranks = (char *) "0";
        expect(&spec, "critical ranks are for jobs with --on-rank-loss continue");
        spec.on_rank_loss = RM__RANK_LOSS__RANK_LOSS_CONTINUE;
        expect(&spec, NULL);
        spec.spare_ranks = 2;
        expect(&spec, NULL);
        spec.critical_ranks = (char *) "0,2";
        expect(&spec, "--on-rank-loss continue:critical: there is no rank 2: the program has 2");
        spec.critical_ranks = (char *) "1-";
        expect(&spec, "--on-rank-loss continue:critical: '1-' is not a list of ranks");
        spec.critical_ranks = (char *) "0\n";
        expect(&spec, "--on-rank-loss continue:critical: '0?' is not a list of ranks");
        spec.critical_ranks = (char *) "0";
        spec.spare_ranks = 4;
        expect(&spec, "--spare-ranks: 4 of 4 ranks leave none for the program");
        spec.spare_ranks = UINT32_MAX;
        expect(&spec, "--spare-ranks: 4294967295 of 4 ranks leave none for the program");
        spec.spare_ranks = 1;
        spec.critical_ranks = (char *) "";
        expect(&spec, "--spare-ranks is for jobs with --on-rank-loss continue:critical=RANKS");
}

static void test_what_does_not_start_again_waits_for_nothing(void **state) {
        static const struct {
                uint32_t on_node_loss, restarts;
                uint64_t wait_usec;
        } kept[] = { { 0, 0, 0 }, { STATE_LOSS_RESTART, 3, 5 }, { STATE_LOSS_FOLD, 3, 0 } };

        for (size_t i = 0; i < ARRAY_SIZE(kept); i++) {
                Rm__JobSpec spec = good_spec();

                spec.on_node_loss = kept[i].on_node_loss;
                spec.restarts = 3;
                spec.recover_wait_usec = 5;
                jobspec_normalize(&spec);
                assert_int_equal(spec.restarts, kept[i].restarts);
                assert_int_equal(spec.recover_wait_usec, kept[i].wait_usec);
        }
}

static void test_priority(void **state) {
        static const struct jobspec_rules user = { .max_priority = 1000 };
        Rm__JobSpec spec = good_spec();

        spec.priority = 1000;
        expect_by(&spec, &user, NULL);
        spec.priority = 1001;
        expect_by(&spec, &user, "max_priority");
        expect(&spec, NULL);
        spec.priority = JOBSPEC_PRIORITY_MAX + 1;
        expect(&spec, "from 0 to 1000000");
        spec.priority = INT32_MAX;
        expect(&spec, "from 0 to 1000000");
        spec.priority = -1;
        expect(&spec, "from 0 to 1000000");
        spec.priority = INT32_MIN;
        expect_by(&spec, &user, "max_priority");
}

static void test_limits(void **state) {
        Rm__Rlimit one = RM__RLIMIT__INIT, two = RM__RLIMIT__INIT, *list[] = { &one, &two };
        Rm__JobSpec spec = good_spec();

        spec.rlimits = list;
        spec.n_rlimits = 2;
        one.resource = RLIM_NLIMITS - 1;
        one.soft = one.hard = UINT64_MAX; /* no limit */
        expect(&spec, NULL);
        one.resource = RLIM_NLIMITS;
        expect(&spec, "unknown resource");
        one.resource = two.resource;
        expect(&spec, "twice");
        one.resource = RLIMIT_NOFILE;
        one.hard = 1024;
        expect(&spec, "above the hard one");
}

static void test_policy_and_token(void **state) {
        static const char *const bad[] = { "../greedy", "a b", "a\nb" };
        Rm__JobSpec spec = good_spec();
        char token[JOBSPEC_TOKEN_MAX_BYTES + 2], newline[] = "a\nb";

        for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
                spec.policy = (char *) bad[i];
                expect(&spec, "--policy");
        }
        spec = good_spec();
        memset(token, 'f', sizeof(token));
        token[JOBSPEC_TOKEN_MAX_BYTES + 1] = 0;
        spec.token = token;
        expect(&spec, "token");
        token[JOBSPEC_TOKEN_MAX_BYTES] = 0;
        expect(&spec, NULL);
        spec.token = newline;
        expect(&spec, "token");
}

/* By option or by RM_GROUP_SIZE, which is meant for all of a user's jobs: a small one is one
 * group. */
static void test_group_larger_than_job_is_the_job(void **state) {
        Rm__JobSpec spec = good_spec();

        spec.group_size = UINT32_MAX;
        expect(&spec, NULL);
        jobspec_normalize(&spec);
        assert_int_equal(spec.group_size, 4);
        spec.group_size = 2;
        jobspec_normalize(&spec);
        assert_int_equal(spec.group_size, 2);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_every_field_is_in_the_table),
                cmocka_unit_test(test_names),
                cmocka_unit_test(test_words),
                cmocka_unit_test(test_paths),
                cmocka_unit_test(test_numbers),
                cmocka_unit_test(test_checkpoints),
                cmocka_unit_test(test_ranks_in_reserve),
                cmocka_unit_test(test_groups_are_capsules),
                cmocka_unit_test(test_lost_ranks),
                cmocka_unit_test(test_critical_ranks),
                cmocka_unit_test(test_what_does_not_start_again_waits_for_nothing),
                cmocka_unit_test(test_priority),
                cmocka_unit_test(test_limits),
                cmocka_unit_test(test_policy_and_token),
                cmocka_unit_test(test_group_larger_than_job_is_the_job),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
