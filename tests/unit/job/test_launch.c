/* From a job in the state to its capsules, their names, and what runs in them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <arpa/inet.h>
#include <cmocka.h>
#include <signal.h>
#include <sys/wait.h>

#include "common/util.h"
#include "daemon/job/launch.h"

/* ---- names ---- */

static const struct {
        uint64_t job;
        int32_t index;
        uint64_t incarnation;
        const char *id;
        const char *hostname;
} names[] = {
        { 7, STATE_HEAD, 20, "j7.h.i20", "rmj7h" },
        { 7, 0, 1, "j7.g0.i1", "rmj7g0" },
        { 7, 12, 33, "j7.g12.i33", "rmj7g12" },
        { 123, 4, 56, "j123.g4.i56", "rmj123g4" },
        { UINT64_MAX, INT32_MAX, UINT64_MAX, "j18446744073709551615.g2147483647.i18446744073709551615",
          "rmj18446744073709551615g2147483647" },
};

static void test_ids_round_trip(void **state) {
        for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
                char id[64];
                uint64_t job = 1, incarnation = 1;
                int32_t index = 1;

                launch_capsule_id(id, names[i].job, names[i].index, names[i].incarnation);
                assert_string_equal(id, names[i].id);
                assert_true(strlen(id) <= CAPSULE_ID_MAX);
                assert_true(launch_parse_id(id, &job, &index, &incarnation));
                assert_true(job == names[i].job && index == names[i].index && incarnation == names[i].incarnation);
        }
}

/* Directories are named so: what anybody else made there is no capsule of ours. */
static void test_hostile_ids_are_refused(void **state) {
        static const char *const cases[] = {
                "",
                "j",
                "j7",
                "j7.",
                "j7.g",
                "j7.x",
                "j.g0",
                "j7.gx",
                "7.g0",
                "J7.g0",
                " j7.g0",
                "j7.g0 ",
                "j 7.g0",
                "j7.g 0",
                "j+7.g0",
                "j-7.g0",
                "j07.g0",
                "j7.g00",
                "j7.g-2",
                "j7.g-1", /* not how the head is called */
                "j7.h",
                "j7.g0",
                "j7.g0.m9",
                "j7.g0.i",
                "j7.g0.i0",
                "j7.g0.i09",
                "j7.g0.i-1",
                "j7.g0.i+1",
                "j7.g0.i 1",
                "j7.g0.i9x",
                "j7.g0.i9.i9",
                "j7.i9.g0",
                "j7.g0.x9",
                "j7.g0.i18446744073709551616",
                "j7.g0.i1111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111",
                "j7.h0",
                "j7.h.g0",
                "j7.hh",
                "j7.g0/../../etc",
                "../j7.g0",
                "j7.g0\n",
                "j18446744073709551616.g0",
                "j7.g2147483648",
                "j7.g4294967296",
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                uint64_t job = 41, incarnation = 42;
                int32_t index = 43;

                if (launch_parse_id(cases[i], &job, &index, &incarnation))
                        fail_msg("'%s' is taken for a capsule", cases[i]);
                assert_true(job == 41 && index == 43 && incarnation == 42);
        }
}

static void test_hostnames(void **state) {
        static const char *const refused[] = {
                "",
                "rmj7",
                "rmj7h",
                "rmj7g",
                "rmj8g0",
                "rmj77g0",
                "rmj7g0x",
                "rmj7g0.lan",
                "rmj07g0",
                "rmj7g00",
                "rmj7g-1",
                "rmj7g-2",
                "rmj7g+1",
                "Rmj7g0",
                "rmj 7g0",
                " rmj7g0",
                "rmj7g2147483648",
                "localhost",
                "rmj-7g0",
                "rmj18446744073709551623g0", /* 7, were numbers to run over */
        };
        int32_t index = 43;

        for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
                char hostname[64];

                launch_hostname(hostname, names[i].job, names[i].index);
                assert_string_equal(hostname, names[i].hostname);
                assert_true(strlen(hostname) < 64);
                /* Nothing is ever launched in the head by its name. */
                assert_int_equal(launch_parse_hostname(hostname, names[i].job, &index), names[i].index != STATE_HEAD);
                if (names[i].index != STATE_HEAD)
                        assert_int_equal(index, names[i].index);
        }
        index = 43;
        for (size_t i = 0; i < ARRAY_SIZE(refused); i++) {
                if (launch_parse_hostname(refused[i], 7, &index))
                        fail_msg("'%s' is taken for a capsule of job 7", refused[i]);
                assert_int_equal(index, 43);
        }
}

