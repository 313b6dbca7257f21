/* The policy host with policies that are broken on purpose: none may do more than fail with a clear
 * sentence. */
#include <event2/event.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "common/util.h"
#include "daemon/sched/scheduler.h"
#include "tests/unit/sched/sched_test.h"

#define SNAPSHOT                                                                                                                   \
        "{'version':1,'nodes':[{'name':'n1','cores':4,'penalty':1,'memory':400000000},{'name':'n2','cores':4,'penalty':1}],"       \
        "'jobs':[{'name':'j1','ranks':3,'priority':1,'group_memory':200000000}]}"

/* Address sanitizers need all address space there is, and turn a crash into an exit. */
#if defined(__SANITIZE_ADDRESS__)
#define MEMORY_BYTES 0
#define SEGMENTATION_FAULT "ended with status 1: "
#else
#define MEMORY_BYTES (512u << 20)
#define SEGMENTATION_FAULT "crashed (Segmentation fault)"
#endif

struct world {
        struct event_base *base;
        struct policy_host_config config;
        struct policy_host *host;
        char text[2048]; /* of the error, or the list */
        bool answered;
        int64_t cost;
        size_t n_actions;
        uint32_t calls;
};

static void begin(struct world *world) {
        *world = (struct world) { .base = event_base_new(),
                                  .config = { .program = getenv("TEST_POLICY_HOST"),
                                              .directory = getenv("TEST_POLICY_DIR"),
                                              .memory_bytes = MEMORY_BYTES } };
        world->host = policy_host_create(world->base, &world->config);
}

static void end(struct world *world) {
        policy_host_destroy(world->host);
        event_base_free(world->base);
}

static void on_answer(void *context, struct plan_answer *answer, const struct rm_error *err) {
        struct world *world = context;

        world->answered = answer != NULL;
        world->calls++;
        if (answer)
                world->cost = answer->cost;
        (void) snprintf(world->text, sizeof(world->text), "%s", answer ? answer->plan->method : error_text(err));
        (void) event_base_loopbreak(world->base);
}

static void run(struct world *world, const char *policy, uint64_t budget_usec) {
        cleanup_snapshot struct snapshot *snapshot = test_snapshot(SNAPSHOT);
        struct rm_error err = { 0 };

        if (policy_host_run(world->host, policy, snapshot_view(snapshot), budget_usec, on_answer, world, &err) < 0)
                fail_msg("%s", error_text(&err));
        assert_int_equal(policy_host_run(world->host, policy, snapshot_view(snapshot), 1, on_answer, world, &err), -EBUSY);
        (void) event_base_dispatch(world->base);
}

static void good_policies(void **state) {
        static const char *const names[] = { "greedy", "noisy", "escapes", "threads" };
        struct world world;

        (void) state;
        begin(&world);
        for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
                run(&world, names[i], 10000000);
                if (!world.answered)
                        fail_msg("%s: %s", names[i], world.text);
        }
        assert_int_equal(world.calls, ARRAY_SIZE(names));
        end(&world);
}

