#include "tests/unit/sched/sched_test.h"

#include <dlfcn.h>
#include <string.h>

#include "common/util.h"

static char *with_quotes(const char *text) {
        char *copy = xstrdup(text);

        for (char *c = copy; *c; c++)
                if (*c == '\'')
                        *c = '"';
        return copy;
}

struct snapshot *test_snapshot(const char *text) {
        cleanup_free char *json = with_quotes(text);
        struct snapshot *snapshot = NULL;
        struct rm_error err = { 0 };

        if (snapshot_parse(json, strlen(json), &snapshot, &err) < 0)
                fail_msg("%s", error_text(&err));
        return snapshot;
}

const char *test_snapshot_error(const char *text) {
        static struct rm_error err;
        cleanup_free char *json = with_quotes(text);
        struct snapshot *snapshot = NULL;

        error_clear(&err);
        if (snapshot_parse(json, strlen(json), &snapshot, &err) == 0)
                fail_msg("accepted: %s", text);
        assert_null(snapshot);
        assert_int_equal(err.code, -EINVAL);
        return error_text(&err);
}

uint32_t dice_roll(struct dice *dice, uint32_t n) {
        dice->state = dice->state * 6364136223846793005u + 1442695040888963407u;
        return (uint32_t) ((dice->state >> 33) % n);
}

void test_policy_load(struct test_policy *policy, const char *name) {
        const char *directory = getenv("TEST_POLICY_DIR");
        cleanup_free char *path = xasprintf("%s/%s.so", directory ? directory : ".", name);

        policy->library = dlopen(path, RTLD_NOW | RTLD_NODELETE); /* so that leak reports have names */
        if (!policy->library)
                fail_msg("%s", dlerror());
        policy->plugin = dlsym(policy->library, RM_PLUGIN_SYMBOL);
        assert_non_null(policy->plugin);
}

void test_policy_unload(struct test_policy *policy) {
        dlclose(policy->library);
}

static uint64_t left_usec(void *context) {
        uint64_t deadline = *(const uint64_t *) context, now = now_usec();

        return deadline > now ? deadline - now : 0;
}

int test_policy_place(const struct test_policy *policy, const struct rm_snapshot *snapshot, struct rm_plan **ret_plan) {
        uint64_t deadline = now_usec() + 100 * 1000 * 1000;
        struct rm_policy_run run = { .size = sizeof(run), .context = &deadline, .left_usec = left_usec };

        *ret_plan = plan_create(snapshot);
        return policy->plugin->place(NULL, snapshot, &run, *ret_plan);
}

struct round_result *test_round(const char *name, const struct rm_snapshot *snapshot, const struct round_job *jobs) {
        struct test_policy policy;
        struct round_result *result;
        struct rm_error err = { 0 };
        struct round *round;

        test_policy_load(&policy, name);
        if (round_create(snapshot, jobs, &round, &err) < 0)
                fail_msg("%s", error_text(&err));
        for (uint32_t pass = 0; pass < round_passes(round); pass++) {
                const struct rm_snapshot *asked = round_prepare(round, pass);
                cleanup_plan struct rm_plan *plan = NULL;

                assert_true(asked->params.backfill <= 1); /* policies know no other */
                assert_int_equal(test_policy_place(&policy, asked, &plan), 0);
                if (round_accept(round, pass, name, plan, &err) < 0)
                        fail_msg("%s", error_text(&err));
        }
        round_finish(round, &result);
        round_destroy(round);
        test_policy_unload(&policy);
        return result;
}
