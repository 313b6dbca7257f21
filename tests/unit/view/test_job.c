/* The fields of a job as they are shown: cut where they are long, and never another user's command
 * line. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/util.h"
#include "daemon/view/job.h"

#define NOW_USEC UINT64_C(1800000000000000)
#define SECOND_USEC UINT64_C(1000000)

static const struct view_reader owner = { .uid = 1000 };
static const struct view_reader other = { .uid = 1001 };
static const struct view_reader admin = { .uid = 0, .admin = true };

/* The state is borrowed; the index is the caller's. */
static struct view_source source_of(Rm__State *state) {
        return (struct view_source) { .index = state_index_create(state),
                                      .network = 0x0ac90000,
                                      .lease_usec = 6 * SECOND_USEC,
                                      .checkpoint_mtbf_usec = 86400 * SECOND_USEC,
                                      .now_real_usec = NOW_USEC };
}

/* Capsules and words of so many bytes. */
static Rm__Job *make_job(unsigned capsules, unsigned words, size_t word_bytes) {
        Rm__Job *job = xcalloc(1, sizeof(*job));

        rm__job__init(job);
        job->id = 7;
        job->spec = xcalloc(1, sizeof(*job->spec));
        rm__job_spec__init(job->spec);
        job->spec->uid = 1000;
        job->spec->token = xstrdup("secret");
        job->spec->cwd = xstrdup("/home/alice");
        job->spec->env = xcalloc(1, sizeof(char *));
        job->spec->env[job->spec->n_env++] = xstrdup("A=b");
        job->spec->argv = xcalloc(words, sizeof(char *));
        for (unsigned i = 0; i < words; i++) {
                job->spec->argv[job->spec->n_argv++] = xcalloc(1, word_bytes + 1);
                memset(job->spec->argv[i], 'x', word_bytes);
        }
        job->capsules = xcalloc(capsules, sizeof(Rm__Capsule *));
        for (unsigned i = 0; i < capsules; i++) {
                job->capsules[job->n_capsules] = xcalloc(1, sizeof(Rm__Capsule));
                rm__capsule__init(job->capsules[i]);
                job->capsules[i]->index = (int32_t) i - 1;
                job->capsules[i]->node = xstrdup("a-node-with-a-long-name");
                job->capsules[i]->address = i;
                job->n_capsules++;
        }
        return job;
}

static Rm__JobView *see(const struct view_reader *reader, const Rm__Job *job, size_t max_bytes) {
        Rm__State state = RM__STATE__INIT;
        struct view_source source = source_of(&state);
        Rm__JobView *view = view_job(&source, reader, job, max_bytes);

        assert_int_equal(view->job->id, 7);
        assert_int_equal(view->job->spec->n_env, 0);
        assert_string_equal(view->job->spec->token, "");
        assert_int_equal(job->spec->n_env, 1); /* the job itself stays */
        assert_string_equal(job->spec->token, "secret");
        state_index_destroy((struct state_index *) source.index);
        return view;
}

static void test_whole_where_it_fits(void **state) {
        Rm__Job *job = make_job(3, 6, 150000);
        Rm__JobView *view = see(&owner, job, VIEW_WHOLE_BYTES);

        assert_int_equal(view->job->spec->n_argv, 6);
        assert_int_equal(strlen(view->job->spec->argv[5]), 150000);
        assert_false(view->argv_cut);
        assert_int_equal(view->capsules_left_out, 0);
        assert_int_equal(view->job->capsules[2]->address, 0x0ac90002);
        assert_string_equal(view->nodes, "a-node-with-a-long-name");
        rm__job_view__free_unpacked(view, NULL);
        rm__job__free_unpacked(job, NULL);
}

static void test_cut_in_lists(void **state) {
        Rm__Job *job = make_job(3, 6, 150000);
        Rm__JobView *view = see(&owner, job, VIEW_LISTED_BYTES);

        assert_true(view->argv_cut);
        assert_int_equal(view->job->spec->n_argv, 1);
        assert_in_range(strlen(view->job->spec->argv[0]), 100, 2000);
        assert_int_equal(view->job->n_capsules, 3);
        assert_int_equal(job->spec->n_argv, 6);
        assert_true(protobuf_c_message_get_packed_size(&view->base) < VIEW_LISTED_BYTES);
        rm__job_view__free_unpacked(view, NULL);
        rm__job__free_unpacked(job, NULL);
        job = make_job(1, 4000, 50);
        view = see(&owner, job, VIEW_LISTED_BYTES);
        assert_true(view->argv_cut);
        assert_in_range(view->job->spec->n_argv, 5, 100);
        rm__job_view__free_unpacked(view, NULL);
        rm__job__free_unpacked(job, NULL);
}

