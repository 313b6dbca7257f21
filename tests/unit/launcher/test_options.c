#include <errno.h>
#include <linux/ioprio.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/util.h"
#include "launcher/mpirun/capture.h"
#include "launcher/mpirun/options.h"

/* A configuration file of one test; removed by its end. */
struct config_file {
        char path[64];
};

static void config_write(struct config_file *file, const char *text) {
        int fd;

        strcpy(file->path, "/tmp/rm-options-XXXXXX");
        fd = mkstemp(file->path);
        assert_true(fd >= 0);
        assert_int_equal(write_all(fd, text, strlen(text)), 0);
        (void) close(fd);
}

static void clear_environment(void) {
        static const char *const names[] = { "RM_POLICY", "RM_PRIORITY", "RM_GROUP_SIZE", "RM_WAIT", "RM_DETACH", "RM_TIME" };

        for (size_t i = 0; i < ARRAY_SIZE(names); i++)
                (void) unsetenv(names[i]);
}

static void flag_goes_before_environment_before_file(void **state) {
        struct config_file file;
        struct options o = { 0 };
        struct rm_error err = { 0 };

        (void) state;
        clear_environment();
        config_write(&file,
                     "[sched]\npolicy = other\n[mpirun]\npolicy = filed\npriority = 1\ngroup_size = 3 ; a comment\npriority = 2\n");
        (void) setenv("RM_POLICY", "environ", 1);
        (void) setenv("RM_PRIORITY", "7", 1);
        (void) setenv("RM_WAIT", "", 1); /* as good as not set */
        assert_int_equal(options_take(&o, OPTION_POLICY, "flagged", &err), 0);
        options_read_environment(&o);
        assert_int_equal(options_read_config(&o, file.path, &err), 0);
        assert_int_equal(options_resolve(&o, &err), 0);
        assert_string_equal(o.policy, "flagged");
        assert_int_equal(o.priority, 7);
        assert_int_equal(o.group_size, 3);
        assert_false(o.wait_set);
        assert_false(o.detach);
        options_finish(&o);

        clear_environment();
        assert_int_equal(options_read_config(&o, file.path, &err), 0);
        assert_int_equal(options_resolve(&o, &err), 0);
        assert_int_equal(o.priority, 2);
        options_finish(&o);
        (void) unlink(file.path);
}

static void a_missing_file_is_fine_and_a_broken_one_is_not(void **state) {
        struct config_file file;
        struct options o = { 0 };
        struct rm_error err = { 0 };

        (void) state;
        assert_int_equal(options_read_config(&o, "/nonexistent/rmd.conf", &err), 0);
        assert_int_equal(options_read_config(&o, "/tmp", &err), -EINVAL);
        assert_non_null(strstr(err.text, "/tmp cannot be read: Is a directory"));
        err = (struct rm_error) { 0 };
        config_write(&file, "[mpirun]\npolicy = x\nnonsense\n");
        assert_int_equal(options_read_config(&o, file.path, &err), -EINVAL);
        assert_non_null(strstr(err.text, ":3:"));
        (void) unlink(file.path);
        options_finish(&o);
}

static void errors_name_where_the_value_stands(void **state) {
        struct config_file file;
        struct options o = { 0 };
        struct rm_error err = { 0 };

        (void) state;
        clear_environment();
        config_write(&file, "# reference\n\n[mpirun]\ntime = soon\n");
        assert_int_equal(options_read_config(&o, file.path, &err), 0);
        assert_int_equal(options_resolve(&o, &err), -EINVAL);
        assert_non_null(strstr(err.text, ":4: time: 'soon'"));
        options_finish(&o);
        (void) unlink(file.path);

        (void) setenv("RM_PRIORITY", "high", 1);
        options_read_environment(&o);
        assert_int_equal(options_resolve(&o, &err), -EINVAL);
        assert_non_null(strstr(err.text, "RM_PRIORITY in the environment: 'high'"));
        options_finish(&o);
        clear_environment();
}

