/* Requests about checkpoints: which there are to be named, and which a job can go on from. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/client/client.h"
#include "daemon/requests/checkpoint_checks.h"
#include "daemon/requests/exchange_request.h"
#include "daemon/requests/export_checkpoint.h"
#include "daemon/requests/restart_job.h"
#include "daemon/state/state.h"

enum { CAPTURING, STORING, DONE };

struct fixture {
        Rm__Job job;
        Rm__Checkpoint checkpoints[2];
        Rm__Checkpoint *list[2];
};

/* Job 7 with checkpoints 2 and 5. */
static void make(struct fixture *f, size_t n, int first, int second) {
        static const uint64_t numbers[] = { 2, 5 };

        rm__job__init(&f->job);
        f->job.id = 7;
        for (size_t i = 0; i < 2; i++) {
                rm__checkpoint__init(&f->checkpoints[i]);
                f->checkpoints[i].id = numbers[i];
                f->checkpoints[i].state = (Rm__CheckpointState) (i == 0 ? first : second);
                f->list[i] = &f->checkpoints[i];
        }
        f->job.checkpoints = f->list;
        f->job.n_checkpoints = n;
}

static int restart(const struct fixture *f, uint64_t number, const char *text) {
        struct rm_error err = { 0 };
        int r = restart_job_check(&f->job, number, &err);

        if (r < 0 && !strstr(error_text(&err), text))
                fail_msg("'%s' does not say '%s'", error_text(&err), text);
        return r;
}

static void test_found_by_number(void **state) {
        const Rm__Checkpoint *found = NULL;
        struct rm_error err = { 0 };
        struct fixture f;

        (void) state;
        make(&f, 2, DONE, DONE);
        assert_int_equal(checkpoint_find(&f.job, 5, "remove-checkpoint", &found, &err), 0);
        assert_ptr_equal(found, &f.checkpoints[1]);
        assert_int_equal(checkpoint_find(&f.job, 3, "remove-checkpoint", &found, &err), -ENOENT);
        assert_string_equal(error_text(&err), "remove-checkpoint: job 7 has no checkpoint 3 (it has: 2 5)");
        f.job.n_checkpoints = 0;
        err = (struct rm_error) { 0 };
        assert_int_equal(checkpoint_find(&f.job, 0, "remove-checkpoint", &found, &err), -ENOENT);
        assert_string_equal(error_text(&err), "remove-checkpoint: job 7 has no checkpoint 0 (it has: none)");
}

static void test_goes_on_from_what_is_done(void **state) {
        struct fixture f;

        (void) state;
        make(&f, 2, DONE, STORING);
        assert_int_equal(restart(&f, 0, ""), 0);
        assert_int_equal(restart(&f, 2, ""), 0);
        assert_int_equal(restart(&f, 5, "restart-job: checkpoint 7.5 is not done"), -EBUSY);
        assert_int_equal(restart(&f, 9, "restart-job: job 7 has no checkpoint 9 (it has: 2 5)"), -ENOENT);
        make(&f, 2, CAPTURING, STORING);
        assert_int_equal(restart(&f, 0, "restart-job: job 7 has no checkpoint"), -ENOENT);
        make(&f, 0, DONE, DONE);
        assert_int_equal(restart(&f, 0, "restart-job: job 7 has no checkpoint"), -ENOENT);
        f.job.held = true; /* it goes on from the beginning */
        assert_int_equal(restart(&f, 0, ""), 0);
        assert_int_equal(restart(&f, 2, "has no checkpoint 2 (it has: none)"), -ENOENT);
}

static int export_as(uid_t uid, bool admin, bool here) {
        static char connection;
        Rm__JobSpec spec = RM__JOB_SPEC__INIT;
        Rm__Job job = RM__JOB__INIT;
        struct client client = { .uid = uid, .admin = admin, .conn = here ? (struct conn *) &connection : NULL };
        struct rm_error err = { 0 };

        spec.uid = 1000;
        job.spec = &spec;
        return export_checkpoint_check_owner(&client, &job, &err);
}

/* Their contents are for nobody else, not even for administrators, and not for who asks from
 * another node. */
static void test_exported_by_owner_and_root(void **state) {
        (void) state;
        assert_int_equal(export_as(1000, false, true), 0);
        assert_int_equal(export_as(0, true, true), 0);
        assert_int_equal(export_as(1001, false, true), -EPERM);
        assert_int_equal(export_as(1001, true, true), -EPERM);
        assert_int_equal(export_as(1000, false, false), -EPERM);
        assert_int_equal(export_as(0, true, false), -EPERM);
}

static int key_given_by(uid_t uid, bool admin, bool here, const char *path) {
        static char connection;
        struct client client = { .uid = uid, .admin = admin, .conn = here ? (struct conn *) &connection : NULL };
        struct rm_error err = { 0 };

        return sealed_key_check(&client, "import-checkpoint", path, &err);
}

/* A client that gives the key reads images, and makes them: so neither the owner of the job may,
 * nor a client on another node. */
static void test_key_given_by_root_only(void **state) {
        (void) state;
        assert_int_equal(key_given_by(1000, false, true, ""), 0);
        assert_int_equal(key_given_by(0, true, true, "/root/key"), 0);
        assert_int_equal(key_given_by(0, true, true, "key"), -EINVAL);
        assert_int_equal(key_given_by(1000, false, true, "/home/alice/key"), -EPERM);
        assert_int_equal(key_given_by(1001, true, true, "/root/key"), -EPERM);
        assert_int_equal(key_given_by(0, true, false, "/root/key"), -EPERM);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_found_by_number),
                cmocka_unit_test(test_goes_on_from_what_is_done),
                cmocka_unit_test(test_exported_by_owner_and_root),
                cmocka_unit_test(test_key_given_by_root_only),
        };

        return cmocka_run_group_tests_name("checkpoints", tests, NULL, NULL);
}