static void test_many_capsules_are_cut(void **state) {
        Rm__Job *job = make_job(5000, 2, 10);
        Rm__JobView *view = see(&owner, job, VIEW_LISTED_BYTES);

        assert_int_equal(view->job->n_capsules, 200);
        assert_int_equal(view->capsules_left_out, 4800);
        assert_true(protobuf_c_message_get_packed_size(&view->base) < VIEW_LISTED_BYTES);
        rm__job_view__free_unpacked(view, NULL);
        rm__job__free_unpacked(job, NULL);
}

static void test_foreign(void **state) {
        Rm__Job *job = make_job(1, 3, 10);
        Rm__JobView *view = see(&other, job, VIEW_WHOLE_BYTES);

        assert_true(view->foreign);
        assert_int_equal(view->job->spec->n_argv, 0);
        assert_string_equal(view->job->spec->cwd, "");
        rm__job_view__free_unpacked(view, NULL);
        rm__job__free_unpacked(job, NULL);
}

static void test_checkpoints_are_the_owners(void **state) {
        Rm__Job *job = make_job(2, 1, 1);
        Rm__JobView *view;

        job->checkpoints = xcalloc(1, sizeof(*job->checkpoints));
        job->checkpoints[job->n_checkpoints++] = xcalloc(1, sizeof(Rm__Checkpoint));
        rm__checkpoint__init(job->checkpoints[0]);
        job->checkpoint_error = xstrdup("no space left");
        view = see(&owner, job, VIEW_WHOLE_BYTES);
        assert_int_equal(view->job->n_checkpoints, 1);
        assert_string_equal(view->job->checkpoint_error, "no space left");
        rm__job_view__free_unpacked(view, NULL);
        view = see(&other, job, VIEW_WHOLE_BYTES);
        assert_int_equal(view->job->n_checkpoints, 0);
        assert_string_equal(view->job->checkpoint_error, "");
        rm__job_view__free_unpacked(view, NULL);
        rm__job__free_unpacked(job, NULL);
}

/* A job with checkpoints that runs, as restartable or not. */
static Rm__Job *make_running(uint32_t on_node_loss) {
        Rm__Job *job = make_job(2, 1, 1);

        job->state = RM__JOB_STATE__JOB_RUNNING;
        job->start_usec = NOW_USEC - 500 * SECOND_USEC;
        job->spec->on_node_loss = on_node_loss;
        job->spec->checkpoint_usec = 300 * SECOND_USEC;
        job->checkpoints = xcalloc(2, sizeof(*job->checkpoints));
        for (; job->n_checkpoints < 2; job->n_checkpoints++) {
                Rm__Checkpoint *checkpoint = job->checkpoints[job->n_checkpoints] = xcalloc(1, sizeof(*checkpoint));

                rm__checkpoint__init(checkpoint);
                checkpoint->id = job->n_checkpoints + 1;
        }
        job->checkpoints[0]->state = RM__CHECKPOINT_STATE__CHECKPOINT_DONE;
        job->checkpoints[0]->captured_usec = NOW_USEC - 100 * SECOND_USEC;
        job->checkpoints[1]->state = RM__CHECKPOINT_STATE__CHECKPOINT_STORING; /* nobody can go back to it yet */
        job->checkpoints[1]->captured_usec = NOW_USEC - 10 * SECOND_USEC;
        return job;
}

/* The work since the last checkpoint that is done, the lease, and the time of a restart. */
static void test_what_a_loss_costs(void **state) {
        Rm__Job *job = make_running(STATE_LOSS_RESTART);
        Rm__JobView *view = see(&owner, job, VIEW_WHOLE_BYTES);

        assert_int_equal(view->checkpoint_interval_usec, 300 * SECOND_USEC);
        assert_int_equal(view->expected_loss_usec, 107500000);
        rm__job_view__free_unpacked(view, NULL);
        view = see(&other, job, VIEW_WHOLE_BYTES);
        assert_int_equal(view->checkpoint_interval_usec, 0);
        assert_int_equal(view->expected_loss_usec, 0);
        rm__job_view__free_unpacked(view, NULL);
        job->checkpoints[0]->state = RM__CHECKPOINT_STATE__CHECKPOINT_CAPTURING;
        view = see(&admin, job, VIEW_WHOLE_BYTES);
        assert_int_equal(view->expected_loss_usec, 507500000);
        rm__job_view__free_unpacked(view, NULL);
        rm__job__free_unpacked(job, NULL);
}