static void values_are_judged(void **state) {
        static const struct {
                size_t option;
                const char *value;
                bool good;
        } examples[] = {
                { OPTION_POLICY, "distrib", true },
                { OPTION_POLICY, "../x", false },
                { OPTION_POLICY, "", false },
                { OPTION_PRIORITY, "0", true },
                { OPTION_PRIORITY, "-1", false },
                { OPTION_PRIORITY, "1000001", false },
                { OPTION_GROUP_SIZE, "1", true },
                { OPTION_GROUP_SIZE, "auto", true },
                { OPTION_GROUP_SIZE, "0", false },
                { OPTION_MEM, "500M", true },
                { OPTION_MEM, "2G/rank", true },
                { OPTION_MEM, "0", false },
                { OPTION_MEM, "/rank", false },
                { OPTION_MEM, "1G/node", false },
                { OPTION_MEM, "-1", false },
                { OPTION_MAX_RANKS, "1", true },
                { OPTION_MAX_RANKS, "65536", true },
                { OPTION_MAX_RANKS, "0", false },
                { OPTION_MAX_RANKS, "65537", false },
                { OPTION_MAX_RANKS, "x", false },
                { OPTION_ON_RANK_LOSS, "abort", true },
                { OPTION_ON_RANK_LOSS, "continue", true },
                { OPTION_ON_RANK_LOSS, "restart", false },
                { OPTION_ON_RANK_LOSS, "continue:critical=0,5-7", true },
                { OPTION_ON_RANK_LOSS, "continue:critical=", false },
                { OPTION_ON_RANK_LOSS, "abort:critical=0", false },
                { OPTION_ON_RANK_LOSS, "continue:0", false },
                { OPTION_SPARE_RANKS, "-1", false },
                { OPTION_SPARE_RANKS, "x", false },
                { OPTION_SPARES, "0", true },
                { OPTION_SPARES, "1", true },
                { OPTION_SPARES, "-1", false },
                { OPTION_CHECKPOINT, "auto", true },
                { OPTION_CHECKPOINT, "1s", true },
                { OPTION_CHECKPOINT, "366d", true },
                { OPTION_CHECKPOINT, "999ms", false },
                { OPTION_CHECKPOINT, "367d", false },
                { OPTION_CHECKPOINT, "0", false },
                { OPTION_CHECKPOINT, "often", false },
                { OPTION_CHECKPOINT_FILES, "size", true },
                { OPTION_CHECKPOINT_FILES, "copy", false }, /* without --checkpoint */
                { OPTION_CHECKPOINT_FILES, "all", false },
                { OPTION_CHECKPOINT_AT_LIMIT, "no", true },
                { OPTION_CHECKPOINT_AT_LIMIT, "yes", false }, /* without --time */
                { OPTION_RECOVER_WAIT, "10m", true },
                { OPTION_RECOVER_WAIT, "0", true },
                { OPTION_RECOVER_WAIT, "367d", false },
                { OPTION_RECOVER_WAIT, "x", false },
                { OPTION_ON_NODE_LOSS, "abort", true },
                { OPTION_ON_NODE_LOSS, "restart", true },
                { OPTION_ON_NODE_LOSS, "fold", true },
                { OPTION_ON_NODE_LOSS, "again", false },
                { OPTION_RESTARTS, "0", true },
                { OPTION_RESTARTS, "1000", true },
                { OPTION_RESTARTS, "1001", false },
                { OPTION_RESTARTS, "-1", false },
                { OPTION_TIME, "90", true },
                { OPTION_TIME, "2h", true },
                { OPTION_TIME, "0", false },
                { OPTION_TIME, "1w", false },
                { OPTION_DETACH, "yes", true },
                { OPTION_DETACH, "maybe", false },
                { OPTION_JOB_NAME, "a-b.c_d", true },
                { OPTION_JOB_NAME, "a b", false },
                { OPTION_WAIT, "0", true },
                { OPTION_WAIT, "x", false },
                { OPTION_AVAILABILITY, "/dev/null", true },
                { OPTION_AVAILABILITY, "/nonexistent", false },
                { OPTION_AVAILABILITY, "/", false }, /* directories */
                { OPTION_AVAILABILITY, "/tmp", false },
                { OPTION_AVAILABILITY, ".", false },
        };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(examples); i++) {
                struct options o = { 0 };
                struct rm_error err = { 0 };

                (void) options_take(&o, examples[i].option, examples[i].value, &err);
                if ((options_resolve(&o, &err) == 0) != examples[i].good)
                        fail_msg("--%s %s: %s", options_known[examples[i].option].name, examples[i].value, err.text);
                options_finish(&o);
        }
}