static void broken_policies(void **state) {
        static const struct {
                const char *name, *expected;
        } cases[] = {
                { "crash", "policy 'crash': " SEGMENTATION_FAULT },
                { "hang", "policy 'hang': killed: no answer after 450 ms" },
                { "nonsense", "policy 'nonsense': invalid answer: job 'j1': group 1 is placed on node number 1000000 of 2 nodes" },
                { "gives-up", "policy 'gives-up': running jobs do not fit: they have 0 ranks, and 8 cores may be used" },
#if MEMORY_BYTES
                { "memory", "policy 'memory': Cannot allocate memory" },
#endif
                { "old-abi", "policy 'old-abi': was built for plugin ABI 77, this rmd has 1" },
                { "over-memory", "policy 'over-memory': invalid answer: groups that come to node 'n1' need 600 MB of memory, but "
                                 "it has 400 MB free" },
                { "old-policy-abi", "policy 'old-policy-abi': was built for policy ABI 78, this rmd has 2" },
                { "other-kind", "policy 'other-kind': is not a policy" },
                { "other-name", "policy 'other-name': calls itself 'somebody-else': name and file name must agree" },
                { "no-call", "policy 'no-call': has no place()" },
                { "too-small", "policy 'too-small': its descriptor has" },
                { "no-create", "policy 'no-create': cannot start: No such file or directory" },
                { "no-symbol", "has no symbol 'rm_plugin'" },
                { "dies-loading", "policy 'dies-loading': crashed (Aborted)" },
                { "not-there", "policy 'not-there': " },
                { "../greedy", "policy '../greedy': that is no name" },
        };
        struct world world;

        (void) state;
        begin(&world);
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                run(&world, cases[i].name, strcmp(cases[i].name, "hang") == 0 ? 200000 : 100000000);
                assert_false(world.answered);
                if (!strstr(world.text, cases[i].expected))
                        fail_msg("\"%s\" does not say \"%s\"", world.text, cases[i].expected);
                if (strchr(world.text, '\n'))
                        fail_msg("more than one line: %s", world.text);
        }
        end(&world);
}

static void no_host(void **state) {
        cleanup_snapshot struct snapshot *snapshot = test_snapshot(SNAPSHOT);
        struct rm_error err = { 0 };
        struct world world;

        (void) state;
        begin(&world);
        policy_host_destroy(world.host);
        world.config.program = "/nowhere/rm-plugin-host";
        world.host = policy_host_create(world.base, &world.config);
        assert_int_equal(policy_host_run(world.host, "greedy", snapshot_view(snapshot), 1000, on_answer, &world, &err), -ENOENT);
        assert_non_null(strstr(error_text(&err), "/nowhere/rm-plugin-host"));
        assert_int_equal(world.calls, 0);
        end(&world);
}

/* No policy is run that could do what it likes. */
static void no_filter(void **state) {
        struct world world;

        (void) state;
        begin(&world);
        policy_host_destroy(world.host);
        world.config.program = getenv("TEST_WITHOUT_SECCOMP");
        world.host = policy_host_create(world.base, &world.config);
        run(&world, "greedy", 10000000);
        assert_false(world.answered);
        if (!strstr(world.text, "(seccomp)"))
                fail_msg("%s", world.text);
        end(&world);
}

static void cancelled(void **state) {
        cleanup_snapshot struct snapshot *snapshot = test_snapshot(SNAPSHOT);
        struct world world;

        (void) state;
        begin(&world);
        assert_int_equal(policy_host_run(world.host, "hang", snapshot_view(snapshot), 60000000, on_answer, &world, NULL), 0);
        (void) event_base_loop(world.base, EVLOOP_NONBLOCK);
        policy_host_cancel(world.host);
        (void) event_base_dispatch(world.base); /* nothing is left to wait for */
        assert_int_equal(world.calls, 0);
        run(&world, "greedy", 10000000);
        assert_true(world.answered);
        assert_int_equal(policy_host_run(world.host, "hang", snapshot_view(snapshot), 60000000, on_answer, &world, NULL), 0);
        end(&world); /* while it runs */
}

static void on_list(void *context, json_t *list, const struct rm_error *err) {
        struct world *world = context;
        cleanup_free char *text = list ? json_dumps(list, JSON_COMPACT) : xstrdup(error_text(err));

        world->answered = list != NULL;
        (void) snprintf(world->text, sizeof(world->text), "%s", text);
        (void) event_base_loopbreak(world->base);
}