/* ---- a job ---- */

struct job {
        Rm__Job job;
        Rm__JobSpec spec;
        Rm__Capsule capsule[3];
        Rm__Capsule *capsules[3];
        char *argv[8];
        char *env[8];
};

/* Job 7: five ranks in two groups; `env` NULL-terminated. */
static void job_init(struct job *j, const char *const *env) {
        static const char *const argv[] = { "mpirun", "-n", "5", "./a b", "" };
        static const uint32_t ranks[] = { 0, 3, 2 };

        memset(j, 0, sizeof(*j));
        rm__job__init(&j->job);
        rm__job_spec__init(&j->spec);
        for (size_t i = 0; i < 3; i++) {
                rm__capsule__init(&j->capsule[i]);
                j->capsule[i].index = (int32_t) i - 1;
                j->capsule[i].ranks = ranks[i];
                j->capsule[i].address = 258 + (uint32_t) i;
                j->capsules[i] = &j->capsule[i];
        }
        for (size_t i = 0; i < ARRAY_SIZE(argv); i++)
                j->argv[i] = (char *) argv[i];
        for (size_t i = 0; env && env[i]; i++)
                j->env[j->spec.n_env++] = (char *) env[i];
        j->spec.argv = j->argv;
        j->spec.n_argv = ARRAY_SIZE(argv);
        j->spec.env = j->env;
        j->spec.cwd = (char *) "/home/alice";
        j->spec.umask = 027;
        j->spec.uid = 1000;
        j->spec.gid = 1001;
        j->spec.ranks = 5;
        j->spec.input = true;
        j->job.id = 7;
        j->job.attempt = 2;
        j->job.spec = &j->spec;
        j->job.capsules = j->capsules;
        j->job.n_capsules = 3;
}

static size_t env_count(const struct launch_command *command) {
        size_t n = 0;

        while (command->command.env[n])
                n++;
        return n;
}

/* The one value of a variable, or NULL when it is not set; fails when it is set twice. */
static const char *env_value(const struct launch_command *command, const char *name) {
        const char *value = NULL;
        size_t n = strlen(name);

        for (size_t i = 0; i < env_count(command); i++)
                if (strncmp(command->command.env[i], name, n) == 0 && command->command.env[i][n] == '=') {
                        if (value)
                                fail_msg("%s is set twice", name);
                        value = command->command.env[i] + n + 1;
                }
        return value;
}

static void test_spec(void **state) {
        struct config config = {
                .state_dir = (char *) "/var/lib/rmd", .uplink = (char *) "eth1", .network = 0x0a320000, .network_prefix = 16
        };
        uint32_t groups[] = { 1001, 27 };
        struct launch_spec spec;
        struct in_addr address;
        struct job j;

        job_init(&j, NULL);
        j.spec.groups = groups;
        j.spec.n_groups = 2;
        assert_int_equal(launch_spec_init(&spec, &config, &j.job, 2, 0, false), -ENOENT);
        assert_int_equal(launch_spec_init(&spec, &config, &j.job, 1, 9, true), 0);
        assert_string_equal(spec.spec.id, "j7.g1.i9");
        assert_string_equal(spec.spec.hostname, "rmj7g1");
        assert_string_equal(spec.spec.spool_dir, "/var/lib/rmd/spool/j7.g1.i9");
        assert_string_equal(spec.spec.uplink, "eth1");
        assert_string_equal(spec.spec.hosts, "127.0.0.1 localhost\n10.50.1.2 rmj7h\n10.50.1.3 rmj7g0\n10.50.1.4 rmj7g1\n");
        address.s_addr = spec.spec.address;
        assert_string_equal(inet_ntoa(address), "10.50.1.4");
        assert_int_equal(spec.spec.prefix, 16);
        assert_memory_equal(spec.spec.mac, ((uint8_t[]) { 0x02, 0x72, 10, 50, 1, 4 }), 6);
        assert_true(spec.spec.cut);
        assert_false(spec.spec.fenced);
        assert_int_equal(spec.spec.uid, 1000);
        assert_int_equal(spec.spec.gid, 1001);
        assert_int_equal(spec.spec.n_groups, 2);
        assert_int_equal(spec.spec.groups[1], 27);
        launch_spec_finish(&spec);
        /* Another epoch, another MAC; but the same address and MAC wherever it is, or its
         * connections would not live on. */
        j.job.epoch = 0x102;
        j.spec.on_node_loss = STATE_LOSS_RESTART;
        assert_int_equal(launch_spec_init(&spec, &config, &j.job, 1, 0, false), 0);
        assert_true(spec.spec.address == address.s_addr);
        assert_memory_equal(spec.spec.mac, ((uint8_t[]) { 0x06, 0x70, 10, 50, 1, 4 }), 6);
        assert_false(spec.spec.cut);
        assert_true(spec.spec.fenced);
        launch_spec_finish(&spec);
}