static void nobody_waits_for_a_job_that_is_detached(void **state) {
        struct options o = { 0 };
        struct rm_error err = { 0 };

        (void) state;
        clear_environment();
        (void) setenv("RM_WAIT", "5", 1); /* for other jobs */
        (void) options_take(&o, OPTION_DETACH, NULL, &err);
        options_read_environment(&o);
        assert_int_equal(options_resolve(&o, &err), 0);
        (void) options_take(&o, OPTION_WAIT, "0", &err);
        assert_int_equal(options_resolve(&o, &err), -EINVAL);
        assert_non_null(strstr(err.text, "--wait: cannot be combined with --detach"));
        options_finish(&o);
        clear_environment();
}

static void restarts_are_of_a_job_that_may_restart(void **state) {
        static const struct {
                const char *on_node_loss, *restarts;
                uint32_t expected;
        } examples[] = { { NULL, NULL, 0 },     { NULL, "5", 0 },    { "restart", NULL, 3 }, { "restart", "5", 5 },
                         { "restart", "0", 0 }, { "fold", NULL, 3 }, { "abort", "5", 0 } };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(examples); i++) {
                struct options o = { 0 };
                struct rm_error err = { 0 };

                if (examples[i].on_node_loss)
                        (void) options_take(&o, OPTION_ON_NODE_LOSS, examples[i].on_node_loss, &err);
                if (examples[i].restarts)
                        (void) options_take(&o, OPTION_RESTARTS, examples[i].restarts, &err);
                assert_int_equal(options_resolve(&o, &err), 0);
                assert_int_equal(o.restarts, examples[i].expected);
                options_finish(&o);
        }
}

/* mpirun does not outlive a node: a job that is to go on without ranks falls back to a restart,
 * unless somebody says otherwise. */
static void a_job_that_goes_on_without_ranks_comes_back(void **state) {
        static const struct {
                const char *on_rank_loss, *on_node_loss, *max_ranks;
                uint32_t expected, restarts;
        } examples[] = {
                { "continue", NULL, NULL, 1, 3 },    { "continue:critical=0", NULL, NULL, 1, 3 },
                { "continue", "abort", NULL, 0, 0 }, { "continue", "fold", NULL, 2, 3 },
                { "abort", NULL, NULL, 0, 0 },       { NULL, NULL, NULL, 0, 0 },
                { "continue", NULL, "8", 0, 0 }, /* by the environment, and not for this one */
        };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(examples); i++) {
                struct options o = { 0 };
                struct rm_error err = { 0 };

                if (examples[i].on_rank_loss)
                        (void) setenv("RM_ON_RANK_LOSS", examples[i].on_rank_loss, 1);
                options_read_environment(&o);
                (void) unsetenv("RM_ON_RANK_LOSS");
                if (examples[i].on_node_loss)
                        (void) options_take(&o, OPTION_ON_NODE_LOSS, examples[i].on_node_loss, &err);
                if (examples[i].max_ranks)
                        (void) options_take(&o, OPTION_MAX_RANKS, examples[i].max_ranks, &err);
                assert_int_equal(options_resolve(&o, &err), 0);
                assert_int_equal(o.on_node_loss, examples[i].expected);
                assert_int_equal(o.restarts, examples[i].restarts);
                options_finish(&o);
        }
}