static void test_a_job_that_aborts_loses_all(void **state) {
        Rm__Job *job = make_running(0);
        Rm__JobView *view = see(&owner, job, VIEW_WHOLE_BYTES);

        assert_int_equal(view->expected_loss_usec, 0);
        rm__job_view__free_unpacked(view, NULL);
        job->state = RM__JOB_STATE__JOB_COMPLETED;
        view = see(&owner, job, VIEW_WHOLE_BYTES);
        assert_int_equal(view->checkpoint_interval_usec, 0);
        rm__job_view__free_unpacked(view, NULL);
        rm__job__free_unpacked(job, NULL);
}

/* ---- jobs that have more ranks on a node than it has cores ---- */

/* Head and group 0, of 4 ranks, on n1 with 2 cores, and group 1, of 2, on n2 with 4. */
struct folded {
        Rm__Node nodes[2], *list[2];
        Rm__State state;
        Rm__Job *job;
};

static void folded_begin(struct folded *f) {
        static const char *const on[] = { "n1", "n1", "n2" };
        static const uint32_t ranks[] = { 0, 4, 2 };

        rm__state__init(&f->state);
        for (unsigned i = 0; i < 2; i++) {
                rm__node__init(&f->nodes[i]);
                f->nodes[i].name = (char *) (i == 0 ? "n1" : "n2");
                f->nodes[i].cores = 2 + 2 * i;
                f->nodes[i].health = RM__NODE_HEALTH__NODE_HEALTH_UP;
                f->list[i] = &f->nodes[i];
        }
        f->job = make_job(3, 1, 8);
        f->job->state = RM__JOB_STATE__JOB_RUNNING;
        f->job->spec->ranks = 6;
        f->job->reason = xstrdup("as the leader saw it");
        for (unsigned i = 0; i < 3; i++) {
                message_set_string(&f->job->capsules[i]->node, on[i]);
                f->job->capsules[i]->ranks = ranks[i];
        }
        f->state.nodes = f->list;
        f->state.n_nodes = 2;
        f->state.jobs = &f->job;
        f->state.n_jobs = 1;
}

static void expect_fold(struct folded *f, const char *word, const char *node, uint32_t ranks, uint32_t cores, const char *reason) {
        struct view_source source = source_of(&f->state);
        Rm__JobView *view = view_job(&source, &owner, f->job, VIEW_WHOLE_BYTES);

        assert_string_equal(view->state, word);
        assert_string_equal(view->folded_node, node);
        assert_int_equal(view->folded_ranks, ranks);
        assert_int_equal(view->folded_cores, cores);
        assert_string_equal(view->job->reason, reason);
        rm__job_view__free_unpacked(view, NULL);
        state_index_destroy((struct state_index *) source.index);
}

/* A node that does not answer has no usable cores, and nobody knows what runs on those that it has:
 * the job is not folded on it, nor shown as folded elsewhere meanwhile. */
static void test_no_fold_on_lost_nodes(void **state) {
        static const char as_seen[] = "as the leader saw it";
        struct folded f;

        folded_begin(&f);
        expect_fold(&f, "FOLDED", "n1", 4, 2, as_seen);
        f.nodes[0].cores = 4;
        expect_fold(&f, "RUNNING", "", 0, 0, as_seen);
        f.nodes[0].cores = 2;
        f.nodes[1].health = RM__NODE_HEALTH__NODE_HEALTH_DOWN;
        expect_fold(&f, "RUNNING", "", 0, 0, "node n2 is down: the job ends if the node is not back soon");
        f.job->attempt = 1;
        f.job->spec->restarts = 3;
        f.job->spec->on_node_loss = STATE_LOSS_RESTART;
        expect_fold(&f, "RUNNING", "", 0, 0,
                    "node n2 is down: the job starts again as soon as nothing of it can run there any more");
        f.nodes[1].fence = (char *) "the plugin does not answer";
        expect_fold(&f, "RECOVERING", "", 0, 0, "starts again when node n2 is fenced: the plugin does not answer");
        f.nodes[1].fence = (char *) "";
        f.nodes[1].health = RM__NODE_HEALTH__NODE_HEALTH_UNKNOWN;
        expect_fold(&f, "RUNNING", "", 0, 0, "waits for word of node n2, which the leader has not heard of yet");
        f.job->capsules[2]->state = RM__CAPSULE_STATE__CAPSULE_GONE; /* it has nothing there any more */
        expect_fold(&f, "FOLDED", "n1", 4, 2, as_seen);
        f.nodes[0].health = RM__NODE_HEALTH__NODE_HEALTH_DOWN; /* of mpirun, too */
        expect_fold(&f, "RUNNING", "", 0, 0,
                    "node n1 is down: the job starts again as soon as nothing of it can run there any more");
        f.nodes[0].health = RM__NODE_HEALTH__NODE_HEALTH_UP;
        f.nodes[0].drain = true; /* its cores are there, and not to be used */
        expect_fold(&f, "FOLDED", "n1", 4, 0, as_seen);
        rm__job__free_unpacked(f.job, NULL);
}