static void test_hostfile(void **state) {
        struct job j;
        char *text;

        job_init(&j, NULL);
        text = launch_hostfile(&j.job);
        assert_string_equal(text, "rmj7g0 slots=3\nrmj7g1 slots=2\n");
        free(text);
}

/* The command has the user's words unchanged; no shell reads any of it. */
static void test_head_command(void **state) {
        struct launch_command command;
        struct job j;

        job_init(&j, NULL);
        launch_head_command(&command, &j.job, j.job.spec, 0);
        for (size_t i = 0; i < j.spec.n_argv; i++)
                assert_string_equal(command.command.argv[i], j.argv[i]);
        assert_null(command.command.argv[j.spec.n_argv]);
        assert_string_equal(command.command.cwd, "/home/alice");
        assert_int_equal(command.command.umask, 027);
        assert_false(command.command.stdin_null);
        launch_command_finish(&command);
        j.spec.input = false;
        launch_head_command(&command, &j.job, j.job.spec, 0);
        assert_true(command.command.stdin_null);
        launch_command_finish(&command);
}

static void test_group_command(void **state) {
        struct launch_command command;
        struct job j;

        job_init(&j, NULL);
        launch_group_command(&command, &j.job, j.job.spec, "exec prted --x 'y z'", 0);
        assert_string_equal(command.command.argv[0], "/bin/sh");
        assert_string_equal(command.command.argv[1], "-c");
        assert_string_equal(command.command.argv[2], "exec prted --x 'y z'");
        assert_null(command.command.argv[3]);
        assert_true(command.command.stdin_null); /* input is the head's */
        assert_string_equal(env_value(&command, "RM_JOB_ID"), "7");
        assert_null(env_value(&command, "LD_PRELOAD"));
        launch_command_finish(&command);
}

/* Variables that a shell would drop reach its daemon behind a name that it knows; a name of ours is
 * nobody's. */
static void test_odd_variables(void **state) {
        static const char *const env[] = {
                "BASH_FUNC_f%%=() { :; }", "a b=c", "=z", "7=8", "x.y=", "_A9=b", "RM_VARIABLE_3=x", NULL
        };
        static const char *const wrapped[] = { "RM_VARIABLE_0", "RM_VARIABLE_1", "RM_VARIABLE_2", "RM_VARIABLE_3",
                                               "RM_VARIABLE_4" };
        struct launch_command command;
        struct job j;

        job_init(&j, env);
        launch_group_command(&command, &j.job, j.job.spec, "exec prted", LAUNCH_WITH_PRRTE);
        for (size_t i = 0; i < ARRAY_SIZE(wrapped); i++)
                assert_string_equal(env_value(&command, wrapped[i]), env[i]);
        assert_string_equal(env_value(&command, "_A9"), "b");
        assert_null(env_value(&command, "RM_VARIABLE_6"));
        launch_command_finish(&command);
        launch_group_command(&command, &j.job, j.job.spec, "exec prted", 0); /* nothing would take it off */
        assert_string_equal(env_value(&command, "a b"), "c");
        launch_command_finish(&command);
        launch_head_command(&command, &j.job, j.job.spec, LAUNCH_WITH_PRRTE); /* no shell starts it */
        assert_string_equal(env_value(&command, "a b"), "c");
        launch_command_finish(&command);
}