static void a_job_with_checkpoints_comes_back(void **state) {
        static const struct {
                const char *checkpoint, *on_node_loss;
                uint64_t usec;
                uint32_t expected, restarts;
        } examples[] = {
                { "auto", NULL, UINT64_MAX, 1, 3 },
                { "90", NULL, 90000000, 1, 3 },
                { "5m", "abort", 300000000, 0, 0 },
                { "5m", "fold", 300000000, 2, 3 },
        };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(examples); i++) {
                struct options o = { 0 };
                struct rm_error err = { 0 };

                (void) options_take(&o, OPTION_CHECKPOINT, examples[i].checkpoint, &err);
                (void) options_take(&o, OPTION_CHECKPOINT_FILES, "copy", &err);
                if (examples[i].on_node_loss)
                        (void) options_take(&o, OPTION_ON_NODE_LOSS, examples[i].on_node_loss, &err);
                assert_int_equal(options_resolve(&o, &err), 0);
                assert_int_equal(o.checkpoint_usec, examples[i].usec);
                assert_int_equal(o.on_node_loss, examples[i].expected);
                assert_int_equal(o.restarts, examples[i].restarts);
                assert_true(o.checkpoint_files);
                options_finish(&o);
        }
}

/* Options of the environment and the file, which are meant for all jobs, do not apply to jobs that
 * they do not fit. */
static void defaults_are_for_jobs_that_they_fit(void **state) {
        struct options o = { 0 };
        struct rm_error err = { 0 };

        (void) state;
        (void) setenv("RM_CHECKPOINT_FILES", "copy", 1);
        (void) setenv("RM_CHECKPOINT_AT_LIMIT", "yes", 1);
        options_read_environment(&o);
        assert_int_equal(options_resolve(&o, &err), 0);
        assert_false(o.checkpoint_files);
        assert_false(o.checkpoint_at_limit);
        (void) options_take(&o, OPTION_TIME, "1h", &err);
        (void) options_take(&o, OPTION_CHECKPOINT, "1m", &err);
        assert_int_equal(options_resolve(&o, &err), 0);
        assert_true(o.checkpoint_files);
        assert_true(o.checkpoint_at_limit);
        options_finish(&o);
        (void) unsetenv("RM_CHECKPOINT_FILES");
        (void) unsetenv("RM_CHECKPOINT_AT_LIMIT");
}

static void reserve_fits_the_job(void **state) {
        struct options o = { 0 };
        struct rm_error err = { 0 };

        (void) state;
        (void) setenv("RM_MIN_RANKS", "3", 1);
        options_read_environment(&o);
        assert_int_equal(options_resolve(&o, &err), 0);
        assert_int_equal(o.min_ranks, 0); /* for jobs that can change */
        assert_int_equal(options_check_ranks(&o, 2, &err), 0);
        (void) options_take(&o, OPTION_MAX_RANKS, "8", &err);
        assert_int_equal(options_resolve(&o, &err), 0);
        assert_int_equal(o.min_ranks, 3);
        assert_int_equal(options_check_ranks(&o, 3, &err), 0);
        assert_int_equal(options_check_ranks(&o, 8, &err), 0);
        assert_int_equal(options_check_ranks(&o, 2, &err), -EINVAL);
        assert_string_equal(err.text, "RM_MIN_RANKS in the environment: the job begins with 2 ranks, so it cannot have 3 at least");
        assert_int_equal(options_check_ranks(&o, 9, &err), -EINVAL);
        options_finish(&o);
        (void) unsetenv("RM_MIN_RANKS");
        (void) options_take(&o, OPTION_MIN_RANKS, "2", &err);
        assert_int_equal(options_resolve(&o, &err), -EINVAL);
        options_finish(&o);
}

/* Jobs that grow and shrink do not outlive lost ranks: by default they end when they lose a rank,
 * on the command line the option is an error. */
