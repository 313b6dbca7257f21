/* Availability files of jobs, and how much of the log their users may take by them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <event2/event.h>
#include <sys/stat.h>

#include "common/timer.h"
#include "common/util.h"
#include "daemon/cluster/cluster.h"
#include "daemon/config/config.h"
#include "daemon/leader/files.h"
#include "daemon/leader/leader.h"

#define JOBS 1100U /* of one user: a hundred more than he may change at once */

/* The jobs whose files are read. */
static struct world {
        Rm__State *state;
        unsigned decided[JOBS + 2]; /* by job */
        uint32_t cores[JOBS + 2];   /* that the last one said */
        unsigned n_decided;
} world;

const Rm__State *cluster_state(const struct cluster *cluster) {
        return world.state;
}

void cluster_decide(struct cluster *cluster, const Rm__Command *command) {
        const Rm__CmdJobAvailability *in = command->job_availability;

        if (command->body_case != RM__COMMAND__BODY_JOB_AVAILABILITY)
                return;
        assert_in_range(in->job, 1, JOBS + 1);
        world.decided[in->job]++;
        world.cores[in->job] = in->n_nodes == 1 ? in->nodes[0]->cores : 0;
        world.n_decided++;
}

void leader_round_soon(struct leader *leader) {
}

static void add_job(uint32_t uid, char *path) {
        Rm__State *state = world.state;
        Rm__Job *job = xcalloc(1, sizeof(*job));

        rm__job__init(job);
        job->id = ++state->n_jobs;
        job->spec = xcalloc(1, sizeof(*job->spec));
        rm__job_spec__init(job->spec);
        job->spec->uid = job->spec->gid = uid;
        job->spec->availability_path = xstrdup(path);
        state->jobs = xrealloc(state->jobs, state->n_jobs * sizeof(*state->jobs));
        state->jobs[state->n_jobs - 1] = job;
}

static void say(const char *path, unsigned cores) {
        cleanup_free char *text = xasprintf("n1:%u\n", cores);

        assert_int_equal(write_file_atomic(path, text, strlen(text), 0644, false), 0);
}

static void run_for(struct event_base *base, uint64_t usec) {
        struct timeval tv = { .tv_sec = (time_t) (usec / 1000000), .tv_usec = (suseconds_t) (usec % 1000000) };

        (void) event_base_loopexit(base, &tv);
        (void) event_base_dispatch(base);
}

static void test_user_changes_the_files_of_all_his_jobs(void **state) {
        char root[] = "/tmp/test-files-XXXXXX";
        char *path, *others;
        struct config config = { .availability_poll_usec = 50000 };
        struct rmd rmd = { .config = &config, .base = event_base_new() };
        struct leader_files *files;
        Rm__Node node = RM__NODE__INIT, *nodes[] = { &node };
        uint64_t began_usec, began_trickle_usec;
        unsigned last, late = 0;

        assert_non_null(mkdtemp(root));
        assert_int_equal(chmod(root, 0755), 0);
        path = xasprintf("%s/his", root);
        others = xasprintf("%s/hers", root);
        config.availability_file = xasprintf("%s/none", root);
        say(path, 1);
        say(others, 7);
        world.state = state_create("test");
        node.name = (char *) "n1";
        world.state->nodes = nodes;
        world.state->n_nodes = 1;
        for (unsigned i = 0; i < JOBS; i++)
                add_job(1000, path);
        add_job(1001, others);
        began_usec = now_usec();
        files = leader_files_create(&rmd);
        while ((world.n_decided < 1001 || world.decided[JOBS + 1] == 0) && now_usec() < began_usec + 20000000)
                run_for(rmd.base, 10000);
        assert_in_range(world.n_decided, 1001, 1001 + (now_usec() - began_usec) / 20000);
        assert_int_equal(world.decided[JOBS + 1], 1);
        assert_true(world.n_decided <= JOBS); /* another user does not wait for all of his */
        assert_int_equal(world.cores[JOBS + 1], 7);
        /* He changes them all: it goes on in a trickle, with what they say last. */
        say(path, 3);
        run_for(rmd.base, 2000000);
        last = world.n_decided;
        began_trickle_usec = now_usec();
        run_for(rmd.base, 1000000);
        assert_in_range(world.n_decided - last, 10, 22 + (now_usec() - began_trickle_usec) / 20000);
        assert_true(world.n_decided <= 1001 + (now_usec() - began_usec) / 20000 + 2);
        for (unsigned i = 1; i <= JOBS; i++)
                late += world.cores[i] == 3;
        assert_in_range(late, 50, 1000);
        say(others, 8);
        for (began_usec = now_usec(); world.cores[JOBS + 1] != 8 && now_usec() < began_usec + 20000000;)
                run_for(rmd.base, 10000);
        assert_int_equal(world.cores[JOBS + 1], 8);
        leader_files_destroy(files);
        world.state->nodes = NULL;
        world.state->n_nodes = 0;
        rm__state__free_unpacked(world.state, NULL);
        event_base_free(rmd.base);
        (void) remove_tree(root);
        free(config.availability_file);
        free(path);
        free(others);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_user_changes_the_files_of_all_his_jobs),
        };

        return cmocka_run_group_tests_name("leader-files", tests, NULL, NULL);
}