/* The job's own preloads stay, before ours; mpirun itself gets none of ours. */
static void test_preload(void **state) {
        static const struct {
                const char *env[3];
                const char *in_group;
                const char *in_head;
        } cases[] = {
                { { "A=b" }, "/run/rmd-yield.so", NULL },
                { { "LD_PRELOAD=" }, "/run/rmd-yield.so", "" },
                { { "LD_PRELOAD=/home/alice/a.so b.so" }, "/home/alice/a.so b.so:/run/rmd-yield.so", "/home/alice/a.so b.so" },
                { { "LD_PRELOADED=mine", "A=b" }, "/run/rmd-yield.so", NULL },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct launch_command group;
                struct launch_command head;
                struct job j;

                job_init(&j, cases[i].env);
                assert_true(launch_may_yield(j.job.spec));
                launch_group_command(&group, &j.job, j.job.spec, "exec prted", LAUNCH_WITH_YIELD);
                launch_head_command(&head, &j.job, j.job.spec, 0);
                assert_string_equal(env_value(&group, "LD_PRELOAD"), cases[i].in_group);
                if (cases[i].in_head)
                        assert_string_equal(env_value(&head, "LD_PRELOAD"), cases[i].in_head);
                else
                        assert_null(env_value(&head, "LD_PRELOAD"));
                assert_string_equal(env_value(&group, "OMPI_MCA_mpi_yield_when_idle"), "1");
                assert_string_equal(env_value(&head, "OMPI_MCA_mpi_yield_when_idle"), "1");
                assert_string_equal(env_value(&group, "ASAN_OPTIONS"), "verify_asan_link_order=0");
                assert_null(env_value(&head, "ASAN_OPTIONS"));
                launch_command_finish(&group);
                launch_command_finish(&head);
        }
}

/* rm-prrte, which mpirun has and no rank, comes last, and is no reason to tell ranks of a
 * sanitizer. */
static void test_preload_of_mpirun(void **state) {
        static const char *const env[] = { "LD_PRELOAD=", "LD_PRELOAD=/home/alice/a.so", "ASAN_OPTIONS=x=1", NULL };
        struct launch_command command;
        struct job j;

        job_init(&j, (const char *[]) { "A=b", NULL });
        launch_head_command(&command, &j.job, j.job.spec, LAUNCH_WITH_PRRTE);
        assert_string_equal(env_value(&command, "LD_PRELOAD"), "/run/rmd-prrte.so");
        assert_null(env_value(&command, "ASAN_OPTIONS"));
        launch_command_finish(&command);
        job_init(&j, env);
        launch_head_command(&command, &j.job, j.job.spec, LAUNCH_WITH_PRRTE);
        assert_string_equal(env_value(&command, "LD_PRELOAD"), "/home/alice/a.so:/run/rmd-prrte.so");
        assert_string_equal(env_value(&command, "ASAN_OPTIONS"), "x=1");
        launch_command_finish(&command);
        launch_group_command(&command, &j.job, j.job.spec, "exec prted", LAUNCH_WITH_PRRTE | LAUNCH_WITH_YIELD | LAUNCH_WITH_FT);
        assert_string_equal(env_value(&command, "LD_PRELOAD"),
                            "/home/alice/a.so:/run/rmd-ft.so:/run/rmd-yield.so:/run/rmd-prrte.so");
        launch_command_finish(&command);
}

/* The user's options of the sanitizer come later, and count. */
static void test_sanitizer(void **state) {
        static const char *const env[] = { "ASAN_OPTIONS=detect_leaks=0:verify_asan_link_order=1", NULL };
        struct launch_command command;
        struct job j;

        job_init(&j, env);
        launch_group_command(&command, &j.job, j.job.spec, "exec prted", LAUNCH_WITH_YIELD);
        assert_string_equal(env_value(&command, "ASAN_OPTIONS"),
                            "verify_asan_link_order=0:detect_leaks=0:verify_asan_link_order=1");
        launch_command_finish(&command);
        launch_group_command(&command, &j.job, j.job.spec, "exec prted", 0);
        assert_string_equal(env_value(&command, "ASAN_OPTIONS"), "detect_leaks=0:verify_asan_link_order=1");
        launch_command_finish(&command);
}