/* ---- lists ---- */

#define LISTED 5U

/* Jobs 1 to 5: the odd ones are user 1000's, the even ones user 1001's; job 3 has ended. */
struct listed {
        Rm__Job *jobs[LISTED];
        Rm__State state;
        struct view_source source;
};

static void list_begin(struct listed *l) {
        rm__state__init(&l->state);
        for (uint32_t i = 0; i < LISTED; i++) {
                l->jobs[i] = make_job(1, 1, 1000);
                l->jobs[i]->id = i + 1;
                l->jobs[i]->spec->uid = 1000 + i % 2;
        }
        l->jobs[2]->state = RM__JOB_STATE__JOB_COMPLETED;
        l->state.jobs = l->jobs;
        l->state.n_jobs = LISTED;
        l->source = source_of(&l->state);
}

static void list_end(struct listed *l) {
        state_index_destroy((struct state_index *) l->source.index);
        for (size_t i = 0; i < LISTED; i++)
                rm__job__free_unpacked(l->jobs[i], NULL);
}

/* `want`: "1 5", and "+" at its end if there are further ones. */
static void expect_listed(const struct listed *l, const struct view_reader *reader, struct view_jobs which, size_t max_bytes,
                          const char *want) {
        Rm__JobList list = RM__JOB_LIST__INIT;
        char got[64] = "";

        which.max_bytes_each = VIEW_LISTED_BYTES;
        view_jobs(&l->source, reader, &which, max_bytes, &list);
        for (size_t i = 0; i < list.n_jobs; i++)
                (void) snprintf(got + strlen(got), sizeof(got) - strlen(got), "%s%d", i ? " " : "", (int) list.jobs[i]->job->id);
        if (list.more)
                (void) strcat(got, "+");
        assert_string_equal(got, want);
        view_jobs_finish(&list);
}

static void test_lists(void **state) {
        static const uint64_t named[] = { 5, 1, 3, 1, 77 };
        struct listed l;

        list_begin(&l);
        expect_listed(&l, &owner, (struct view_jobs) { 0 }, SIZE_MAX, "1 5");
        expect_listed(&l, &owner, (struct view_jobs) { .ended = true }, SIZE_MAX, "1 3 5");
        expect_listed(&l, &other, (struct view_jobs) { .ended = true }, SIZE_MAX, "2 4");
        expect_listed(&l, &admin, (struct view_jobs) { .ended = true }, SIZE_MAX, "1 2 3 4 5");
        expect_listed(&l, &owner, (struct view_jobs) { .ids = named, .n_ids = 5 }, SIZE_MAX, "1 3 5");
        expect_listed(&l, &other, (struct view_jobs) { .ids = named, .n_ids = 5 }, SIZE_MAX, "");
        list_end(&l);
}

/* A page is full with what it has when it is full, and the next one begins after it. */
static void test_pages(void **state) {
        static const uint64_t named[] = { 5, 3, 1 };
        struct listed l;

        list_begin(&l);
        expect_listed(&l, &admin, (struct view_jobs) { .ended = true }, 1, "1+");
        expect_listed(&l, &admin, (struct view_jobs) { .ended = true }, 2000, "1 2+");
        expect_listed(&l, &admin, (struct view_jobs) { .ended = true, .after = 2 }, 2000, "3 4+");
        expect_listed(&l, &admin, (struct view_jobs) { .ended = true, .after = 4 }, 2000, "5");
        expect_listed(&l, &owner, (struct view_jobs) { .ids = named, .n_ids = 3, .after = 1 }, 1, "3+");
        list_end(&l);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_whole_where_it_fits),
                cmocka_unit_test(test_cut_in_lists),
                cmocka_unit_test(test_many_capsules_are_cut),
                cmocka_unit_test(test_foreign),
                cmocka_unit_test(test_checkpoints_are_the_owners),
                cmocka_unit_test(test_what_a_loss_costs),
                cmocka_unit_test(test_a_job_that_aborts_loses_all),
                cmocka_unit_test(test_no_fold_on_lost_nodes),
                cmocka_unit_test(test_lists),
                cmocka_unit_test(test_pages),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
