#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/util.h"
#include "proto/json.h"
#include "proto/local.pb-c.h"

static void expect(const ProtobufCMessage *message, const char *key, const char *want) {
        json_t *root = json_from_message(message);
        json_t *value = json_object_get(root, key);
        cleanup_free char *got = value ? json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;

        if (!got || strcmp(got, want) != 0)
                fail_msg("%s: %s, expected %s", key, got ? got : "(none)", want);
        json_decref(root);
}

static void a_view_is_merged_with_what_it_wraps(void **state) {
        Rm__JobView view = RM__JOB_VIEW__INIT;
        Rm__Job job = RM__JOB__INIT;
        Rm__JobSpec spec = RM__JOB_SPEC__INIT;
        Rm__Capsule capsule = RM__CAPSULE__INIT;
        Rm__Capsule *capsules[] = { &capsule };
        char *argv[] = { (char *) "mpirun", (char *) "\xff" };

        (void) state;
        capsule.index = -1;
        capsule.address = 0x0ac90001;
        capsule.state = RM__CAPSULE_STATE__CAPSULE_READY;
        spec.argv = argv;
        spec.n_argv = 2;
        job.id = UINT64_C(1) << 40;
        job.state = RM__JOB_STATE__JOB_RUNNING;
        job.submit_usec = UINT64_C(1795262014123456);
        job.spec = &spec;
        job.capsules = capsules;
        job.n_capsules = 1;
        view.job = &job;
        view.state = (char *) "MIGRATING";
        expect(&view.base, "id", "1099511627776");
        expect(&view.base, "state", "\"MIGRATING\"");
        expect(&view.base, "submit", "\"2026-11-21T11:53:34.123456Z\"");
        expect(&view.base, "start", "null");
        expect(&view.base, "foreign", "false");
        expect(&job.base, "state", "\"RUNNING\"");
        expect(&capsule.base, "address", "\"10.201.0.1\"");
        expect(&capsule.base, "index", "-1");
        expect(&capsule.base, "state", "\"READY\"");
        expect(&spec.base, "argv", "[\"mpirun\",\"?\"]");
        expect(&spec.base, "env", "[]");
}

static void what_is_not_there_is_null_or_empty(void **state) {
        Rm__NodeView view = RM__NODE_VIEW__INIT;
        Rm__Status status = RM__STATUS__INIT;
        Rm__Move move = RM__MOVE__INIT;

        (void) state;
        expect(&view.base, "node", "null");
        expect(&status.base, "availability", "null");
        expect(&status.base, "warnings", "[]");
        move.freeze_usec = 281000;
        move.state = RM__MOVE_STATE__MOVE_DONE;
        expect(&move.base, "freeze_usec", "281000");
        expect(&move.base, "state", "\"DONE\"");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_view_is_merged_with_what_it_wraps),
                cmocka_unit_test(what_is_not_there_is_null_or_empty),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