static size_t count_words(const struct launch_command *command, const char *word) {
        size_t n = 0;

        for (size_t i = 0; command->command.argv[i]; i++)
                n += strcmp(command->command.argv[i], word) == 0;
        return n;
}

/* mpirun and the ranks of a job that goes on without lost ones are told so; of any other job they
 * are not, whatever its environment says. */
static void test_goes_on_without_ranks(void **state) {
        static const char *const env[] = { "OMPI_MCA_coll=^self",
                                           "RM_ON_RANK_LOSS=continue",
                                           "RM_CRITICAL_RANKS=0",
                                           "RM_SPARE_RANKS=1",
                                           "LD_PRELOAD=mine.so",
                                           "RM_LOSS_WAIT=1",
                                           NULL };
        struct launch_command command;
        struct job j;

        job_init(&j, env);
        launch_head_command(&command, &j.job, j.job.spec, 0);
        assert_string_equal(env_value(&command, "OMPI_MCA_coll"), "^self");
        assert_null(env_value(&command, "RM_ON_RANK_LOSS"));
        assert_null(env_value(&command, "RM_CRITICAL_RANKS"));
        assert_null(env_value(&command, "RM_SPARE_RANKS"));
        assert_int_equal(count_words(&command, "--with-ft"), 0);
        launch_command_finish(&command);
        j.spec.on_rank_loss = RM__RANK_LOSS__RANK_LOSS_CONTINUE;
        launch_head_command(&command, &j.job, j.job.spec, 0);
        assert_string_equal(env_value(&command, "OMPI_MCA_coll"), "basic,tuned,libnbc,self,inter,ftagree");
        assert_string_equal(env_value(&command, "RM_ON_RANK_LOSS"), "continue");
        assert_string_equal(env_value(&command, "LD_PRELOAD"), "mine.so");
        assert_string_equal(command.command.argv[1], "--with-ft");
        assert_string_equal(command.command.argv[2], "ulfm");
        assert_string_equal(command.command.argv[3], j.job.spec->argv[1]);
        launch_command_finish(&command);
        launch_group_command(&command, &j.job, j.job.spec, "exec prted", LAUNCH_WITH_YIELD | LAUNCH_WITH_FT);
        assert_string_equal(env_value(&command, "LD_PRELOAD"), "mine.so:/run/rmd-ft.so:/run/rmd-yield.so");
        assert_string_equal(env_value(&command, "RM_ON_RANK_LOSS"), "continue");
        launch_command_finish(&command);
        j.spec.critical_ranks = (char *) "0,2-3";
        j.spec.spare_ranks = 2;
        launch_group_command(&command, &j.job, j.job.spec, "exec prted", LAUNCH_WITH_FT);
        assert_string_equal(env_value(&command, "RM_CRITICAL_RANKS"), "0,2-3");
        assert_string_equal(env_value(&command, "RM_SPARE_RANKS"), "2");
        assert_null(env_value(&command, "RM_LOSS_WAIT"));
        launch_set_loss_wait(&command, j.job.spec, 10000000);
        assert_string_equal(env_value(&command, "RM_LOSS_WAIT"), "120");
        launch_command_finish(&command);
        launch_group_command(&command, &j.job, j.job.spec, "exec prted", LAUNCH_WITH_FT);
        launch_set_loss_wait(&command, j.job.spec, 500000);
        assert_string_equal(env_value(&command, "RM_LOSS_WAIT"), "60");
        assert_string_equal(env_value(&command, "LD_PRELOAD"), "mine.so:/run/rmd-ft.so");
        launch_command_finish(&command);
}

