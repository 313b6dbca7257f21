/* What of a job is shown where: cut where it is long, and never another user's command line. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/util.h"
#include "daemon/config/config.h"
#include "daemon/requests/views.h"

static const struct config config = { .network = 0x0ac90000 };
static struct rmd rmd = { .config = &config };
static struct client owner = { .rmd = &rmd, .uid = 1000 };
static struct client other = { .rmd = &rmd, .uid = 1001 };

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

static Rm__JobView *see(const struct client *client, const Rm__Job *job, size_t max_bytes) {
        Rm__State state = RM__STATE__INIT;
        struct state_index *index = state_index_create(&state);
        Rm__JobView *view = job_view(client, index, job, max_bytes);

        assert_int_equal(view->job->id, 7);
        assert_int_equal(view->job->spec->n_env, 0);
        assert_string_equal(view->job->spec->token, "");
        assert_int_equal(job->spec->n_env, 1); /* the job itself stays */
        assert_string_equal(job->spec->token, "secret");
        state_index_destroy(index);
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

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_whole_where_it_fits),        cmocka_unit_test(test_cut_in_lists),
                cmocka_unit_test(test_many_capsules_are_cut),      cmocka_unit_test(test_foreign),
                cmocka_unit_test(test_checkpoints_are_the_owners),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