static void lists(void **state) {
        struct world world;

        (void) state;
        begin(&world);
        assert_int_equal(policy_host_list(world.host, on_list, &world, NULL), 0);
        (void) event_base_dispatch(world.base);
        assert_true(world.answered);
        assert_non_null(strstr(world.text, "{\"name\":\"greedy\",\"description\":\"moves no running group"));
        assert_non_null(strstr(world.text, "{\"name\":\"dies-loading\",\"error\":\"loading it ends the process\"}"));
        assert_non_null(strstr(world.text, "{\"name\":\"old-abi\",\"error\":\"policy 'old-abi': was built for"));
        end(&world);
}

/* ---- the scheduler around it ---- */

static void on_result(void *context, const struct rm_snapshot *snapshot, const struct round_result *result, const char *warnings) {
        struct world *world = context;

        assert_non_null(snapshot);
        world->n_actions = result->n_actions;
        world->calls++;
        (void) snprintf(world->text, sizeof(world->text), "%s|%s|%s", result->n_jobs > 0 ? result->jobs[0].policy : "",
                        result->n_jobs > 0 ? result->jobs[0].reason : "", warnings);
        (void) event_base_loopbreak(world->base);
}

static void schedule(struct world *world, const char *directory, const char *policy, uint64_t budget_usec, const char *text) {
        struct scheduler_config config = { .host = world->config, .policy = policy, .budget_usec = budget_usec };
        struct scheduler *scheduler;
        struct rm_error err = { 0 };

        config.host.directory = directory ? directory : config.host.directory;
        scheduler = scheduler_create(world->base, &config);
        if (scheduler_run(scheduler, test_snapshot(text), NULL, on_result, world, &err) < 0)
                fail_msg("%s", error_text(&err));
        if (scheduler_busy(scheduler))
                (void) event_base_dispatch(world->base);
        assert_false(scheduler_busy(scheduler));
        scheduler_destroy(scheduler);
}

static void says(const struct world *world, const char *expected) {
        if (strcmp(world->text, expected) != 0)
                fail_msg("\"%s\" instead of \"%s\"", world->text, expected);
}

static void falls_back(void **state) {
        struct world world;

        (void) state;
        begin(&world);
        schedule(&world, NULL, NULL, 60000000, SNAPSHOT);
        assert_int_equal(world.n_actions, 1);
        says(&world, "greedy||");
        schedule(&world, NULL, "crash", 60000000, SNAPSHOT);
        assert_int_equal(world.n_actions, 1);
        assert_non_null(strstr(world.text, "greedy||policy 'crash': " SEGMENTATION_FAULT));
        assert_non_null(strstr(world.text, "; asking 'greedy' instead"));
        /* Whether greedy answers within as much depends on the machine. */
        schedule(&world, NULL, "hang", 750000, SNAPSHOT);
        assert_non_null(strstr(world.text, "policy 'hang': killed: no answer after 1000 ms; asking 'greedy' instead"));
        /* Nothing answers: what must leave leaves nevertheless, nothing starts. */
        schedule(&world, "/nowhere", "greedy", 60000000,
                 "{'version':1,'nodes':[{'name':'n1','cores':0,'penalty':1},{'name':'n2','cores':4,'penalty':1}],'jobs':["
                 "{'name':'j2','ranks':1,'priority':1},"
                 "{'name':'j1','ranks':2,'group_size':2,'priority':1,'placed':[{'node':'n1','ranks':2}]}]}");
        assert_int_equal(world.n_actions, 1);
        assert_non_null(strstr(world.text, "its jobs wait, running ones stay where they can"));
        schedule(&world, NULL, "greedy", 60000000, "{'version':1,'nodes':[],'jobs':[]}");
        assert_int_equal(world.n_actions, 0);
        assert_int_equal(world.calls, 5);
        end(&world);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(good_policies), cmocka_unit_test(broken_policies), cmocka_unit_test(no_host),
                cmocka_unit_test(no_filter),     cmocka_unit_test(cancelled),       cmocka_unit_test(lists),
                cmocka_unit_test(falls_back),
        };

        /* The signal is ignored as in rmd: a host may end before it has read its snapshot. */
        (void) signal(SIGPIPE, SIG_IGN);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