static void test_job_says_how_it_waits(void **state) {
        static const char *const cases[] = { "", "0", "1" };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                cleanup_free char *setting = xasprintf("OMPI_MCA_mpi_yield_when_idle=%s", cases[i]);
                const char *env[] = { setting, NULL };
                struct launch_command command;
                struct job j;

                job_init(&j, env);
                assert_false(launch_may_yield(j.job.spec));
                launch_head_command(&command, &j.job, j.job.spec, 0);
                assert_string_equal(env_value(&command, "OMPI_MCA_mpi_yield_when_idle"), cases[i]);
                launch_command_finish(&command);
        }
}

/* The variables that rmd sets, where the job does not. */
static void test_env_defaults(void **state) {
        static const char *const env[] = { "PATH=/usr/bin", "HOME=/home/alice", NULL };
        struct launch_command command;
        struct job j;

        job_init(&j, env);
        launch_head_command(&command, &j.job, j.job.spec, 0);
        assert_string_equal(env_value(&command, "PATH"), "/usr/bin");
        assert_string_equal(env_value(&command, "HOME"), "/home/alice");
        assert_string_equal(env_value(&command, "RM_JOB_ID"), "7");
        assert_string_equal(env_value(&command, "RM_ATTEMPT"), "2");
        assert_string_equal(env_value(&command, "OMPI_MCA_pml"), "ob1");
        assert_string_equal(env_value(&command, "OMPI_MCA_btl"), "self,sm,tcp");
        assert_string_equal(env_value(&command, "PRTE_MCA_prte_default_hostfile"), LAUNCH_HOSTFILE);
        assert_string_equal(env_value(&command, "PRTE_MCA_plm_ssh_agent"), "/run/rmd-agent");
        assert_string_equal(env_value(&command, "PRTE_MCA_hwloc_default_binding_policy"), "none");
        launch_command_finish(&command);
}

static void test_env_of_the_job_wins(void **state) {
        /* An empty value is one, too; a name that ours begins with is another name. */
        static const char *const env[] = { "OMPI_MCA_btl=tcp,self", "OMPI_MCA_pml=",
                                           "OMPI_MCA_btl_tcp=mine", "PRTE_MCA_hwloc_default_binding_policy=core",
                                           "OMPI_MCA_oscar=mine",   NULL };
        struct launch_command with;
        struct launch_command without;
        struct job j;

        job_init(&j, NULL);
        launch_head_command(&without, &j.job, j.job.spec, 0);
        job_init(&j, env);
        launch_head_command(&with, &j.job, j.job.spec, 0);
        assert_string_equal(env_value(&with, "OMPI_MCA_btl"), "tcp,self");
        assert_string_equal(env_value(&with, "OMPI_MCA_pml"), "");
        assert_string_equal(env_value(&with, "PRTE_MCA_hwloc_default_binding_policy"), "core");
        assert_string_equal(env_value(&with, "OMPI_MCA_btl_tcp"), "mine");
        assert_string_equal(env_value(&with, "OMPI_MCA_btl_tcp_if_include"), "eth0");
        assert_string_equal(env_value(&with, "OMPI_MCA_osc"), "^ucx");
        /* Three of ours replaced, two added. */
        assert_int_equal(env_count(&with), env_count(&without) + 2);
        launch_command_finish(&with);
        launch_command_finish(&without);
}

static void test_env_cannot_be_spoofed(void **state) {
        static const char *const env[] = { "RM_JOB_ID=1",          "A=b", "RM_ATTEMPT=99", "RM_JOB_ID=2", "RM_ACTIVE_RANKS=3",
                                           "RM_JOB_IDENTITY=mine", NULL };
        struct launch_command command;
        struct job j;

        job_init(&j, env);
        launch_head_command(&command, &j.job, j.job.spec, 0);
        assert_string_equal(env_value(&command, "RM_JOB_ID"), "7");
        assert_string_equal(env_value(&command, "RM_ATTEMPT"), "2");
        assert_string_equal(env_value(&command, "RM_JOB_IDENTITY"), "mine");
        assert_null(env_value(&command, "RM_ACTIVE_RANKS"));
        assert_string_equal(env_value(&command, "A"), "b");
        launch_command_finish(&command);
        j.job.spec->active_ranks = 2;
        launch_head_command(&command, &j.job, j.job.spec, 0);
        assert_string_equal(env_value(&command, "RM_ACTIVE_RANKS"), "2");
        launch_command_finish(&command);
}