static void losses_of_ranks_are_of_jobs_that_do_not_grow(void **state) {
        struct options o = { 0 };
        struct rm_error err = { 0 };

        (void) state;
        (void) setenv("RM_ON_RANK_LOSS", "continue", 1);
        options_read_environment(&o);
        assert_int_equal(options_resolve(&o, &err), 0);
        assert_int_equal(o.on_rank_loss, 1);
        (void) options_take(&o, OPTION_MAX_RANKS, "8", &err);
        assert_int_equal(options_resolve(&o, &err), 0);
        assert_int_equal(o.on_rank_loss, 0);
        (void) options_take(&o, OPTION_ON_RANK_LOSS, "continue", &err);
        assert_int_equal(options_resolve(&o, &err), -EINVAL);
        assert_string_equal(err.text, "--on-rank-loss: 'continue' cannot be combined with --max-ranks");
        options_finish(&o);
        (void) unsetenv("RM_ON_RANK_LOSS");
        assert_int_equal(options_resolve(&o, &err), 0);
        assert_int_equal(o.on_rank_loss, 0);
        options_finish(&o);
}

/* Spare ranks are for critical ones; by the environment they are left out where there are none. */
static void spare_ranks_are_for_critical_ones(void **state) {
        struct options o = { 0 };
        struct rm_error err = { 0 };

        (void) state;
        (void) setenv("RM_SPARE_RANKS", "2", 1);
        options_read_environment(&o);
        assert_int_equal(options_resolve(&o, &err), 0);
        assert_int_equal(o.spare_ranks, 0);
        (void) options_take(&o, OPTION_ON_RANK_LOSS, "continue:critical=0,5-7", &err);
        assert_int_equal(options_resolve(&o, &err), 0);
        assert_int_equal(o.on_rank_loss, 1);
        assert_string_equal(o.critical_ranks, "0,5-7");
        assert_int_equal(o.spare_ranks, 2);
        assert_int_equal(options_check_ranks(&o, COMMAND_MAX_RANKS - 1, &err), -EINVAL);
        options_finish(&o);
        (void) unsetenv("RM_SPARE_RANKS");
        (void) options_take(&o, OPTION_SPARE_RANKS, "2", &err);
        (void) options_take(&o, OPTION_ON_RANK_LOSS, "continue", &err);
        assert_int_equal(options_resolve(&o, &err), -EINVAL);
        assert_string_equal(err.text, "--spare-ranks: needs --on-rank-loss continue:critical=RANKS");
        options_finish(&o);
}

static void relative_availability_becomes_absolute(void **state) {
        struct options o = { 0 };
        struct rm_error err = { 0 };

        (void) state;
        assert_int_equal(chdir("/dev"), 0);
        (void) options_take(&o, OPTION_AVAILABILITY, "null", &err);
        assert_int_equal(options_resolve(&o, &err), 0);
        assert_string_equal(o.availability, "/dev/null");
        options_finish(&o);
}

/* The limits are the shell's, not what its user could raise them to. */
static void check_limits(const Rm__JobSpec *spec) {
        assert_int_equal(spec->n_rlimits, RLIM_NLIMITS);
        for (size_t i = 0; i < spec->n_rlimits; i++) {
                struct rlimit limit;

                assert_int_equal(getrlimit((__rlimit_resource_t) spec->rlimits[i]->resource, &limit), 0);
                assert_int_equal(spec->rlimits[i]->resource, i);
                assert_true(spec->rlimits[i]->soft == limit.rlim_cur);
                assert_true(spec->rlimits[i]->hard == limit.rlim_max);
        }
}

static void a_job_is_captured_whole(void **state) {
        static char *argv[] = { (char *) "mpirun", (char *) "-n", (char *) "2", (char *) "./my prog", NULL };
        struct command command = { .argv = argv, .argc = 4, .ranks = 2, .program = "./my prog" };
        struct options o = { .priority = 3,
                             .time_usec = 5,
                             .on_node_loss = 2,
                             .restarts = 7,
                             .mem_bytes = 101,
                             .checkpoint_usec = 11,
                             .checkpoint_files = true,
                             .checkpoint_at_limit = true,
                             .recover_wait_usec = 13 };
        struct rm_error err = { 0 };
        Rm__JobSpec *spec = NULL;
        const int io_priority = IOPRIO_PRIO_VALUE(IOPRIO_CLASS_BE, 6);
        const struct sched_param none = { 0 };
        size_t env = 0;
        struct rlimit files;
        mode_t mask = umask(027);

        (void) state;
        assert_int_equal(getrlimit(RLIMIT_NOFILE, &files), 0);
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &(struct rlimit) { files.rlim_max - 1, files.rlim_max }), 0);
        assert_int_equal(chdir("/dev"), 0);
        assert_int_equal(syscall(SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0, io_priority), 0);
        assert_int_equal(sched_setscheduler(0, SCHED_BATCH, &none), 0);
        while (environ[env])
                env++;
        assert_int_equal(capture_job(&command, &o, true, &spec, &err), 0);
        assert_string_equal(spec->name, "my_prog");
        assert_string_equal(spec->cwd, "/dev");
        assert_int_equal(spec->n_argv, 4);
        assert_int_equal(spec->n_env, env);
        assert_int_equal(spec->ranks, 2);
        assert_int_equal(spec->on_node_loss, 2);
        assert_int_equal(spec->restarts, 7);
        assert_int_equal(spec->checkpoint_usec, 11);
        assert_true(spec->checkpoint_files && spec->checkpoint_at_limit);
        assert_int_equal(spec->recover_wait_usec, 13);
        assert_int_equal(spec->rank_memory_bytes, 51); /* half, and no less */
        check_limits(spec);
        assert_int_equal(spec->umask, 027);
        assert_int_equal(umask(mask), 027); /* it was looked at, and left */
        assert_int_equal(spec->nice, getpriority(PRIO_PROCESS, 0) > 0 ? getpriority(PRIO_PROCESS, 0) : 0);
        assert_int_equal(spec->io_priority, io_priority);
        assert_int_equal(spec->scheduling, SCHED_BATCH);
        assert_int_equal(sched_setscheduler(0, SCHED_OTHER, &none), 0);
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &files), 0);
        assert_true(spec->input);
        assert_int_not_equal(rm__job_spec__get_packed_size(spec), 0);
        capture_free(spec);
}

static void too_much_environment_is_refused(void **state) {
        static char *argv[] = { (char *) "mpirun", (char *) "a", NULL };
        struct command command = { .argv = argv, .argc = 2, .ranks = 1, .program = "a" };
        struct options o = { 0 };
        struct rm_error err = { 0 };
        Rm__JobSpec *spec = NULL;
        cleanup_free char *big = xcalloc(1, CAPTURE_MAX_BYTES);

        (void) state;
        memset(big, 'x', CAPTURE_MAX_BYTES - 1);
        (void) setenv("RM_TEST_BIG", big, 1);
        assert_int_equal(capture_job(&command, &o, true, &spec, &err), -E2BIG);
        assert_non_null(strstr(err.text, "too large"));
        (void) unsetenv("RM_TEST_BIG");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(flag_goes_before_environment_before_file),
                cmocka_unit_test(a_missing_file_is_fine_and_a_broken_one_is_not),
                cmocka_unit_test(errors_name_where_the_value_stands),
                cmocka_unit_test(values_are_judged),
                cmocka_unit_test(nobody_waits_for_a_job_that_is_detached),
                cmocka_unit_test(restarts_are_of_a_job_that_may_restart),
                cmocka_unit_test(a_job_with_checkpoints_comes_back),
                cmocka_unit_test(a_job_that_goes_on_without_ranks_comes_back),
                cmocka_unit_test(defaults_are_for_jobs_that_they_fit),
                cmocka_unit_test(reserve_fits_the_job),
                cmocka_unit_test(losses_of_ranks_are_of_jobs_that_do_not_grow),
                cmocka_unit_test(spare_ranks_are_for_critical_ones),
                cmocka_unit_test(relative_availability_becomes_absolute),
                cmocka_unit_test(a_job_is_captured_whole),
                cmocka_unit_test(too_much_environment_is_refused),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