static void test_rlimits(void **state) {
        Rm__Rlimit limits[] = { RM__RLIMIT__INIT, RM__RLIMIT__INIT, RM__RLIMIT__INIT };
        Rm__Rlimit *list[] = { &limits[0], &limits[1], &limits[2] };
        struct launch_command command;
        struct rlimit ours;
        struct job j;

        limits[0].resource = RLIMIT_NOFILE;
        limits[0].soft = 100;
        limits[0].hard = 200;
        /* Resources that no kernel has are passed over. */
        limits[1].resource = RLIM_NLIMITS;
        limits[2].resource = UINT32_MAX;
        job_init(&j, NULL);
        j.spec.rlimits = list;
        j.spec.n_rlimits = ARRAY_SIZE(list);
        launch_head_command(&command, &j.job, j.job.spec, 0);
        assert_int_equal(command.command.rlimits[RLIMIT_NOFILE].rlim_cur, 100);
        assert_int_equal(command.command.rlimits[RLIMIT_NOFILE].rlim_max, 200);
        assert_int_equal(getrlimit(RLIMIT_STACK, &ours), 0);
        assert_true(command.command.rlimits[RLIMIT_STACK].rlim_cur == ours.rlim_cur);
        launch_command_finish(&command);
}

/* Signals that end mpirun reach its ranks as mpirun would send them; signals that it passes on do
 * not end it. */
static void test_signals_that_end(void **state) {
        static const uint32_t end[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT }, passed_on[] = { SIGUSR1, SIGUSR2, SIGALRM };

        for (size_t i = 0; i < ARRAY_SIZE(end); i++) {
                assert_true(launch_signal_ends_job(end[i]));
                assert_int_equal(launch_signal_for_ranks(end[i]), SIGTERM);
                assert_int_equal(launch_signal_for_mpirun(end[i]), end[i]);
        }
        for (size_t i = 0; i < ARRAY_SIZE(passed_on); i++) {
                assert_false(launch_signal_ends_job(passed_on[i]));
                assert_int_equal(launch_signal_for_ranks(passed_on[i]), passed_on[i]);
                assert_int_equal(launch_signal_for_mpirun(passed_on[i]), SIGTERM);
        }
        assert_int_equal(launch_signal_for_mpirun(SIGKILL), SIGKILL);
        assert_int_equal(launch_signal_for_ranks(SIGPIPE), SIGTERM);
}

static void test_exit_codes(void **state) {
        assert_int_equal(launch_exit_code(W_EXITCODE(0, 0)), 0);
        assert_int_equal(launch_exit_code(W_EXITCODE(3, 0)), 3);
        assert_int_equal(launch_exit_code(W_EXITCODE(255, 0)), 255);
        assert_int_equal(launch_exit_code(W_EXITCODE(0, SIGTERM)), 143);
        assert_int_equal(launch_exit_code(W_EXITCODE(0, SIGKILL)), 137);
        assert_int_equal(launch_exit_code(W_EXITCODE(0, SIGABRT) | 0x80), 134); /* with a core dump */
        assert_int_equal(launch_exit_code(W_STOPCODE(SIGSTOP)), 255); /* no end at all */
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_ids_round_trip),
                cmocka_unit_test(test_hostile_ids_are_refused),
                cmocka_unit_test(test_hostnames),
                cmocka_unit_test(test_spec),
                cmocka_unit_test(test_hostfile),
                cmocka_unit_test(test_head_command),
                cmocka_unit_test(test_group_command),
                cmocka_unit_test(test_odd_variables),
                cmocka_unit_test(test_preload),
                cmocka_unit_test(test_preload_of_mpirun),
                cmocka_unit_test(test_sanitizer),
                cmocka_unit_test(test_goes_on_without_ranks),
                cmocka_unit_test(test_job_says_how_it_waits),
                cmocka_unit_test(test_env_defaults),
                cmocka_unit_test(test_env_of_the_job_wins),
                cmocka_unit_test(test_env_cannot_be_spoofed),
                cmocka_unit_test(test_rlimits),
                cmocka_unit_test(test_signals_that_end),
                cmocka_unit_test(test_exit_codes),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
